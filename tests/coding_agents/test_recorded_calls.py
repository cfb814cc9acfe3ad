"""Each recorded payload is decided by the stock policy as its call deserves, in the agent's words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_rules import ASKED, BLOCKED, RAN, outcome, requested
from agents_served import Hooks, hooks_served, payloads, recorded

from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.coding_agents.dialects import dialect_of
from agenttool_otel.names import ApprovalStatus, HookPart
from agenttool_otel.testing import decision
from function_engine import FunctionEngine

REQUESTS = payloads(HookPart.PERMIT)
_NEED_AN_ANSWER = ("rm-r", "write", "edit", "replace", "apply-patch", "tiny-note")
_DENIED = ("webfetch", "web-fetch")  # of 127.0.0.1


def expected(agent: str, name: str) -> str:
    if any(word in name for word in _DENIED):
        return BLOCKED
    if not any(word in name for word in _NEED_AN_ANSWER):
        return RAN
    # only there, and in this mode, is the agent known to ask
    return ASKED if agent == "claude-code" and "mode-" not in name else BLOCKED


@pytest.mark.parametrize(("agent", "event", "name"), payloads(HookPart.DECIDE))
def test_a_recorded_call_is_decided(hooks: Hooks, agent: str, event: str, name: str) -> None:
    output = hooks.fire(agent, event, recorded(agent, name))
    assert outcome(agent, *output) == expected(agent, name)


@pytest.mark.parametrize("part", [HookPart.COMPLETE, HookPart.END])
def test_the_events_after_a_call_are_silent(hooks: Hooks, part: HookPart) -> None:
    for agent, event, name in payloads(part):
        assert hooks.fire(agent, event, recorded(agent, name)) == (0, "", ""), (agent, name)


def test_a_call_and_its_result_are_one_span(hooks: Hooks) -> None:
    hooks.captured.clear()
    for event in ("PreToolUse", "PostToolUse"):
        payload = {**recorded("claude-code", f"{event}-bash-ls"), "tool_use_id": "toolu_span"}
        hooks.fire("claude-code", event, payload)
    attributes = [dict(span.attributes or {}) for span in hooks.captured.spans]
    assert [each["gen_ai.tool.call.id"] for each in attributes] == ["toolu_span"] * len(attributes)
    assert attributes[-1]["gen_ai.tool.name"] == "Bash"


def test_a_failed_call_is_recorded_as_failed(hooks: Hooks) -> None:
    hooks.captured.clear()
    for event in ("PreToolUse", "PostToolUseFailure"):
        payload = {**recorded("claude-code", f"{event}-bash-exit-3"), "tool_use_id": "toolu_fails"}
        hooks.fire("claude-code", event, payload)
    assert any("error.type" in (span.attributes or {}) for span in hooks.captured.spans)


def test_a_yes_in_the_agents_dialog_is_an_answer(hooks: Hooks) -> None:
    here = {"tool_use_id": "toolu_yes", "session_id": "dialog"}
    payload = recorded("claude-code", "PreToolUse-bash-rm-rf-build") | here
    hooks.fire("claude-code", "PreToolUse", payload)
    done = {**payload, "hook_event_name": "PostToolUse", "tool_response": {"stdout": ""}}
    hooks.fire("claude-code", "PostToolUse", done)
    requests = hooks.governor.approvals.store.list()
    asked = [one for one in requests if one.session_id == "dialog"]
    assert [(one.answered_by, one.outcome) for one in asked] == [("user:dialog", "succeeded")]


def test_an_approved_call_runs_when_it_is_made_again(hooks: Hooks) -> None:
    payload = recorded("codex", "PreToolUse-bash-rm-r-build") | {"session_id": "approved"}
    first = hooks.fire("codex", "PreToolUse", {**payload, "tool_use_id": "call_1"})
    store = hooks.governor.approvals.store
    asked = [one for one in store.list() if one.request_id in first.stderr]
    store.answer(asked[0].request_id, ApprovalAnswer(approved=True, answered_by="user:ada"))
    again = [hooks.fire("codex", "PreToolUse", {**payload, "tool_use_id": "call_2"})]
    again.append(hooks.fire("codex", "PreToolUse", {**payload, "tool_use_id": "call_3"}))
    assert [outcome("codex", *output) for output in again] == [RAN, BLOCKED]


def test_a_changed_directory_does_not_widen_the_root(hooks: Hooks) -> None:
    payload = recorded("codex", "PreToolUse-bash-ls") | {"session_id": "moves"}
    hooks.fire("codex", "PreToolUse", payload | {"tool_use_id": "call_1"})
    listing = {"tool_input": {"command": "cat notes.txt"}, "cwd": "/srv", "tool_use_id": "call_2"}
    output = hooks.fire("codex", "PreToolUse", payload | listing)
    assert outcome("codex", *output) == BLOCKED


def test_two_agents_share_no_call(hooks: Hooks) -> None:
    same = {"session_id": "shared", "tool_use_id": "same"}
    codex = recorded("codex", "PreToolUse-bash-ls") | same
    claude = recorded("claude-code", "PreToolUse-bash-rm-rf-build") | same
    hooks.fire("codex", "PreToolUse", codex)
    output = hooks.fire("claude-code", "PreToolUse", claude)
    assert json.loads(output.stdout)["hookSpecificOutput"]["permissionDecision"] == "ask"


def test_a_shell_that_is_open_gets_no_input(hooks: Hooks) -> None:
    typed = {"tool_name": "write_stdin", "tool_input": {"session_id": 1, "chars": "rm -r build"}}
    payload = recorded("codex", "PreToolUse-bash-ls") | typed | {"tool_use_id": "call_typed"}
    assert outcome("codex", *hooks.fire("codex", "PreToolUse", payload)) == BLOCKED


@pytest.mark.parametrize(
    "command", ["bash", "env sh", "cd x && zsh", "python3 -i x.py", "bash -li"]
)
def test_no_shell_is_left_open_in_codex(hooks: Hooks, command: str) -> None:
    payload = recorded("codex", "PreToolUse-bash-ls") | {"tool_input": {"command": command}}
    output = hooks.fire("codex", "PreToolUse", payload | {"tool_use_id": f"call_{command}"})
    assert outcome("codex", *output) == BLOCKED
    # nor can a person permit it
    assert "asked" not in output.stderr


def test_a_program_with_its_commands_is_asked_about(hooks: Hooks) -> None:
    payload = recorded("codex", "PreToolUse-bash-ls") | {"tool_use_id": "call_script"}
    output = hooks.fire(
        "codex", "PreToolUse", payload | {"tool_input": {"command": "python3 x.py"}}
    )
    assert "asked" in output.stderr


# --- an agent that is about to ask a person -------------------------------------------------------


@pytest.mark.parametrize(("agent", "event", "name"), payloads(HookPart.PERMIT))
def test_a_request_for_an_undecided_call_is_decided(
    hooks: Hooks, agent: str, event: str, name: str
) -> None:
    payload = recorded(agent, name) | {"session_id": f"undecided {name}"}
    output = hooks.fire(agent, event, payload)
    # Codex asks in its terminal alone, where nobody can see that we wait for an answer
    expected = {"claude-code": ASKED, "codex": BLOCKED}[agent]
    assert requested(agent, *output) == expected


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_request_for_a_denied_call_is_denied(hooks: Hooks, agent: str) -> None:
    payload = request_of(agent, "rm -rf /", "denied")
    assert requested(agent, *hooks.fire(agent, "PermissionRequest", payload)) == BLOCKED


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_the_agents_own_question_stays(hooks: Hooks, agent: str) -> None:
    request = request_of(agent, "ls", "permitted")
    before = {**request, "hook_event_name": "PreToolUse", "tool_use_id": "call_1"}
    assert hooks.fire(agent, "PreToolUse", before) == (0, "", "")
    assert requested(agent, *hooks.fire(agent, "PermissionRequest", request)) == ASKED


def request_of(agent: str, command: str, session: str) -> dict[str, Any]:
    _, event, name = next(each for each in REQUESTS if each[0] == agent)
    payload = recorded(agent, name)
    return {
        **payload,
        "hook_event_name": event,
        "session_id": f"{session} {agent}",
        "tool_input": {"command": command},
    }


def approved_call(hooks: Hooks, session: str) -> dict[str, Any]:
    """Return Codex' request for a call that a person has approved on the page."""
    request = request_of("codex", "rm -r build", session)
    before = {**request, "hook_event_name": "PreToolUse"}
    first = hooks.fire("codex", "PreToolUse", before | {"tool_use_id": "call_1"})
    store = hooks.governor.approvals.store
    asked = next(each for each in store.list() if each.request_id in first.stderr)
    store.answer(asked.request_id, ApprovalAnswer(approved=True, answered_by="user:ada"))
    again = hooks.fire("codex", "PreToolUse", before | {"tool_use_id": "call_2"})
    assert again == (0, "", "")
    return request


