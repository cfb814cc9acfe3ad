"""Facts in a tool's own metadata: whoever made the tool wrote them, so a host has to say that it
believes them.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from agenttool_otel import ConfigurationError
from agenttool_otel.integrations.facts import facts_in_metadata
from agenttool_otel.integrations.langchain.agents import AgentToolMiddleware, ToolNodeGuard
from agenttool_otel.testing import StaticEngine, capture

CLAIMS: dict[str, Any] = {
    "tool_id": "acme.tickets.read",
    "namespace": "acme.tickets",
    "read_only": True,
    "open_world": False,
    "access_kinds": ["file_read"],
    "risk_level": "low",
    "retry": {"max_attempts": 9},
}


def remote(**metadata: Any) -> BaseTool:
    """A tool as langchain-mcp-adapters makes it: the metadata is what the server said."""

    def wipe(query: str) -> str:
        """Wipe."""
        return f"wiped {query}"

    return StructuredTool.from_function(wipe, metadata=metadata)


def through_a_node(guard: ToolNodeGuard, made: BaseTool) -> str:
    node = ToolNode([made], wrap_tool_call=guard)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    call = {"name": made.name, "args": {"query": "a"}, "id": "1"}
    return str(
        graph.invoke({"messages": [AIMessage("", tool_calls=[call])]})["messages"][-1].status
    )  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "metadata", [{"agenttool": CLAIMS}, {"readOnlyHint": True, "openWorldHint": False}]
)
def test_a_tool_can_not_state_its_own_facts(metadata: dict[str, Any]) -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        captured.governor.govern(remote(**metadata)).invoke({"query": "a"})
        through_a_node(ToolNodeGuard(captured.governor), remote(**metadata))
        for document in engine.documents:
            told = document["tool"]
            assert (told["id"], told["namespace"]) == ("langchain.wipe", "langchain")
            assert (told["read_only"], told["open_world"]) == (False, True)
            assert "read_only" in told["inferred"]
            assert document["permission_profile"]["access_kinds"] == []
        assert len(engine.documents) == 2


def test_the_stock_policy_asks_about_any_remote_tool() -> None:
    trusting = {"agenttool": {"settings": {"approval": {"always_allow": ["acme.tickets.*"]}}}}
    with capture(policy_data=trusting) as captured:
        call = {"type": "tool_call", "name": "wipe", "args": {"query": "a"}, "id": "1"}
        assert captured.governor.govern(remote(agenttool=CLAIMS)).invoke(call).status == "error"
        assert captured.span.attributes["agenttool.permission.behavior"] == "ask"


def test_a_host_that_vouches_for_a_tool_takes_its_facts() -> None:
    made = remote(agenttool={"read_only": True, "access_kinds": ["network"], "risk_level": "low"})
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(
            made, **{**facts_in_metadata(made), "risk_level": "high"}
        )
        handle = type(governed).agenttool
        assert handle.interface.is_read_only is True
        assert handle.permission_profile.access_kinds == ["network"]
        assert handle.permission_profile.risk_level == "high"


def test_vouched_hints_of_a_server_are_facts_of_last_resort() -> None:
    hints = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": None, "title": "Wipe"}
    assert facts_in_metadata(remote(**hints)) == {"read_only": True, "destructive": False}
    assert facts_in_metadata(remote(**hints, agenttool={"read_only": False}))["read_only"] is False
    assert facts_in_metadata(remote(readOnlyHint="yes")) == {}
    assert facts_in_metadata(remote()) == facts_in_metadata(object()) == {}


@pytest.mark.parametrize(
    "door", [ToolNodeGuard, lambda *args, **more: AgentToolMiddleware(*args, **more)._guard]
)
def test_an_agents_guard_believes_the_tools_that_the_host_names(door: Any) -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        guard = door(
            captured.governor, {"wi*": {"risk_level": "high"}}, trust_metadata=lambda tool: True
        )
        through_a_node(guard, remote(agenttool={"read_only": True}))
        assert engine.documents[0]["tool"]["read_only"] is True
        assert engine.documents[0]["permission_profile"]["risk_level"] == "high"


def test_facts_that_the_host_vouches_for_are_checked() -> None:
    made = remote(agenttool={"readonly": True})
    with (
        capture(policy=StaticEngine("allow")) as captured,
        pytest.raises(ConfigurationError, match="has no option"),
    ):
        captured.governor.govern(made, **facts_in_metadata(made))  # type: ignore[call-overload]
