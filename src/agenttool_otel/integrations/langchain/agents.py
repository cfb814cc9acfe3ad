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
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

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
from agenttool_otel.integrations.langchain.reach import MAX_OBJECTS, unseen_tools
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

_UNSEEN: Final = (
    "the tool %r reaches tools of a sub-agent or sub-graph that AgentToolMiddleware does not see, so"
    " their calls are not decided: %s; give it governed tools, govern(tool), or a guard of its own"
)


class _Known(NamedTuple):
    """A tool object as a guard has declared it."""

    tool: Any  # the object; may be none of LangChain's, or None, for an unknown name
    schema: Any  # its args_schema when it was declared
    handle: GovernedTool  # what its calls are decided with
    reader: Reader | None  # reads arguments as the tool does; None where calls are refused
    inside: tuple[GovernedTool, ...]  # governed functions that are its body


class ToolNodeGuard:
    """Governs the calls of a ToolNode: ``ToolNode(tools, wrap_tool_call=guard,
    awrap_tool_call=guard.acall)``.

    Args:
        governor: the Governor; ``None`` for the default one.
        facts: facts of tools by name or glob, as the keywords of ``govern``.
        trust_metadata: whether a tool's metadata counts where ``facts`` has nothing; by default no
            tool's does. The metadata of a remote tool comes from its server.
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
        self.surface: AgentSurface | None = None
        if governor is not None and surface is not None:
            self.surface = AgentSurface(governor, surface, self._handle)

    def __call__(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]
    ) -> Answer:
        """Decide one call and run it if it may run.

        Args:
            request: the call.
            handler: runs it.
        """
        with self._in_force(request) as (request, known):
            # None: the tool is governed itself
            if known is None:
                return handler(request)
            answer: Answer = GuardedCall(known, request).run(handler)
            return answer

    async def acall(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """The asynchronous form.

        Args:
            request: the call.
            handler: runs it.
        """
        with self._in_force(request) as (request, known):
            if known is None:
                return await handler(request)
            answer: Answer = await GuardedCall(known, request).arun(handler)
            return answer

    @contextmanager
    def _in_force(
        self, request: ToolCallRequest
    ) -> Iterator[tuple[ToolCallRequest, _Known | None]]:
        """Put the surface in force for a call, and give the call its place among its siblings.

        Yields:
            The request, of a tool that the surface loaded where the agent has none of that name;
            and the declaration of its tool, or ``None`` where the tool is governed itself.
        """
        with ExitStack() as stack:
            if self.surface is not None:
                request = self._with_loaded(self.surface, request)
                stack.enter_context(self.surface.in_force(request.state))
            known: _Known | None = None
            if request.tool is not None and is_governed_by_host(request.tool):
                handle = handle_of(request.tool)
            else:
                known = self._known(request.tool_call["name"], request.tool)
                handle = known.handle
            stack.enter_context(in_turn(request, handle))
            yield request, known

    def _with_loaded(self, surface: AgentSurface, request: ToolCallRequest) -> ToolCallRequest:
        if request.tool is not None:
            surface.declare(request.tool)
            return request
        loaded = surface.loaded_tool(request.tool_call["name"])
        if loaded is None:
            return request
        return request.override(tool=loaded)

    def declare(self, tool: BaseTool) -> None:
        """Declare a tool that an agent has, so that facts which are wrong are logged before it is
        called.

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
        except Exception as error:
            # {"read_*": {"path_args": ["path"]}} also names read_mail, which has no path: only the
            # calls of that tool are refused
            problem = str(error) if isinstance(error, AgentToolError) else type(error).__name__
            reason = f"the tool {name!r} can't be governed: {problem}"
            _logger.error("%s; its calls are refused", reason)
            refusing = refused_tool(name, self._governor, reason, "langchain")
            return self._refused(name, tool, refusing)
        handle = GovernedTool(
            spec,
            _unreachable,
            governor=governor,
            is_async=False,
            streams=False,
        )
        known = _Known(tool, schema, handle, reader, inside)
        self._handles[name] = known
        return known

    def _refused(self, name: str, tool: Any, handle: GovernedTool) -> _Known:
        """Keep a handle that refuses the calls of a name, whatever the handler would do with it."""
        schema = tool.args_schema if isinstance(tool, BaseTool) else None
        known = _Known(tool, schema, handle, reader=None, inside=())
        self._handles[name] = known
        return known


