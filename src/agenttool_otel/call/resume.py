"""Continue a paused call: the same invocation id, decided again, run once, exactly as approved."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from agenttool_otel.call.binding import bind_again, bind_json, bind_python, bind_read
from agenttool_otel.call.drivers import Steps, aresult, run
from agenttool_otel.call.envelope import to_result
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.pending.paused import PausedCall
from agenttool_otel.call.pending.serialized import recall
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.target import Target
from agenttool_otel.context.context import (
    AgentContext,
    Delegator,
    current_context,
    joined_chain,
)
from agenttool_otel.errors import ApprovalStoreError, UnknownTool
from agenttool_otel.names import ApprovalStatus, ErrorClass
from agenttool_otel.records import ToolResult
from agenttool_otel.telemetry.telemetry import asking_span

if TYPE_CHECKING:
    from agenttool_otel.approvals.types import StoredCall


def resume_call(runtime: Runtime, invocation_id: str) -> ToolResult:
    """Continue a paused call of a tool of this process."""
    try:
        stored = runtime.approvals.waiting(invocation_id)
    except ApprovalStoreError as error:
        call, steps = _unavailable(runtime, invocation_id, error)
        return to_result(run(call, steps))
    going = _plan(runtime, invocation_id, stored, asynchronous=False)
    try:
        return to_result(run(going.call, going.steps))
    finally:
        going.leave(runtime)


async def aresume_call(runtime: Runtime, invocation_id: str) -> ToolResult:
    """The same without blocking the event loop; a plain function runs in a worker thread."""
    try:
        stored = await asyncio.to_thread(runtime.approvals.waiting, invocation_id)
    except ApprovalStoreError as error:
        call, steps = _unavailable(runtime, invocation_id, error)
        return await aresult(call, steps)
    going = _plan(runtime, invocation_id, stored, asynchronous=True)
    try:
        return await aresult(going.call, going.steps)
    finally:
        going.leave(runtime)


def _unavailable(
    runtime: Runtime, invocation_id: str, error: ApprovalStoreError
) -> tuple[Invocation, Steps]:
    """Return a part of a call that ends because the store can't be read; only the asking process has
    its tool.
    """
    waiting = runtime.pipeline.paused.look(invocation_id)
    if waiting is None:
        raise error
    call = Invocation(waiting.spec, asking_context({}), id=invocation_id, resumed=True)
    return call, runtime.pipeline.unavailable(call, f"the approval could not be read: {error}")


class _Going(NamedTuple):
    """A paused call that goes on."""

    call: Invocation  # the call in its second part
    steps: Steps  # its pipeline
    paused: PausedCall | None  # what this process remembered of it, taken out of its waiting

    def leave(self, runtime: Runtime) -> None:
        """Let the call wait on where its approval was not used, so that it can go on later with its
        own objects.
        """
        call = self.call
        if self.paused is None or call.claim is not None or call.decision.request is None:
            return
        if call.decision.request.status is ApprovalStatus.APPROVED:
            runtime.pipeline.paused.put_back(call.id, self.paused)


def _plan(
    runtime: Runtime, invocation_id: str, stored: StoredCall, *, asynchronous: bool
) -> _Going:
    request = stored.request
    tool = runtime.find(request.tool_id)
    waiting = runtime.pipeline.paused.look(invocation_id)
    spec = tool.spec if tool is not None else waiting.spec if waiting is not None else None
    unknown = UnknownTool(
        f"no tool {request.tool_id} in this process",
        error_class=ErrorClass.UNKNOWN_TOOL,
        invocation_id=invocation_id,
    )
    if spec is None:
        raise unknown
    call = Invocation(
        spec, asking_context(stored.context), native_call_id=stored.context.get("native_call_id")
    )
    continue_stored(call, stored)
    call.is_attempt = True
    # what can't be run here is left as it is
    target = _through_this_door(
        tool.json_target() if waiting is None else waiting.target, spec.name, asynchronous
    )
    if (paused := runtime.pipeline.paused.take(invocation_id)) is not None:
        _, _, call.call_args, call.call_kwargs = paused
    elif tool is None:  # another thread has taken it
        raise unknown
    else:
        target = _through_this_door(tool.json_target(), spec.name, asynchronous)
        call.call_kwargs = dict(stored.original_arguments)
    if paused is not None and target.bind is bind_json:  # they have been read already
        target = replace(target, bind=bind_again)
    elif paused is not None and target.bind is bind_python:
        target = replace(target, bind=bind_read)
    return _Going(call, runtime.pipeline.run(call, target, asking_span(stored.context)), paused)


def continue_stored(call: Invocation, stored: StoredCall) -> None:
    """Make a call the second part of one that was asked about: its context and request are those of
    the first.
    """
    call.id = stored.request.invocation_id
    call.context = asking_context(stored.context)
    call.resumed = True
    recall(call, stored.context)
    call.decision.request, call.ticket = stored.request, stored


def _through_this_door(target: Target, name: str, asynchronous: bool) -> Target:
    """Return what a paused call runs when it goes on: there is no consumer of a stream, and maybe
    no event loop.
    """
    if target.streams:
        target = replace(target, streams=False, collects=True)
    needs_loop = target.is_async and not target.in_thread
    if needs_loop and not asynchronous:
        raise TypeError(f"{name} is asynchronous: use aresume")
    if needs_loop:
        return target
    return replace(target, is_async=asynchronous, in_thread=asynchronous)


def asking_context(stored: dict[str, Any]) -> AgentContext:
    """Rebuild the context of the asking process; nobody sits at the terminal of a resumed call.

    A context of the resuming process comes first: an approval is bound to its actor, tenant and
    session, and another's is refused when it is claimed. An evaluator's verdict and the user's
    words are those of the present: a verdict of the time of the question is not about what runs
    now.
    """
    now = current_context()
    return AgentContext(
        actor=now.actor or stored.get("actor") or "",
        tenant=stored.get("tenant") if now.tenant is None else now.tenant,
        roles=tuple(stored.get("roles") or ()),
        chain=joined_chain(now.chain, tuple(map(Delegator.of, stored.get("chain") or ()))),
        session_id=stored.get("session_id") if now.session_id is None else now.session_id,
        agent_name=stored.get("agent_name") or "",
        mode=stored.get("mode") or "default",
        roots=tuple(stored.get("roots") or ()),
        cwd=stored.get("cwd"),
        user_text=now.user_text,
        surface=stored.get("surface") if now.surface is None else now.surface,
        surface_in_force=now.surface_in_force,
        labels=dict(stored.get("labels") or {}),
        evaluation=now.evaluation,
        resources=now.resources,
    )
