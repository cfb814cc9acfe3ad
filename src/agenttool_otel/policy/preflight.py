"""What a preflight tells: would this call be allowed, asked or denied, by which rule, and what to
do instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agenttool_otel.names import Behavior
from agenttool_otel.records import PermissionDecision, ToolError


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
        requires_confirmation: somebody would be asked.
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
            "reason": self.decision.reason.message
            if self.decision
            else (self.error.message if self.error else ""),
            "decision": self.decision.to_json_object() if self.decision else None,
            "error": self.error.model_dump(mode="json", exclude_none=True) if self.error else None,
            "alternatives": list(self.alternatives),
            "evaluation": self.evaluation,
            "next_step": self.next_step,
        }
