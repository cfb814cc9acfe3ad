"""Governance for whole agents: a ``create_agent`` middleware, and a wrapper for LangGraph's ToolNode.

Both see every tool call of the agent, also of tools that were never decorated, and answer a denial with a
``ToolMessage(status="error")``, so that the model learns why and the run goes on. A tool that is governed itself is
passed through: one call, one decision, one span.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from agenttool_otel.catalog import GovernOptions, declare
from agenttool_otel.context import current_context
from agenttool_otel.integrations.facts import Trusts, facts_in_metadata, options_for
from agenttool_otel.integrations.langchain import declare_langchain, is_governed
from agenttool_otel.integrations.langchain_arguments import json_object, take_reading
from agenttool_otel.integrations.langchain_calls import aperform, perform
from agenttool_otel.integrations.langchain_reading import Reader
from agenttool_otel.integrations.langchain_results import content_of, deliver_answer
from agenttool_otel.invocation import Invocation
from agenttool_otel.pipeline import Target
from agenttool_otel.records.values import snapshot
from agenttool_otel.tool import GovernedTool

if TYPE_CHECKING:
    from agenttool_otel.governor import Governor

__all__ = ["AgentToolMiddleware", "ToolNodeGuard"]

Answer = ToolMessage | Command[Any]


class _Known(NamedTuple):
    """What a guard made of a tool object with a schema."""

    tool: Any
    schema: Any
    handle: GovernedTool
    reader: Reader | None


class ToolNodeGuard:
    """Governs the calls of a ToolNode: ``ToolNode(tools, wrap_tool_call=guard, awrap_tool_call=guard.acall)``.

    Args:
        governor: the Governor; ``None`` for the default one.
        facts: facts of tools by name or glob, as the keywords of ``govern``.
        trust_metadata: tells of a tool whether what its metadata states counts where ``facts`` say nothing; no tool's
            does where not given. A remote tool's metadata is its server's word.
    """

    def __init__(
        self,
        governor: Governor | None = None,
        facts: Mapping[str, GovernOptions] | None = None,
        *,
        trust_metadata: Trusts | None = None,
    ) -> None:
        self._governor = governor
        self._facts = dict(facts or {})
        self._trusts = trust_metadata
        self._handles: dict[str, _Known] = {}

    def __call__(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        """Decide one call and run it if it may run.

        Args:
            request: the call.
            handler: runs it.
        """
        if request.tool is not None and is_governed(request.tool):
            return handler(request)
        call, target, governor = self._plan(request, handler, is_async=False)
        said = perform(call, target, governor)
        return cast(Answer, deliver_answer(call, governor, said))

    async def acall(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]) -> Answer:
        """The asynchronous form.

        Args:
            request: the call.
            handler: runs it.
        """
        if request.tool is not None and is_governed(request.tool):
            return await handler(request)
        call, target, governor = self._plan(request, handler, is_async=True)
        said = await aperform(call, target, governor)
        return cast(Answer, deliver_answer(call, governor, said))

    def _plan(
        self, request: ToolCallRequest, handler: Callable[..., Any], *, is_async: bool
    ) -> tuple[Invocation, Target, Governor]:
        known = self._known(request)
        handle, reader = known.handle, known.reader
        governor = handle.governor
        call = Invocation(
            handle.spec, governor.effective(current_context()), native_call_id=request.tool_call.get("id") or ""
        )
        call.call_args = (request,)

        def give(arguments: dict[str, Any]) -> dict[str, Any]:
            """Let the call run with arguments of its own, and return what the tool makes of them."""
            shown = arguments
            if reader is not None:
                shown, arguments = reader.read(arguments, call.native_call_id)
            changed = cast(Any, {**request.tool_call, "args": arguments})
            call.call_args = (request.override(tool_call=changed),)
            return shown

        def bind(call: Invocation) -> None:
            arguments = snapshot(request.tool_call["args"])
            call.model_input = json_object(arguments)
            if handle.spec.check.is_valid(call.model_input):  # the pipeline says what is wrong otherwise
                call.observable_input = give(arguments)
                call.validated = True

        def rebind(call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
            shown = dict(give(snapshot(after)))
            for name in handle.spec.declaration.input_contract.internal_only_fields:
                shown.pop(name, None)
            take_reading(call, after, shown)

        return call, Target(handler, bind, rebind, is_async=is_async, unwrap=content_of), governor

    def _known(self, request: ToolCallRequest) -> _Known:
        name = request.tool_call["name"]
        schema = request.tool.args_schema if isinstance(request.tool, BaseTool) else None
        known = self._handles.get(name)
        if known is not None and known.tool is request.tool and known.schema is schema:
            return known
        reader = None
        options = options_for(self._facts, name)
        if isinstance(request.tool, BaseTool):
            if self._trusts is not None and self._trusts(request.tool):
                options = cast(GovernOptions, {**facts_in_metadata(request.tool), **options})
            spec = declare_langchain(request.tool, options)
            reader = Reader(request.tool)
        else:
            spec = declare(
                options,
                name=name,
                namespace="langchain",
                description=f"unknown tool {name}",
                parameters=None,
                schema={"type": "object"},
                is_async=False,
                streams=False,
            )
            spec.unknown = True  # refused here, whatever the handler would say to it
        handle = GovernedTool(spec, _unreachable, governor=self._governor, is_async=False, streams=False)
        known = self._handles[name] = _Known(request.tool, schema, handle, reader)
        return known


class AgentToolMiddleware(AgentMiddleware):
    """Governs every tool call of a ``create_agent`` agent: ``create_agent(..., middleware=[AgentToolMiddleware()])``.

    Put it last: a middleware after it gets the request when it is decided, and can run something else. (A tool that is
    governed itself is decided where it runs, whatever middleware came before.)

    Args:
        governor: the Governor; ``None`` for the default one.
        facts: facts of tools by name or glob, as the keywords of ``govern``.
        trust_metadata: tells of a tool whether what its metadata states counts where ``facts`` say nothing; no tool's
            does where not given. A remote tool's metadata is its server's word.
    """

    def __init__(
        self,
        governor: Governor | None = None,
        facts: Mapping[str, GovernOptions] | None = None,
        *,
        trust_metadata: Trusts | None = None,
    ) -> None:
        super().__init__()
        self._guard = ToolNodeGuard(governor, facts, trust_metadata=trust_metadata)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        """Decide one call and run it if it may run.

        Args:
            request: the call.
            handler: runs it.
        """
        return self._guard(request, handler)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """The asynchronous form.

        Args:
            request: the call.
            handler: runs it.
        """
        return await self._guard.acall(request, handler)


def _unreachable(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("this handle stands for a tool of an agent; call the agent")
