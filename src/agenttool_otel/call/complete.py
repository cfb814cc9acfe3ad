"""The second half of a paused call that is not resumed: its result arrives from outside, or
it is interrupted.
"""

from __future__ import annotations

import contextvars
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import Link

from agenttool_otel.approvals.types import RequiredCall
from agenttool_otel.call.binding import bind_permitted
from agenttool_otel.call.drivers import aresult, run
from agenttool_otel.call.envelope import to_result
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.pending.serialized import recall, unpack
from agenttool_otel.call.resume import asking_context
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.sandbox import Sandbox, roots_of
from agenttool_otel.call.steps import Attempt
from agenttool_otel.call.target import Target
from agenttool_otel.catalog import ToolSource, ToolSpec, declare
from agenttool_otel.context.context import AgentContext
from agenttool_otel.errors import (
    ApprovalNotFound,
    InvocationNotFound,
    ResultInvalid,
    ToolChanged,
    ToolFailed,
    UnknownTool,
)
from agenttool_otel.names import (
    AbortReason,
    ApprovalStatus,
    ErrorClass,
    Ownership,
    RequiredStatus,
    SandboxProfile,
    SandboxScope,
)
from agenttool_otel.records import ToolResult
from agenttool_otel.telemetry.telemetry import asking_span, context_of
from agenttool_otel.values.conversion import to_json_value
from agenttool_otel.values.run_to_completion import run_to_completion

if TYPE_CHECKING:
    from agenttool_otel.approvals.types import ApprovalRequest, StoredCall
    from agenttool_otel.call.rehearsal import RehearsedBody
    from agenttool_otel.enforcement import CommandResult


NOTHING: Final[Any] = object()
"""Stands for "no result was given": ``None`` is one."""

_MAX_REASON: Final = 200


def complete_call(
    runtime: Runtime, invocation_id: str, result: Any, error: Exception | str | None
) -> ToolResult:
    """Take the result of a custom tool's call, or the error that its executor reports."""
    call, attempt, links = _taken(runtime, invocation_id, result, error)
    return to_result(run(call, runtime.pipeline.complete(call, attempt, links)))


async def acomplete_call(
    runtime: Runtime, invocation_id: str, result: Any, error: Exception | str | None
) -> ToolResult:
    """The same without blocking the event loop; once the call is taken it is completed, canceled or
    not.
    """
    canceled = None
    if runtime.pipeline.required.blocks:
        (call, attempt, links), canceled = await run_to_completion(
            partial(_taken, runtime, invocation_id, result, error)
        )
    else:
        call, attempt, links = _taken(runtime, invocation_id, result, error)
    completed = await aresult(call, runtime.pipeline.complete(call, attempt, links))
    if canceled is not None:
        raise canceled
    return completed


async def arehearsed_call(
    runtime: Runtime, invocation_id: str, layer_id: str, digest: str, result: CommandResult
) -> ToolResult:
    """Take the layer on which a host has run a permitted command: what it would change is decided,
    and committed, kept for an answer, or thrown away.

    Args:
        runtime: who permitted the call.
        invocation_id: the call.
        layer_id: the layer that the host has sealed.
        digest: the layer's digest.
        result: how the command ended.

    Raises:
        ResultInvalid: the call is not one that is rehearsed, or the layer is not one of it.
        InvocationNotFound: no such call waits here.
    """
    (call, target, body, links), canceled = await run_to_completion(
        partial(_rehearsed, runtime, invocation_id, layer_id, digest, result)
    )
    steps = runtime.pipeline.rehearsed(call, target, body, Attempt(result), links)
    settled = await aresult(call, steps)
    if canceled is not None:
        raise canceled
    return settled


def _rehearsed(
    runtime: Runtime, invocation_id: str, layer_id: str, digest: str, result: CommandResult
) -> tuple[Invocation, Target, RehearsedBody, tuple[Link, ...]]:
    required = runtime.pipeline.required
    waiting = required.look(invocation_id)
    if not isinstance(waiting, Invocation):
        raise InvocationNotFound("the call was permitted in another process")
    tool, duty = runtime.find(waiting.spec.tool_id), waiting.decision.host_duty
    if tool is None or duty is None or duty.profile is not SandboxProfile.REHEARSE:
        raise ResultInvalid("the call is not one that is rehearsed")
    from agenttool_otel.call.rehearsal import body_elsewhere
    from agenttool_otel.enforcement.rehearsal import RehearsedRun

    roots = roots_of(waiting.context)
    run = RehearsedRun(
        result.status, result.stdout, result.stderr, result.timed_out, result.seconds
    )
    body = body_elsewhere(runtime.layers, roots, layer_id, digest, run)
    call, links = _second_part(runtime, waiting)
    _hold(runtime, call, required.take(invocation_id, RequiredStatus.COMPLETED))
    call.sandbox = Sandbox(duty, SandboxScope.COMMAND, "bubblewrap", roots, entered=True)
    call.sandbox.rehearsal = body
    return call, tool.json_target(), body, links


def _taken(
    runtime: Runtime, invocation_id: str, result: Any, error: Exception | str | None
) -> tuple[Invocation, Attempt, tuple[Link, ...]]:
    if (result is NOTHING) == (error is None):
        raise TypeError("a call is completed with a result or with an error")
    if not isinstance(error, (Exception, str, type(None))):
        raise TypeError("an error is a text or an exception")
    required = runtime.pipeline.required
    waiting = required.look(invocation_id)
    if isinstance(waiting, RequiredCall):
        _check_tool(runtime, waiting)
    call, links = _second_part(runtime, waiting)
    check = call.spec.output_check
    if error is None and check is not None and not check.is_valid(to_json_value(result)):
        raise ResultInvalid("the result does not fit the tool's output schema")
    _hold(runtime, call, required.take(invocation_id, RequiredStatus.COMPLETED))
    if error is None:
        return call, Attempt(result), links
    return call, Attempt(exception=ToolFailed(error) if isinstance(error, str) else error), links


