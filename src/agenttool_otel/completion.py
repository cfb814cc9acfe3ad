"""The second half of a paused call that is not resumed: its result arrives from outside, or somebody interrupts it."""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import Link

from agenttool_otel.catalog import ToolSpec, declare
from agenttool_otel.drivers import arun, run
from agenttool_otel.effects import Attempt
from agenttool_otel.envelope import to_result
from agenttool_otel.errors import (
    ApprovalNotFound,
    InvocationNotFound,
    ResultInvalid,
    ToolFailed,
)
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import AbortReason, ApprovalStatus
from agenttool_otel.pipeline.custom import continued
from agenttool_otel.records import ToolResult
from agenttool_otel.records.values import to_json_value
from agenttool_otel.resume import asking_context, asking_span

if TYPE_CHECKING:
    from agenttool_otel.approvals.types import ApprovalRequest, StoredCall
    from agenttool_otel.governor import Governor

__all__ = ["NOTHING", "acomplete_call", "ainterrupt_call", "complete_call", "interrupt_call"]

NOTHING: Final[Any] = object()
"""Stands for "no result was given": ``None`` is one."""

_MAX_REASON: Final = 200


def complete_call(governor: Governor, invocation_id: str, result: Any, error: Exception | str | None) -> ToolResult:
    """Take the result of a custom tool's call, or the error that its executor reports.

    Args:
        governor: the Governor that permitted the call.
        invocation_id: the invocation.
        result: what the tool returned; ``NOTHING`` where an error is given.
        error: what went wrong.

    Returns:
        The terminal envelope.

    Raises:
        InvocationNotFound: no call of that id waits for a result in this process.
        InvocationConflict: it was completed or interrupted already.
        ResultInvalid: the result does not fit the tool's output schema; the call waits on.
        TypeError: neither a result nor an error was given, or both.
    """
    call, attempt = _taken(governor, invocation_id, result, error)
    return to_result(run(call, governor.pipeline.complete(call, attempt, _first_span(call)), governor))


async def acomplete_call(
    governor: Governor, invocation_id: str, result: Any, error: Exception | str | None
) -> ToolResult:
    """The same without blocking the event loop.

    Args:
        governor: the Governor.
        invocation_id: the invocation.
        result: the result or ``NOTHING``.
        error: the error.

    Returns:
        The terminal envelope.
    """
    call, attempt = _taken(governor, invocation_id, result, error)
    await arun(call, governor.pipeline.complete(call, attempt, _first_span(call)), governor)
    if isinstance(call.exception, asyncio.CancelledError):
        raise call.exception
    return to_result(call)


def _taken(
    governor: Governor, invocation_id: str, result: Any, error: Exception | str | None
) -> tuple[Invocation, Attempt]:
    if (result is NOTHING) == (error is None):
        raise TypeError("a call is completed with a result or with an error")
    if not isinstance(error, (Exception, str, type(None))):
        raise TypeError("an error is a text or an exception")
    required = governor.pipeline.required
    check = required.look(invocation_id).spec.output_check
    if error is None and check is not None and not check.is_valid(to_json_value(result)):
        raise ResultInvalid("the result does not fit the tool's output schema")
    call = required.take(invocation_id, "completed")
    if error is None:
        return continued(call), Attempt(result)
    return continued(call), Attempt(exception=ToolFailed(error) if isinstance(error, str) else error)


def _first_span(call: Invocation) -> tuple[Link, ...]:
    context = call.span.get_span_context()
    return (Link(context),) if context.is_valid else ()


# --- interrupt -------------------------------------------------------------------------------------------------------


def interrupt_call(governor: Governor, invocation_id: str, reason: str) -> ToolResult:
    """Clear a call that waits for an approval or for a result, and record why.

    Args:
        governor: the Governor.
        invocation_id: the invocation.
        reason: why; redacted before it is stored or shown.

    Returns:
        The terminal envelope: canceled.

    Raises:
        InvocationNotFound: no call of that id waits.
        InvocationConflict: it has ended already.
        ApprovalConflict: its approval was rejected, used, or ended otherwise already.
    """
    why = _readable(governor, reason)
    call, links = _cleared(governor, invocation_id, why)
    return to_result(run(call, governor.pipeline.interrupt(call, why, links), governor))


async def ainterrupt_call(governor: Governor, invocation_id: str, reason: str) -> ToolResult:
    """The same without blocking the event loop.

    Args:
        governor: the Governor.
        invocation_id: the invocation.
        reason: why.

    Returns:
        The terminal envelope: canceled.
    """
    why = _readable(governor, reason)
    call, links = await asyncio.to_thread(_cleared, governor, invocation_id, why)
    return to_result(await arun(call, governor.pipeline.interrupt(call, why, links), governor))


def _readable(governor: Governor, reason: str) -> str:
    return governor.clean(reason)[:_MAX_REASON] or AbortReason.USER_INTERRUPTION.value


def _cleared(governor: Governor, invocation_id: str, reason: str) -> tuple[Invocation, tuple[Link, ...]]:
    """Take the call out of its waiting, so that nobody can answer or complete it any more."""
    try:
        waiting = governor.pipeline.required.take(invocation_id, "interrupted")
    except InvocationNotFound as nowhere:
        try:
            stored = governor.approvals.waiting(invocation_id)
        except ApprovalNotFound:
            raise nowhere from None
        request = governor.approvals.store.cancel(stored.request.request_id, reason)
        governor.pipeline.paused.take(invocation_id)
        return _asking_call(governor, stored, request), asking_span(stored.context)
    return continued(waiting), _first_span(waiting)


def _asking_call(governor: Governor, stored: StoredCall, request: ApprovalRequest) -> Invocation:
    tool = governor.find(request.tool_id)
    spec = tool.spec if tool is not None else undeclared(request.tool_id, request.tool_name)
    # the call is still its actor's, whoever interrupts it
    context = contextvars.Context().run(asking_context, stored.context)
    call = Invocation(
        spec,
        context,
        native_call_id=stored.context.get("native_call_id"),
        invocation_id=request.invocation_id,
        resumed=True,
    )
    call.request = request
    call.model_input = call.observable_input = call.permission_input = dict(stored.original_arguments)
    call.approval_status = ApprovalStatus.CANCELED.value
    return call


def undeclared(tool_id: str, name: str) -> ToolSpec:
    """Declare a tool of which this process knows nothing but its name, so that its call can end here.

    Args:
        tool_id: its id.
        name: its name.
    """
    return declare(
        {"tool_id": tool_id},
        name=name,
        namespace="unknown",
        description=name,
        parameters=None,
        schema={"type": "object"},
        is_async=False,
        streams=False,
    )