class GuardedCall(LangChainAdapter):
    """One call that an agent's guard decides, before LangChain has validated its arguments."""

    def __init__(self, known: _Known, request: ToolCallRequest) -> None:
        super().__init__(known.handle, request.tool_call.get("id") or "")
        self._known = known
        self._request = request
        self.call.call_args = (request,)
        config = getattr(request.runtime, "config", None) or {}
        handlers = getattr(config.get("callbacks"), "inheritable_handlers", None) or ()
        # another instrumentation measures the time of the same call
        self.call.measured = any(
            type(handler).__module__.startswith(MEASURES) for handler in handlers
        )

    def bind(self, call: Invocation) -> None:
        """Take what the model sent, and the same as the tool will read it."""
        arguments = snapshot(self._request.tool_call["args"])
        call.inputs.model_input = json_object(arguments)
        # the pipeline refuses it, with the error of the schema
        if not self._is_validated_by_langchain and not self._fits_schema(call):
            return
        try:
            call.inputs.observable_input = self._give(call, arguments)
        except ValidationError:
            # a validator of the model that its JSON schema can't express
            if self._fits_schema(call):
                raise
            return
        call.inputs.unchecked = True
        call.inputs.validated = True

    def _fits_schema(self, call: Invocation) -> bool:
        return bool(call.spec.check.is_valid(call.inputs.model_input))

    @property
    def _is_validated_by_langchain(self) -> bool:
        """LangChain validates by pydantic models, not by JSON schemas (those of MCP's tools)."""
        tool = self._known.tool
        return isinstance(tool, BaseTool) and not isinstance(tool.args_schema, dict)

    def rebind(self, call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Put changed arguments into the request, and decide on them as the tool reads them."""
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
        """Let the call run with arguments of its own, and return them as the tool reads them."""
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
        trust_metadata: whether a tool's metadata counts where ``facts`` has nothing; by default no
            tool's does. The metadata of a remote tool comes from its server.
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
        surface = self._guard.surface
        if surface is None:
            return handler(request)
        shown = surface.shown(request.state, request.tools)
        return handler(request.override(tools=shown))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """The asynchronous form; the policy is asked in a thread.

        Args:
            request: what the model would get.
            handler: asks it.
        """
        self._warn_of_unseen(request.tools)
        surface = self._guard.surface
        if surface is None:
            return await handler(request)
        shown = await to_thread(surface.shown, request.state, request.tools)
        return await handler(request.override(tools=shown))

    def _warn_of_unseen(self, tools: Iterable[Any]) -> None:
        """Log once for each tool which tools behind it this guard can't see."""
        for tool in tools:
            if id(tool) in self._looked_at or not isinstance(tool, BaseTool):
                continue
            self._looked_at.add(id(tool))
            self._guard.declare(tool)
            try:
                unseen = unseen_tools(tool, is_guard, most=MAX_OBJECTS)
            except Exception as error:  # a property of the program's own object may raise anything
                _logger.debug("what %s reaches is not known: %s", tool.name, type(error).__name__)
                continue
            if unseen:
                _logger.warning(_UNSEEN, tool.name, ", ".join(unseen))

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


def unseen_behind(found: Any) -> list[str]:
    """Return the names of tools that no guard sees, behind an agent, a graph or a tool.

    Args:
        found: the object.
    """
    return unseen_tools(found, is_guard)


def is_guard(found: Any) -> bool:
    """Return whether an object decides the calls of an agent or a ToolNode.

    Args:
        found: the object.
    """
    return isinstance(found, (AgentToolMiddleware, ToolNodeGuard))


def _unreachable(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("this handle stands for a tool of an agent; call the agent")
