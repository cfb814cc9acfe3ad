"""The span attributes of a call and its metrics: each name with the field that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recording.guardrail import guardrail_attributes
from agenttool_otel.call.sandbox import Sandbox
from agenttool_otel.facts.origins import origins_of
from agenttool_otel.names import Attr, Behavior, GenAI, Outcome, PolicyMode, SandboxScope
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import ToolError
from agenttool_otel.redaction.ids import agent_label
from agenttool_otel.telemetry import Telemetry
from agenttool_otel.telemetry.telemetry import records_duration

_MAX_MESSAGE_CHARS: Final = 512


def error_attributes(error: ToolError) -> dict[str, Any]:
    """Return the attributes of an error; its message is none of them."""
    attributes: dict[str, Any] = {GenAI.ERROR_TYPE: error.error_class.value}
    if error.error_code is not None:
        attributes[Attr.ERROR_CODE] = error.error_code
    if error.recoverability is not None:
        attributes[Attr.ERROR_RECOVERABILITY] = str(error.recoverability)
    if error.native_error_ref is not None:
        attributes[Attr.ERROR_NATIVE_TYPE] = error.native_error_ref
    return attributes


def _call_attributes(call: Invocation) -> dict[str, Any]:
    outcome, decision = call.outcome, call.decision
    attributes: dict[str, Any] = {
        Attr.INVOCATION_STATUS: outcome.status.value,
        Attr.PERMISSION_OUTCOME: outcome.execution.value,
        Attr.RESULT_STATUS: outcome.result_status.value,
        Attr.REDACTION_STATE: outcome.redaction_state.value,
        Attr.RESULT_PERSISTENCE: outcome.strategy.value,
    }
    if outcome.run_seconds is not None:
        attributes[Attr.INVOCATION_RUN_SECONDS] = outcome.run_seconds
    if outcome.size is not None:
        attributes[Attr.RESULT_SIZE_BYTES] = outcome.size
    if outcome.items is not None:
        attributes[Attr.RESULT_ITEMS] = outcome.items
    if decision.approval_status is not None:
        attributes[Attr.APPROVAL_STATUS] = decision.approval_status
    if decision.approval_wait is not None:
        attributes[Attr.APPROVAL_WAIT] = decision.approval_wait
    if outcome.abort_reason is not None:
        attributes[Attr.ABORT_REASON] = outcome.abort_reason
    return attributes


def _verdict_attributes(verdict: Verdict) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        Attr.PERMISSION_BEHAVIOR: verdict.behavior.value,
        Attr.PERMISSION_MODE: str(verdict.mode),
        Attr.PERMISSION_SOURCE: str(verdict.source),
        Attr.PERMISSION_REASON_TYPE: str(verdict.reason_type),
        Attr.PERMISSION_RULE: verdict.rule_ref,
        Attr.POLICY_ENGINE: str(verdict.engine),
        Attr.POLICY_REVISION: verdict.revision,
        Attr.POLICY_CACHED: verdict.cached,
        Attr.PERMISSION_DURATION: verdict.duration,
    }
    if verdict.fail_closed is not None:
        attributes[Attr.PERMISSION_FAIL_CLOSED] = verdict.fail_closed.value
    if verdict.opa_decision_id is not None:
        attributes[Attr.POLICY_OPA_DECISION_ID] = verdict.opa_decision_id
    if verdict.sandbox is not None:
        attributes[Attr.SANDBOX_PROFILE] = verdict.sandbox.name
    if verdict.shadow is not None:
        if verdict.mode is PolicyMode.SHADOW and verdict.shadow.sandbox is not None:
            attributes[Attr.SANDBOX_PROFILE] = verdict.shadow.sandbox.name
        attributes[Attr.PERMISSION_SHADOW_BEHAVIOR] = verdict.shadow.behavior.value
        attributes[Attr.PERMISSION_SHADOW_RULE] = verdict.shadow.rule_ref
    return attributes


def final_attributes(call: Invocation, *, guardrail_names: bool = False) -> dict[str, Any]:
    """Return the attributes that a call's span gets at its end.

    Args:
        call: the call.
        guardrail_names: whether the decision is also given in the words of the proposal for
            guardrails.
    """
    attributes = _call_attributes(call)
    attributes[Attr.REDACTION_COUNT] = (
        sum(entry.times for entry in call.outcome.redactions) if call.outcome.redactions else 0
    )
    if (verdict := call.decision.verdict) is not None:
        attributes.update(_verdict_attributes(verdict))
        if guardrail_names:
            attributes.update(guardrail_attributes(call, verdict))
        in_force = call.decision.in_force
        if in_force is not None:
            attributes[Attr.PERMISSION_DECISION_ID] = in_force.decision_id
    if call.decision.facts["provenance"] and (
        call.decision.request is not None or call.outcome.execution is not Outcome.EXECUTED
    ):
        attributes[Attr.PERMISSION_ORIGINS] = list(
            dict.fromkeys(origin.named for origin in origins_of(call.decision.facts))
        )
    if Attr.SANDBOX_PROFILE in attributes:
        attributes |= _enforcement(call)
        attributes |= _effects(call)
    if call.reported_effects is not None:
        attributes[Attr.EFFECTS_REPORTED] = call.reported_effects.fact["counts"]["reported"]
    _add_parts(call, attributes)
    if (error := call.outcome.reported_error) is not None:
        attributes.update(error_attributes(error))
    return attributes


def _add_parts(call: Invocation, attributes: dict[str, Any]) -> None:
    """Add what shows that a call had several parts: a question, attempts, a pause."""
    if call.decision.request is not None:
        attributes[Attr.APPROVAL_ID] = call.decision.request.request_id
    if call.outcome.attempts > 1:
        attributes[Attr.INVOCATION_ATTEMPTS] = call.outcome.attempts
    if call.resumed:
        attributes[Attr.INVOCATION_RESUMED] = True


def _enforcement(call: Invocation) -> dict[str, Any]:
    """Return what became of a sandbox that is obliged; none is prepared where none can be had."""
    sandbox = call.sandbox
    if sandbox is None:
        return _enforcement_of_process(call)
    attributes = sandbox_attributes(sandbox)
    attributes[Attr.SANDBOX_ENFORCED] = sandbox.entered
    if sandbox.entered:
        attributes[Attr.SANDBOX_VIOLATIONS] = len(sandbox.violations)
    return attributes


def _enforcement_of_process(call: Invocation) -> dict[str, Any]:
    if call.process is None or call.decision.process_duty is None:
        return {Attr.SANDBOX_ENFORCED: False}
    return {
        Attr.SANDBOX_MECHANISM: call.process.mechanism,
        Attr.SANDBOX_SCOPE: SandboxScope.PROCESS.value,
        # what it refuses a server its client does not see
        Attr.SANDBOX_ENFORCED: call.outcome.execution is Outcome.EXECUTED,
    }


def _effects(call: Invocation) -> dict[str, Any]:
    """Return how much a rehearsed body would change: nothing, where it ended without effects."""
    if call.effects is not None:
        return effects_attributes(call.effects.fact["counts"])
    sandbox = call.sandbox
    if sandbox is None or sandbox.rehearsal is None or not sandbox.entered:
        return {}
    return effects_attributes({})


def effects_attributes(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of what a rehearsed call would change.

    Args:
        counts: how much; nothing where it is empty.
    """
    return {
        Attr.EFFECTS_CREATED: counts.get("created", 0),
        Attr.EFFECTS_CHANGED: counts.get("changed", 0),
        Attr.EFFECTS_DELETED: counts.get("deleted", 0),
        Attr.EFFECTS_CONNECTIONS: counts.get("connections", 0),
    }


