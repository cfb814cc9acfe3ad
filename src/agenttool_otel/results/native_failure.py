"""Results that say themselves that the call failed: MCP ``isError``, LangChain ``status="error"``, an exit code."""

from __future__ import annotations

from subprocess import CompletedProcess
from typing import Any, Final

from agenttool_otel.records.inspection import mro_names
from agenttool_otel.results.native_errors import peek

__all__ = ["native_failure"]

_PLAIN: Final = frozenset({str, int, float, bool, bytes, list, tuple, set, frozenset, type(None)})


def native_failure(value: Any) -> str | None:
    """Return a reference to the failure that a result states, or ``None``: the usual case, which costs one look-up.

    Args:
        value: what a tool returned.
    """
    cls = type(value)
    if cls in _PLAIN:
        return None
    if cls is dict:
        stated = value.get("isError") is True or value.get("is_error") is True
        return "mcp:isError" if stated and type(value.get("content")) is list else None
    if cls is CompletedProcess:
        return f"exit:{value.returncode}" if value.returncode else None
    for name in mro_names(cls):
        package, _, _ = name.partition(".")
        word = name.rpartition(".")[2]
        if package in ("mcp", "mcp_types", "fastmcp") and word in ("CallToolResult", "ToolResult"):
            failed = peek(value, "isError") is True or peek(value, "is_error") is True
            return "mcp:isError" if failed else None
        if package == "langchain_core" and word == "ToolMessage":
            return "langchain:error" if peek(value, "status") == "error" else None
    return None