def test_nobody_is_asked_twice(hooks: Hooks) -> None:
    request = approved_call(hooks, "twice")
    answers = [hooks.fire("codex", "PermissionRequest", request) for _ in range(2)]
    # an answer counts once
    assert [requested("codex", *output) for output in answers] == [RAN, ASKED]


def test_a_request_for_more_is_a_question_of_its_own(hooks: Hooks) -> None:
    request = approved_call(hooks, "more")
    request["tool_input"] |= {"description": "outside of the sandbox"}
    output = hooks.fire("codex", "PermissionRequest", request)
    assert requested("codex", *output) == ASKED


# --- the end of a session -------------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "event", "name"), payloads(HookPart.END))
def test_a_question_ends_with_its_session(hooks: Hooks, agent: str, event: str, name: str) -> None:
    deciding = dialect_of(agent).deciding
    before = next(
        name
        for found, _, name in payloads(HookPart.DECIDE)
        if found == agent and "-rm-r" in name and "mode-" not in name
    )
    session = {"session_id": f"ends {agent}"}
    hooks.fire(agent, deciding, recorded(agent, before) | session)
    hooks.fire(agent, event, recorded(agent, name) | session)
    store = hooks.governor.approvals.store
    asked = [each for each in store.list() if each.session_id == session["session_id"]]
    assert [each.status for each in asked] == [ApprovalStatus.CANCELED]


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-code", "PreToolUse-bash-ls-build-subagent"),
        ("codex", "PreToolUse-bash-ls-a-subagent"),
    ],
)
def test_a_sub_agent_is_a_child_of_its_agent(tmp_path: Path, agent: str, name: str) -> None:
    seen = []

    def decide(document: Any) -> Any:
        seen.append(document["actor"])
        return decision("allow")

    tmp_path.chmod(0o700)
    payload = recorded(agent, name)
    with hooks_served(tmp_path, policy=FunctionEngine(decide)) as served:
        served.fire(agent, "PreToolUse", payload)
    (actor,) = seen
    assert actor["id"] == f"agent:{agent}/{payload['agent_type']}"
    assert [each["id"] for each in actor["chain"]] == [f"agent:{agent}"]