def sandbox_attributes(sandbox: Sandbox) -> dict[str, Any]:
    """Return the attributes of what holds a body."""
    return {
        Attr.SANDBOX_PROFILE: sandbox.duty.name,
        Attr.SANDBOX_MECHANISM: sandbox.mechanism,
        Attr.SANDBOX_SCOPE: sandbox.scope.value,
    }


def violation_attributes(sandbox: Sandbox) -> dict[str, Any]:
    """Return the attributes of what a sandbox refused, without what it is about."""
    return {
        Attr.SANDBOX_PROFILE: sandbox.duty.name,
        Attr.SANDBOX_VIOLATIONS: len(sandbox.violations),
        Attr.SANDBOX_VIOLATION_KINDS: sorted({str(each.kind) for each in sandbox.violations}),
    }


def decision_attributes(call: Invocation, verdict: Verdict) -> dict[str, Any]:
    """Return the attributes of a decision's event where no span of its own is beside it."""
    attributes = _verdict_attributes(verdict)
    del attributes[Attr.PERMISSION_DURATION], attributes[Attr.PERMISSION_RULE]
    attributes[Attr.PERMISSION_DECISION_ID] = call.decision.decision_id
    if not verdict.engine:  # a person's answer
        del attributes[Attr.POLICY_ENGINE], attributes[Attr.POLICY_REVISION]
    return attributes | lean_decision(verdict)


def terminal_attributes(call: Invocation) -> dict[str, Any]:
    """Return the attributes of the event that a call ended, without an error."""
    return {Attr.INVOCATION_STATUS: call.outcome.status.value}


def result_attributes(call: Invocation) -> dict[str, Any]:
    """Return the attributes of the event that a result was created, without content."""
    attributes: dict[str, Any] = {Attr.RESULT_STATUS: str(call.outcome.result_status)}
    error = call.outcome.error or call.outcome.result_error
    if error is not None:
        attributes[GenAI.ERROR_TYPE] = error.error_class.value
    if call.outcome.size is not None:
        attributes[Attr.RESULT_SIZE_BYTES] = call.outcome.size
    if call.outcome.items is not None:
        attributes[Attr.RESULT_ITEMS] = call.outcome.items
    return attributes


