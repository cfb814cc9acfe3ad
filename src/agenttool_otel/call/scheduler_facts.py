"""What scheduling needs of one call: its safety facts, its locks, its change of shared context."""

from __future__ import annotations

from typing import Any, Final

from agenttool_otel.call.invocation import CallRecord, Invocation
from agenttool_otel.names import ContextModifierPolicy, InvocationStatus, ResultStatus
from agenttool_otel.values.inspection import short_name

_SAFETY: Final = ("concurrency_safe", "read_only", "destructive", "open_world")
_STATES: Final = {
    InvocationStatus.PLANNED: "queued",
    InvocationStatus.QUEUED: "queued",
    InvocationStatus.RUNNING: "executing",
    InvocationStatus.PARTIAL_RESULT: "executing",
}


def safety_of(call: CallRecord) -> dict[str, bool]:
    """Return the safety facts of a call, for its very input."""
    if call.spec.safety.static:
        return {name: call.spec.policy_tool[name] for name in _SAFETY}
    return call.spec.safety_facts(call.inputs.permission_input, call.decision.facts)


def exclusive(call: CallRecord) -> bool:
    """Return whether a call has to be alone in its turn."""
    return call.spec.exclusive or not safety_of(call)["concurrency_safe"]


def locks_of(call: CallRecord) -> frozenset[str]:
    """Return the names of what a call holds while it runs."""
    locks = call.spec.locks if call.place is None else call.spec.locks | call.place.locks
    if call.spec.exclusive:
        locks |= {f"context:{'|'.join(call.context.session_key)}"}
    return locks


def scheduler_facts(call: CallRecord) -> dict[str, Any]:
    """Return the ``scheduler`` object of an invocation record."""
    interface, state = call.spec.interface, None
    if call.place is not None:
        state = _STATES.get(call.outcome.status, "completed")
        if call.outcome.result_status is ResultStatus.DISCARDED:
            state = "discarded"
        elif call.outcome.yielded:
            state = "yielded"
    return {
        **{f"is_{name}": value for name, value in safety_of(call).items()},
        "requires_exclusive_context": call.spec.exclusive,
        "context_modifier_policy": getattr(interface, "context_modifier_policy", None),
        "resource_locks": sorted(locks_of(call)),
        "interrupt_behavior": str(interface.interrupt_behavior),
        "state": state,
    }


def settle_modifier(
    call: Invocation, policy: ContextModifierPolicy, *, alone: bool, complete: bool = True
) -> None:
    """Make the change that a call wants which ended, or record why not; what is deferred waits for the
    batch's end.
    """
    stated = getattr(call.spec.interface, "context_modifier_policy", None)
    if call.modifier is None or call.outcome.modified is not None:
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
    call.outcome.modified = {"applied": False, "reason": reason} if reason else {"applied": True}
