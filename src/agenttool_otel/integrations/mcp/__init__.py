"""The doors of the Model Context Protocol: client sessions, servers and a proxy, on MCP's Python SDK."""

from __future__ import annotations

from agenttool_otel.integrations.mcp.client import GovernedSession, govern_session
from agenttool_otel.integrations.mcp.pins import Pins

__all__ = ["GovernedSession", "Pins", "govern_session"]