def lean_decision(verdict: Verdict) -> dict[str, Any]:
    """Return the attributes of a decision's event beside a span that holds the rest."""
    attributes: dict[str, Any] = {Attr.PERMISSION_BEHAVIOR: verdict.behavior.value}
    if verdict.rule_ref:
        attributes[Attr.PERMISSION_RULE] = verdict.rule_ref
    if len(verdict.rule_refs) > 1:
        attributes[Attr.PERMISSION_RULES] = list(verdict.rule_refs)
    if verdict.open_questions:
        # rule_refs are redacted, and a name that is none of them is not shown
        shown = [rule for rule in verdict.open_questions if rule in verdict.rule_refs]
        attributes[Attr.PERMISSION_OPEN_QUESTIONS] = shown
    if verdict.message:
        attributes[Attr.PERMISSION_REASON_MESSAGE] = verdict.message[:_MAX_MESSAGE_CHARS]
    return attributes


def stands(call: Invocation, verdict: Verdict) -> bool:
    """Return whether a decision is the one that this call's own span will show: the first, asking for
    no other.
    """
    lasting = verdict.updated_input is None and verdict.expires_at is None
    return (
        call.owned
        and len(call.decision.decisions) == 1
        and verdict.behavior is not Behavior.ASK
        and lasting
    )


# --- metrics: few combinations of labels exist, and each is built once ----------------------------


def record_metrics(telemetry: Telemetry, call: Invocation, duration: float) -> None:
    """Record the metrics of a call that ended or waits.

    Args:
        telemetry: where they are recorded.
        call: the call.
        duration: seconds between its begin and its end.
    """
    spec = call.spec
    verdict = call.decision.verdict
    instruments = telemetry.instruments
    measured_elsewhere = call.measured and call.outcome.execution is Outcome.EXECUTED
    # where a framework's span is used, its own processor may measure it
    if not measured_elsewhere and (call.owned or not records_duration(call.span)):
        telemetry.measure(instruments.duration, duration, duration_labels(call))
    if verdict is not None:
        instruments.decided(*decision_labels(call, verdict))
        if not verdict.cached:
            telemetry.measure(
                instruments.decision_duration, verdict.duration, engine_labels(verdict.engine)
            )
        if verdict.fail_closed is not None or verdict.shadow is not None:
            _record_unusual(telemetry, call, verdict)
        if call.sandbox is not None:
            telemetry.count(instruments.sandbox_invocations, 1, _sandbox_labels(call, call.sandbox))
    if call.outcome.size is not None and call.outcome.execution is Outcome.EXECUTED:
        telemetry.measure(
            instruments.result_size,
            call.outcome.size,
            result_labels(spec.name, call.outcome.result_status),
        )


def decision_labels(call: Invocation, verdict: Verdict) -> tuple[str, ...]:
    """Return the values by which a decision is counted."""
    return (
        call.spec.name,
        verdict.behavior,
        call.outcome.execution,
        verdict.source,
        verdict.mode,
        verdict.rule_ref,
    )


def duration_labels(call: Invocation) -> Mapping[str, Any]:
    """Return the labels of a call's duration."""
    error = call.outcome.error
    agent = call.context.agent
    if error is None and not agent:
        return call.spec.metric_attributes
    labels = dict(call.spec.metric_attributes)
    if error is not None:
        labels[GenAI.ERROR_TYPE] = error.error_class.value
    if agent:
        labels[GenAI.AGENT_NAME] = agent_label(agent)
    return labels


def _sandbox_labels(call: Invocation, sandbox: Sandbox) -> dict[str, Any]:
    labels: dict[str, Any] = {
        GenAI.TOOL_NAME: call.spec.name,
        Attr.SANDBOX_PROFILE: sandbox.duty.name,
        Attr.SANDBOX_ENFORCED: sandbox.entered,
    }
    if call.outcome.error is not None:
        labels[GenAI.ERROR_TYPE] = call.outcome.error.error_class.value
    return labels


def _record_unusual(telemetry: Telemetry, call: Invocation, verdict: Verdict) -> None:
    """Count a decision that could not be had, and one that a shadow policy would have made
    differently.
    """
    if verdict.fail_closed is not None:
        cause = {
            Attr.PERMISSION_FAIL_CLOSED: verdict.fail_closed.value,
            Attr.POLICY_ENGINE: str(verdict.engine),
        }
        telemetry.count(telemetry.instruments.fail_closed, 1, cause)
    if verdict.shadow is not None and verdict.shadow.behavior is not verdict.behavior:
        labels = {
            GenAI.TOOL_NAME: call.spec.name,
            Attr.PERMISSION_BEHAVIOR: str(verdict.behavior),
            Attr.PERMISSION_SHADOW_BEHAVIOR: verdict.shadow.behavior.value,
        }
        telemetry.count(telemetry.instruments.shadow_differences, 1, labels)


@lru_cache(maxsize=64)
def engine_labels(engine: str) -> dict[str, str]:
    """Return the labels of the time that a decision took."""
    return {Attr.POLICY_ENGINE: str(engine)}


@lru_cache(maxsize=1024)
def result_labels(tool: str, status: str) -> dict[str, str]:
    """Return the labels of a result's size."""
    return {GenAI.TOOL_NAME: tool, Attr.RESULT_STATUS: str(status)}
