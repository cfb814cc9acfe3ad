"""The middleware's guard reads arguments as LangChain does, bare and through ``govern(tool)``."""

from __future__ import annotations

import asyncio
import enum
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from pydantic import BaseModel, Field

from agenttool_otel.integrations.langchain.agents import ToolNodeGuard
from agenttool_otel.testing import StaticEngine, capture


class Colour(enum.Enum):
    RED = "red"


class Inner(BaseModel):
    x: int


class Aliased(BaseModel):
    model_config = {"populate_by_name": True}
    number: int = Field(alias="count")


class ClassTool(BaseTool):
    name: str = "class_tool"
    description: str = "d"

    def _run(self, number: int) -> str:
        return repr(number)


@tool
def order(
    number: int = 1,
    amount: float = 1.0,
    urgent: bool = False,
    day: date | None = None,
    price: Decimal | None = None,
    colour: Colour = Colour.RED,
    inner: Inner | None = None,
    mode: Literal["a", "b"] = "a",
) -> str:
    """Order."""
    return repr((number, amount, urgent, day, price, colour, inner, mode))


@tool
async def later(number: int, messages: Annotated[list[Any], InjectedState("messages")]) -> str:
    """Order."""
    return repr((number, len(messages)))


@tool
def with_id(number: int, call_id: Annotated[str, InjectedToolCallId]) -> str:
    """Order."""
    return repr((number, call_id))


aliased = StructuredTool.from_function(
    lambda number: repr(number), name="aliased", description="d", args_schema=Aliased
)


def _answer(made: BaseTool, arguments: dict[str, Any], guard: Any = None) -> tuple[str, str]:
    node = ToolNode(
        [made], **({"wrap_tool_call": guard, "awrap_tool_call": guard.acall} if guard else {})
    )
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    question: Any = {
        "messages": [AIMessage("", tool_calls=[{"name": made.name, "args": arguments, "id": "1"}])]
    }
    message = asyncio.run(graph.ainvoke(question))["messages"][-1]
    return message.status, str(message.content)


@pytest.mark.parametrize(
    ("made", "arguments"),
    [
        (order, {"number": "7"}),
        (order, {"number": 7.0}),
        (order, {"amount": "2.5", "urgent": "true"}),
        (order, {"day": "2024-01-02", "price": "1.50"}),
        (order, {"colour": "red", "inner": {"x": "1"}}),
        (order, {"number": 7, "unknown": 1}),
        (later, {"number": "7"}),
        (with_id, {"number": "7"}),
        (aliased, {"count": "7"}),
        (ClassTool(), {"number": "7"}),
    ],
)
def test_the_guard_reads_as_bare_langchain_does(made: BaseTool, arguments: dict[str, Any]) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        guarded = _answer(made, arguments, ToolNodeGuard(captured.governor))
        governed = _answer(captured.governor.govern(made), arguments)
    assert guarded == governed == _answer(made, arguments)
    assert guarded[0] == "success"


def test_the_guard_decides_on_what_langchain_read() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        _answer(order, {"number": "7", "urgent": "yes"}, ToolNodeGuard(captured.governor))
    assert engine.documents[0]["input"]["number"] == 7
    assert engine.documents[0]["input"]["urgent"] is True


@pytest.mark.parametrize(
    "arguments", [{"number": "x"}, {"mode": "c"}, {"inner": {"x": None}}, {"day": "never"}]
)
def test_the_guard_refuses_what_langchain_refuses(arguments: dict[str, Any]) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        status, text = _answer(order, arguments, ToolNodeGuard(captured.governor))
    assert status == "error"
    assert "schema_validation_failed" in text
