"""Hooks around LangChain tools: the same rules, through ``invoke``, ``ainvoke`` and a ToolNode."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, tool

from agenttool_otel import ToolDenied
from agenttool_otel.hooks import (
    AdditionalContext,
    HookContext,
    Hooks,
    PermissionResult,
    UpdatedInput,
    UpdatedOutput,
)
from agenttool_otel.testing import Capture, StaticEngine, capture


def make() -> BaseTool:
    @tool
    def transfer(amount: int, tenant: str = "nobody") -> str:
        """Send money."""
        return f"sent {amount} for {tenant}"

    assert isinstance(transfer, StructuredTool)
    return transfer


async def called(
    captured: Capture, arguments: dict[str, Any], asynchronous: bool, **options: Any
) -> ToolMessage:
    governed = captured.governor.govern(make(), **options)
    request = {"type": "tool_call", "id": "call-1", "name": "transfer", "args": arguments}
    return await governed.ainvoke(request) if asynchronous else governed.invoke(request)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_hook_changes_a_langchain_input_which_is_decided_again(asynchronous: bool) -> None:
    hooks, engine = Hooks(), StaticEngine("allow")
    hooks.add(
        lambda ctx: UpdatedInput({**ctx.arguments, "amount": 1}), "pre_tool_use", tool="transfer"
    )
    with capture(policy=engine, hooks=hooks) as captured:
        message = await called(captured, {"amount": 99, "tenant": "t"}, asynchronous)
        assert message.content == "sent 1 for t"
        assert engine.documents[-1]["input"]["amount"] == 1


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_hooks_deny_becomes_an_error_message_for_the_model(asynchronous: bool) -> None:
    hooks = Hooks()
    hooks.add(
        lambda ctx: PermissionResult("deny", "too much"), "pre_tool_use", namespace="langchain"
    )
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        message = await called(captured, {"amount": 99}, asynchronous)
        assert message.status == "error"
        assert "too much" in message.content
        assert message.artifact["error"]["error_class"] == "hook_blocked"
        with pytest.raises(ToolDenied, match="too much"):
            captured.governor.govern(make()).invoke({"amount": 1})


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_internal_arguments_of_langchain_come_from_hooks_alone(asynchronous: bool) -> None:
    hooks, engine = Hooks(), StaticEngine("allow")
    hooks.add(
        lambda ctx: UpdatedInput({**ctx.arguments, "tenant": "acme"}), "pre_tool_use", order=1
    )
    hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, "amount": 7}), "pre_tool_use", order=2)
    facts = {"internal_only_fields": ["tenant"]}
    with capture(policy=engine, hooks=hooks) as captured:
        message = await called(captured, {"amount": 99}, asynchronous, **facts)
        assert message.content == "sent 7 for acme"
        assert engine.documents[-1]["input"] == {"amount": 7}
        governed: Any = captured.governor.govern(make(), **facts)
        schema = type(governed).agenttool.declaration.input_contract.model_input_schema
        assert set(schema["properties"]) == {"amount"}
        message = await called(captured, {"amount": 99, "tenant": "evil"}, asynchronous, **facts)
        assert message.status == "error"
        assert "evil" not in repr(captured.events)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_an_owned_output_is_what_the_model_sees(asynchronous: bool) -> None:
    hooks, seen = Hooks(), []

    @hooks.on("post_tool_use", owns_output=True)
    def after(ctx: HookContext) -> Any:
        seen.append(ctx.result)
        return [UpdatedOutput("replaced"), AdditionalContext("c")]

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        assert (await called(captured, {"amount": 1}, asynchronous)).content == "replaced"
    assert seen == ["sent 1 for nobody"]


async def test_a_tool_node_runs_the_hooks_of_undecorated_tools() -> None:
    pytest.importorskip("langgraph")
    from langgraph.prebuilt import ToolNode

    from agenttool_otel.integrations.langchain.agents import ToolNodeGuard

    hooks = Hooks()
    hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, "amount": 3}), "pre_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        guard = ToolNodeGuard(captured.governor)
        node = ToolNode([make()], wrap_tool_call=guard, awrap_tool_call=guard.acall)
        request = {
            "id": "c1",
            "name": "transfer",
            "args": {"amount": 9, "tenant": "t"},
            "type": "tool_call",
        }
        state: Any = {"messages": [AIMessage("", tool_calls=[request])]}
        from langgraph.graph import END, START, MessagesState, StateGraph

        graph = StateGraph(MessagesState)
        graph.add_node("tools", node)
        graph.add_edge(START, "tools")
        graph.add_edge("tools", END)
        app = graph.compile()
        assert app.invoke(state)["messages"][-1].content == "sent 3 for t"
        assert (await app.ainvoke(state))["messages"][-1].content == "sent 3 for t"


def test_an_interrupt_raised_by_a_hook_pauses_the_graph() -> None:
    pytest.importorskip("langgraph")
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode
    from langgraph.types import Command, interrupt

    hooks, ran = Hooks(), []

    @hooks.on("pre_tool_use")
    def ask(ctx: HookContext) -> Any:
        return (
            None if interrupt({"sure": ctx.arguments}) == "yes" else PermissionResult("deny", "no")
        )

    @tool
    def act(x: int) -> str:
        """Act."""
        ran.append(x)
        return "done"

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        graph = StateGraph(MessagesState)
        graph.add_node("tools", ToolNode([captured.governor.govern(act)]))
        graph.add_edge(START, "tools")
        graph.add_edge("tools", END)
        app = graph.compile(checkpointer=InMemorySaver())
        for thread, answer, runs in (("1", "yes", [1]), ("2", "no", [])):
            ran.clear()
            config: Any = {"configurable": {"thread_id": thread}}
            call = {"id": "c1", "name": "act", "args": {"x": 1}, "type": "tool_call"}
            state: Any = {"messages": [AIMessage("", tool_calls=[call])]}
            assert app.invoke(state, config)["__interrupt__"][0].value == {"sure": {"x": 1}}
            assert ran == []
            app.invoke(Command(resume=answer), config)
            assert ran == runs
