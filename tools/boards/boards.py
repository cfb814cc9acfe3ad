"""The boards."""

from __future__ import annotations

from typing import Any, Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from agenttool_otel.names import Attr, Behavior, Event, GenAI, Label, Metric
from boards import queries as q
from boards.kit import (
    BEHAVIOR_COLORS,
    GREEN,
    RED,
    YELLOW,
    bars,
    board,
    grid,
    heat,
    jaeger_traces,
    jaeger_variables,
    lines,
    log_lines,
    log_records,
    log_variables,
    number,
    trace_lines,
    traces,
)

TOOL: Final = f"{{{{{q.label(GenAI.TOOL_NAME)}}}}}"
BEHAVIOR: Final = f"{{{{{q.label(Attr.PERMISSION_BEHAVIOR)}}}}}"
RULE: Final = f"{{{{{q.label(Attr.PERMISSION_RULE)}}}}}"
CAUSE: Final = f"{{{{{q.label(Attr.PERMISSION_FAIL_CLOSED)}}}}}"
ENGINE: Final = f"{{{{{q.label(Attr.POLICY_ENGINE)}}}}}"
PROFILE: Final = f"{{{{{q.label(Attr.SANDBOX_PROFILE)}}}}}"
VIOLATED: Final = {q.label(GenAI.ERROR_TYPE): '="sandbox_violation"'}
DENY: Final = {q.label(Attr.PERMISSION_BEHAVIOR): '="deny"'}
ASK: Final = {q.label(Attr.PERMISSION_BEHAVIOR): '="ask"'}
FAILED: Final = {
    q.label(GenAI.ERROR_TYPE): '!~"|permission_denied|policy_blocked|approval_rejected"'
}
QUANTILES: Final = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
FINE_AT_ZERO: Final = ((None, GREEN), (1, RED))

_SESSION = q.where(Attr.SESSION_ID, "=", "$session")
_TOOL = q.where(GenAI.TOOL_NAME, "=~", "$tool")


def _spread(metric: str, *labels: str) -> list[tuple[str, str]]:
    return [(q.quantile(metric, quantile, *labels), name) for quantile, name in QUANTILES]


