"""How the test of doors calls a tool of a governed MCP server, through the SDK's client and in one
process.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp import Client
from mcp_driver import McpDriver, ServedTool, serve
from server_checks import ServersDriver


class ServerDriver(ServersDriver, McpDriver):
    """A server of the SDK 2.x."""

    def serve(self, tool: ServedTool) -> Any:
        return serve(tool.tool, tool.body)

    def connected(self, server: Any) -> AbstractAsyncContextManager[Any]:
        return Client(server)
