"""What a process that multiprocessing starts runs: it imports this module by its name."""

from __future__ import annotations

from typing import Any

from agenttool_otel import configure
from agenttool_otel.testing import StaticEngine


def use_a_tool(path: str) -> str:
    """Make a tool in this process and call it."""
    from langchain_core.tools import tool

    @tool
    def delete(path: str) -> str:
        """Delete a file."""
        return "ran"

    try:
        return str(delete.invoke({"path": path}))
    except Exception as refused:
        return str(refused)


def configured_use(path: str) -> str:
    """Configure this process, too."""
    configure(policy=StaticEngine("allow"))
    return use_a_tool(path)


def put(queue: Any, path: str) -> None:
    """Answer by a queue."""
    queue.put(use_a_tool(path))
