"""The door of the OpenAI Agents SDK, with scripted models."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed: tools/frameworks.py")

from agents import Agent, Runner, RunState, WebSearchTool, function_tool
from agents_driver import AgentsDriver, agent_of, output_of, tool_call

from agenttool_otel import ApprovalAnswer, ConfigurationError
from agenttool_otel.integrations.coverage import require_governed, unseen_behind
from agenttool_otel.integrations.openai_agents import govern_agent, is_governed
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture
from agenttool_otel.testing.doors import DOOR_CHECKS

RAN: list[str] = []


@function_tool
def look_up(word: str, times: int = 1) -> str:
    """Look a word up."""
    RAN.append(word)
    return f"found {word}"


@function_tool
def fail(word: str) -> str:
    """Fail."""
    raise ValueError("no such word")


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def governed(captured: Capture, tool: Any = look_up, **arguments: Any) -> Agent[Any]:
    call = tool_call(tool.name, {"word": "tree", **arguments}, "call_1")
    facts = {"*": {"read_only": True}}
    return govern_agent(agent_of([tool], call), captured.governor, facts=facts)


def run(agent: Any, given: Any = "go") -> Any:
    return asyncio.run(Runner.run(agent, given))


def request(captured: Capture) -> Any:
    (found,) = captured.governor.approvals.store.list()
    return found


@pytest.mark.parametrize("check", DOOR_CHECKS, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(AgentsDriver())


@pytest.mark.parametrize("copied", [copy.copy, dataclasses.replace], ids=["copy", "replace"])
def test_a_copy_of_a_governed_tool_is_decided(copied: Any) -> None:
    call = tool_call("look_up", {"word": "tree", "times": 1}, "call_1")
    with capture(policy=StaticEngine("deny")) as captured:
        # the SDK binds its own objects anew in each that replace() makes
        agent = agent_of([copied(governed(captured).tools[0])], call)
        run(agent)
        assert captured.span.attributes["agenttool.invocation.status"] == "denied"
    assert not RAN


def test_an_approval_in_the_run_state_runs_the_call() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        agent = governed(captured, times=1)
        state = run(agent).to_state()
        state.approve(state.get_interruptions()[0])
        assert output_of(run(agent, state)) == "found tree"
        assert request(captured).answered_by == "openai_agents:run_state"
        ids = {span.attributes["agenttool.invocation.id"] for span in captured.spans}
    assert len(ids) == 1


def test_a_rejection_in_the_run_state_is_recorded() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        agent = governed(captured, times=1)
        state = run(agent).to_state()
        state.reject(state.get_interruptions()[0], rejection_message="not today")
        text = state.to_string()

        async def elsewhere() -> Any:
            return await Runner.run(agent, await RunState.from_string(agent, text))

        assert output_of(asyncio.run(elsewhere())) == "not today"
        answered = request(captured)
    assert (answered.status, answered.answer_reason, RAN) == ("rejected", "not today", [])


def test_a_rejection_on_the_page_wins_over_the_run_state() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        agent = governed(captured, times=1)
        state = run(agent).to_state()
        store = captured.governor.approvals.store
        store.answer(request(captured).request_id, ApprovalAnswer(False, answered_by="user:me"))
        state.approve(state.get_interruptions()[0])
        assert output_of(run(agent, state)).startswith("look_up:")
    assert RAN == []


def test_an_allowed_call_is_not_asked_about() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert output_of(run(governed(captured, times=1))) == "found tree"


def test_an_approver_is_asked_while_the_run_goes_on() -> None:
    approver = FixedApprover(ApprovalAnswer(True, answered_by="user:me"))
    with capture(policy=StaticEngine("ask"), approver=approver) as captured:
        assert output_of(run(governed(captured, times=1))) == "found tree"


def test_a_model_reads_why_a_call_is_denied() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        assert "permission_denied" in output_of(run(governed(captured, times=1)))
    assert RAN == []


def test_a_tools_error_is_recorded_and_answered_as_ever() -> None:
    plain = agent_of([fail], tool_call("fail", {"word": "tree"}, "call_1"))
    with capture(policy=StaticEngine("allow")) as captured:
        answer = output_of(run(governed(captured, fail)))
        assert captured.span.attributes["agenttool.invocation.status"] == "failed"
    assert answer == output_of(run(plain))


def test_what_nothing_governs_is_refused() -> None:
    agent = Agent("reader", tools=[WebSearchTool()])
    with (
        capture(policy=StaticEngine("allow")) as captured,
        pytest.raises(ConfigurationError, match="web_search"),
    ):
        govern_agent(agent, captured.governor)


def test_agents_that_hand_over_to_each_other_are_governed() -> None:
    first = Agent("first", tools=[look_up])
    second = Agent("second", tools=[look_up], handoffs=[first])
    first.handoffs.append(second)
    with capture(policy=StaticEngine("allow")) as captured:
        made = govern_agent(first, captured.governor)
    other = made.handoffs[0]
    assert other.handoffs == [made]
    assert other.tools[0] is not look_up


def test_the_pages_example_runs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "doors.md").read_text("utf-8")
    section = page.split("## OpenAI Agents SDK")[1].split("\n## ")[0]
    (block,) = re.findall(r"```py\n(.*?)```", section, re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    assert is_governed(names["agent"].tools[0])


def test_what_nothing_governs_is_listed() -> None:
    first = Agent("first", tools=[look_up, WebSearchTool()])
    second = Agent("second", tools=[fail], handoffs=[first])
    assert unseen_behind(second) == ["fail", "look_up", "the tool web_search"]
    with capture(policy=StaticEngine("allow")) as captured:
        require_governed(govern_agent(Agent("third", tools=[fail]), captured.governor))
