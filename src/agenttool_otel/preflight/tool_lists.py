"""The tools of a surface as providers and protocols want them: plain lists of JSON objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from agenttool_otel.records import ToolDeclaration
from agenttool_otel.records.base import JsonObject

_DEFERRED: Final = {"defer_loading": True}
_HINTS: Final = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "open_world": "openWorldHint",
}
"""The hints of MCP by the facts that they repeat; that a call may be made again is none."""

_NOT_STRICT: Final = frozenset(
    {
        "allOf",
        "contains",
        "default",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "maxLength",
        "maxProperties",
        "minLength",
        "minProperties",
        "not",
        "oneOf",
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
"""Keywords of JSON Schema that OpenAI's strict mode does not take."""

_CLOSED: Final = frozenset({"type", "enum", "const", "anyOf", "$ref"})
"""Keywords of which each restricts what a value is."""

_OPENAI_SEARCH: Final = {"type": "tool_search"}
_ANTHROPIC_SEARCH: Final = {
    "type": "tool_search_tool_bm25_20251119",
    "name": "tool_search_tool_bm25",
}


def openai_tools(
    loaded: Sequence[ToolDeclaration], deferred: Sequence[ToolDeclaration] | None
) -> list[JsonObject]:
    """Return tools of Chat Completions; with deferred ones, tools of the Responses API."""
    tools: list[JsonObject] = []
    if deferred is None:
        for tool in loaded:
            tools.append({"type": "function", "function": _function(tool)})
        return tools
    for tool in loaded:
        tools.append({"type": "function", **_function(tool)})
    for tool in deferred:
        tools.append({"type": "function", **_function(tool), **_DEFERRED})
    if deferred:
        tools.append(dict(_OPENAI_SEARCH))
    return tools


def anthropic_tools(
    loaded: Sequence[ToolDeclaration], deferred: Iterable[ToolDeclaration] | None
) -> list[JsonObject]:
    """Return tools of the Messages API."""
    waiting = [{**_named(tool, "input_schema"), **_DEFERRED} for tool in deferred or ()]
    tools = [_named(tool, "input_schema") for tool in loaded]
    if not waiting:
        return tools
    return [dict(_ANTHROPIC_SEARCH), *tools, *waiting]


def mcp_tools(loaded: Iterable[tuple[ToolDeclaration, JsonObject]]) -> list[JsonObject]:
    """Return tools of MCP's ``tools/list``."""
    tools: list[JsonObject] = []
    for tool, facts in loaded:
        described = _named(tool, "inputSchema")
        if tool.title:
            described["title"] = tool.title
        if _structured(tool):
            described["outputSchema"] = tool.output_contract.structured_schema
        annotations = _annotations(tool, facts)
        if annotations:
            described["annotations"] = annotations
        tools.append(described)
    return tools


def _annotations(tool: ToolDeclaration, facts: JsonObject) -> JsonObject:
    """Return MCP's annotations: the stated ones, and a hint of each fact that was stated."""
    annotations = dict(tool.annotations or {})
    for fact, hint in _HINTS.items():
        value = facts.get(fact)
        # None: nobody stated it, and MCP has a default of its own; "classifier:command_read_only":
        # each call has a value of its own
        if isinstance(value, bool):
            annotations[hint] = value
    return annotations


def _function(tool: ToolDeclaration) -> dict[str, Any]:
    """Return a function of OpenAI's APIs, with whether it may hold a model to the schema."""
    named = _named(tool, "parameters")
    strict = tool.input_contract.strict and fits_strict_mode(named["parameters"])
    return {**named, "strict": strict}


def fits_strict_mode(schema: Any) -> bool:
    """Return whether a schema is of the form that OpenAI's strict mode takes: all arguments
    required, no others, and nothing but what it can hold a model to.

    A request with another one and ``"strict": true`` is refused.
    """
    if isinstance(schema, list):
        return all(fits_strict_mode(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    if not _NOT_STRICT.isdisjoint(schema) or not _is_closed(schema):
        return False
    return all(fits_strict_mode(part) for part in _subschemas(schema))


def _is_closed(schema: Mapping[str, Any]) -> bool:
    """Whether an object takes the arguments that it names, all of them and no others."""
    types = schema.get("type")
    if types != "object" and "object" not in (types or ()) and "properties" not in schema:
        # {"description": "anything"} takes anything, which nobody can be held to
        return not _CLOSED.isdisjoint(schema)
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") is not False:
        return False
    return set(schema.get("required", ())) == set(properties)


def _subschemas(schema: Mapping[str, Any]) -> Iterator[Any]:
    for name in ("properties", "$defs", "definitions"):
        yield from schema.get(name, {}).values()
    for name in ("items", "anyOf"):
        yield schema.get(name)


def _named(tool: ToolDeclaration, schema: str) -> dict[str, Any]:
    given = tool.input_contract.model_input_schema or {"type": "object", "properties": {}}
    return {"name": tool.name, "description": tool.description, schema: given}


def _structured(tool: ToolDeclaration) -> bool:
    return bool(tool.output_contract.structured_schema)
