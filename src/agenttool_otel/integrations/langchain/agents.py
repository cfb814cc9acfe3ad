"""Governance for whole agents: a ``create_agent`` middleware, and a wrapper for LangGraph's ToolNode.

Both see every tool call of the agent, also of tools that were never decorated, and answer a denial
with a ``ToolMessage(status="error")``, so that the model learns why and the run goes on. A tool
that is governed itself is passed through: one call, one decision, one span.
"""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from pydantic import ValidationError

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.tool import GovernedTool, refused_tool, unknown_tool
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import AgentToolError
from agenttool_otel.integrations.facts import Trusts, options_of
from agenttool_otel.integrations.langchain.arguments import Reader, json_object, use_reading
from agenttool_otel.integrations.langchain.calls import LangChainAdapter
from agenttool_otel.integrations.langchain.decided import DecidedTool
from agenttool_otel.integrations.langchain.govern import (
    declare_whole,
    handle_of,
    is_governed_by_host,
)
from agenttool_otel.integrations.langchain.reach import unseen_tools
from agenttool_otel.integrations.langchain.results import content_of, deliver_answer
from agenttool_otel.integrations.langchain.surfaces import AgentSurface, SurfaceState
from agenttool_otel.integrations.langchain.turns import in_turn
from agenttool_otel.preflight.surfaces import Surface
from agenttool_otel.telemetry.telemetry import MEASURES
from agenttool_otel.values.snapshot import snapshot

if TYPE_CHECKING:
    from agenttool_otel.govern.governor import Governor

_logger = logging.getLogger("agenttool_otel.langchain")

Answer = ToolMessage | Command[Any]


class _Known(NamedTuple):
    """What a guard made of a tool object with a schema."""

    tool: Any
    schema: Any
    handle: GovernedTool
    reader: Reader | None
    inside: tuple[GovernedTool, ...]


