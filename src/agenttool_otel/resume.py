"""Continue a paused call: the same invocation id, decided again, run once, exactly as approved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import Link, SpanContext, TraceFlags

from agenttool_otel.binding import bind_again, bind_json
from agenttool_otel.context import AgentContext, current_context
from agenttool_otel.drivers import Steps, arun, run
from agenttool_otel.envelope import to_result
from agenttool_otel.errors import UnknownTool
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import ErrorClass
from agenttool_otel.pipeline import Target
from agenttool_otel.records import ToolResult

if TYPE_CHECKING:
    from agenttool_otel.approvals.types import StoredCall
    from agenttool_otel.governor import Governor

__all__ = ["aresume_call", "asking_context", "asking_span", "resume_call"]


def resume_call(governor: Governor, invocation_id: str) -> ToolResult:
    """Continue a paused call of a tool of this process.

    Args:
        governor: the Governor whose store has the request.
        invocation_id: the invocation, from ``ApprovalRequired``.

    Returns:
        The envelope: of the run if it was approved, of the rejection if not, ``pending`` while nobody has answered.

    Raises:
        ApprovalNotFound: no call of that id waits.
        UnknownTool: this process has no tool of that id.
        InstanceMissing: it is a method whose instance this process does not know; the approval stays unused.
        TypeError: the tool is asynchronous.
    """
    call, target, steps = _plan(governor, invocation_id, governor.approvals.waiting(invocation_id))
    if target.is_async:
        governor.pipeline.paused.keep(call, target)  # its instance and arguments are still needed, by aresume
        raise TypeError(f"{call.spec.name} is asynchronous: use aresume")
    return to_result(run(call, steps, governor))


async def aresume_call(governor: Governor, invocation_id: str) -> ToolResult:
    """The same without blocking the event loop.

    Args:
        governor: the Governor whose store has the request.
        invocation_id: the invocation.

    Returns:
        The envelope, as ``resume_call``.

    Raises:
        ApprovalNotFound: no call of that id waits.
        UnknownTool: this process has no tool of that id.
        InstanceMissing: it is a method whose instance this process does not know; the approval stays unused.
    """
    import asyncio

    stored = await asyncio.to_thread(governor.approvals.waiting, invocation_id)
    call, _, steps = _plan(governor, invocation_id, stored)
    return to_result(await arun(call, steps, governor))


def _plan(governor: Governor, invocation_id: str, stored: StoredCall) -> tuple[Invocation, Target, Steps]:
    request = stored.request
    tool = governor.find(request.tool_id)
    if tool is None:
        raise UnknownTool(
            f"no tool {request.tool_id} in this process",
            error_class=ErrorClass.UNKNOWN_TOOL,
            invocation_id=invocation_id,
        )
    call = Invocation(
        tool.spec,
        asking_context(stored.context),
        native_call_id=stored.context.get("native_call_id"),
        invocation_id=invocation_id,
        resumed=True,
    )
    call.request = request
    call.ticket = stored
    paused = governor.pipeline.paused.take(invocation_id)
    if paused is not None:
        target, call.call_args, call.call_kwargs = paused
    else:
        target, call.call_kwargs = tool.json_target(), dict(stored.original_arguments)
    if paused is not None and target.bind is bind_json:  # they have been read already
        target = replace(target, bind=bind_again)
    return call, target, governor.pipeline.run(call, target, asking_span(stored.context))


def asking_context(stored: dict[str, Any]) -> AgentContext:
    """Rebuild the context of the asking process; nobody sits at the terminal of a resumed call.

    Who resumes under a context of its own speaks for itself: an approval is bound to its actor, tenant and session, and
    another's is refused when it is claimed.
    """
    now = current_context()
    return AgentContext(
        actor=now.actor or stored.get("actor") or "",
        tenant=stored.get("tenant") if now.tenant is None else now.tenant,
        roles=tuple(stored.get("roles") or ()),
        session_id=stored.get("session_id") if now.session_id is None else now.session_id,
        agent_name=stored.get("agent_name") or "",
        mode=stored.get("mode") or "default",
        roots=tuple(stored.get("roots") or ()),
        cwd=stored.get("cwd"),
        labels=dict(stored.get("labels") or {}),
    )


def asking_span(stored: dict[str, Any]) -> tuple[Link, ...]:
    """Return the link from a resumed call's span to the asking one.

    Args:
        stored: the context of a StoredCall.

    Returns:
        One link, or nothing when no span was recorded.
    """
    try:
        trace_id, span_id = int(stored["trace_id"], 16), int(stored["span_id"], 16)
    except (KeyError, TypeError, ValueError):
        return ()
    return (Link(SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))),)
