"""Dialects are data of a strict form, and fit what was recorded."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from agent_rules import REWRITTEN, outcome
from agents_served import DIRECTORY, payloads, recorded

from agenttool_otel import ConfigurationError
from agenttool_otel.coding_agents.answers import SILENCE, asked, changed, denied
from agenttool_otel.coding_agents.dialects import AGENTS, dialect_of, read_dialect
from agenttool_otel.coding_agents.payloads import HookCall, read_payload
from agenttool_otel.errors import PayloadInvalid
from agenttool_otel.names import HookPart
from agenttool_otel.values.tables import load_table

DATA: dict[str, Any] = load_table("agenttool_otel.coding_agents", "data/codex.toml")
EDITS: dict[str, Any] = {
    "an unknown member": lambda data: data.update(more=1),
    "an unknown part": lambda data: data["events"].update(PreToolUse="decline"),
    "no event that decides": lambda data: data["events"].pop("PreToolUse"),
    "two events that decide": lambda data: data["events"].update(PostToolUse="decide"),
    "a block without a reason": lambda data: data["answers"]["deny"].update(stderr=""),
    "a block with an output": lambda data: data["answers"]["deny"].update(stdout={}),
    "a misspelt field": lambda data: data["fields"].update(tol=["/tool_name"]),
    "no settings": lambda data: data.pop("settings"),
    "a time-out that is a text": lambda data: data["settings"].update(timeout="60 s"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_another_form_is_refused(edit: str) -> None:
    data = copy.deepcopy(DATA)
    EDITS[edit](data)
    with pytest.raises(ConfigurationError):
        read_dialect(data)


def test_an_agent_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="claude-code, codex"):
        dialect_of("cursor")


@pytest.mark.parametrize("agent", AGENTS)
def test_argument_types_and_facts_name_arguments(agent: str) -> None:
    for name, known in dialect_of(agent).tools.items():
        properties = known.schema_of_arguments["properties"]
        named = [*known.required, known.patch] if known.patch else [*known.required]
        for fact in ("path_args", "command_args", "url_args", "inert_args"):
            named += known.facts.get(fact, [])
        assert set(named) <= properties.keys(), name


@pytest.mark.parametrize(("agent", "event", "name"), payloads(HookPart.DECIDE))
def test_a_recorded_payload_is_read(agent: str, event: str, name: str) -> None:
    dialect = dialect_of(agent)
    call = read_payload(dialect, event, recorded(agent, name))
    assert call.cwd == DIRECTORY
    assert call.call_id or not dialect.fields.call
    assert call.tool in dialect.tools or "note" in call.tool


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("field", ["session", "cwd", "tool", "arguments"])
def test_a_payload_without_a_field_is_refused(agent: str, field: str) -> None:
    dialect = dialect_of(agent)
    name = next(name for found, _, name in payloads(HookPart.DECIDE) if found == agent)
    payload = recorded(agent, name)
    for pointer in getattr(dialect.fields, field):
        *parents, last = pointer[1:].split("/")
        place = payload
        for parent in parents:
            place = place.get(parent, {})
        place.pop(last, None)
    with pytest.raises(PayloadInvalid):
        read_payload(dialect, dialect.deciding, payload)


def test_a_payload_of_another_event_is_refused() -> None:
    payload = recorded("codex", "PostToolUse-bash-ls")
    with pytest.raises(PayloadInvalid, match="another event"):
        read_payload(dialect_of("codex"), "PreToolUse", payload)


def test_an_event_that_is_not_known_is_refused() -> None:
    with pytest.raises(PayloadInvalid):
        read_payload(dialect_of("codex"), "Stop", {"hook_event_name": "Stop"})


def call_of(agent: str, arguments: dict[str, Any], mode: str = "default") -> HookCall:
    dialect = dialect_of(agent)
    return HookCall(
        HookPart.DECIDE,
        dialect.deciding,
        "s",
        tool="Bash",
        arguments=arguments,
        decided=arguments,
        mode=mode,
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_a_denial_always_has_a_reason(agent: str) -> None:
    output = denied(dialect_of(agent), call_of(agent, {}), " \n ")
    assert "not permitted" in output.stdout + output.stderr


@pytest.mark.parametrize("agent", AGENTS)
def test_a_reason_is_one_line_of_bounded_length(agent: str) -> None:
    output = denied(dialect_of(agent), call_of(agent, {}), 'a\n"b"' * 5_000)
    assert "\n" not in output.stdout + output.stderr
    assert len(output.stdout + output.stderr) < 5_000


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions", "auto", "dontAsk", ""])
def test_an_agent_asks_only_in_modes_that_were_tried(mode: str) -> None:
    assert asked(dialect_of("claude-code"), call_of("claude-code", {}, mode), "why") is None


@pytest.mark.parametrize("agent", ["codex", "gemini", "qwen", "opencode"])
def test_no_other_agent_asks(agent: str) -> None:
    assert asked(dialect_of(agent), call_of(agent, {}), "why") is None


@pytest.mark.parametrize("agent", ["codex", "qwen"])
def test_changed_arguments_need_an_agent_that_takes_them(agent: str) -> None:
    call = call_of(agent, {"command": "rm x"})
    assert changed(dialect_of(agent), call, {"command": "ls"}) is None


def test_changed_arguments_are_handed_over() -> None:
    call = call_of("claude-code", {"command": "rm x"})
    output = changed(dialect_of("claude-code"), call, {"command": "ls"})
    assert output is not None
    assert '"updatedInput": {"command": "ls"}' in output.stdout
    assert output != SILENCE


def test_no_argument_is_taken_away_where_they_are_merged() -> None:
    for agent in ("gemini", "opencode"):
        call = call_of(agent, {"command": "rm x", "is_background": True})
        assert changed(dialect_of(agent), call, {"command": "ls"}) is None


def test_codex_takes_changes_only_where_it_asks_nobody() -> None:
    # the answer has to approve the call
    call = call_of("codex", {"command": "rm x"}, "bypassPermissions")
    output = changed(dialect_of("codex"), call, {"command": "ls"})
    assert outcome("codex", *(output or SILENCE)) == REWRITTEN
