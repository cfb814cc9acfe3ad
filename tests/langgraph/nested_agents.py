"""Agents that call agents, in every way in which a call can be governed: what the tests of answers
share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from graph_agents import Scripted
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Interrupt

from agenttool_otel.call.runtime import replace_default
from agenttool_otel.integrations.instrumentor import AgentToolInstrumentor
from agenttool_otel.integrations.langchain.agents import AgentToolMiddleware, ToolNodeGuard
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

GUARDS = ["middleware", "govern", "instrumentor"]
INNER, OUTER = "pay", "delegate"


@contextmanager
def guarded_by(guard: str, engine: Any = None, **settings: Any) -> Iterator[Capture]:
    """Govern by one guard: inner calls ask, outer ones are allowed, where no other policy
    is given.
    """
    policy = engine or StaticEngine({INNER: decision("ask"), OUTER: decision("allow")})
    with capture(policy=policy, **settings) as captured:
        if guard != "instrumentor":
            yield captured
            return
        before = replace_default(captured.governor)
        AgentToolInstrumentor().instrument(facts={})
        try:
            yield captured
        finally:
            AgentToolInstrumentor().uninstrument()
            replace_default(before)


def made_tool(name: str, body: Callable[[str], Any], *, is_async: bool) -> BaseTool:
    """Make a tool of one text argument."""
    given: dict[str, Any] = {"coroutine" if is_async else "func": body}
    return StructuredTool.from_function(**given, name=name, description=f"Does {name}.")


def node_graph(captured: Capture, guard: str, tools: list[BaseTool], saver: Any) -> Any:
    """Make a graph whose one node runs all calls of a message."""
    given: dict[str, Any] = {"handle_tool_errors": True}
    if guard == "middleware":
        wrapper = ToolNodeGuard(captured.governor)
        given.update(wrap_tool_call=wrapper, awrap_tool_call=wrapper.acall)
    governed = [captured.governor.govern(tool) for tool in tools] if guard == "govern" else tools
    graph = (
        StateGraph(MessagesState)
        .add_node("tools", ToolNode(governed, **given))
        .add_edge(START, "tools")
    )
    return graph.compile(checkpointer=saver)


def message(*names: str) -> dict[str, Any]:
    """Return a state whose last message calls the named tools."""
    calls = [{"name": name, "args": {"text": "x"}, "id": f"c{at}"} for at, name in enumerate(names)]
    return {"messages": [AIMessage("", tool_calls=calls)]}


class Nest:
    """A chain of agents: each but the innermost calls a tool that runs the next one; the innermost
    calls ``tools``.
    """

    def __init__(
        self,
        captured: Capture,
        guard: str,
        tools: list[BaseTool],
        calls: list[tuple[str, dict[str, Any]]],
        *,
        depth: int = 0,
        api: str = "graph",
        is_async: bool = False,
        saver: Any = None,
    ) -> None:
        self._governor = captured.governor
        self._guard, self._api, self._is_async = guard, api, is_async
        saver = InMemorySaver() if saver is None else saver
        level = self._level(tools, calls, saver if depth == 0 else None)
        for above in range(depth):
            outer = made_tool(OUTER, self._runs(level), is_async=is_async)
            level = self._level(
                [outer], [(OUTER, {"text": "go"})], saver if above == depth - 1 else None
            )
        self.graph: Any = level
        self.config: dict[str, Any] = {
            "configurable": {"thread_id": "t", "agenttool_answered_by": "user:ada"}
        }

    def _level(
        self, tools: list[BaseTool], calls: list[tuple[str, dict[str, Any]]], saver: Any
    ) -> Any:
        tools = (
            [self._governor.govern(tool) for tool in tools] if self._guard == "govern" else tools
        )
        if self._api == "functional":
            return self._workflow(tools, calls, saver)
        middleware = [AgentToolMiddleware(self._governor)] if self._guard == "middleware" else []
        script = Scripted(calls=[calls])
        return create_agent(script, tools, middleware=middleware, checkpointer=saver)

    def _workflow(
        self, tools: list[BaseTool], calls: list[tuple[str, dict[str, Any]]], saver: Any
    ) -> Any:
        """Make an entrypoint that runs each call in a task of its own, all at once."""
        by_name = {tool.name: tool for tool in tools}
        guard = ToolNodeGuard(self._governor) if self._guard == "middleware" else None
        node = (
            ToolNode(tools, wrap_tool_call=guard, awrap_tool_call=guard.acall)
            if guard is not None
            else None
        )

        def message(index: int) -> dict[str, Any]:
            name, args = calls[index]
            call = {"name": name, "args": args, "id": f"call-{index}", "type": "tool_call"}
            return {"messages": [AIMessage("", tool_calls=[call])]}

        @task
        def call_tool(index: int) -> str:
            if node is not None:
                return str(node.invoke(message(index))["messages"][-1].content)
            return str(by_name[calls[index][0]].invoke(calls[index][1]))

        @task
        async def acall_tool(index: int) -> str:
            if node is not None:
                return str((await node.ainvoke(message(index)))["messages"][-1].content)
            return str(await by_name[calls[index][0]].ainvoke(calls[index][1]))

        @entrypoint(checkpointer=saver)
        def workflow(_: Any) -> list[str]:
            return [future.result() for future in [call_tool(index) for index in range(len(calls))]]

        @entrypoint(checkpointer=saver)
        async def aworkflow(_: Any) -> list[str]:
            return list(await asyncio.gather(*[acall_tool(index) for index in range(len(calls))]))

        return aworkflow if self._is_async else workflow

    def _runs(self, level: Any) -> Callable[[str], Any]:
        def runs(text: str) -> str:
            return _last(level.invoke(self._start(text)))

        async def aruns(text: str) -> str:
            return _last(await level.ainvoke(self._start(text)))

        return aruns if self._is_async else runs

    def _start(self, text: str) -> Any:
        return text if self._api == "functional" else {"messages": [HumanMessage(text)]}

    def _run(self, value: Any) -> list[Interrupt]:
        if self._is_async:
            state = asyncio.run(self.graph.ainvoke(value, self.config))
        else:
            state = self.graph.invoke(value, self.config)
        if not isinstance(state, dict):
            return []
        # LangGraph shows a question of a @task twice: as the task's and as the entrypoint's
        return list({question.id: question for question in state.get("__interrupt__", ())}.values())

    def start(self) -> list[Interrupt]:
        """Start the outermost agent, and return what waits."""
        return self._run(self._start("go"))

    def answer(self, answer: dict[str, Any], question: Interrupt | None = None) -> list[Interrupt]:
        """Answer plainly, or the given question by its id, and return what waits then."""
        return self._run(Command(resume=answer if question is None else {question.id: answer}))

    def nudge(self) -> list[Interrupt]:
        """Go on without an answer, and return what waits then."""
        return self._run(None)


def _last(state: Any) -> str:
    return str(state["messages"][-2].content) if isinstance(state, dict) else str(state)
