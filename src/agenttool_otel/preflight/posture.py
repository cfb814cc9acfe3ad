"""The permission posture: what waits, what is always asked about, what is gated, blocked or free,
and what to do next.

openboa calls this ``permissions_describe`` ("Permission policies"). Nothing in it is guessed from
declarations: every tool is put before the policy in force as a preflight, with the most harmless
arguments that its schema lets pass, and again with and without an evaluator's verdict. It runs no
tool, asks nobody and counts nothing; reading the store of pending requests is all that it does
beside deciding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import Field

from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.call.drivers import run
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.phases.permission import policy_input
from agenttool_otel.call.preflight import Preflight, preflight_of
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog import ToolSpec
from agenttool_otel.context.context import AgentContext, current_context
from agenttool_otel.errors import ApprovalError
from agenttool_otel.names import ApprovalStatus, Behavior
from agenttool_otel.preflight.sample_arguments import bold_arguments, plain_arguments
from agenttool_otel.records import Record
from agenttool_otel.records.base import JsonObject, Timestamp, utc_now

PERMISSION_TOOLS: Final = ("agenttool.permissions.check", "agenttool.permissions.describe")
"""Tool ids of the preflight tools themselves; they are not part of what they describe."""

_PASSING: Final[tuple[dict[str, Any], ...]] = (
    {"status": "pass", "trend": "improving", "next_step": ""},
    {"status": "pass", "trend": "stable", "next_step": ""},
)
"""Verdicts of an evaluator that any gate should let pass; what a policy does with them is how a
gate is found.
"""

_MAX_PENDING: Final = 100
_PAGE: Final = 1000
_MAX_PAGES: Final = 50


class ToolPosture(Record):
    """How one tool stands with the policy in force.

    Attributes:
        tool_id: the tool.
        name: the name that models call.
        ownership: managed, mcp or custom.
        behavior: what a plain call would get: allow, ask or deny; ``unknown`` where no plain call
          could be made.
        permission_policy: ``always_ask`` and ``blocked``: even a plain call is; ``always_allow``:
            even a bold call is; ``depends``: on the arguments; ``unknown``.
        rule: the rule that decided.
        reason: why.
        evaluator_gated: whether an evaluator's verdict changes the decision.
        evaluator_blocked: whether it is the evaluator's verdict, or its absence, that stops a plain
          call now.
        read_only: whether the tool declares that it changes nothing.
        destructive: whether the tool declares that it destroys something.
        write_effects: what it declares that it changes.
        counters: what the session has spent on it.
        next_step: one sentence of what to do.
    """

    tool_id: str
    name: str
    ownership: str
    behavior: str
    permission_policy: str
    rule: str = ""
    reason: str = ""
    evaluator_gated: bool = False
    evaluator_blocked: bool = False
    read_only: bool = False
    destructive: bool = True
    write_effects: list[str] = Field(default_factory=list)
    counters: dict[str, int] = Field(default_factory=dict)
    next_step: str = ""


class Posture(Record):
    """The permission posture of one context.

    Attributes:
        described_at: when.
        actor: whose posture it is.
        session_id: in which session.
        mode: the context's permission mode.
        policy: engines with their revisions, and whether decisions bind (``enforce``) or not
          (``shadow``).
        pending: requests that wait for an answer in this session, with redacted arguments and safer
          calls.
        pending_unreadable: the store could not be read, so ``pending`` is not complete.
        read_only_alternative: a call that can be made now instead of a pending one, if there is
          one.
        always_ask: names of the tools that are asked about even for a plain call.
        evaluator_gated: names of the tools that wait for an evaluator's verdict.
        blocked: names of the tools that are denied even for a plain call.
        evaluation: the evaluator's verdict of the context.
        counters: what the session has spent.
        tools: each tool.
        next_step: one sentence of what to do.
    """

    described_at: Timestamp = Field(default_factory=utc_now)
    actor: str = ""
    session_id: str | None = None
    mode: str = "default"
    policy: JsonObject = Field(default_factory=dict)
    pending: list[JsonObject] = Field(default_factory=list)
    pending_unreadable: bool = False
    read_only_alternative: JsonObject | None = None
    always_ask: list[str] = Field(default_factory=list)
    evaluator_gated: list[str] = Field(default_factory=list)
    blocked: list[str] = Field(default_factory=list)
    evaluation: JsonObject | None = None
    counters: dict[str, int] = Field(default_factory=dict)
    tools: list[ToolPosture] = Field(default_factory=list)
    next_step: str = ""


def describe(runtime: Runtime) -> Posture:
    """Describe the posture of the context in force.

    Args:
        runtime: the Governor.
    """
    context = runtime.effective(current_context())
    tools = [tool_posture(runtime, tool, context) for tool in described_tools(runtime)]
    pending, unreadable = _pending(runtime, context)
    counters = runtime.sessions.of(context).counters("")
    counters.pop("tool_calls", None)
    about = runtime.decider.describe()
    posture = Posture(
        actor=context.actor,
        session_id=context.session_id,
        mode=context.mode,
        policy={
            "mode": about["mode"],
            "engines": about["engines"],
            "shadow_engines": about["shadow_engines"],
        },
        pending=pending,
        pending_unreadable=unreadable,
        read_only_alternative=next(
            (entry["alternatives"][0] for entry in pending if entry["alternatives"]), None
        ),
        always_ask=[tool.name for tool in tools if tool.permission_policy == "always_ask"],
        evaluator_gated=[tool.name for tool in tools if tool.evaluator_gated],
        blocked=[tool.name for tool in tools if tool.permission_policy == "blocked"],
        evaluation=dict(context.evaluation) if context.evaluation else None,
        counters=counters,
        tools=tools,
    )
    posture.next_step = _next_step(posture)
    return posture


def planned_input(
    runtime: Runtime, name: str, arguments: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return the policy input of one call without its secrets; ``None`` where it would never get to
    the policy.

    Args:
        runtime: the Governor.
        name: id, name or alias of the tool.
        arguments: the planned JSON arguments; plain ones are taken where none are given.
    """
    if (tool := runtime.find(name)) is None:
        return None
    context = runtime.effective(current_context())
    call = _checked(
        runtime,
        tool,
        arguments if arguments is not None else harmless_arguments(runtime, tool, context),
        context,
    )
    if call.decision.verdict is None:
        return None
    target, session = tool.json_target(preflight=True), runtime.sessions.of(context)
    document: dict[str, Any] = {**policy_input(call, target, session)}
    document["invocation"]["attempt"] = 1  # it is decided by now
    return without_secrets(runtime, document)


