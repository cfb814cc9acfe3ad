"""How the test of doors calls a tool of a governed MCP server, through the SDK's client and in one
process.

A call that waits goes on when the client makes it again; the model's id of a call does not reach a
server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import Client
from mcp_driver import McpDriver, ServedTool, serve

from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.mcp import govern_server

ARGUMENTS = {"word": "tree"}
"""Those of the checks' calls that wait."""


class ServerDriver(McpDriver):
    """Connects anew for each call; the server stays, and what it has asked about."""

    def govern(self, governor: Governor, tool: ServedTool) -> Any:
        facts: Any = {tool.tool.name: {"read_only": True, "concurrency_safe": True}}
        server = serve(tool.tool, tool.body)
        return govern_server(server, governor, facts=facts, one_client=True)

    async def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> Any:
        async with Client(tool) as client:
            return await client.call_tool("look_up", dict(arguments))

    async def resume(self, tool: Any, ref: str) -> Any:
        return await self.call(tool, ARGUMENTS, "")
