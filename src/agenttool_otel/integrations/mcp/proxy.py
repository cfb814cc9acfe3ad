"""A governed server in front of an unmodified one: ``agenttool mcp proxy -- COMMAND...``.

Only tools are handed on. Prompts and resources of the server are not offered: a file that a policy
denies as ``read_file`` would be had as a resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, Final

from mcp import Client
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    RequestParamsMeta,
)

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.context.context import agent_context
from agenttool_otel.integrations.mcp.held import ServerProcess
from agenttool_otel.integrations.mcp.listing import ServerTools
from agenttool_otel.integrations.mcp.pins import Pins
from agenttool_otel.integrations.mcp.server import decide_calls
from agenttool_otel.integrations.mcp.standard_streams import own_stdio
from agenttool_otel.integrations.mcp.upstream import Upstream
from agenttool_otel.values.ids import new_id

DEFAULT_TIMEOUT: Final = 300.0
"""Seconds that one request to the server may take."""
_ASKS_PROGRESS: Final = "progress_token"  # the SDK's name of what is progressToken on the wire
_OF_THE_CONNECTION: Final = ("traceparent", "tracestate", "baggage", _ASKS_PROGRESS)
_PROTOCOL: Final = "io.modelcontextprotocol/"

_Context = ServerRequestContext[Any, Any]


async def run_proxy(
    upstream: ServerProcess | str,
    governor: Runtime | None = None,
    *,
    server: str,
    facts: Mapping[str, GovernOptions] | None = None,
    pins: Pins | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> None:
    """Serve one client over standard input and output, until it closes them.

    Args:
        upstream: How the server's process is run (``server_process``), or the URL at which it serves.
        governor: The Governor; ``None`` for the default one.
        server: Your name for the server: a part of its tools' namespace.
        facts: Facts of its tools, by name or glob.
        pins: What was accepted of its tools; without it any description is taken.
        timeout: Seconds that one request to it may take.
    """
    async with Upstream(upstream, timeout=timeout) as behind:
        tools = ServerTools(governor, server, facts=facts, pins=pins)
        proxy = governed_proxy(behind, tools)
        options = proxy.create_initialization_options()
        with agent_context(session_id=new_id("mcp")):
            async with own_stdio() as (incoming, outgoing):
                await proxy.run(incoming, outgoing, options)


def governed_proxy(upstream: Upstream, tools: ServerTools) -> Server[Any]:
    """Return a server that hands the calls on that may run, for one client.

    Args:
        upstream: The server behind it.
        tools: Its tools, and what they are called.
    """
    proxy = proxy_of(upstream, tools.server)
    decide_calls(proxy, tools, one_client=True, process=upstream.sandbox)
    return proxy


def proxy_of(upstream: Upstream, name: str) -> Server[Any]:
    """Return a server that hands its tool calls on; nothing is decided in it.

    Args:
        upstream: The server behind it.
        name: Its name.
    """

    async def list_tools(ctx: _Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        cursor = None if params is None else params.cursor
        return await upstream.request(lambda client: client.list_tools(cursor=cursor))

    async def call_tool(ctx: _Context, params: CallToolRequestParams) -> CallToolResult:
        # a client that did not ask for it is sent none
        asked = _ASKS_PROGRESS in (params.meta or {})

        async def call(client: Client) -> CallToolResult:
            return await client.call_tool(
                params.name,
                params.arguments,
                progress_callback=partial(_progress, ctx) if asked else None,
                meta=_own_meta(params.meta),
            )

        return await upstream.request(call)

    return Server(
        name,
        version=version("agenttool-otel"),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _progress(
    ctx: _Context, progress: float, total: float | None, message: str | None
) -> None:
    await ctx.session.report_progress(progress, total, message)


def _own_meta(meta: RequestParamsMeta | None) -> RequestParamsMeta | None:
    """Return what a client's ``_meta`` says beside the connection that it came over."""
    kept: Any = {
        name: value
        for name, value in (meta or {}).items()
        # the SDK writes the trace, the protocol's version and the token of the next connection
        if name not in _OF_THE_CONNECTION and not name.startswith(_PROTOCOL)
    }
    return kept or None
