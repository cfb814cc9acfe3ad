"""A call that passes an agent's guard and the instrumentor is asked, recorded and run once, also
after a pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from agenttool_otel import configure, govern
from agenttool_otel.call.runtime import replace_default
from agenttool_otel.integrations.instrumentor import AgentToolInstrumentor
from agenttool_otel.integrations.langchain.agents import ToolNodeGuard
from agenttool_otel.testing import StaticEngine

ran: list[str] = []


def work(text: str) -> str:
    """Do the work."""
    ran.append(text)
    return "ran"


def made(function: Callable[..., Any]) -> BaseTool:
    return StructuredTool.from_function(function, name="work")


TOOLS = {
    "plain": lambda: made(work),
    "governed function": lambda: made(govern(work)),
    "governed tool": lambda: govern(made(work)),
    "governed tool of a governed function": lambda: govern(made(govern(work))),
}


@pytest.fixture(autouse=True)
def instrumented() -> Iterator[None]:
    old = replace_default(None)
    configure(policy=StaticEngine("ask"))
    AgentToolInstrumentor().instrument(facts={})
    ran.clear()
    yield
    AgentToolInstrumentor().uninstrument()
    replace_default(old)


@pytest.mark.parametrize("awaits", [False, True])
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("shape", TOOLS)
def test_one_question_is_asked_and_one_answer_is_enough(
    shape: str, guarded: bool, awaits: bool
) -> None:
    guard = ToolNodeGuard()
    more: Any = {"wrap_tool_call": guard, "awrap_tool_call": guard.acall} if guarded else {}
    node = ToolNode([TOOLS[shape]()], **more)
    graph: Any = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools")
    graph = graph.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}

    def run(given: Any) -> Any:
        return asyncio.run(graph.ainvoke(given, config)) if awaits else graph.invoke(given, config)

    call = {"name": "work", "args": {"text": "a"}, "id": "1"}
    assert len(run({"messages": [AIMessage("", tool_calls=[call])]})["__interrupt__"]) == 1
    done = run(Command(resume={"type": "approve"}))
    assert "__interrupt__" not in done
    assert done["messages"][-1].content == "ran"
    assert ran == ["a"]
