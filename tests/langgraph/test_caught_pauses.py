"""A question pauses the graph, whatever catches exceptions between the tool and LangGraph."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy

from agenttool_otel.testing import StaticEngine, capture

CALL = {"name": "search", "args": {"q": "x"}, "id": "c1"}
ran: list[str] = []


@tool
def search(q: str) -> str:
    """Search."""
    ran.append(q)
    return f"found {q}"


def message(text: Any) -> dict[str, Any]:
    return {"messages": [ToolMessage(f"{text}", tool_call_id="c1")]}


FALLBACK: Any = RunnableLambda(lambda state: message("Error: caught"))


def by_fallback(governed: BaseTool) -> Any:
    return ToolNode([governed]).with_fallbacks([FALLBACK], exception_key="error")


def by_lambda_fallback(governed: BaseTool) -> Any:
    node: Any = RunnableLambda(lambda state: message(governed.invoke({"q": "x"})))
    return node.with_fallbacks([FALLBACK])


def by_except(governed: BaseTool) -> Any:
    def node(state: MessagesState) -> dict[str, Any]:
        try:
            return message(governed.invoke({**CALL, "type": "tool_call"}).content)
        except Exception as error:
            return message(f"Error: {error}")

    return node


def by_other_error(governed: BaseTool) -> Any:
    def node(state: MessagesState) -> dict[str, Any]:
        try:
            return message(governed.invoke({"q": "x"}))
        except Exception as error:
            raise RuntimeError("the tool failed") from error

    return node


def by_retry(governed: BaseTool) -> Any:
    return ToolNode([governed]).with_retry(stop_after_attempt=2, wait_exponential_jitter=False)


def by_handler(governed: BaseTool) -> Any:
    return ToolNode([governed], handle_tool_errors=True)


def by_outer_tool(governed: BaseTool) -> Any:
    @tool
    def outer(q: str) -> str:
        """Search, and swallow what goes wrong."""
        try:
            return str(governed.invoke({"q": q}))
        except Exception:
            return "Error: caught"

    return ToolNode([outer.model_copy(update={"name": "search"})])


def by_inner_graph(governed: BaseTool) -> Any:
    inner = (
        StateGraph(MessagesState)
        .add_node("inner", by_except(governed))
        .add_edge(START, "inner")
        .compile()
    )
    return inner.with_fallbacks([FALLBACK])


def by_inner_graph_called(governed: BaseTool) -> Any:
    inner = (
        StateGraph(MessagesState)
        .add_node("inner", ToolNode([governed]))
        .add_edge(START, "inner")
        .compile()
    )

    def node(state: MessagesState) -> Any:
        try:
            return {"messages": inner.invoke(state)["messages"][-1:]}
        except Exception:
            return message("Error: caught")

    return node


CATCHERS = [
    by_fallback,
    by_lambda_fallback,
    by_except,
    by_other_error,
    by_retry,
    by_handler,
    by_outer_tool,
    by_inner_graph,
    by_inner_graph_called,
]


def invoke(graph: Any, given: Any, awaits: bool) -> Any:
    config = {"configurable": {"thread_id": "1"}}
    return asyncio.run(graph.ainvoke(given, config)) if awaits else graph.invoke(given, config)


def graph_of(node: Any) -> Any:
    retries = RetryPolicy(max_attempts=2, initial_interval=0.01)
    graph = StateGraph(MessagesState).add_node("tools", node, retry_policy=retries)
    return graph.add_edge(START, "tools").compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("awaits", [False, True])
@pytest.mark.parametrize("catcher", CATCHERS)
def test_a_caught_pause_pauses(catcher: Callable[[BaseTool], Any], awaits: bool) -> None:
    ran.clear()
    with capture(policy=StaticEngine("ask")) as captured:
        graph = graph_of(catcher(captured.governor.govern(search)))
        paused = invoke(graph, {"messages": [AIMessage("", tool_calls=[CALL])]}, awaits)
        assert len(paused["__interrupt__"]) == 1
        assert "Error" not in str(paused["messages"])
        assert ran == []
        done = invoke(graph, Command(resume={"type": "approve"}), awaits)
        assert done["messages"][-1].content == "found x"
        assert ran == ["x"]


def test_an_error_that_is_no_pause_is_caught_as_ever() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        graph = graph_of(by_except(captured.governor.govern(search)))
        done = invoke(graph, {"messages": [AIMessage("", tool_calls=[CALL])]}, False)
        assert "__interrupt__" not in done
