"""Changes of shared context that a tool returns beside its value: applied when no other call runs, or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agenttool_otel.names import ContextModifierPolicy
from agenttool_otel.values.inspection import short_name


@dataclass(frozen=True, slots=True)
class ContextModifier:
    """What a tool returns that wants something changed which other calls see too.

    Attributes:
        value: what the tool returns.
        apply: makes the change; called once, where the scheduler policy lets it, else never.
    """

    value: Any
    apply: Callable[[], Any]


def settle_modifier(modifier: ContextModifier, policy: ContextModifierPolicy, *, alone: bool) -> dict[str, Any]:
    """Make the change of a call that ended, or say why not."""
    if policy is ContextModifierPolicy.FORBID:
        return {"applied": False, "reason": "the scheduler policy forbids context modifiers"}
    if policy is ContextModifierPolicy.ALLOW_SERIAL_ONLY and not alone:
        return {"applied": False, "reason": "the call was not alone"}
    try:
        modifier.apply()
    except Exception as error:
        return {"applied": False, "reason": f"it failed: {short_name(error)}"}
    return {"applied": True}
