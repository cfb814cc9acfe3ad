"""Stop a call by its id."""

from __future__ import annotations

from opentelemetry.trace import INVALID_SPAN

from agenttool_otel.call.running.handle import CancelState
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.names import AbortReason, Attr, CancelOutcome, Event
from agenttool_otel.records import ToolResult


def cancel_call(
    runtime: Runtime, invocation_id: str, reason: str, abort_reason: AbortReason
) -> CancelState | None:
    """Ask a call of this process to stop; ``None`` where none of that id goes on or ended
    lately.
    """
    handle = runtime.pipeline.running.get(invocation_id)
    state = CancelState(invocation_id, runtime.clean(reason), abort_reason.value)
    if handle is not None:
        return handle.request(state)
    tool_id = runtime.pipeline.ended_tool(invocation_id)
    if tool_id is None:
        return None
    state.outcome = CancelOutcome.CANCEL_FAILED  # it ended while it was being stopped
    # "A cancellation request should still create an event" (standard, "Progress and cancellation")
    for name in (Event.CANCEL_REQUESTED, Event.CANCEL_FAILED):
        runtime.telemetry.events.emit(
            INVALID_SPAN,  # that of the call has ended, and the current one is another's
            name,
            {Attr.ABORT_REASON: state.abort_reason},
            invocation_id=invocation_id,
            tool_id=tool_id,
        )
    return state


def interrupted(result: ToolResult) -> CancelState:
    """Return what became of the request to stop a call that waited: nothing of it was running."""
    state = CancelState(result.invocation_id, result.summary or "")
    state.acknowledged_at, state.outcome = state.requested_at, CancelOutcome.CANCELED
    return state
