"""How the test of doors calls a tool of an MCP server, through the SDK's client and in one process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp import Client
from mcp.server import Server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

from agenttool_otel.context.context import native_call
from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.mcp import GovernedSession, govern_session
from agenttool_otel.testing.doors import Body, DoorDriver


def serve(tool: Tool, body: Body) -> Server[Any]:
    """Return a server with one tool."""

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[tool])

    async def call_tool(ctx: Any, params: Any) -> CallToolResult:
        try:
            text = await body(params.arguments)
        except Exception as error:  # as the SDK's own servers do
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        return CallToolResult(content=[TextContent(text=text)])

    return Server("words", on_list_tools=list_tools, on_call_tool=call_tool)


@dataclass(frozen=True)
class ServedTool:
    """A tool of a server, and who governs the sessions in which it is called."""

    tool: Tool
    body: Body
    governor: Governor | None = None

    def session(self, client: Client) -> Client | GovernedSession:
        """Return the session of a connected client, governed where the tool is."""
        if self.governor is None:
            return client
        facts = {self.tool.name: {"read_only": True, "concurrency_safe": True}}
        return govern_session(client, self.governor, server="words", facts=facts)  # type: ignore[arg-type]


class McpDriver(DoorDriver):
    """Connects anew for each call, as another process would."""

    is_async = True

    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        return ServedTool(Tool(name=name, description=description, input_schema=dict(schema)), body)

    def govern(self, governor: Governor, tool: Any) -> Any:
        return replace(tool, governor=governor)

    async def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> Any:
        async with Client(serve(tool.tool, tool.body)) as client:
            with native_call(call_id):
                return await tool.session(client).call_tool(tool.tool.name, dict(arguments))

    async def resume(self, tool: Any, ref: str) -> Any:
        async with Client(serve(tool.tool, tool.body)) as client:
            return await tool.session(client).resume(ref)

    def schema(self, tool: Any) -> Mapping[str, Any]:
        schema: Mapping[str, Any] = tool.tool.input_schema
        return schema

    def text(self, given: Any) -> str:
        return str(given.content[0].text)

    def is_refusal(self, given: Any) -> bool:
        return bool(given.is_error)
