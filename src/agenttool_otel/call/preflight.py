"""The answer to "may I?": what was decided about a call that nobody runs, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.records import decision_record
from agenttool_otel.names import Behavior, ErrorClass
from agenttool_otel.policy.preflight import Preflight

_UNAVAILABLE: Final = {
    ErrorClass.UNKNOWN_TOOL: "find out which tools there are; there is none of this name",
    ErrorClass.SCHEMA_NOT_LOADED: "find the tool by its name or a search first, which loads its schema",
    ErrorClass.SETUP_REQUIRED: "have the tool set up first",
    ErrorClass.BLOCKED_TOOL: "do not call it: the tool is not to be used",
}


def preflight_of(call: Invocation) -> Preflight:
    """Make the preflight answer of a call that was only decided."""
    verdict = call.verdict
    behavior = verdict.behavior if verdict is not None else Behavior.DENY
    alternatives = verdict.alternatives if verdict is not None else ()
    return Preflight(
        tool_id=call.spec.tool_id,
        behavior=behavior,
        decision=decision_record(call),
        error=call.error,
        alternatives=tuple(alternatives),
        requires_confirmation=behavior is Behavior.ASK,
        evaluation=dict(call.context.evaluation) if call.context.evaluation else None,
        next_step=_next_step(call, behavior, alternatives),
    )


def _next_step(call: Invocation, behavior: Behavior, alternatives: Sequence[Mapping[str, Any]]) -> str:
    if call.context.evaluation and behavior is not Behavior.ALLOW and call.context.evaluation.get("next_step"):
        return str(call.context.evaluation["next_step"])
    if call.error is not None and call.error.error_class in _UNAVAILABLE:
        return _UNAVAILABLE[call.error.error_class]
    if call.error is not None and call.verdict is None:
        return f"correct the arguments: {call.error.message}"
    if behavior is Behavior.ALLOW:
        return "call it"
    if alternatives:
        first = alternatives[0]
        return f"call {first.get('tool')} instead: {first.get('reason', 'safer')}"
    if behavior is Behavior.ASK:
        return "call it and wait for the approval, or ask the user first"
    return "do not call it with these arguments"
