"""Stop a call by its id."""

from __future__ import annotations

from agenttool_otel.call.running.handle import CancelState
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.names import AbortReason, CancelOutcome
from agenttool_otel.records import ToolResult


def cancel_call(runtime: Runtime, invocation_id: str, reason: str, abort_reason: AbortReason) -> CancelState | None:
    """Ask a call of this process to stop; ``None`` where none of that id goes on."""
    if (handle := runtime.pipeline.running.get(invocation_id)) is None:
        return None
    return handle.request(CancelState(invocation_id, runtime.clean(reason), abort_reason.value))


def interrupted(result: ToolResult) -> CancelState:
    """Return what became of the request to stop a call that waited: nothing of it was running."""
    state = CancelState(result.invocation_id, result.summary or "")
    state.acknowledged_at, state.outcome = state.requested_at, CancelOutcome.CANCELED
    return state
