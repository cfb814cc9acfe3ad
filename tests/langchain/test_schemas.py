"""Schemas that LangChain infers from governed and ungoverned tools are equal, at function and at
object level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    tool,
)
from pydantic.errors import PydanticInvalidForJsonSchema

from agenttool_otel import govern

lc_runtime = pytest.importorskip("langchain.tools")
ToolRuntime = lc_runtime.ToolRuntime


def plain(query: str, limit: int = 5) -> str:
    """Search for something."""
    return query * limit


async def asynchronous(query: str) -> str:
    """Search for something."""
    return query


def injected(query: str, user: Annotated[str, InjectedToolArg]) -> str:
    """Search for a user."""
    return f"{query} {user}"


def with_call_id(query: str, call_id: Annotated[str, InjectedToolCallId]) -> str:
    """Search with the call's id."""
    return f"{query} {call_id}"


def with_runtime(query: str, runtime: ToolRuntime) -> str:  # type: ignore[valid-type]
    """Search with the runtime."""
    return query


def with_config(query: str, config: RunnableConfig) -> str:
    """Search with the configuration."""
    return query


def documented(query: str, limit: int = 5) -> str:
    """Search for something.

    Args:
        query: what to look for.
        limit: how many to return.
    """
    return query


def pair(query: str) -> tuple[str, dict[str, str]]:
    """Return content and artifact."""
    return query, {"query": query}


CASES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "plain": (plain, {}),
    "async": (asynchronous, {}),
    "injected": (injected, {}),
    "call id": (with_call_id, {}),
    "runtime": (with_runtime, {}),
    "config": (with_config, {}),
    "docstring": (documented, {"parse_docstring": True}),
    "artifact": (pair, {"response_format": "content_and_artifact"}),
}


def json_schema(model: Any) -> Any:
    """The schema, or the fact that pydantic can't make one (a ToolRuntime holds callables)."""
    if model is None:
        return None
    try:
        return model.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        return type(error)


def describe(made: BaseTool) -> dict[str, Any]:
    args_schema: Any = made.args_schema
    call_schema: Any = made.tool_call_schema
    return {
        "name": made.name,
        "description": made.description,
        "args": made.args,
        "args_schema": json_schema(args_schema),
        "call_schema": call_schema.model_json_schema(),
        "injected": set(made._injected_args_keys),
        "response_format": made.response_format,
        "return_direct": made.return_direct,
        "coroutine": bool(getattr(made, "coroutine", None)),
    }


@pytest.mark.parametrize("name", CASES)
def test_a_tool_over_a_governed_function_has_the_plain_schema(name: str) -> None:
    function, options = CASES[name]
    assert describe(tool(**options)(govern(function))) == describe(tool(**options)(function))


@pytest.mark.parametrize("name", CASES)
def test_a_governed_tool_object_has_the_schema_of_the_plain_one(name: str) -> None:
    function, options = CASES[name]
    made = tool(**options)(function)
    governed = govern(made)
    assert describe(governed) == describe(made)
    assert isinstance(governed, type(made))
    assert isinstance(governed, BaseTool)
    assert type(governed).__name__ == type(made).__name__


def test_a_governed_subclass_and_a_legacy_tool_keep_their_schema() -> None:
    class Custom(BaseTool):
        name: str = "custom"
        description: str = "A tool of a class of its own."

        def _run(self, query: str, limit: int = 1) -> str:
            return query * limit

    legacy = Tool(name="legacy", func=lambda text: text.upper(), description="Shout.")
    for made in (Custom(), legacy, StructuredTool.from_function(plain)):
        assert describe(govern(made)) == describe(made)


def test_the_declaration_shows_a_model_no_injected_argument() -> None:
    for name in ("injected", "call id", "runtime", "config"):
        function, options = CASES[name]
        for handle in (type(govern(tool(**options)(function))).agenttool, govern(function).tool):  # type: ignore[attr-defined]
            schema = handle.declaration.input_contract.model_input_schema
            assert set(schema["properties"]) == {"query"}, name


def test_a_json_schema_with_lists_of_types_is_governed() -> None:
    """As servers of MCP state what may be null."""
    properties = {"query": {"type": ["string", "null"]}, "limit": {"type": ["integer", "null"]}}
    schema = {"type": "object", "properties": properties, "required": ["query"]}
    stated = StructuredTool.from_function(
        plain, name="search", description="Search.", args_schema=schema
    )
    governed = govern(stated, read_only=True, access_kinds=["file_read"])
    assert governed.invoke({"query": "ab", "limit": 2}) == "abab"
    assert governed.args_schema == schema
