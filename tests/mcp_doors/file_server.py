"""An MCP server that the tests start as a process, written with the SDK alone.

``python file_server.py [DESCRIPTION [PORT]]``; its tool ``fail`` ends the process in the middle of a call.
"""

from __future__ import annotations

import os
import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("anything")


@server.tool(description=sys.argv[1] if len(sys.argv) > 1 else "Read a file.")
def read(path: str) -> str:
    return f"the text of {path}"


@server.tool()
def write(path: str) -> str:
    """Write a file."""
    return f"wrote {path}"


@server.tool()
def fail() -> str:
    """End the process."""
    os._exit(3)


@server.tool()
def variables() -> list[str]:
    """List the names of the process's variables."""
    return sorted(os.environ)


@server.tool()
def process() -> int:
    """Return the process's id."""
    return os.getpid()


@server.tool()
async def steps(ctx: Context) -> str:
    """Report two steps, and return the token with which they were asked for."""
    for step in (1, 2):
        await ctx.report_progress(step, 2, "a step")
    return str((ctx.request_context.meta or {}).get("progress_token", "none"))


if len(sys.argv) > 2:
    server.run("streamable-http", port=int(sys.argv[2]))
else:
    server.run()
