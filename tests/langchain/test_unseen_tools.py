"""A guard that sees only a part of what an agent's tools reach says so at the first model call."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from agenttool_otel import AgentToolMiddleware
from agenttool_otel.testing import StaticEngine, capture


class Silent(BaseChatModel):
    """Calls nothing."""

    @property
    def _llm_type(self) -> str:
        return "silent"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("done"))])


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def asking(agent: Any) -> BaseTool:
    @tool
    def ask(question: str) -> str:
        """Ask the sub-agent."""
        return str(agent.invoke({"messages": [("user", question)]}))

    return ask


def by_closure(inner: BaseTool, middleware: list[Any]) -> BaseTool:
    return asking(create_agent(Silent(), [inner], middleware=middleware))


def by_mapping(inner: BaseTool, middleware: list[Any]) -> BaseTool:
    agents = {
        "worker": create_agent(Silent(), [inner], middleware=middleware).with_config(
            tags=["worker"]
        )
    }

    @tool
    def task(kind: str) -> str:
        """Give a task to a sub-agent."""
        return str(agents[kind].invoke({"messages": []}))

    return task


def by_attribute(inner: BaseTool, middleware: list[Any]) -> BaseTool:
    class Asking(BaseTool):
        name: str = "asking"
        description: str = "Ask."
        agent: Any = None

        def _run(self, question: str) -> str:
            return str(self.agent.invoke({"messages": [("user", question)]}))

    return Asking(agent=create_agent(Silent(), [inner], middleware=middleware))


def by_graph(inner: BaseTool, middleware: list[Any]) -> BaseTool:
    guard = middleware[0] if middleware else None
    node = ToolNode([inner], wrap_tool_call=guard.wrap_tool_call) if guard else ToolNode([inner])
    return asking(
        StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    )


SHAPES = [by_closure, by_mapping, by_attribute, by_graph]


def warnings(
    caplog: pytest.LogCaptureFixture, made: BaseTool, middleware: AgentToolMiddleware
) -> list[str]:
    agent: Any = create_agent(Silent(), [made], middleware=[middleware])
    with caplog.at_level(logging.WARNING, "agenttool_otel"):
        for _ in range(2):
            agent.invoke({"messages": [("user", "go")]})
    return [line.getMessage() for line in caplog.records if "does not see" in line.getMessage()]


@pytest.mark.parametrize("shape", SHAPES)
def test_tools_behind_a_tool_are_named_once(shape: Any, caplog: pytest.LogCaptureFixture) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        (line,) = warnings(caplog, shape(pay, []), AgentToolMiddleware(captured.governor))
        assert "pay" in line
        assert "govern(tool)" in line


@pytest.mark.parametrize("shape", SHAPES)
def test_governed_tools_behind_a_tool_are_no_warning(
    shape: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        inner = captured.governor.govern(pay)
        assert not warnings(caplog, shape(inner, []), AgentToolMiddleware(captured.governor))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_guard_of_the_inner_agent_is_no_warning(
    shape: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        middleware = AgentToolMiddleware(captured.governor)
        assert not warnings(caplog, shape(pay, [middleware]), middleware)


def test_an_ordinary_tool_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert not warnings(caplog, pay, AgentToolMiddleware(captured.governor))