def without_secrets(runtime: Runtime, document: dict[str, Any]) -> dict[str, Any]:
    """Return a document as it may leave the process.

    Args:
        runtime: the Governor.
        document: JSON data.
    """
    cleaned = runtime.redactor.redact(document).value
    return cleaned if isinstance(cleaned, dict) else {}


# --- one tool -------------------------------------------------------------------------------------


def described_tools(runtime: Runtime) -> list[GovernedTool]:
    """Return the tools that a posture describes, by id: all but the preflight tools themselves.

    Args:
        runtime: the Governor.
    """
    found = {
        tool.spec.tool_id: tool
        for tool in runtime.tools
        if tool.spec.tool_id not in PERMISSION_TOOLS
    }
    return [found[tool_id] for tool_id in sorted(found)]


def harmless_arguments(
    runtime: Runtime, tool: GovernedTool, context: AgentContext
) -> dict[str, Any]:
    """Return the most harmless arguments that a tool's schema lets pass.

    Args:
        runtime: the Governor; its allowed hosts are what a URL may name.
        tool: the tool.
        context: the context of the call; its roots are where a path may lead.
    """
    return plain_arguments(tool.spec, roots=context.roots, hosts=runtime.settings.allowed_hosts)


def _checked(
    runtime: Runtime, tool: GovernedTool, arguments: Mapping[str, Any], context: AgentContext
) -> Invocation:
    call = Invocation(tool.spec, context, preflight=True)
    call.call_kwargs = dict(arguments)
    return run(call, runtime.pipeline.preflight(call, tool.json_target(preflight=True)))


def preflight_call(
    runtime: Runtime, tool: GovernedTool, arguments: Mapping[str, Any], context: AgentContext
) -> Preflight:
    """Return what would be decided of a call, and what to do next; runs nothing.

    Args:
        runtime: the Governor.
        tool: the tool.
        arguments: the planned JSON arguments.
        context: the context of the call.
    """
    return preflight_of(_checked(runtime, tool, arguments, context))