def _check_tool(runtime: Runtime, waiting: RequiredCall) -> None:
    """Refuse to settle a call that another process permitted unless its tool is here, as it
    was there.
    """
    if (tool := runtime.find(waiting.tool_id)) is None:
        raise UnknownTool(
            f"no tool {waiting.tool_id} in this process",
            error_class=ErrorClass.UNKNOWN_TOOL,
            invocation_id=waiting.invocation_id,
        )
    # the digest does not cover who fulfils the tool
    if tool.spec.digest != waiting.declaration_digest or tool.spec.ownership != Ownership.CUSTOM:
        raise ToolChanged(
            f"{waiting.tool_id} is declared otherwise here than where its call was permitted"
        )


def _second_part(
    runtime: Runtime, waiting: Invocation | RequiredCall
) -> tuple[Invocation, tuple[Link, ...]]:
    """Make the second part of a waiting call, and the link to its first."""
    if isinstance(waiting, Invocation):
        return waiting.second_part(), _first_span(waiting)
    stored, tool = waiting.context, runtime.find(waiting.tool_id)
    spec = (
        tool.spec
        if tool is not None
        else _undeclared(waiting.tool_id, str(stored.get("tool_name")))
    )
    context = _its_context(stored)
    call = unpack(
        waiting.invocation_id, stored, spec, replace(context, surface=stored.get("surface"))
    )
    if tool is not None:
        bind_permitted(call)
    return call, asking_span(stored)


def _hold(runtime: Runtime, call: Invocation, taken: Invocation | RequiredCall) -> None:
    """Give the second part the claim of the approval, if there was one, so that it is ended with
    the call.
    """
    call.claim = taken.claim
    if taken.claim is not None:
        runtime.approvals.hold(taken.claim)
        call.decision.request = call.decision.request or taken.claim.request


def _first_span(call: Invocation) -> tuple[Link, ...]:
    context = context_of(call.span)
    return (Link(context),) if context.is_valid else ()


# --- interrupt ------------------------------------------------------------------------------------


def interrupt_call(runtime: Runtime, invocation_id: str, reason: str) -> ToolResult:
    """Clear a call that waits for an approval or for a result, and record why."""
    why = _readable(runtime, reason)
    call, links = _cleared(runtime, invocation_id, why)
    return to_result(run(call, runtime.pipeline.interrupt(call, why, links)))


async def ainterrupt_call(runtime: Runtime, invocation_id: str, reason: str) -> ToolResult:
    """The same without blocking the event loop."""
    why = _readable(runtime, reason)
    (call, links), canceled = await run_to_completion(
        partial(_cleared, runtime, invocation_id, why)
    )
    ended = await aresult(call, runtime.pipeline.interrupt(call, why, links))
    if canceled is not None:
        raise canceled
    return ended


def _readable(runtime: Runtime, reason: str) -> str:
    return runtime.clean(reason)[:_MAX_REASON] or AbortReason.USER_INTERRUPTION.value


def _cleared(
    runtime: Runtime, invocation_id: str, reason: str
) -> tuple[Invocation, tuple[Link, ...]]:
    """Take the call out of its waiting, so that nobody can answer or complete it any more."""
    required = runtime.pipeline.required
    try:
        waiting = required.look(invocation_id)
    except InvocationNotFound as nowhere:
        try:
            stored = runtime.approvals.waiting(invocation_id)
        except ApprovalNotFound:
            raise nowhere from None
        request = runtime.approvals.cancel(stored.request.request_id, reason)
        runtime.pipeline.paused.take(invocation_id)
        return _asking_call(runtime, stored, request), asking_span(stored.context)
    call, links = _second_part(runtime, waiting)
    _hold(runtime, call, required.take(invocation_id, RequiredStatus.INTERRUPTED))
    return call, links


def _asking_call(runtime: Runtime, stored: StoredCall, request: ApprovalRequest) -> Invocation:
    call = asked_call(runtime, stored, request)
    call.inputs.model_input = call.inputs.observable_input = call.inputs.permission_input = dict(
        stored.original_arguments
    )
    call.decision.approval_status = ApprovalStatus.CANCELED.value
    return call


def asked_call(runtime: Runtime, stored: StoredCall, request: ApprovalRequest) -> Invocation:
    """Make the second part of a call that was asked about and will not run, to be ended here."""
    tool = runtime.find(request.tool_id)
    call = Invocation(
        tool.spec if tool is not None else _undeclared(request.tool_id, request.tool_name),
        _its_context(stored.context),
        native_call_id=stored.context.get("native_call_id"),
        id=request.invocation_id,
        resumed=True,
    )
    recall(call, stored.context)
    call.decision.request = request
    return call


def _its_context(stored: dict[str, Any]) -> AgentContext:
    """Return the context of a call that is still its actor's, also where another one ends it."""
    return contextvars.Context().run(asking_context, stored)


def _undeclared(tool_id: str, name: str) -> ToolSpec:
    """Declare a tool of which this process has nothing but its name, so that its call can
    end here.
    """
    source = ToolSource(name=name, namespace="unknown", description=name, schema={"type": "object"})
    return declare({"tool_id": tool_id}, source)