def overview() -> Any:
    """What the agents' tools did, in one look."""
    deny_share = f"{q.total(Metric.DECISIONS, **DENY)} / {q.total(Metric.DECISIONS)}"
    error_share = f"{q.total(Metric.DURATION, suffix='count', **FAILED)} / {q.total(Metric.DURATION, suffix='count')}"
    return board(
        "agenttool / Overview",
        "agenttool-overview",
        "What the agents' tools did: calls, denials, what waits for a person, errors and speed.",
        [
            (
                "Now",
                [
                    number(
                        "Tool calls",
                        "Calls in the time range, also those that never ran.",
                        "short",
                        q.total(Metric.DURATION, suffix="count"),
                    ),
                    number(
                        "Denied",
                        "Share of decisions that denied the call.",
                        "percentunit",
                        deny_share,
                        steps=((None, GREEN), (0.1, YELLOW), (0.3, RED)),
                    ),
                    number(
                        "Waiting for approval",
                        "Approval requests that nobody has answered yet.",
                        "short",
                        q.level(Metric.APPROVALS_PENDING),
                        steps=((None, GREEN), (1, YELLOW), (20, RED)),
                    ),
                    number(
                        "Failed closed",
                        "Calls denied because no decision could be had. Anything above zero is a fault to look at.",
                        "short",
                        q.total(Metric.FAIL_CLOSED),
                        steps=FINE_AT_ZERO,
                    ),
                    number(
                        "Errors",
                        "Share of calls that ended in an error other than a denial.",
                        "percentunit",
                        error_share,
                        steps=((None, GREEN), (0.05, YELLOW), (0.2, RED)),
                    ),
                    number(
                        "Duration p95",
                        "95 of 100 calls took no longer than this, from the first phase to the end.",
                        "s",
                        q.quantile(Metric.DURATION, 0.95),
                    ),
                ],
            ),
            (
                "Over time",
                [
                    lines(
                        "Calls by tool",
                        "Calls per second of each tool.",
                        "ops",
                        (q.rate(Metric.DURATION, GenAI.TOOL_NAME, suffix="count"), TOOL),
                    ),
                    lines(
                        "Decisions by behaviour",
                        "Decisions per second: allow, ask, deny.",
                        "ops",
                        (q.rate(Metric.DECISIONS, Attr.PERMISSION_BEHAVIOR), BEHAVIOR),
                        colors=BEHAVIOR_COLORS,
                    ),
                    lines(
                        "Errors by class",
                        "Calls per second that ended in an error, by the standard's error class; denials included.",
                        "ops",
                        (
                            q.rate(
                                Metric.DURATION,
                                GenAI.ERROR_TYPE,
                                suffix="count",
                                **{q.label(GenAI.ERROR_TYPE): '!=""'},
                            ),
                            f"{{{{{q.label(GenAI.ERROR_TYPE)}}}}}",
                        ),
                    ),
                    lines("Duration", "Time of whole tool calls.", "s", *_spread(Metric.DURATION)),
                ],
            ),
            (
                "Who and what",
                [
                    bars(
                        "Busiest tools",
                        "Tools with the most calls in the time range.",
                        "short",
                        q.top(10, q.total(Metric.DURATION, GenAI.TOOL_NAME, suffix="count")),
                        TOOL,
                    ),
                    bars(
                        "Most denied tools",
                        "Tools with the most denied calls in the time range.",
                        "short",
                        q.top(10, q.total(Metric.DECISIONS, GenAI.TOOL_NAME, **DENY)),
                        TOOL,
                    ),
                    bars(
                        "Rules that denied",
                        "Deciding rules of denials in the time range.",
                        "short",
                        q.top(10, q.total(Metric.DECISIONS, Attr.PERMISSION_RULE, **DENY)),
                        RULE,
                    ),
                    traces(
                        "Latest denied calls",
                        "Open one to see the rule, its reason and what the caller was told.",
                        q.calls(q.where(Attr.PERMISSION_BEHAVIOR, "=", "deny"), _TOOL),
                    ),
                ],
            ),
        ],
    )


