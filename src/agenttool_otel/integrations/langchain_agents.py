"""Governance for whole agents: a ``create_agent`` middleware, and a wrapper for LangGraph's ToolNode.

Both see every tool call of the agent, also of tools that were never decorated, and answer a denial with a
``ToolMessage(status="error")``, so that the model learns why and the run goes on. A tool that is governed itself is
passed through: one call, one decision, one span.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from agenttool_otel.catalog import GovernOptions, declare
from agenttool_otel.context import current_context
from agenttool_otel.integrations.facts import Trusts, facts_in_metadata, options_for
from agenttool_otel.integrations.langchain import declare_langchain, is_governed
from agenttool_otel.integrations.langchain_calls import aperform, perform
from agenttool_otel.integrations.langchain_results import refusal
from agenttool_otel.invocation import Invocation
from agenttool_otel.pipeline import Target
from agenttool_otel.records.values import to_json_value
from agenttool_otel.tool import GovernedTool

if TYPE_CHECKING:
    from agenttool_otel.governor import Governor

__all__ = ["AgentToolMiddleware", "ToolNodeGuard"]

Answer = ToolMessage | Command[Any]


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
        self._handles: dict[str, tuple[Any, GovernedTool]] = {}

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
        return self._deliver(call, said)

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
        return self._deliver(call, said)

    def _plan(
        self, request: ToolCallRequest, handler: Callable[..., Any], *, is_async: bool
    ) -> tuple[Invocation, Target, Governor]:
        handle = self._handle(request)
        governor = handle.governor
        call = Invocation(
            handle.spec, governor.effective(current_context()), native_call_id=request.tool_call.get("id") or ""
        )
        call.call_args = (request,)

        def bind(call: Invocation) -> None:
            arguments = to_json_value(request.tool_call["args"])
            if not isinstance(arguments, dict):
                raise ValueError("arguments are not an object")
            call.model_input = arguments

        def rebind(call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
            edited = cast(Any, {**request.tool_call, "args": after})
            call.call_args = (request.override(tool_call=edited),)

        return call, Target(handler, bind, rebind, is_async=is_async, unwrap=_unwrap), governor

    def _handle(self, request: ToolCallRequest) -> GovernedTool:
        name = request.tool_call["name"]
        known = self._handles.get(name)
        if known is not None and known[0] is request.tool:
            return known[1]
        options = options_for(self._facts, name)
        if isinstance(request.tool, BaseTool):
            if self._trusts is not None and self._trusts(request.tool):
                options = cast(GovernOptions, {**facts_in_metadata(request.tool), **options})
            spec = declare_langchain(request.tool, options)
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
        self._handles[name] = (request.tool, handle)
        return handle

    def _deliver(self, call: Invocation, said: str | None) -> Answer:
        if call.exception is not None:
            raise call.exception
        if not call.ran:
            return refusal(call, call.spec.name, said)
        value = cast(Answer, call.value)
        if isinstance(value, ToolMessage) and call.model_value is not value.content:
            return value.model_copy(update={"content": call.model_value})
        return value


class AgentToolMiddleware(AgentMiddleware):
    """Governs every tool call of a ``create_agent`` agent: ``create_agent(..., middleware=[AgentToolMiddleware()])``.

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


def _unwrap(value: Any) -> Any:
    return value.content if isinstance(value, ToolMessage) else value


def _unreachable(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("this handle stands for a tool of an agent; call the agent")
