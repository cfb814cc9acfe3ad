"""An entry of facts that does not fit a tool refuses that tool, by name, and no other."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.prebuilt import ToolNode
from scripted_model import Scripted

from agenttool_otel import Governor, agent_context
from agenttool_otel.integrations.facts import read_facts
from agenttool_otel.integrations.instrumentor import AgentToolInstrumentor
from agenttool_otel.integrations.langchain.agents import AgentToolMiddleware, ToolNodeGuard
from agenttool_otel.testing import capture

GOOD = {"read_only": True, "access_kinds": []}
BAD: dict[str, Any] = {
    "a missing argument": {**GOOD, "path_args": ["path"]},
    "a misspelt keyword": {**GOOD, "read_onli": True},
    "a wrong type": {**GOOD, "access_kinds": "file_read"},
    "an unknown word": {**GOOD, "risk_level": "lo"},
    "no object": ["read_only"],
    "a name with a line break": {**GOOD, "name": "a\nb"},
}
CASES = [
    ({"look_*": GOOD, pattern: facts}, title)
    for title, facts in BAD.items()
    for pattern in ("scan_*", "scan_all")
]
IDS = [f"{title} by {list(facts)[1]}" for facts, title in CASES]


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return "found"


@tool
def scan_all(words: list[str]) -> str:
    """Scan for words."""
    raise AssertionError("ran")


SCRIPT = [("scan_all", {"words": ["a"]}), ("look_up", {"word": "a"})]


def answers(messages: list[Any]) -> list[tuple[str | None, str]]:
    return [
        (message.name, message.status) for message in messages if isinstance(message, ToolMessage)
    ]


@pytest.mark.parametrize("facts", [facts for facts, _ in CASES], ids=IDS)
def test_facts_that_fit_one_tool_not_refuse_it_alone(
    facts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        capture() as captured,
        agent_context(actor="agent:a", session_id="s"),
        caplog.at_level(logging.ERROR),
    ):
        agent = create_agent(
            Scripted(calls=SCRIPT),
            [look_up, scan_all],
            middleware=[AgentToolMiddleware(captured.governor, facts)],
        )
        state = agent.invoke({"messages": [HumanMessage("go")]})
        assert answers(state["messages"]) == [("scan_all", "error"), ("look_up", "success")]
        assert [span.attributes.get("error.type") for span in captured.spans] == [
            "blocked_tool",
            None,
        ]
    assert "'scan_all' can't be governed" in caplog.text
    assert "look_up" not in caplog.text


@pytest.mark.parametrize("facts", [facts for facts, _ in CASES], ids=IDS)
def test_a_surface_shows_the_tools_that_fit(facts: Any) -> None:
    with capture() as captured, agent_context(actor="agent:a", session_id="s"):
        surface = captured.governor.surface()
        middleware = AgentToolMiddleware(captured.governor, facts, surface=surface)
        agent = create_agent(Scripted(calls=SCRIPT), [look_up, scan_all], middleware=[middleware])
        state = agent.invoke({"messages": [HumanMessage("go")]})
        assert answers(state["messages"]) == [("scan_all", "error"), ("look_up", "success")]
        assert "look_up" in surface.refresh().names
        assert "scan_all" not in surface.refresh().names


def test_a_tool_node_refuses_by_name_too() -> None:
    facts: Any = {"*": {**GOOD, "path_args": ["path"]}}
    with capture() as captured:
        guard = ToolNodeGuard(captured.governor, facts)
        handle = guard._handle(scan_all)
        assert "'scan_all' can't be governed: path_args" in handle.spec.refusal
        assert ToolNode([scan_all], wrap_tool_call=guard)


def test_an_unknown_tool_stays_unknown_under_bad_facts() -> None:
    facts: Any = {"*": ["read_only"]}
    with capture() as captured, agent_context(actor="agent:a", session_id="s"):
        script = [("nothing\nof \u0430 kind", {})]
        agent = create_agent(
            Scripted(calls=script),
            [look_up],
            middleware=[AgentToolMiddleware(captured.governor, facts)],
        )
        agent.invoke({"messages": [HumanMessage("go")]})
        assert [span.attributes["error.type"] for span in captured.spans] == ["unknown_tool"]


def test_the_fitting_tools_of_a_file_are_governed(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "facts.json"
    path.write_text('{"look_*": {"read_only": true, "access_kinds": []}, "scan_*": ["read_only"]}')
    instrumentor = AgentToolInstrumentor()
    with capture(), agent_context(actor="agent:a", session_id="s"):
        instrumentor.instrument(facts=read_facts(str(path)))
        try:
            one, other = look_up.model_copy(), scan_all.model_copy()
            assert one.invoke({"word": "a"}) == "found"
            with pytest.raises(Exception, match="scan_all"):
                other.invoke({"words": ["a"]})
        finally:
            instrumentor.uninstrument()
    assert f"'scan_*' in {path}" in caplog.text


def test_a_refused_tool_is_in_no_catalog() -> None:
    governor = Governor()
    facts: Any = {"*": {"path_args": ["path"]}}
    guard = ToolNodeGuard(governor, facts, surface=governor.surface())
    assert guard.surface is not None
    guard.surface.declare(scan_all)
    assert governor.catalog.resolve("scan_all") is None