def permissions() -> Any:
    """Who decided what, by which rule, and what waits."""
    return board(
        "agenttool / Permissions",
        "agenttool-permissions",
        "Decisions by behaviour, tool and rule; approvals; what a shadow policy would change; fail-closed denials.",
        [
            (
                "Decisions",
                [
                    lines(
                        "Decisions by behaviour",
                        "Decisions per second: allow, ask, deny.",
                        "ops",
                        (q.rate(Metric.DECISIONS, Attr.PERMISSION_BEHAVIOR), BEHAVIOR),
                        colors=BEHAVIOR_COLORS,
                    ),
                    lines(
                        "Decisions by source",
                        "Who decided: policy, user, default, timeout, error, hook. A timeout is nobody's refusal.",
                        "ops",
                        (
                            q.rate(Metric.DECISIONS, Attr.PERMISSION_SOURCE),
                            f"{{{{{q.label(Attr.PERMISSION_SOURCE)}}}}}",
                        ),
                    ),
                    grid(
                        "Behaviour by tool",
                        "Decisions in the time range, by tool and behaviour.",
                        "short",
                        q.total(Metric.DECISIONS, GenAI.TOOL_NAME, Attr.PERMISSION_BEHAVIOR),
                    ),
                    grid(
                        "Behaviour by rule",
                        "Decisions in the time range, by deciding rule and behaviour.",
                        "short",
                        q.total(Metric.DECISIONS, Attr.PERMISSION_RULE, Attr.PERMISSION_BEHAVIOR),
                    ),
                    bars(
                        "Rules that denied",
                        "Deciding rules of denials in the time range.",
                        "short",
                        q.top(10, q.total(Metric.DECISIONS, Attr.PERMISSION_RULE, **DENY)),
                        RULE,
                        width=12,
                    ),
                    bars(
                        "Rules that asked",
                        "Deciding rules of asks in the time range. A rule that asks all day is one to refine.",
                        "short",
                        q.top(10, q.total(Metric.DECISIONS, Attr.PERMISSION_RULE, **ASK)),
                        RULE,
                        width=12,
                    ),
                ],
            ),
            (
                "Approvals",
                [
                    lines(
                        "Approvals pending",
                        "Requests that wait for an answer, and outcomes that the store can't take yet.",
                        "short",
                        (q.level(Metric.APPROVALS_PENDING), "pending"),
                        (q.now(Metric.APPROVALS_UNSTORED), "unstored"),
                        width=6,
                    ),
                    lines(
                        "Wait for an answer",
                        "Time between the question and its answer.",
                        "s",
                        *_spread(Metric.APPROVAL_WAIT),
                        width=6,
                    ),
                    lines(
                        "Oldest request",
                        "Age of the oldest request that waits for an answer.",
                        "s",
                        (q.oldest(Metric.APPROVALS_OLDEST), "oldest"),
                        width=6,
                    ),
                    lines(
                        "Answers",
                        "Answers of people per second, by what they were.",
                        "ops",
                        (
                            q.answers(Metric.APPROVALS_ANSWERED, Attr.APPROVAL_STATUS),
                            f"{{{{{q.label(Attr.APPROVAL_STATUS)}}}}}",
                        ),
                        width=6,
                    ),
                    traces(
                        "Calls that wait",
                        "Calls whose span ended while their approval was pending.",
                        q.calls(q.where(Attr.PERMISSION_OUTCOME, "=", "pending"), _TOOL),
                    ),
                ],
            ),
            (
                "Sandboxes and effects",
                [
                    number(
                        "Held calls",
                        "Share of decided calls whose decision obliges a sandbox.",
                        "percentunit",
                        f"{q.total(Metric.SANDBOX_INVOCATIONS)} / {q.total(Metric.DECISIONS)}",
                    ),
                    lines(
                        "Calls in a sandbox",
                        "Calls per second whose decision obliges a sandbox, by its profile.",
                        "ops",
                        (q.rate(Metric.SANDBOX_INVOCATIONS, Attr.SANDBOX_PROFILE), PROFILE),
                        width=6,
                    ),
                    lines(
                        "Refused by a sandbox",
                        "Calls per second that ended because a sandbox refused something.",
                        "ops",
                        (
                            q.rate(
                                Metric.SANDBOX_INVOCATIONS,
                                GenAI.TOOL_NAME,
                                Attr.SANDBOX_PROFILE,
                                **VIOLATED,
                            ),
                            f"{TOOL}, {PROFILE}",
                        ),
                        width=6,
                    ),
                    grid(
                        "Effects by tool",
                        "What calls have changed, and what was thrown away, in the time range.",
                        "short",
                        q.total(
                            Metric.EFFECTS_SETTLED,
                            GenAI.TOOL_NAME,
                            Label.EFFECTS_KIND,
                            Label.EFFECTS_OUTCOME,
                        ),
                        width=8,
                    ),
                    traces(
                        "Calls that a sandbox refused something",
                        "Calls whose body tried what its profile does not allow.",
                        q.calls(q.where(Attr.SANDBOX_VIOLATIONS, ">", 0), _TOOL),
                    ),
                ],
            ),
            (
                "Shadow and fail-closed",
                [
                    lines(
                        "Shadow differences",
                        "Decisions per second in which the shadow policy would have said something else.",
                        "ops",
                        (
                            q.rate(
                                Metric.SHADOW_DIFFERENCES,
                                Attr.PERMISSION_BEHAVIOR,
                                Attr.PERMISSION_SHADOW_BEHAVIOR,
                            ),
                            f"{BEHAVIOR}, shadow {{{{{q.label(Attr.PERMISSION_SHADOW_BEHAVIOR)}}}}}",
                        ),
                    ),
                    grid(
                        "Shadow differences by tool",
                        "What would change if the shadow policy became the policy.",
                        "short",
                        q.total(
                            Metric.SHADOW_DIFFERENCES,
                            GenAI.TOOL_NAME,
                            Attr.PERMISSION_BEHAVIOR,
                            Attr.PERMISSION_SHADOW_BEHAVIOR,
                        ),
                    ),
                    lines(
                        "Failed closed by cause",
                        "Denials per second because no decision could be had.",
                        "ops",
                        (q.rate(Metric.FAIL_CLOSED, Attr.PERMISSION_FAIL_CLOSED), CAUSE),
                        width=24,
                    ),
                ],
            ),
        ],
    )


