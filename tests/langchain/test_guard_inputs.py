"""What an agent's guard decides is what runs: a copy of the arguments, as the tool will
read them.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from pydantic import BaseModel, Field, StringConstraints, field_validator

from agenttool_otel import ApprovalAnswer
from agenttool_otel.integrations.langchain.agents import ToolNodeGuard
from agenttool_otel.testing import FixedApprover, StaticEngine, capture

Lower = Annotated[str, StringConstraints(to_lower=True)]


@tool
def shell(command: Lower, where: str = "/") -> str:
    """Run."""
    return f"{command} {where}"


@tool
def injected(
    command: Lower,
    state: Annotated[dict[str, Any], InjectedState],
    call_id: Annotated[str, InjectedToolCallId],
) -> str:
    """Run with what the graph gives."""
    return f"{command} {len(state['messages'])} {call_id}"


def answer(
    captured: Any, made: BaseTool, arguments: dict[str, Any], *, is_async: bool = False
) -> ToolMessage:
    guard = ToolNodeGuard(captured.governor)
    node = ToolNode([made], wrap_tool_call=guard, awrap_tool_call=guard.acall)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    question: Any = {
        "messages": [AIMessage("", tool_calls=[{"name": made.name, "args": arguments, "id": "1"}])]
    }
    state = asyncio.run(graph.ainvoke(question)) if is_async else graph.invoke(question)
    message = state["messages"][-1]
    assert isinstance(message, ToolMessage)
    return message


@pytest.mark.parametrize("is_async", [False, True])
def test_a_request_changed_during_an_ask_runs_as_decided(is_async: bool) -> None:
    arguments: dict[str, Any] = {}

    class Changes:
        def ask(self, request: Any) -> ApprovalAnswer:
            arguments["command"] = "evil"
            return ApprovalAnswer(True, answered_by="user:bob")

    with capture(policy=StaticEngine("ask"), approver=Changes()) as captured:
        guard = ToolNodeGuard(captured.governor)
        message = AIMessage(
            "", tool_calls=[{"name": "shell", "args": {"command": "safe"}, "id": "1"}]
        )
        arguments = message.tool_calls[0]["args"]
        node = ToolNode([shell], wrap_tool_call=guard, awrap_tool_call=guard.acall)
        graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
        question: Any = {"messages": [message]}
        state = asyncio.run(graph.ainvoke(question)) if is_async else graph.invoke(question)
        assert arguments["command"] == "evil"
        assert state["messages"][-1].content == "safe /"


def test_arguments_are_decided_as_the_tool_reads_them() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        assert answer(captured, shell, {"command": "RM"}).content == "rm /"
        assert answer(captured, injected, {"command": "RM"}).content == "rm 1 1"
        told = [document["input"] for document in engine.documents]
        assert told == [{"command": "rm", "where": "/"}, {"command": "rm"}]


def test_schema_validators_count_beside_injected_arguments() -> None:
    class Schema(BaseModel):
        path: str
        call_id: Annotated[str, InjectedToolCallId]

        @field_validator("path")
        @classmethod
        def rooted(cls, value: str) -> str:
            return "/etc/" + value.removeprefix("/etc/")

    def act(path: str, call_id: str) -> str:
        """Act."""
        return path

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        made = StructuredTool.from_function(act, args_schema=Schema)
        assert answer(captured, made, {"path": "shadow"}).content == "/etc/shadow"
        assert engine.documents[0]["input"] == {"path": "/etc/shadow"}


def test_a_default_that_is_new_each_time_runs_as_it_was_decided() -> None:
    numbers = itertools.count()

    class Schema(BaseModel):
        number: int = Field(default_factory=lambda: next(numbers))

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        made = StructuredTool.from_function(
            lambda number: str(number), name="count", args_schema=Schema, description="C"
        )
        message = answer(captured, made, {})
        assert message.content == str(engine.documents[0]["input"]["number"])


def test_arguments_that_are_read_otherwise_each_time_run_nothing() -> None:
    numbers = itertools.count()

    class Schema(BaseModel):
        path: str

        @field_validator("path")
        @classmethod
        def restless(cls, value: str) -> str:
            return f"{value}{next(numbers)}"

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        made = StructuredTool.from_function(
            lambda path: path, name="restless", args_schema=Schema, description="R"
        )
        assert answer(captured, made, {"path": "a"}).status == "error"
        assert engine.documents == []


@pytest.mark.parametrize(
    ("edit", "ran"),
    [({"command": "ls", "where": "/tmp"}, "ls /tmp"), ({"command": "LS", "where": "/tmp"}, None)],
)
def test_an_edit_runs_as_it_was_approved_or_not_at_all(
    edit: dict[str, Any], ran: str | None
) -> None:
    approver = FixedApprover(ApprovalAnswer(True, answered_by="user:bob", edited_input=edit))
    with capture(policy=StaticEngine("ask"), approver=approver) as captured:
        message = answer(captured, shell, {"command": "rm"})
        assert (
            message.content.partition("\n\n")[0] if message.status == "success" else None
        ) == ran


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, "path: Field required"),
        ({"path": 1}, "path: must be string"),
        ({"path": "x", "mode": "sesame"}, 'mode: must be one of "a", "b"'),
    ],
)
def test_a_model_is_told_what_the_schema_wants(args: dict[str, Any], told: str) -> None:
    @tool
    def read(path: str, mode: Literal["a", "b"] = "a") -> str:
        """Read."""
        return path

    with capture(policy=StaticEngine("allow")) as captured:
        message = answer(captured, read, args)
    assert message.status == "error"
    assert told in message.content
    assert "Fix the arguments and try again." in message.content
    assert "sesame" not in message.content
