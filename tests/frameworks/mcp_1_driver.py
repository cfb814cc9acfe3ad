"""How the test of doors calls a tool of an MCP server by the SDK's releases 1.x, in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from typing import Any

import mcp.types as types
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_connected_server_and_client_session as connected
from server_checks import ServersDriver

from agenttool_otel.context.context import native_call
from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.mcp import govern_session
from agenttool_otel.testing.doors import Body, DoorDriver


def serve(tool: Any, body: Body) -> Any:
    """Return a server with one tool."""
    server: Any = Server("words")

    @server.list_tools()
    async def list_tools() -> list[Any]:
        return [tool]

    @server.call_tool()
    async def call_tool(name: str, arguments: dict[str, Any]) -> list[Any]:
        return [types.TextContent(type="text", text=await body(arguments))]

    return server


@asynccontextmanager
async def session_of(tool: ServedTool) -> AsyncIterator[Any]:
    """Yield a connected session, governed where the tool is."""
    callers: list[Context] = []

    async def body(arguments: dict[str, Any]) -> Any:
        # in its caller's context, as in 2.x
        return await asyncio.create_task(tool.body(arguments), context=callers.pop())

    async with connected(serve(tool.tool, body)) as client:
        call = client.call_tool

        async def call_tool(*args: Any, **options: Any) -> Any:
            callers.append(copy_context())
            return await call(*args, **options)

        client.call_tool = call_tool
        if tool.governor is None:
            yield client
            return
        facts: Any = {tool.tool.name: {"read_only": True, "concurrency_safe": True}}
        yield govern_session(client, tool.governor, server="words", facts=facts)


@dataclass(frozen=True)
class ServedTool:
    """A tool of a server, and who governs the sessions in which it is called."""

    tool: Any
    body: Body
    governor: Governor | None = None


class FirstMcpDriver(DoorDriver):
    """A session that connects anew for each call, as another process would."""

    is_async = True

    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        tool = types.Tool(name=name, description=description, inputSchema=dict(schema))  # type: ignore[call-arg]
        return ServedTool(tool, body)

    def govern(self, governor: Governor, tool: Any) -> Any:
        return replace(tool, governor=governor)

    async def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> Any:
        async with session_of(tool) as session:
            with native_call(call_id):
                return await session.call_tool(tool.tool.name, dict(arguments))

    async def resume(self, tool: Any, ref: str) -> Any:
        async with session_of(tool) as session:
            return await session.resume(ref)

    def schema(self, tool: Any) -> Mapping[str, Any]:
        schema: Mapping[str, Any] = tool.tool.inputSchema
        return schema

    def text(self, given: Any) -> str:
        return str(given.content[0].text)

    def is_refusal(self, given: Any) -> bool:
        return bool(given.isError)


class FirstServerDriver(ServersDriver, FirstMcpDriver):
    """A server."""

    def serve(self, tool: ServedTool) -> Any:
        return serve(tool.tool, tool.body)

    def connected(self, server: Any) -> AbstractAsyncContextManager[Any]:
        return connected(server)
