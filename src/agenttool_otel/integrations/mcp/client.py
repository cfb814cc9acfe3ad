"""A client session under governance: each call is decided before it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry import propagate

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.context.context import current_native_call
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.integrations.foreign import ForeignTool
from agenttool_otel.integrations.mcp.calls import ModelCall
from agenttool_otel.integrations.mcp.listing import MAX_PAGES, ServerTools
from agenttool_otel.integrations.mcp.pins import Pins
from agenttool_otel.integrations.mcp.sdk import (
    IS_FIRST,
    CallToolResult,
    Client,
    ClientSession,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    keep_version,
    method_of,
    next_cursor,
    protocol_version,
)
from agenttool_otel.names import Mcp
from agenttool_otel.records import McpMapping

_CALL: Final = "tools/call"
_AROUND: Final = frozenset({"experimental"})
"""Members of a session that call tools by a way of their own."""


def govern_session(
    session: Client | ClientSession,
    governor: Runtime | None = None,
    *,
    server: str,
    facts: Mapping[str, GovernOptions] | None = None,
    pins: Pins | None = None,
) -> GovernedSession:
    """Return a session whose tool calls are decided before they are sent.

    Args:
        session: A connected session of the SDK.
        governor: The Governor; ``None`` for the default one.
        server: Your name for the server: a part of its tools' namespace. What the server calls
            itself is not used, since any server may call itself ``git``.
        facts: Facts of its tools, by name or glob; ``server_facts("git")`` has reviewed ones.
        pins: What was accepted of its tools; without it any description is taken.
    """
    return GovernedSession(session, governor, server, facts, pins)


def unseen_behind(client: object) -> list[str]:
    """Return what nothing governs of a client of the SDK: a ``GovernedSession`` is none.

    Args:
        client: The client or session.
    """
    return [f"the tools of an MCP {type(client).__name__}"]


class GovernedSession:
    """A session of the SDK under governance, made by ``govern_session``.

    Prompts, resources and everything else of the session are reached through it unchanged, and are
    not decided. ``send_request`` of a tool call is refused, as it would go round the decision.
    """

    def __init__(
        self,
        session: Client | ClientSession,
        governor: Runtime | None,
        server: str,
        facts: Mapping[str, GovernOptions] | None,
        pins: Pins | None,
    ) -> None:
        self._inner = session
        self._governor = governor
        self._stated = (server, facts, pins)
        self._tools = ServerTools(
            governor,
            server,
            facts=facts,
            common={"ownership": "mcp"},
            pins=pins,
            send=session.call_tool,
        )

    async def initialize(self) -> Any:
        """Make the session's handshake, and keep the version of the protocol that it agrees on.

        A session of 1.x keeps none, so that the spans of one that was initialized before it was
        governed have no ``mcp.protocol.version``. A ``Client`` makes its handshake itself.
        """
        inner: Any = self._inner
        initialized = await inner.initialize()
        keep_version(inner, initialized)
        return initialized

    async def list_tools(self, **options: Any) -> ListToolsResult:
        """Return the tools that a model may be shown.

        Args:
            options: What the session's own ``list_tools`` takes.
        """
        listed = await self._inner.list_tools(**options)
        self._tools.take(listed.tools)
        # a copy: the client keeps its list in a cache
        return listed.model_copy(update={"tools": self._tools.shown(listed.tools)})

    async def call_tool(
        self, name: str, arguments: dict[str, Any] | None = None, *args: Any, **options: Any
    ) -> CallToolResult:
        """Decide a call, and send it if it may run.

        The model's id of the call is taken from ``native_call(id)``, where that is in force.

        Args:
            name: The tool's name.
            arguments: Its arguments.
            args: What the session's own ``call_tool`` takes.
            options: What the session's own ``call_tool`` takes.

        Returns:
            The server's result, redacted where the policy obliges to. A call that may not run, or
            waits for a person, has a failed result with the reason.
        """
        call = self._call(await self._find(name), arguments or {})
        return await self._run(call, name, *args, **options)

    async def resume(self, ref: str, **options: Any) -> CallToolResult:
        """Go on with a call that a person was asked about, in this process or another.

        Args:
            ref: Its invocation id: ``result.meta["agenttool/result"]["invocation_id"]``.
            options: What the session's own ``call_tool`` takes.

        Raises:
            ApprovalNotFound: No such call waits.
            ApprovalConflict: It is a call of another server's tool.
        """
        store = self._tools.governor.approvals
        stored = await asyncio.to_thread(store.waiting, ref)
        name = stored.request.tool_name
        call = self._call(await self._find(name), None)
        await asyncio.to_thread(call.resume, ref)
        return await self._run(call, name, **options)

    def tool(self, name: str) -> ForeignTool | None:
        """Return a listed tool: ``tool.check``, its records, or ``answer`` of a person's dialog.

        Args:
            name: Its name.
        """
        return self._tools.find(name)

    @property
    def session(self) -> GovernedSession:
        """The client's session, governed as well."""
        server, facts, pins = self._stated
        inner = self._inner.session if isinstance(self._inner, Client) else self._inner
        return GovernedSession(inner, self._governor, server, facts, pins)

    async def send_request(self, request: Any, *args: Any, **options: Any) -> Any:
        """Send a request that is no tool call.

        Args:
            request: The request.
            args: What the session's own ``send_request`` takes.
            options: What the session's own ``send_request`` takes.

        Raises:
            ConfigurationError: It is a tool call, which ``call_tool`` decides.
        """
        if method_of(request) == _CALL:
            raise ConfigurationError("a tool call is decided: use call_tool")
        inner: Any = self._inner
        return await inner.send_request(request, *args, **options)

    def __getattr__(self, name: str) -> Any:
        # _send, and the tasks of 1.x's "experimental", would go round the decision
        if name.startswith("_") or name in _AROUND:
            raise AttributeError(name)
        return getattr(self._inner, name)

    async def _run(self, call: ModelCall, name: str, *args: Any, **options: Any) -> CallToolResult:
        async def send(arguments: dict[str, Any]) -> Any:
            if IS_FIRST:  # 2.x writes the trace into _meta itself
                options["meta"] = {**_trace(), **(options.get("meta") or {})}
            return await self._inner.call_tool(name, arguments, *args, **options)

        result: CallToolResult = await call.arun(send)
        return result

    def _call(self, tool: GovernedTool, arguments: Mapping[str, Any] | None) -> ModelCall:
        version = protocol_version(self._inner)
        attributes = {Mcp.METHOD_NAME: _CALL}
        if version:
            attributes[Mcp.PROTOCOL_VERSION] = version
        mapping = McpMapping(
            server_id=self._tools.server,
            mcp_protocol_version=version or None,
            method=_CALL,
            tool_name=tool.spec.name,
        )
        return ModelCall(
            tool,
            arguments,
            current_native_call(),
            attributes=attributes,
            mapping=mapping,
        )

    async def _find(self, name: str) -> GovernedTool:
        """Return a tool; where it was not listed yet, the server is asked for its list."""
        found = self._tools.find(name)
        if found is None:
            self._tools.take(await list_all(self._inner))
            found = self._tools.find(name)
        return self._tools.unknown(name) if found is None else found


def _trace() -> dict[str, str]:
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier


async def list_all(session: Client | ClientSession) -> list[Tool]:
    """Return all tools that a server lists, page by page.

    Args:
        session: A connected session of the SDK.
    """
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        if isinstance(session, Client):
            page = await session.list_tools(cursor=cursor)
        else:
            page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        tools += page.tools
        cursor = next_cursor(page)
        if not cursor:
            break
    return tools
