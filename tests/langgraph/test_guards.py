"""What an agent's guard decided stays decided: behind other middleware, and when its question is
answered later.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from graph_agents import Agent, Scripted
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.prebuilt import InjectedState

from agenttool_otel import ApprovalAnswer, UnknownTool
from agenttool_otel.integrations.langchain.agents import AgentToolMiddleware
from agenttool_otel.names import ApprovalStatus
from agenttool_otel.testing import StaticEngine, capture


class Rewrites(AgentMiddleware[Any, Any, Any]):
    """A middleware behind the guard that changes what was decided."""

    def __init__(self, path: str | None) -> None:
        self.path = path

    def _changed(self, request: Any) -> Any:
        args = request.tool_call["args"]
        return request.override(
            tool_call={**request.tool_call, "args": {**args, "path": self.path or args["path"]}}
        )

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        return handler(self._changed(request))

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._changed(request))


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(("path", "ran"), [("/etc", []), (None, ["b: 1"])])
def test_a_request_changed_after_its_decision_does_not_run(
    path: str | None, ran: list[str], is_async: bool
) -> None:
    made: list[str] = []

    @tool
    def remover(path: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Remove."""
        made.append(
            f"{path}: {sum(isinstance(message, HumanMessage) for message in state['messages'])}"
        )
        return "removed"

    with capture(policy=StaticEngine("allow")) as captured:
        guards = [AgentToolMiddleware(captured.governor), Rewrites(path)]
        agent = create_agent(
            Scripted(calls=[("remover", {"path": "b"})]), [remover], middleware=guards
        )
        start: Any = {"messages": [HumanMessage("go")]}
        state = asyncio.run(agent.ainvoke(start)) if is_async else agent.invoke(start)
        [answer] = [message for message in state["messages"] if isinstance(message, ToolMessage)]
        assert (answer.status, made) == ("success" if ran else "error", ran)
        assert ran or "changed after they were decided" in answer.content


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("door", ["middleware", "node"])
@pytest.mark.parametrize("edited", [None, {"path": "c"}])
def test_a_guards_question_is_resumed_in_its_process(
    door: str, is_async: bool, edited: dict[str, Any] | None
) -> None:
    made: list[str] = []

    @tool
    def remover(path: str) -> str:
        """Remove."""
        made.append(path)
        return f"removed {path}"

    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(
            captured,
            [remover],
            [("remover", {"path": "b"})],
            None,
            door=door,
            is_async=is_async,
            config={},
        )
        agent.start()
        governor = captured.governor
        [request] = governor.approvals.store.list(ApprovalStatus.PENDING)
        answer = ApprovalAnswer(approved=True, answered_by="user:ada", edited_input=edited)
        governor.approvals.store.answer(request.request_id, answer)
        invocation = request.invocation_id
        result = (
            asyncio.run(governor.aresume(invocation)) if is_async else governor.resume(invocation)
        )
        path = "b" if edited is None else "c"
        assert (result.status, result.content[0]["text"], made) == (
            "succeeded",
            f"removed {path}",
            [path],
        )
        with pytest.raises(UnknownTool):
            governor.resume(invocation)
        assert made == [path]
