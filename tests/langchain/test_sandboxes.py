"""A LangChain tool that a policy obliges to be held: each of its ways is held, or runs nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from agenttool_otel import GovernedOutcome, enforcement
from agenttool_otel.integrations.langchain.agents import ToolNodeGuard
from agenttool_otel.names import Attr, ErrorClass, FailClosedCause, GenAI
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

HELD = {"sandbox": {"profile": "read"}}
FACTS: dict[str, Any] = {"read_only": True, "access_kinds": []}


def note(path: str) -> str:
    """Write a note."""
    Path(path).write_text("written", "utf-8")
    return "noted"


async def anote(path: str) -> str:
    """Write a note."""
    return note(path)


class Own(BaseTool):
    name: str = "note"
    description: str = "Write a note."

    def _run(self, path: str) -> str:
        return note(path)


def plain() -> BaseTool:
    return StructuredTool.from_function(note)


def coroutine() -> BaseTool:
    return StructuredTool.from_function(coroutine=anote, name="note")


def node_of(captured: Capture, tool: BaseTool, *, guarded: bool) -> ToolNode:
    if not guarded:
        return ToolNode([captured.governor.govern(tool, **FACTS)], handle_tool_errors=True)
    guard = ToolNodeGuard(captured.governor)
    # what the node catches itself, nobody behind it sees as a refusal
    return ToolNode(
        [tool], wrap_tool_call=guard, awrap_tool_call=guard.acall, handle_tool_errors=False
    )


def graph_of(node: ToolNode, saver: Any = None) -> Any:
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools")
    return graph.compile(checkpointer=saver)


def message(place: str) -> dict[str, Any]:
    call = {"name": "note", "args": {"path": place}, "id": "1", "type": "tool_call"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


Way = Callable[[Capture, str], Any]

HOLDS: dict[str, Way] = {
    "invoke": lambda captured, place: captured.governor.govern(plain(), **FACTS).invoke(
        {"path": place}
    ),
    "ainvoke": lambda captured, place: asyncio.run(
        captured.governor.govern(plain(), **FACTS).ainvoke({"path": place})
    ),
    "batch": lambda captured, place: captured.governor.govern(plain(), **FACTS).batch(
        [{"path": place}]
    ),
    "own class": lambda captured, place: captured.governor.govern(Own(), **FACTS).invoke(
        {"path": place}
    ),
    "node": lambda captured, place: graph_of(node_of(captured, plain(), guarded=False)).invoke(
        message(place)
    ),
    "node, awaited": lambda captured, place: asyncio.run(
        graph_of(node_of(captured, plain(), guarded=False)).ainvoke(message(place))
    ),
    "guard": lambda captured, place: graph_of(node_of(captured, plain(), guarded=True)).invoke(
        message(place)
    ),
}
REFUSES: dict[str, Way] = {
    "coroutine": lambda captured, place: asyncio.run(
        captured.governor.govern(coroutine(), **FACTS).ainvoke({"path": place})
    ),
    "node, coroutine": lambda captured, place: asyncio.run(
        graph_of(node_of(captured, coroutine(), guarded=False)).ainvoke(message(place))
    ),
    "guard, awaited": lambda captured, place: asyncio.run(
        graph_of(node_of(captured, plain(), guarded=True)).ainvoke(message(place))
    ),
}


def run_by(way: Way, captured: Capture, place: Path) -> None:
    try:
        way(captured, str(place))
    except (GovernedOutcome, OSError):
        return


@pytest.fixture
def readable() -> None:
    """Skip where this host can't hold the profile read."""
    proof = enforcement.available()["read"]
    if not proof.proven:
        pytest.skip(f"the profile read can't be had here: {proof.reason}")


@pytest.mark.usefixtures("readable")
@pytest.mark.parametrize("way", HOLDS.values(), ids=HOLDS.keys())
def test_a_way_that_holds_writes_nothing(way: Way, tmp_path: Path) -> None:
    with capture(policy=StaticEngine(decision("allow", obligations=HELD))) as captured:
        run_by(way, captured, tmp_path / "out")
        attributes = captured.span.attributes
    assert os.listdir(tmp_path) == []
    assert attributes[GenAI.ERROR_TYPE] == ErrorClass.SANDBOX_VIOLATION
    assert attributes[Attr.SANDBOX_ENFORCED] is True


@pytest.mark.usefixtures("readable")
@pytest.mark.parametrize("way", REFUSES.values(), ids=REFUSES.keys())
def test_a_way_that_can_not_hold_runs_nothing(way: Way, tmp_path: Path) -> None:
    with capture(policy=StaticEngine(decision("allow", obligations=HELD))) as captured:
        run_by(way, captured, tmp_path / "out")
        attributes = captured.span.attributes
    assert os.listdir(tmp_path) == []
    assert attributes[Attr.PERMISSION_FAIL_CLOSED] == FailClosedCause.SANDBOX_UNAVAILABLE


@pytest.mark.parametrize("way", [*HOLDS.values(), *REFUSES.values()], ids=[*HOLDS, *REFUSES])
def test_without_an_obligation_each_way_writes(way: Way, tmp_path: Path) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        run_by(way, captured, tmp_path / "out")
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.usefixtures("readable")
def test_a_graph_that_goes_on_after_an_answer_holds(tmp_path: Path) -> None:
    with capture(policy=StaticEngine(decision("ask", obligations=HELD))) as captured:
        graph = graph_of(node_of(captured, plain(), guarded=False), InMemorySaver())
        config = {"configurable": {"thread_id": "t"}}
        asked = graph.invoke(message(str(tmp_path / "out")), config)
        assert "__interrupt__" in asked
        captured.clear()
        graph.invoke(Command(resume={"type": "approve"}), config)
        attributes = captured.span.attributes
    assert os.listdir(tmp_path) == []
    assert attributes[Attr.SANDBOX_ENFORCED] is True