def results() -> Any:
    """How large results are, where they go, and what was taken out of them."""
    kind = f"{{{{{q.label(Label.REDACTION_KIND)}}}}}"
    target = f"{{{{{q.label(Attr.REDACTION_TARGET)}}}}}"
    status = f"{{{{{q.label(Attr.RESULT_STATUS)}}}}}"
    return board(
        "agenttool / Results and redaction",
        "agenttool-results",
        "Sizes and states of results, what redaction found, and what could not be redacted or stored.",
        [
            (
                "Results",
                [
                    lines(
                        "Result size",
                        "Sizes of whole results.",
                        "decbytes",
                        *_spread(Metric.RESULT_SIZE),
                    ),
                    heat(
                        "Result sizes",
                        "How many results of which size.",
                        "decbytes",
                        q.rate(Metric.RESULT_SIZE, "le", suffix="bucket"),
                    ),
                    lines(
                        "Bytes by tool",
                        "Bytes per second that each tool gave.",
                        "Bps",
                        (q.rate(Metric.RESULT_SIZE, GenAI.TOOL_NAME, suffix="sum"), TOOL),
                    ),
                    lines(
                        "Results by status",
                        "Results of tools that ran, per second.",
                        "ops",
                        (q.rate(Metric.RESULT_SIZE, Attr.RESULT_STATUS, suffix="count"), status),
                    ),
                    traces(
                        "Large results",
                        "Results above 100 kB; sort by size.",
                        q.calls(q.where(Attr.RESULT_SIZE_BYTES, ">", 100_000), _TOOL),
                    ),
                ],
            ),
            (
                "Redaction",
                [
                    lines(
                        "Redactions by kind",
                        "Redacted values per second, by kind of content.",
                        "ops",
                        (q.rate(Metric.REDACTIONS, Label.REDACTION_KIND), kind),
                    ),
                    lines(
                        "Redactions by place",
                        "Redacted values per second: in arguments, results, errors.",
                        "ops",
                        (q.rate(Metric.REDACTIONS, Attr.REDACTION_TARGET), target),
                    ),
                    bars(
                        "Kinds found",
                        "Redacted values in the time range, by kind.",
                        "short",
                        q.top(10, q.total(Metric.REDACTIONS, Label.REDACTION_KIND)),
                        kind,
                        width=12,
                    ),
                    number(
                        "Redaction failures",
                        "Redactions that failed, so that content was withheld. Anything above zero is a fault.",
                        "short",
                        q.total(Metric.REDACTION_FAILURES),
                        steps=FINE_AT_ZERO,
                        width=6,
                    ),
                    number(
                        "Persistence failures",
                        "Results that a payload store did not take; they were delivered bounded.",
                        "short",
                        q.total(Metric.PERSISTENCE_FAILURES),
                        steps=FINE_AT_ZERO,
                        width=6,
                    ),
                    traces(
                        "Redacted calls",
                        "Calls in which something was redacted.",
                        q.calls(q.where(Attr.REDACTION_COUNT, ">", 0), _TOOL),
                    ),
                ],
            ),
        ],
    )


