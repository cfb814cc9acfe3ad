"""The tools of a surface as providers and protocols want them: plain lists of JSON objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from agenttool_otel.records import ToolDeclaration
from agenttool_otel.records.base import JsonObject

_DEFERRED: Final = {"defer_loading": True}
_OPENAI_SEARCH: Final = {"type": "tool_search"}
_ANTHROPIC_SEARCH: Final = {
    "type": "tool_search_tool_bm25_20251119",
    "name": "tool_search_tool_bm25",
}


def openai_tools(
    loaded: Sequence[ToolDeclaration], deferred: Sequence[ToolDeclaration] | None
) -> list[JsonObject]:
    """Return tools of Chat Completions; with deferred ones, tools of the Responses API."""
    if deferred is None:
        return [{"type": "function", "function": _named(tool, "parameters")} for tool in loaded]
    flat = [{"type": "function", **_named(tool, "parameters")} for tool in loaded]
    waiting = [{"type": "function", **_named(tool, "parameters"), **_DEFERRED} for tool in deferred]
    return [*flat, *waiting, *([dict(_OPENAI_SEARCH)] if waiting else [])]


def anthropic_tools(
    loaded: Sequence[ToolDeclaration], deferred: Iterable[ToolDeclaration] | None
) -> list[JsonObject]:
    """Return tools of the Messages API."""
    waiting = [{**_named(tool, "input_schema"), **_DEFERRED} for tool in deferred or ()]
    search = [dict(_ANTHROPIC_SEARCH)] if waiting else []
    return [*search, *(_named(tool, "input_schema") for tool in loaded), *waiting]


def mcp_tools(loaded: Iterable[ToolDeclaration]) -> list[JsonObject]:
    """Return tools of MCP's ``tools/list``."""
    return [
        {
            **({"title": tool.title} if tool.title else {}),
            **_named(tool, "inputSchema"),
            **(
                {"outputSchema": tool.output_contract.structured_schema}
                if _structured(tool)
                else {}
            ),
        }
        for tool in loaded
    ]


def _named(tool: ToolDeclaration, schema: str) -> dict[str, Any]:
    given = tool.input_contract.model_input_schema or {"type": "object", "properties": {}}
    return {"name": tool.name, "description": tool.description, schema: given}


def _structured(tool: ToolDeclaration) -> bool:
    return bool(tool.output_contract.structured_schema)
