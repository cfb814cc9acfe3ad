"""LangGraph's parallel calls: what must not overlap does not, in the message's order, and nobody
waits for ever.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from batch_tools import Overlaps
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from agenttool_otel import Governor, report_progress
from agenttool_otel.integrations.langchain.agents import ToolNodeGuard
from agenttool_otel.testing import StaticEngine


def message(*names: str) -> AIMessage:
    calls: list[Any] = [
        {"name": name, "args": {"number": n}, "id": f"call-{n}"} for n, name in enumerate(names)
    ]
    return AIMessage(content="", tool_calls=calls)


class World:
    """A graph with one ToolNode, whose tools are governed by its guard or by themselves."""

    def __init__(self, kind: str, *, waits: float = 0.03) -> None:
        self.governor = Governor(policy=StaticEngine("allow"))
        self.seen = Overlaps()
        self.writes = Overlaps()
        facts: dict[str, Any] = {
            "read": {"read_only": True, "concurrency_safe": True},
            "write": {"read_only": False},
            "locked": {"concurrency_safe": True, "resource_locks": ["db"]},
        }

        def tool(name: str) -> StructuredTool:
            def body(number: int) -> str:
                report_progress(50)
                with self.seen.inside((name, number)):
                    if name == "read":
                        time.sleep(waits)
                        return "read"
                    with self.writes.inside((name, number)):
                        time.sleep(waits)
                        return f"beside {self.seen.now - 1}"

            return StructuredTool.from_function(body, name=name, description=name)

        tools: list[Any] = [tool(name) for name in facts]
        if kind == "governed":
            tools = [self.governor.govern(one, **facts[one.name]) for one in tools]
        guard = ToolNodeGuard(self.governor, facts)
        node = ToolNode(tools, wrap_tool_call=guard, awrap_tool_call=guard.acall)
        graph = StateGraph(MessagesState)
        graph.add_node("tools", node)
        graph.add_edge(START, "tools")
        graph.add_edge("tools", END)
        self.graph: Any = graph.compile()

    def run(self, door: str, *names: str, **config: Any) -> list[str]:
        state = {"messages": [message(*names)]}
        out = (
            self.graph.invoke(state, config)
            if door == "sync"
            else asyncio.run(self.graph.ainvoke(state, config))
        )
        gate = self.governor.pipeline.gate
        assert (gate._held, gate._waiting) == ({}, [])
        return [str(one.content) for one in out["messages"][1:]]


@pytest.fixture(params=["guarded", "governed"])
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


doors = pytest.mark.parametrize("door", ["sync", "async"])


@doors
def test_two_writers_never_overlap_and_keep_their_order(door: str, world: World) -> None:
    said = world.run(door, "write", "read", "write", "read", "read", "write")
    assert world.writes.most == 1
    assert [name for name, _ in world.writes.order] == ["write"] * 3
    assert [number for _, number in world.writes.order] == [0, 2, 5]
    assert [text for text in said if text != "read"] == ["beside 0"] * 3


@doors
def test_reads_of_one_message_run_together(door: str, world: World) -> None:
    world.run(door, *["read"] * 4)
    assert world.seen.most > 1


@doors
def test_a_lock_is_held_by_one_call_at_a_time(door: str, world: World) -> None:
    world.run(door, *["locked"] * 5)
    assert world.writes.most == 1


def test_who_waits_for_one_that_never_comes_goes_on() -> None:
    world = World("guarded")
    guarded = world.graph.nodes["tools"].bound
    wrap = guarded._wrap_tool_call

    def other(request: Any, handler: Any) -> Any:
        from langchain_core.messages import ToolMessage

        if request.tool_call["id"] == "call-0":
            return ToolMessage("answered elsewhere", tool_call_id="call-0")
        return wrap(request, handler)

    guarded._wrap_tool_call = other
    started = time.monotonic()
    assert world.run("sync", "write", "write", "read") == ["answered elsewhere", "beside 0", "read"]
    assert time.monotonic() - started < 30


@doors
def test_one_worker_at_a_time_is_enough(door: str, world: World) -> None:
    said = world.run(door, "read", "write", "read", "write", max_concurrency=1)
    assert said == ["read", "beside 0", "read", "beside 0"]


def test_progress_goes_to_who_streams_the_graph(world: World) -> None:
    state = {"messages": [message("read", "read")]}
    told = list(world.graph.stream(state, stream_mode="custom"))
    assert [one["type"] for one in told] == ["tool_progress"] * 2
    assert {one["percent"] for one in told} == {50.0}