def latency() -> Any:
    """How long tools take, and how much of it is policy."""
    share = (
        f"sum(rate({q.select(Metric.DECISION_DURATION, 'sum')}[$__rate_interval]))"
        f" / sum(rate({q.select(Metric.DURATION, 'sum')}[$__rate_interval]))"
    )
    return board(
        "agenttool / Latency",
        "agenttool-latency",
        "How long tool calls take, and what part of it the permission decision is.",
        [
            (
                "Tools",
                [
                    lines("Tool calls", "Time of whole calls.", "s", *_spread(Metric.DURATION)),
                    lines(
                        "p95 by tool",
                        "95 of 100 calls of a tool took no longer.",
                        "s",
                        (q.quantile(Metric.DURATION, 0.95, GenAI.TOOL_NAME), TOOL),
                    ),
                    heat(
                        "Durations",
                        "How many calls took how long.",
                        "s",
                        q.rate(Metric.DURATION, "le", suffix="bucket"),
                    ),
                    bars(
                        "Slowest tools",
                        "Mean time of a call in the time range.",
                        "s",
                        q.top(
                            10,
                            f"{q.total(Metric.DURATION, GenAI.TOOL_NAME, suffix='sum')}"
                            f" / {q.total(Metric.DURATION, GenAI.TOOL_NAME, suffix='count')}",
                        ),
                        TOOL,
                        width=12,
                    ),
                ],
            ),
            (
                "Policy",
                [
                    lines(
                        "Permission decisions",
                        "Time of fresh decisions, without waiting for people.",
                        "s",
                        *_spread(Metric.DECISION_DURATION),
                    ),
                    lines(
                        "Policy's share of the time",
                        "Time of fresh decisions divided by time of calls.",
                        "percentunit",
                        (share, "share"),
                    ),
                    lines(
                        "Decision p95 by engine",
                        "What a fresh decision costs.",
                        "s",
                        (q.quantile(Metric.DECISION_DURATION, 0.95, Attr.POLICY_ENGINE), ENGINE),
                        width=24,
                    ),
                    traces(
                        "Slow calls",
                        "Calls that took longer than a second.",
                        q.calls(_TOOL).replace(" }", " && duration > 1s }", 1),
                    ),
                ],
            ),
        ],
    )


def policy() -> Any:
    """Whether the policy engine is well."""
    hit = q.total(Metric.CACHE_LOOKUPS, **{q.label(Label.CACHE_RESULT): '="hit"'})
    reload = f"{{{{{q.label(Label.RELOAD_RESULT)}}}}}"
    revisions = q.calls(_TOOL).split(" | ")[0]
    return board(
        "agenttool / Policy health",
        "agenttool-policy",
        "Whether decisions can be had: engines, revisions, reloads, errors, the cache, and telemetry's own losses.",
        [
            (
                "Now",
                [
                    number(
                        "Failed closed",
                        "Calls denied because no decision could be had.",
                        "short",
                        q.total(Metric.FAIL_CLOSED),
                        steps=FINE_AT_ZERO,
                        width=6,
                    ),
                    number(
                        "Failed reloads",
                        "Bundles that were refused; the old one is still in use.",
                        "short",
                        q.total(
                            Metric.POLICY_RELOADS, **{q.label(Label.RELOAD_RESULT): '="failed"'}
                        ),
                        steps=FINE_AT_ZERO,
                        width=6,
                    ),
                    number(
                        "Cache hits",
                        "Share of decisions that the cache knew.",
                        "percentunit",
                        f"{hit} / {q.total(Metric.CACHE_LOOKUPS)}",
                        width=6,
                    ),
                    number(
                        "Telemetry lost",
                        "Spans and refused batches that the SDK lost, and telemetry that could not be written.",
                        "short",
                        q.lost_total(),
                        steps=FINE_AT_ZERO,
                        width=6,
                    ),
                ],
            ),
            (
                "Over time",
                [
                    lines(
                        "Failed closed by cause",
                        "Denials per second because no decision could be had.",
                        "ops",
                        (q.rate(Metric.FAIL_CLOSED, Attr.PERMISSION_FAIL_CLOSED), CAUSE),
                    ),
                    lines(
                        "Fresh decisions by engine",
                        "Decisions per second of each engine, without those from the cache.",
                        "ops",
                        (
                            q.rate(Metric.DECISION_DURATION, Attr.POLICY_ENGINE, suffix="count"),
                            ENGINE,
                        ),
                    ),
                    lines(
                        "Reloads",
                        "Loads of a policy bundle per second, by how they ended.",
                        "ops",
                        (q.rate(Metric.POLICY_RELOADS, Label.RELOAD_RESULT), reload),
                    ),
                    lines(
                        "Cache look-ups",
                        "Look-ups in the decision cache per second: hit, miss, bypass.",
                        "ops",
                        (
                            q.rate(Metric.CACHE_LOOKUPS, Label.CACHE_RESULT),
                            f"{{{{{q.label(Label.CACHE_RESULT)}}}}}",
                        ),
                    ),
                    lines(
                        "Decision p99 by engine",
                        "The slowest hundredth of fresh decisions.",
                        "s",
                        (q.quantile(Metric.DECISION_DURATION, 0.99, Attr.POLICY_ENGINE), ENGINE),
                    ),
                    lines(
                        "Telemetry lost",
                        "Spans and refused batches that the SDK lost, by reason, and what could not be written.",
                        "ops",
                        (
                            q.rate(Metric.TELEMETRY_DROPPED, Label.SIGNAL),
                            f"{{{{{q.label(Label.SIGNAL)}}}}}",
                        ),
                        *q.sdk_loss_rates(),
                    ),
                    trace_lines(
                        "Calls by policy revision",
                        "Which revision of the bundle decided. Revisions are digests, so they live on spans only.",
                        "short",
                        f"{revisions} | count_over_time() by (span.{Attr.POLICY_REVISION})",
                    ),
                    traces(
                        "Calls that failed closed",
                        "Each with its cause on the span.",
                        q.calls(
                            q.where(Attr.PERMISSION_SOURCE, "=", "error"),
                            columns=(
                                *q.COLUMNS,
                                Attr.PERMISSION_FAIL_CLOSED,
                                Attr.POLICY_ENGINE,
                                Attr.POLICY_REVISION,
                            ),
                        ),
                        width=12,
                    ),
                ],
            ),
        ],
    )


