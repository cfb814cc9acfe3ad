"""What the LangGraph tests share: agents behind every door, and a model that follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Interrupt

from agenttool_otel.integrations.langchain.agents import AgentToolMiddleware, ToolNodeGuard
from agenttool_otel.testing import Capture, StaticEngine, decision

DOORS = ["tool", "middleware", "node"]
CONFIG: Any = {"configurable": {"thread_id": "t-1"}}


class Scripted(BaseChatModel):
    """Calls the tools of its script, one step for each answer that it got so far; replays don't
    confuse it.
    """

    calls: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Scripted:
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        step = sum(isinstance(message, AIMessage) for message in messages)
        if step >= len(self.calls):
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content="done"))])
        planned = self.calls[step]
        batch = planned if isinstance(planned, list) else [planned]
        calls = [
            {"name": name, "args": args, "id": f"call-{step}-{n}"}
            for n, (name, args) in enumerate(batch)
        ]
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(content="", tool_calls=calls))]
        )


class SwitchEngine(StaticEngine):
    """A policy that can change its mind between pause and resume."""

    def switch(self, behavior: str) -> None:
        """Answer otherwise from now on."""
        self._answers = decision(behavior)


class Agent:
    """An agent behind one door, called in one way."""

    def __init__(
        self,
        captured: Capture,
        tools: list[BaseTool],
        script: list[Any],
        saver: Any,
        *,
        door: str = "tool",
        is_async: bool = False,
        config: Any = None,
    ) -> None:
        self.is_async = is_async
        self.config = config or CONFIG
        governor = captured.governor
        if door == "node":
            guard = ToolNodeGuard(governor)
            graph = StateGraph(MessagesState)
            model = Scripted(calls=script)
            graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
            graph.add_node(
                "tools", ToolNode(tools, wrap_tool_call=guard, awrap_tool_call=guard.acall)
            )
            graph.add_edge(START, "model")
            graph.add_conditional_edges(
                "model", lambda state: "tools" if state["messages"][-1].tool_calls else END
            )
            graph.add_edge("tools", "model")
            self.graph: Any = graph.compile(checkpointer=saver)
        else:
            governed = [governor.govern(tool) for tool in tools] if door == "tool" else tools
            middleware = [AgentToolMiddleware(governor)] if door == "middleware" else []
            self.graph = create_agent(
                Scripted(calls=script), governed, middleware=middleware, checkpointer=saver
            )

    def run(self, value: Any, config: Any = None) -> dict[str, Any]:
        """Invoke the graph."""
        config = config or self.config
        if self.is_async:
            return asyncio.run(self.graph.ainvoke(value, config))
        return self.graph.invoke(value, config)

    def start(self) -> list[Interrupt]:
        """Ask the agent, and return what it waits for."""
        return interrupts(self.run({"messages": [HumanMessage("go")]}))

    def answer(self, value: Any, config: Any = None) -> dict[str, Any]:
        """Resume with a value."""
        return self.run(Command(resume=value), config)


def interrupts(state: dict[str, Any]) -> list[Interrupt]:
    """Return what a state waits for."""
    return list(state.get("__interrupt__", ()))


def results(state: dict[str, Any]) -> list[tuple[str, str]]:
    """Return status and content of the tool messages, in the order of their call ids."""
    messages = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    return [(m.status, str(m.content)) for m in sorted(messages, key=lambda m: m.tool_call_id)]


def approve(**fields: Any) -> dict[str, Any]:
    """Make the answer yes."""
    return {"type": "approve", **fields}


def reject(message: str = "no") -> dict[str, Any]:
    """Make the answer no."""
    return {"type": "reject", "message": message}


def edit(name: str, **arguments: Any) -> dict[str, Any]:
    """Make the answer yes, with other arguments."""
    return {"type": "edit", "edited_action": {"name": name, "args": arguments}}


def counting(name: str = "remover", *, is_async: bool = False) -> tuple[BaseTool, list[str]]:
    """Make a tool that tells what it was run with."""
    from langchain_core.tools import StructuredTool

    ran: list[str] = []

    def body(path: str) -> str:
        """Remove a file."""
        ran.append(path)
        return f"removed {path}"

    async def abody(path: str) -> str:
        """Remove a file."""
        await asyncio.sleep(0)
        return body(path)

    chosen: Callable[..., Any] = abody if is_async else body
    tool = StructuredTool.from_function(
        **{"coroutine" if is_async else "func": chosen}, name=name, description="Remove a file."
    )
    return tool, ran
