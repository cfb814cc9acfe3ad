"""Changes of shared context that a tool returns beside its value: applied when no other call runs,
or refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agenttool_otel.names import ContextModifierPolicy
from agenttool_otel.values.inspection import short_name

if TYPE_CHECKING:  # a call knows its modifier
    from agenttool_otel.call.invocation import Invocation


@dataclass(frozen=True, slots=True)
class ContextModifier:
    """What a tool returns that wants something changed which other calls see too.

    Attributes:
        value: what the tool returns.
        apply: makes the change; called once, where the scheduler policy lets it, else never.
    """

    value: Any
    apply: Callable[[], Any]


def settle_modifier(
    call: Invocation, policy: ContextModifierPolicy, *, alone: bool, complete: bool = True
) -> None:
    """Make the change that a call wants which ended, or say why not; what is deferred waits for the
    batch's end.
    """
    stated = getattr(call.spec.interface, "context_modifier_policy", None)
    if call.modifier is None or call.modified is not None:
        return
    reason = ""
    if stated == "refuse":
        reason = "the tool's interface refuses it"
    elif policy is ContextModifierPolicy.FORBID:
        reason = "the scheduler policy forbids context modifiers"
    elif not complete and (
        stated == "defer" or policy is ContextModifierPolicy.DEFER_UNTIL_BATCH_COMPLETE
    ):
        return
    elif policy is ContextModifierPolicy.ALLOW_SERIAL_ONLY and not alone:
        reason = "the call was not alone"
    else:
        try:
            call.modifier.apply()
        except Exception as error:
            reason = f"it failed: {short_name(error)}"
    call.modified = {"applied": False, "reason": reason} if reason else {"applied": True}
