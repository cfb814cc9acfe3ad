"""The answer to "may I?": what was decided about a call that nobody runs, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.records import decision_record
from agenttool_otel.names import Behavior, ErrorClass
from agenttool_otel.records import PermissionDecision, ToolError

_HISTORY: Final = "outcome_history"
_UNAVAILABLE: Final = {
    ErrorClass.UNKNOWN_TOOL: "find out which tools there are; there is none of this name",
    ErrorClass.SCHEMA_NOT_LOADED: "find the tool by its name or a search first, which loads its schema",
    ErrorClass.SETUP_REQUIRED: "have the tool set up first",
    ErrorClass.BLOCKED_TOOL: "do not call it: the tool is not to be used",
}


@dataclass(frozen=True, slots=True)
class Preflight:
    """Answer of ``tool.check`` (openboa, "permissions_check"); making it ran nothing and spent
    nothing.

    Attributes:
        tool_id: the tool.
        behavior: allow, ask or deny.
        decision: the decision record; ``None`` when the arguments never got to the policy.
        error: why the call would fail before any decision, if it would.
        alternatives: safer calls, ``{"tool", "arguments", "reason"}``.
        requires_confirmation: a person would be asked.
        evaluation: the evaluator's verdict that was taken into account.
        next_step: one sentence of what to do.
    """

    tool_id: str
    behavior: Behavior
    decision: PermissionDecision | None = None
    error: ToolError | None = None
    alternatives: tuple[dict[str, Any], ...] = ()
    requires_confirmation: bool = False
    evaluation: dict[str, Any] | None = None
    next_step: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def allowed(self) -> bool:
        """Whether the call would run at once."""
        return self.behavior is Behavior.ALLOW

    def to_json_object(self) -> dict[str, Any]:
        """Return the preflight as plain JSON data."""
        return {
            "tool_id": self.tool_id,
            "behavior": self.behavior.value,
            "requires_confirmation": self.requires_confirmation,
            "rule": self.decision.reason.rule_ref if self.decision else None,
            "reason": self.reason,
            "decision": self.decision.to_json_object() if self.decision else None,
            "error": self.error.model_dump(mode="json", exclude_none=True) if self.error else None,
            "alternatives": list(self.alternatives),
            "evaluation": self.evaluation,
            "next_step": self.next_step,
        }

    @property
    def reason(self) -> str:
        """Why it was decided so, or why the call never got to the policy."""
        if self.decision is not None:
            return self.decision.reason.message
        return "" if self.error is None else self.error.message


def next_outcome_step(evaluation: Mapping[str, Any] | None) -> str | None:
    """Return what to do about an evaluator that does not pass; where it names no step, a
    trend is looked at first.
    """
    if not evaluation or evaluation.get("status") == "pass":
        return None
    step = str(evaluation.get("next_step") or "")
    if evaluation.get("trend") in ("stable", "regressing") and _HISTORY not in step:
        return _HISTORY
    return step or None


def preflight_of(call: Invocation) -> Preflight:
    """Make the preflight answer of a call that was only decided."""
    verdict = call.decision.verdict
    behavior = verdict.behavior if verdict is not None else Behavior.DENY
    alternatives = verdict.alternatives if verdict is not None else ()
    return Preflight(
        tool_id=call.spec.tool_id,
        behavior=behavior,
        decision=decision_record(call),
        error=call.outcome.error,
        alternatives=tuple(alternatives),
        requires_confirmation=behavior is Behavior.ASK,
        evaluation=dict(call.context.evaluation) if call.context.evaluation else None,
        next_step=_next_step(call, behavior, alternatives),
    )


def _next_step(
    call: Invocation, behavior: Behavior, alternatives: Sequence[Mapping[str, Any]]
) -> str:
    step = None if behavior is Behavior.ALLOW else next_outcome_step(call.context.evaluation)
    if step is not None:
        return step
    if call.outcome.error is not None and call.outcome.error.error_class in _UNAVAILABLE:
        return _UNAVAILABLE[call.outcome.error.error_class]
    if call.outcome.error is not None and call.decision.verdict is None:
        return f"correct the arguments: {call.outcome.error.message}"
    if behavior is Behavior.ALLOW:
        return "call it"
    if alternatives:
        first = alternatives[0]
        return f"call {first.get('tool')} instead: {first.get('reason', 'safer')}"
    if behavior is Behavior.ASK:
        return "call it and wait for the approval, or ask the user first"
    return "do not call it with these arguments"
