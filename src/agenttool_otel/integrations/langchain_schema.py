"""The model-facing JSON Schema of a LangChain tool, without what LangChain injects."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

__all__ = ["model_schema"]


def model_schema(tool: BaseTool) -> dict[str, Any]:
    """Return the schema that a model sees of a tool.

    Args:
        tool: the tool.
    """
    schema: Any = tool.tool_call_schema
    if isinstance(schema, dict):
        return dict(schema)
    try:
        made = schema.model_json_schema()
    except Exception:
        made = convert_to_openai_tool(tool)["function"].get("parameters", {"type": "object"})
    return {key: value for key, value in made.items() if key not in {"title", "description"}}