def session() -> Any:
    """All that one session did; each row opens its trace."""
    return board(
        "agenttool / Session drill-down",
        "agenttool-session",
        "Type a session id: all its calls, the denied, asked, redacted and largest ones. A click opens the trace.",
        [
            (
                "Session",
                [
                    traces(
                        "Calls",
                        "Every tool call of the session.",
                        q.calls(_SESSION, _TOOL),
                        limit=200,
                    ),
                    traces(
                        "Denied",
                        "Calls of the session that were denied.",
                        q.calls(_SESSION, q.where(Attr.PERMISSION_BEHAVIOR, "=", "deny"), _TOOL),
                    ),
                    traces(
                        "Asked",
                        "Calls of the session that a person was asked about, and what became of them.",
                        q.calls(
                            _SESSION,
                            q.where(Attr.APPROVAL_STATUS, "!=", ""),
                            _TOOL,
                            columns=(*q.COLUMNS, Attr.APPROVAL_STATUS, Attr.APPROVAL_ID),
                        ),
                    ),
                    traces(
                        "By rule",
                        "Calls of the session that a rule decided; the rule is a regular expression.",
                        q.calls(_SESSION, q.where(Attr.PERMISSION_RULE, "=~", "$rule"), _TOOL),
                    ),
                    traces(
                        "Redacted",
                        "Calls of the session in which something was redacted.",
                        q.calls(_SESSION, q.where(Attr.REDACTION_COUNT, ">", 0), _TOOL),
                        width=12,
                    ),
                    traces(
                        "Largest results",
                        "Calls of the session with results above 10 kB; sort by size.",
                        q.calls(_SESSION, q.where(Attr.RESULT_SIZE_BYTES, ">", 10_000), _TOOL),
                        width=12,
                    ),
                    traces(
                        "Failed",
                        "Calls of the session that ended in an error, denials included.",
                        q.calls(_SESSION, q.where(GenAI.ERROR_TYPE, "!=", ""), _TOOL),
                    ),
                ],
            )
        ],
        session=True,
    )


