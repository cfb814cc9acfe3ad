"""Stop a call by its id."""

from __future__ import annotations

from agenttool_otel.call.running.handle import CancelState
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.names import AbortReason, CancelOutcome
from agenttool_otel.records import ToolResult


def cancel_call(
    runtime: Runtime, invocation_id: str, reason: str, abort_reason: AbortReason
) -> CancelState | None:
    """Ask a call of this process to stop; ``None`` where none of that id goes on or ended
    lately.
    """
    handle = runtime.pipeline.running.get(invocation_id)
    if handle is None and invocation_id not in runtime.pipeline.ended:
        return None
    state = CancelState(invocation_id, runtime.clean(reason), abort_reason.value)
    if handle is not None:
        return handle.request(state)
    state.outcome = CancelOutcome.CANCEL_FAILED  # it ended while it was being stopped
    return state


def interrupted(result: ToolResult) -> CancelState:
    """Return what became of the request to stop a call that waited: nothing of it was running."""
    state = CancelState(result.invocation_id, result.summary or "")
    state.acknowledged_at, state.outcome = state.requested_at, CancelOutcome.CANCELED
    return state
