"""The end of a call that waited and will not run: rejected, expired or canceled, told by whoever finds out.

The asking process may be gone for good, and then nobody would ever tell. So the process in which the answer was given,
or in which the time was found to be over, leaves the terminal result and the span, linked to the asking one and under
the same invocation id. If the asking process goes on later all the same, it tells its caller the same end.
"""

from __future__ import annotations

import contextlib
import contextvars
from typing import TYPE_CHECKING, Any, Final

from agenttool_otel.completion import undeclared
from agenttool_otel.drivers import run
from agenttool_otel.envelope import to_result
from agenttool_otel.errors import ApprovalConflict, ApprovalError, ApprovalStoreError
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import ApprovalConflictReason, ApprovalStatus
from agenttool_otel.pipeline import Target
from agenttool_otel.records import ToolResult
from agenttool_otel.resume import asking_context, asking_span

if TYPE_CHECKING:
    from agenttool_otel.approvals.types import StoredCall
    from agenttool_otel.governor import Governor

__all__ = ["close_call", "close_expired"]

_ENDED: Final = frozenset({ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED, ApprovalStatus.CANCELED})


def close_call(governor: Governor, ref: str) -> ToolResult:
    """Leave the terminal result and span of a call whose approval was rejected, expired or canceled.

    Args:
        governor: the Governor whose store has the request; it need not know the tool.
        ref: request id, or invocation id for its newest request.

    Returns:
        The terminal envelope.

    Raises:
        ApprovalNotFound: there is no such request.
        ApprovalConflict: the call may still run, or has run.
        ApprovalStoreError: the store can't be read.
    """
    stored = governor.approvals.waiting(ref)
    request = stored.request
    if request.status not in _ENDED:
        message = f"the request is {request.status.value}, so its call has not ended here"
        raise ApprovalConflict(message, reason=ApprovalConflictReason.STILL_OPEN)
    if request.status is ApprovalStatus.EXPIRED:
        with contextlib.suppress(ApprovalStoreError):  # it may be told twice then, which is better than never
            governor.approvals.store.tell(request.request_id)
    return _close(governor, stored)


def _close(governor: Governor, stored: StoredCall) -> ToolResult:
    request = stored.request
    tool = governor.find(request.tool_id)
    call = Invocation(
        tool.spec if tool is not None else undeclared(request.tool_id, request.tool_name),
        contextvars.Context().run(asking_context, stored.context),  # it is its actor's call, whoever ends it
        native_call_id=stored.context.get("native_call_id"),
        invocation_id=request.invocation_id,
        resumed=True,
    )
    call.request, call.ticket = request, stored
    call.validated = True
    target = Target(_never, _binder(stored), _unchanged)
    governor.pipeline.paused.take(request.invocation_id)
    return to_result(run(call, governor.pipeline.run(call, target, asking_span(stored.context)), governor))


def close_expired(governor: Governor) -> list[ToolResult]:
    """Leave the end of each call whose request expired, if nobody has yet: reading a request marks it as expired, too.

    Args:
        governor: the Governor.

    Returns:
        The terminal envelopes; a request that can't be read has none.

    Raises:
        ApprovalStoreError: the store can't be written.
    """
    results = []
    store = governor.approvals.store
    for request_id in store.untold():
        if not store.tell(request_id):
            continue  # another process was faster
        try:
            results.append(_close(governor, governor.approvals.waiting(request_id)))
        except ApprovalError:
            continue
    return results


def _binder(stored: StoredCall) -> Any:
    def bind(call: Invocation) -> None:
        call.model_input = call.observable_input = dict(stored.original_arguments)

    return bind


def _unchanged(call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
    raise ValueError("a call that has ended is not changed")


def _never(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("a call that has ended was about to run")
