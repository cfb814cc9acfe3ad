"""The doors of the Model Context Protocol: client sessions, servers and a proxy, on MCP's Python SDK."""

from __future__ import annotations

from agenttool_otel.integrations.mcp.calls import McpServerFailed
from agenttool_otel.integrations.mcp.client import GovernedSession, govern_session
from agenttool_otel.integrations.mcp.pins import Pins
from agenttool_otel.integrations.mcp.server import govern_server

__all__ = [
    "GovernedSession",
    "McpServerFailed",
    "Pins",
    "govern_server",
    "govern_session",
]
