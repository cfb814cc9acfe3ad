"""A call that asks makes no other call of its task run twice: what ended before the pause is given
back again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from graph_agents import approve, interrupts
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from nested_agents import GUARDS, INNER, OUTER, Nest, guarded_by, made_tool, message, node_graph

from agenttool_otel import agent_context
from agenttool_otel.testing import StaticEngine, decision

WAYS = pytest.mark.parametrize("is_async", [False, True])
BY_GUARD = pytest.mark.parametrize("guard", GUARDS)
POLICY = {
    "charge": decision("allow"),
    "fails": decision("allow"),
    OUTER: decision("allow"),
    INNER: decision("ask"),
}
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def tool_of(
    name: str, ran: list[str], *, is_async: bool = False, error: Exception | None = None
) -> BaseTool:
    def body(text: str) -> str:
        ran.append(name)
        if error is not None:
            raise error
        return f"{name} of {text} no. {ran.count(name)}"

    async def abody(text: str) -> str:
        await asyncio.sleep(0.01)
        return body(text)

    return made_tool(name, abody if is_async else body, is_async=is_async)


def run(graph: Any, value: Any, *, is_async: bool) -> Any:
    return asyncio.run(graph.ainvoke(value, CONFIG)) if is_async else graph.invoke(value, CONFIG)


def contents(state: Any) -> dict[str, str]:
    return {m.name or "": str(m.content) for m in state["messages"] if isinstance(m, ToolMessage)}


@WAYS
@BY_GUARD
@pytest.mark.parametrize("names", [("charge", INNER), (INNER, "charge")])
def test_a_neighbour_in_a_tool_node_runs_once(
    guard: str, names: tuple[str, str], is_async: bool
) -> None:
    ran: list[str] = []
    with guarded_by(guard, StaticEngine(POLICY)) as captured:
        tools = [tool_of(name, ran, is_async=is_async) for name in names]
        graph = node_graph(captured, guard, tools, InMemorySaver())
        assert interrupts(run(graph, message(*names), is_async=is_async))
        state = run(graph, Command(resume=approve()), is_async=is_async)
        assert sorted(ran) == sorted(names)
        assert contents(state) == {name: f"{name} of x no. 1" for name in names}


@WAYS
@BY_GUARD
def test_a_neighbour_that_failed_does_not_run_again(guard: str, is_async: bool) -> None:
    ran: list[str] = []
    with guarded_by(guard, StaticEngine(POLICY)) as captured:
        failing = tool_of("fails", ran, is_async=is_async, error=ValueError("out of order"))
        graph = node_graph(
            captured, guard, [failing, tool_of(INNER, ran, is_async=is_async)], InMemorySaver()
        )
        run(graph, message("fails", INNER), is_async=is_async)
        state = run(graph, Command(resume=approve()), is_async=is_async)
        assert sorted(ran) == ["fails", INNER]
        assert "out of order" in contents(state)["fails"]


@WAYS
@BY_GUARD
def test_a_neighbour_of_an_agent_that_asks_runs_once(guard: str, is_async: bool) -> None:
    ran: list[str] = []
    with guarded_by(guard, StaticEngine(POLICY)) as captured:
        nest = Nest(captured, guard, [tool_of(INNER, ran, is_async=is_async)], [(INNER, {"text": "x"})],
                    is_async=is_async, saver=False)  # fmt: skip
        nest.graph.checkpointer = None
        outer = made_tool(OUTER, nest._runs(nest.graph), is_async=is_async)
        tools = [outer, tool_of("charge", ran, is_async=is_async)]
        graph = node_graph(captured, guard, tools, InMemorySaver())
        run(graph, message(OUTER, "charge"), is_async=is_async)
        state = run(graph, Command(resume=approve()), is_async=is_async)
        assert sorted(ran) == ["charge", INNER]
        assert sorted(contents(state)) == ["charge", OUTER]


@WAYS
@pytest.mark.parametrize("guard", ["govern", "instrumentor"])
def test_calls_of_a_node_before_one_that_asks_run_once(guard: str, is_async: bool) -> None:
    ran: list[str] = []
    with guarded_by(guard, StaticEngine(POLICY)) as captured:
        plain = [tool_of("charge", ran, is_async=is_async), tool_of(INNER, ran, is_async=is_async)]
        charge, pay = (
            [captured.governor.govern(tool) for tool in plain] if guard == "govern" else plain
        )

        def step(state: Any) -> Any:
            given = [
                charge.invoke({"text": "a"}),
                charge.invoke({"text": "a"}),
                pay.invoke({"text": "b"}),
            ]
            return {"messages": [("ai", "; ".join(given))]}

        async def astep(state: Any) -> Any:
            given = [await charge.ainvoke({"text": "a"}), await charge.ainvoke({"text": "a"})]
            return {"messages": [("ai", "; ".join([*given, await pay.ainvoke({"text": "b"})]))]}

        graph: Any = (
            StateGraph(MessagesState)
            .add_node("step", astep if is_async else step)
            .add_edge(START, "step")
        )
        graph = graph.compile(checkpointer=InMemorySaver())
        run(graph, {"messages": []}, is_async=is_async)
        assert ran == ["charge", "charge"]
        state = run(graph, Command(resume=approve()), is_async=is_async)
        assert ran == ["charge", "charge", INNER]
        assert (
            state["messages"][-1].content == "charge of a no. 1; charge of a no. 2; pay of b no. 1"
        )


def test_a_neighbour_of_a_tools_own_interrupt_runs_once() -> None:
    ran: list[str] = []
    with guarded_by("govern", StaticEngine({**POLICY, "own": decision("allow")})) as captured:

        def own(text: str) -> str:
            ran.append(str(interrupt("which one?")))
            return "done"

        tools = [tool_of("charge", ran), made_tool("own", own, is_async=False)]
        graph = node_graph(captured, "govern", tools, InMemorySaver())
        run(graph, message("charge", "own"), is_async=False)
        run(graph, Command(resume="this"), is_async=False)
        assert ran == ["charge", "this"]


@pytest.mark.slow
@BY_GUARD
@pytest.mark.parametrize("failing", [False, True])
def test_a_neighbour_runs_once_across_processes(guard: str, failing: bool, tmp_path: Path) -> None:
    saver_type = pytest.importorskip("langgraph.checkpoint.sqlite").SqliteSaver
    ran: list[str] = []
    name = "fails" if failing else "charge"
    url = f"sqlite:///{tmp_path}/approvals.db"
    # with a Governor of its own each
    for value in (message(name, INNER), Command(resume=approve())):
        saver = saver_type(sqlite3.connect(f"{tmp_path}/checkpoints.db", check_same_thread=False))
        with (
            guarded_by(guard, StaticEngine(POLICY), approvals=url) as captured,
            agent_context(actor="agent:a"),
        ):
            error = ValueError("out of order") if failing else None
            tools = [tool_of(name, ran, error=error), tool_of(INNER, ran)]
            state = run(node_graph(captured, guard, tools, saver), value, is_async=False)
    assert sorted(ran) == sorted([name, INNER])
    assert ("out of order" if failing else "charge of x no. 1") in contents(state)[name]


def test_a_node_that_is_retried_runs_its_calls_again() -> None:
    from langgraph.types import RetryPolicy

    ran: list[str] = []
    with guarded_by("govern", StaticEngine(POLICY)) as captured:
        charge = captured.governor.govern(tool_of("charge", ran))

        def step(state: Any) -> Any:
            if charge.invoke({"text": "a"}) != "charge of a no. 2":
                raise ConnectionError
            return {"messages": []}

        retry = RetryPolicy(initial_interval=0.01, max_attempts=2)
        graph: Any = (
            StateGraph(MessagesState)
            .add_node("step", step, retry_policy=retry)
            .add_edge(START, "step")
        )
        run(graph.compile(checkpointer=InMemorySaver()), {"messages": []}, is_async=False)
        assert ran == ["charge", "charge"]
