"""The end of a call that waited and will not run: rejected, expired or canceled, recorded by the
process that finds out.

The asking process may be gone for good, and then nobody would ever record it. So the process in which
the answer was given, or in which the time was found to be over, leaves the terminal result and the
span, linked to the asking one and under the same invocation id. If the asking process goes on later
all the same, it gives its caller the same end.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from agenttool_otel.call.complete import asked_call
from agenttool_otel.call.drivers import run
from agenttool_otel.call.envelope import to_result
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.target import Target
from agenttool_otel.errors import ApprovalConflict, ApprovalError, ApprovalStoreError
from agenttool_otel.names import ApprovalConflictReason, ApprovalStatus
from agenttool_otel.records import ToolResult
from agenttool_otel.telemetry.telemetry import asking_span

if TYPE_CHECKING:
    from agenttool_otel.approvals.types import StoredCall


_ENDED: Final = frozenset(
    {ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED, ApprovalStatus.CANCELED}
)


def close_call(runtime: Runtime, ref: str) -> ToolResult:
    """Leave the terminal result and span of a call whose approval was rejected, expired or
    canceled.
    """
    stored = runtime.approvals.waiting(ref)
    request = stored.request
    if request.status not in _ENDED:
        message = f"the request is {request.status.value}, so its call has not ended here"
        raise ApprovalConflict(message, reason=ApprovalConflictReason.STILL_OPEN)
    if request.status is ApprovalStatus.EXPIRED:
        # it may be recorded twice then, which is better than never
        with contextlib.suppress(ApprovalStoreError):
            runtime.approvals.store.report_expiry(request.request_id)
    return _close(runtime, stored)


def _close(runtime: Runtime, stored: StoredCall) -> ToolResult:
    request = stored.request
    call = asked_call(runtime, stored, request)
    call.ticket = stored
    call.inputs.validated = True

    def bind(call: Invocation) -> None:
        call.inputs.model_input = call.inputs.observable_input = dict(stored.original_arguments)

    target = Target(_never, bind, _unchanged)
    runtime.pipeline.paused.take(request.invocation_id)
    return to_result(run(call, runtime.pipeline.run(call, target, asking_span(stored.context))))


def close_expired(runtime: Runtime) -> list[ToolResult]:
    """Record the end of each call whose request expired; reading a request marks it as
    expired, too.
    """
    results = []
    store = runtime.approvals.store
    for request_id in store.unreported_expiries():
        if not store.report_expiry(request_id):
            continue  # another process was faster
        try:
            results.append(_close(runtime, runtime.approvals.waiting(request_id)))
        except ApprovalError:
            continue
    return results


def _unchanged(call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
    raise ValueError("a call that has ended is not changed")


def _never(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("a call that has ended was about to run")
