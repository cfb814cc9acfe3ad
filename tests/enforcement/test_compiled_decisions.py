"""Decisions on commands that can be held are made by the compiled form of the policy.

Its machine stops after 25,000 instructions, and the interpreter then takes five times as long.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import agent_context
from agenttool_otel.errors import GovernedOutcome
from agenttool_otel.policy.engines.rvm import Machine
from agenttool_otel.testing import capture

LINES = (
    "ls -la",
    "python3 script.py",
    "cp a b && rm -r build",
    "curl https://example.com/x -o x",
    "make test | tee out.txt; git status",
)


def shell(command: str) -> str:
    """Do nothing."""
    return ""


@pytest.mark.parametrize("preset", ["balanced", "coding", "strict", "plan"])
@pytest.mark.parametrize("runs_commands", [True, False])
def test_no_command_leaves_the_compiled_form(
    preset: str, runs_commands: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[str] = []
    evaluate = Machine.evaluate

    def counted(machine: Machine, entry_point: str, text: str) -> Any:
        value = evaluate(machine, entry_point, text)
        if value is None:
            left.append(text)
        return value

    place = str(tmp_path)
    with capture(policy_preset=preset) as captured:
        tool = captured.governor.govern(
            shell,
            tool_kind="shell_command",
            access_kinds=["code_execution"],
            command_args=["command"],
            runs_commands=runs_commands,
        )
        with (
            agent_context(actor="agent:a", session_id="s", roots=[place], cwd=place),
            suppress(GovernedOutcome),
        ):
            tool("true")  # the bundle checks itself when it is loaded
        monkeypatch.setattr(Machine, "evaluate", counted)
        for line in LINES:
            with (
                agent_context(actor="agent:a", session_id="s", roots=[place], cwd=place),
                suppress(GovernedOutcome),
            ):
                tool(line)
    assert left == []