class ToolNodeGuard:
    """Governs the calls of a ToolNode: ``ToolNode(tools, wrap_tool_call=guard,
    awrap_tool_call=guard.acall)``.

    Args:
        governor: the Governor; ``None`` for the default one.
        facts: facts of tools by name or glob, as the keywords of ``govern``.
        trust_metadata: tells of a tool whether what its metadata states counts where ``facts`` say
            nothing; no tool's does where not given. A remote tool's metadata is its server's word.
        surface: from ``Governor.surface``; calls of tools that are not on it, or not loaded, are
          refused.
    """

    def __init__(
        self,
        governor: Governor | None = None,
        facts: Mapping[str, GovernOptions] | None = None,
        *,
        trust_metadata: Trusts | None = None,
        surface: Surface | None = None,
    ) -> None:
        if surface is not None and governor is None:
            governor = cast("Governor", surface.shelf.runtime)
        self._governor = governor
        self._facts = dict(facts or {})
        self._trusts = trust_metadata
        self._handles: dict[str, _Known] = {}
        self.surface = (
            AgentSurface(governor, surface, self._handle) if governor and surface else None
        )

    def __call__(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]
    ) -> Answer:
        """Decide one call and run it if it may run.

        Args:
            request: the call.
            handler: runs it.
        """
        with self._in_force(request) as (request, known):
            return cast(
                Answer,
                handler(request) if known is None else GuardedCall(known, request).run(handler),
            )

    async def acall(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """The asynchronous form.

        Args:
            request: the call.
            handler: runs it.
        """
        with self._in_force(request) as (request, known):
            answer = (
                handler(request) if known is None else GuardedCall(known, request).arun(handler)
            )
            return cast(Answer, await answer)

    @contextmanager
    def _in_force(
        self, request: ToolCallRequest
    ) -> Iterator[tuple[ToolCallRequest, _Known | None]]:
        """Put the surface in force for a call, of a tool that it loaded, too; with what a tool's
        own guard is for.
        """
        with ExitStack() as stack:
            if self.surface is not None:
                loaded = (
                    self.surface.loaded_tool(request.tool_call["name"])
                    if request.tool is None
                    else None
                )
                if loaded is not None:
                    request = request.override(tool=loaded)
                elif request.tool is not None:
                    self.surface.know(request.tool)
                stack.enter_context(self.surface.in_force(request.state))
            governed = request.tool is not None and is_governed_by_host(request.tool)
            known = None if governed else self._known(request.tool_call["name"], request.tool)
            stack.enter_context(
                in_turn(request, handle_of(request.tool) if known is None else known.handle)
            )
            yield request, known

    def know(self, tool: BaseTool) -> None:
        """Declare a tool that an agent has, so that what is wrong with its facts is said before it
        is called.

        Args:
            tool: the tool.
        """
        if not is_governed_by_host(tool):
            self._known(tool.name, tool)

    def _handle(self, tool: BaseTool) -> GovernedTool:
        return self._known(tool.name, tool).handle

    def _known(self, name: str, tool: Any) -> _Known:
        if not isinstance(tool, BaseTool):
            return self._refused(name, tool, unknown_tool(name, self._governor, "langchain"))
        schema = tool.args_schema
        known = self._handles.get(name)
        if known is not None and known.tool is tool and known.schema is schema:
            return known
        try:
            options = options_of(tool, name, self._facts, self._trusts)
            spec, inside, governor = declare_whole(tool, self._governor, options)
            reader = Reader(tool)
        except Exception as error:  # facts of a glob that do not fit this one; the others go on
            told = str(error) if isinstance(error, AgentToolError) else type(error).__name__
            why = f"the tool {name!r} can't be governed: {told}"
            _logger.error("%s; its calls are refused", why)
            return self._refused(name, tool, refused_tool(name, self._governor, why, "langchain"))
        handle = GovernedTool(spec, _unreachable, governor=governor, is_async=False, streams=False)
        known = self._handles[name] = _Known(tool, schema, handle, reader, inside)
        return known

    def _refused(self, name: str, tool: Any, handle: GovernedTool) -> _Known:
        """Keep what refuses the calls of a name, whatever the handler would say to it."""
        schema = tool.args_schema if isinstance(tool, BaseTool) else None
        known = self._handles[name] = _Known(tool, schema, handle, None, ())
        return known


class GuardedCall(LangChainAdapter):
    """One call that an agent's guard decides, before LangChain has looked at its arguments."""

    def __init__(self, known: _Known, request: ToolCallRequest) -> None:
        super().__init__(known.handle, request.tool_call.get("id") or "")
        self._known, self._request = known, request
        self.call.call_args = (request,)
        callbacks = (getattr(request.runtime, "config", None) or {}).get("callbacks")
        handlers = getattr(callbacks, "inheritable_handlers", None) or ()
        self.call.measured = any(
            type(handler).__module__.startswith(MEASURES) for handler in handlers
        )

    def bind(self, call: Invocation) -> None:
        """Take what the model sent, and what the tool will read in it."""
        arguments = snapshot(self._request.tool_call["args"])
        call.inputs.model_input = json_object(arguments)
        tool = self._known.tool
        # LangChain does not look into a JSON schema, and nobody into an unknown tool's: the
        # pipeline does
        by_schema = not isinstance(tool, BaseTool) or isinstance(tool.args_schema, dict)
        if by_schema and not call.spec.check.is_valid(call.inputs.model_input):
            return
        try:
            call.inputs.observable_input = self._give(call, arguments)
        except ValidationError:
            if call.spec.check.is_valid(call.inputs.model_input):
                raise
            return  # the pipeline says it in the schema's words
        call.inputs.unchecked = call.inputs.validated = True

    def rebind(self, call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Put changed arguments into the request, and decide on what the tool reads in them."""
        shown = dict(self._give(call, snapshot(after)))
        for name in call.spec.declaration.input_contract.internal_only_fields:
            shown.pop(name, None)
        use_reading(call, after, shown)

    def unwrap(self, value: Any) -> Any:
        """Return the content of a message."""
        return content_of(value)

    def deliver(self, response: str | None) -> Any:
        """Return what the agent gets."""
        return deliver_answer(self.call, self.runtime, response)

    def _give(self, call: Invocation, arguments: dict[str, Any]) -> dict[str, Any]:
        """Let the call run with arguments of its own, and return what the tool makes of them."""
        shown = arguments
        if self._known.reader is not None:
            shown, arguments = self._known.reader.read(arguments, call.native_call_id)
        changed = cast(Any, {**self._request.tool_call, "args": arguments})
        tool: Any = self._known.tool
        if isinstance(tool, BaseTool):
            tool = DecidedTool(tool, arguments, shown, self._known.inside)
        call.call_args = (self._request.override(tool_call=changed, tool=tool),)
        return shown


class AgentToolMiddleware(AgentMiddleware[Any, Any, Any]):
    """Governs every tool call of a ``create_agent`` agent: ``create_agent(...,
    middleware=[AgentToolMiddleware()])``.

    A middleware behind it gets the request when it is decided: where it changes the arguments, the
    tool does not run; where it runs something else, that is not decided. So put this one last. (A
    tool that is governed itself is decided where it runs, whatever middleware came before.)

    Args:
        governor: the Governor; ``None`` for the default one.
        facts: facts of tools by name or glob, as the keywords of ``govern``.
        trust_metadata: tells of a tool whether what its metadata states counts where ``facts`` say
            nothing; no tool's does where not given. A remote tool's metadata is its server's word.
        surface: from ``Governor.surface``: the model is shown its loaded tools alone and may call
            no others. Deferred ones it finds with the tool ``tool_search``, which comes along; what
            it loaded stays in its thread.
    """

    def __init__(
        self,
        governor: Governor | None = None,
        facts: Mapping[str, GovernOptions] | None = None,
        *,
        trust_metadata: Trusts | None = None,
        surface: Surface | None = None,
    ) -> None:
        super().__init__()
        self._looked_at: set[int] = set()
        self._guard = ToolNodeGuard(governor, facts, trust_metadata=trust_metadata, surface=surface)
        if self._guard.surface is not None:
            self.state_schema = SurfaceState
            self.tools = [self._guard.surface.search_tool()]

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]
    ) -> Any:
        """Show the model the tools of the surface.

        Args:
            request: what the model would get.
            handler: asks it.
        """
        self._warn_of_unseen(request.tools)
        if (surface := self._guard.surface) is None:
            return handler(request)
        return handler(request.override(tools=surface.shown(request.state, request.tools)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """The asynchronous form; the policy is asked in a thread.

        Args:
            request: what the model would get.
            handler: asks it.
        """
        self._warn_of_unseen(request.tools)
        if (surface := self._guard.surface) is None:
            return await handler(request)
        return await handler(
            request.override(tools=await to_thread(surface.shown, request.state, request.tools))
        )

    def _warn_of_unseen(self, tools: Iterable[Any]) -> None:
        """Say once of each tool what it reaches that this guard can't see."""
        for tool in tools:
            if id(tool) in self._looked_at or not isinstance(tool, BaseTool):
                continue
            self._looked_at.add(id(tool))
            self._guard.know(tool)
            try:
                unseen = unseen_tools(tool, _is_guard)
            except Exception as error:  # other people's objects
                _logger.debug("what %s reaches can't be told: %s", tool.name, type(error).__name__)
                continue
            if unseen:
                _logger.warning(
                    "the tool %r reaches tools of a sub-agent or sub-graph that AgentToolMiddleware does not see, so "
                    "their calls are not decided: %s; give it governed tools, govern(tool), or a guard of its own",
                    tool.name,
                    ", ".join(unseen),
                )

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]
    ) -> Answer:
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


def _is_guard(found: Any) -> bool:
    return isinstance(found, (AgentToolMiddleware, ToolNodeGuard))


def _unreachable(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("this handle stands for a tool of an agent; call the agent")