def tool_posture(runtime: Runtime, tool: GovernedTool, context: AgentContext) -> ToolPosture:
    """Return how one tool stands with the policy in force.

    Args:
        runtime: the Governor.
        tool: the tool.
        context: the context in force.
    """
    spec, plain = tool.spec, harmless_arguments(runtime, tool, context)
    now = preflight_call(runtime, tool, plain, context)
    behavior = behavior_of(now, spec)
    without = preflight_call(runtime, tool, plain, replace(context, evaluation=None)).behavior
    judged = [
        preflight_call(runtime, tool, plain, replace(context, evaluation=verdict)).behavior
        for verdict in (*_PASSING, *((context.evaluation,) if context.evaluation else ()))
    ]
    best = min(judged, key=_STRICTNESS.__getitem__)
    gated = _STRICTNESS[best] < _STRICTNESS[without]
    blocked_by_evaluator = gated and _STRICTNESS[best] < _STRICTNESS[now.behavior]
    policy = _POLICIES.get(behavior, "blocked")
    if (
        policy == "always_allow"
        and not preflight_call(runtime, tool, bold_arguments(spec), context).allowed
    ):
        policy = "depends"
    return ToolPosture(
        tool_id=spec.tool_id,
        name=spec.name,
        ownership=spec.ownership,
        behavior=behavior,
        permission_policy=policy,
        rule=(now.decision.reason.rule_ref or "") if now.decision else "",
        reason=now.reason,
        evaluator_gated=gated,
        evaluator_blocked=blocked_by_evaluator,
        read_only=spec.safety.read_only is True,
        destructive=spec.safety.destructive is not False,
        write_effects=list(spec.permission.write_effects),
        counters=runtime.sessions.of(context).counters(spec.tool_id),
        next_step=now.next_step
        if behavior != "unknown"
        else "call permissions_check with the planned arguments",
    )


def behavior_of(found: Preflight, spec: ToolSpec) -> str:
    """Return what would become of a call: allow, ask or deny, or ``unknown`` where its arguments never
    got to the policy.

    Args:
        found: what would be decided of it.
        spec: its tool.
    """
    known = found.decision is not None or spec.unknown
    lifecycle = (
        found.decision is None
        and found.error is not None
        and found.error.error_class.value in _UNAVAILABLE
    )
    return found.behavior.value if known or lifecycle else "unknown"


_STRICTNESS: Final = {Behavior.ALLOW: 0, Behavior.PASSTHROUGH: 1, Behavior.ASK: 1, Behavior.DENY: 2}
_POLICIES: Final = {"allow": "always_allow", "ask": "always_ask", "unknown": "unknown"}
_UNAVAILABLE: Final = frozenset(
    {"blocked_tool", "setup_required", "schema_not_loaded", "unknown_tool"}
)


# --- what waits -----------------------------------------------------------------------------------


def _pending(runtime: Runtime, context: AgentContext) -> tuple[list[JsonObject], bool]:
    """Return this session's open requests; another tenant's or session's are nobody else's
    business.
    """
    mine: list[ApprovalRequest] = []
    whose = (context.tenant, context.session_id, context.actor)
    try:
        for page in range(_MAX_PAGES):
            found = runtime.approvals.store.list(
                ApprovalStatus.PENDING, limit=_PAGE, offset=page * _PAGE
            )
            for request in found:
                if (request.tenant, request.session_id, request.actor_id) == whose:
                    mine.append(request)
            if len(mine) >= _MAX_PENDING or len(found) < _PAGE:
                break
    except ApprovalError:
        return [], True
    return [
        {
            "request_id": request.request_id,
            "event_id": request.event_id,
            "invocation_id": request.invocation_id,
            "tool": request.tool_name,
            "arguments": request.arguments_preview,
            "rule": request.rule_ref,
            "reason": request.message,
            "alternatives": list(request.alternatives),
            "expires_at": request.expires_at.isoformat() if request.expires_at else None,
        }
        for request in mine[:_MAX_PENDING]
    ], False


def _next_step(posture: Posture) -> str:
    if posture.read_only_alternative is not None:
        return f"call {posture.read_only_alternative.get('tool')} instead of the pending call"
    if posture.pending:
        return f"wait for the answer to {posture.pending[0]['request_id']}, and go on with what is not asked about"
    if any(tool.evaluator_blocked for tool in posture.tools):
        step = (posture.evaluation or {}).get("next_step")
        if step:
            return str(step)
        return "get a passing verdict of the evaluator before you call what waits for it"
    return "call permissions_check with the planned arguments before a call that may be asked about"
