"""The stock policy lets no agent change the settings in which its hooks stand, unasked."""

from __future__ import annotations

import pytest
from agent_rules import BLOCKED, outcome
from agents_served import DIRECTORY, Hooks, recorded

from agenttool_otel.coding_agents.dialects import AGENTS, dialect_of

FILES = [
    place
    for agent in AGENTS
    for settings in (dialect_of(agent).settings,)
    for place in (f"{DIRECTORY}/{settings.project}", settings.user)
]
COMMANDS = ["echo x > {}", "rm -f {}", "cp x {}", "sed -i s/a/b/ {}", "mv {} y", "ln -sf x {}"]


@pytest.mark.parametrize("file", FILES)
def test_a_settings_file_is_not_written(hooks: Hooks, file: str) -> None:
    payload = recorded("qwen", "PreToolUse-write-file")
    arguments = {"file_path": file, "content": "{}"}
    output = hooks.fire(
        "qwen", "PreToolUse", payload | {"tool_input": arguments, "tool_use_id": file}
    )
    assert outcome("qwen", *output) == BLOCKED


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("agent", AGENTS)
def test_no_command_changes_settings(hooks: Hooks, agent: str, command: str) -> None:
    line = command.format(dialect_of(agent).settings.project)
    payload = recorded("codex", "PreToolUse-bash-ls") | {"tool_input": {"command": line}}
    output = hooks.fire("codex", "PreToolUse", payload | {"tool_use_id": f"{agent} {line}"})
    assert outcome("codex", *output) == BLOCKED


def test_nor_does_a_patch(hooks: Hooks) -> None:
    patch = "*** Begin Patch\n*** Update File: .codex/hooks.json\n@@\n-a\n+b\n*** End Patch"
    payload = recorded("codex", "PreToolUse-apply-patch") | {"tool_input": {"command": patch}}
    output = hooks.fire("codex", "PreToolUse", payload | {"tool_use_id": "call_hooks"})
    assert outcome("codex", *output) == BLOCKED
    assert "place" in output.stderr