def session_on_jaeger() -> Any:
    """What one session did, for whoever has Jaeger and no Tempo."""
    searched = {
        "Calls": ("Traces with a tool call of the session.", {}),
        "Denied": ("Traces with a denied call of the session.", {"PERMISSION_BEHAVIOR": "deny"}),
        "Waiting": (
            "Traces with a call of the session that waits for a person.",
            {"PERMISSION_OUTCOME": "pending"},
        ),
        "Rejected": (
            "Traces with a call of the session that a person rejected.",
            {"APPROVAL_STATUS": "rejected"},
        ),
    }
    return board(
        "agenttool / Session drill-down (Jaeger)",
        "agenttool-session-jaeger",
        "Type a service and a session id: its calls, the denied, waiting and rejected ones. A click opens the trace.",
        [
            (
                "Session",
                [
                    jaeger_traces(title, about, q.tags(SESSION_ID="$session", **more))
                    for title, (about, more) in searched.items()
                ],
            )
        ],
        variables=jaeger_variables(),
    )


def events() -> Any:
    """What the log records say, for whoever has no traces at hand."""
    denied = q.logged(Event.PERMISSION_DECIDED, Attr.PERMISSION_BEHAVIOR, "=", Behavior.DENY.value)
    return board(
        "agenttool / Log events",
        "agenttool-events",
        "Events as log records (AGENTTOOL_EVENTS=log or both): denials, answers of people, redactions.",
        [
            (
                "Decisions",
                [
                    log_lines(
                        "Decisions by behaviour",
                        "Decisions in each step of the time range: allow, ask, deny.",
                        q.counted(q.entries(Event.PERMISSION_DECIDED), Attr.PERMISSION_BEHAVIOR),
                        BEHAVIOR,
                    ),
                    log_lines(
                        "Denials by rule",
                        "Which rules denied calls.",
                        q.counted(
                            q.entries(Event.PERMISSION_DECIDED, denied), Attr.PERMISSION_RULE
                        ),
                        RULE,
                    ),
                    log_records(
                        "Denied calls",
                        "Each denial with its rule and reason; its trace id leads to the call.",
                        q.entries(Event.PERMISSION_DECIDED, denied),
                    ),
                ],
            ),
            (
                "People",
                [
                    log_lines(
                        "Answers by status",
                        "Approval requests that people approved or rejected.",
                        q.counted(q.entries(Event.APPROVAL_ANSWERED), Attr.APPROVAL_STATUS),
                        f"{{{{{q.label(Attr.APPROVAL_STATUS)}}}}}",
                    ),
                    log_records(
                        "Answers",
                        "Who answered, by which way, after how long.",
                        q.entries(Event.APPROVAL_ANSWERED),
                        width=12,
                    ),
                ],
            ),
            (
                "Everything",
                [
                    log_lines(
                        "Events by class",
                        "How often each event class of the standard was recorded.",
                        q.counted(q.entries(), "event.name"),
                        "{{event_name}}",
                        width=24,
                    ),
                    log_records(
                        "Redactions of results",
                        "What was redacted in results: kinds, pointers and counts, never a value.",
                        q.entries(Event.RESULT_REDACTED),
                        width=12,
                    ),
                    log_records(
                        "Refused by a sandbox",
                        "What a profile kept a call from doing.",
                        q.entries(Event.SANDBOX_VIOLATED),
                        width=12,
                    ),
                ],
            ),
        ],
        variables=log_variables(),
    )


BOARDS: Final = {
    "overview": overview,
    "permissions": permissions,
    "results": results,
    "latency": latency,
    "policy": policy,
    "session": session,
    "session_on_jaeger": session_on_jaeger,
    "events": events,
}


def generate() -> dict[str, str]:
    """Return each board's file name and its JSON."""
    return {
        f"{name}.json": JSONEncoder(sort_keys=True, indent=2).encode(make().build()) + "\n"
        for name, make in BOARDS.items()
    }
