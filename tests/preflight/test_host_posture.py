"""What openboa's agents read: permissions.json with what waits, how shell and context are, and what
is safer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ResultRequired, agent_context
from agenttool_otel.testing import Capture, StaticEngine, capture, decision


def look(path: str) -> str:
    return path


def change(path: str) -> str:
    return path


ANSWERS = {"glob": decision("allow"), "change": decision("ask"), "elsewhere": decision("allow")}


def document(captured: Capture, folder: Path, **context: Any) -> dict[str, Any]:
    with agent_context(**context):
        files = captured.governor.write_posture(folder)
    assert "permissions.json" in {file.name for file in files}
    found: dict[str, Any] = json.loads((folder / "permissions.json").read_text(encoding="utf-8"))
    return found


def test_what_waits_is_told_with_the_events_that_block(tmp_path: Path) -> None:
    with capture(policy=StaticEngine(ANSWERS)) as captured:
        asking = captured.governor.govern(change).tool
        custom = captured.governor.govern(look, name="elsewhere", ownership="custom")
        with agent_context(session_id="s"):
            paused = asking.invoke(path="x")
            with pytest.raises(ResultRequired) as required:
                custom("y")
        told = document(captured, tmp_path, session_id="s")
        assert [entry["kind"] for entry in told["requiresAction"]] == [
            "tool_confirmation",
            "custom_tool_result",
        ]
        assert told["blockingEventIds"][1] == required.value.invocation_id
        assert paused.requires_action is not None
        assert paused.requires_action["request_id"] == told["blockingEventIds"][0]
        assert document(captured, tmp_path, session_id="other")["requiresAction"] == []


@pytest.mark.parametrize(
    ("shell", "state", "step"),
    [
        ({"busy": True, "busyPlan": {"wait": "shell_wait"}}, "busy", "shell_wait"),
        ({"open": False, "recoveryPlan": {"first": "shell_open"}}, "missing", "shell_restart"),
        ({"open": True}, "ready", None),
    ],
)
def test_the_hosts_shell_stands_in_the_posture(
    tmp_path: Path, shell: Any, state: str, step: str | None
) -> None:
    with capture(policy=StaticEngine(ANSWERS)) as captured:
        told = document(
            captured, tmp_path, host={"shell": shell, "contextPressure": {"level": "high"}}
        )
        assert told["shellMutationPosture"]["state"] == state
        assert told.get("nextShellStep") == step
        assert told["contextPressure"] == {"level": "high"}
        assert {name: told[name] for name in shell if name.endswith("Plan")} == {
            name: plan for name, plan in shell.items() if name.endswith("Plan")
        }


def test_the_menu_has_a_few_tools_that_only_read(tmp_path: Path) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        made = [captured.governor.govern(look, name=f"look_{n}", read_only=True) for n in range(9)]
        made.append(captured.governor.govern(look, name="glob", read_only=True))
        made.append(captured.governor.govern(change))
        menu = document(captured, tmp_path)["shellReadFirstAlternatives"]
        assert menu[0]["tool"] == "glob"
        assert len(menu) == 5
        assert "change" not in {entry["tool"] for entry in menu}


@pytest.mark.parametrize(
    ("evaluation", "step"),
    [
        ({"status": "fail", "trend": "stable", "next_step": "try again"}, "outcome_history"),
        ({"status": "fail", "trend": "improving", "next_step": "try again"}, "try again"),
        ({"status": "pass", "trend": "stable"}, None),
    ],
)
def test_the_next_outcome_step_follows_the_trend(
    tmp_path: Path, evaluation: Any, step: str | None
) -> None:
    with capture(policy=StaticEngine(ANSWERS)) as captured:
        assert document(captured, tmp_path, evaluation=evaluation).get("nextOutcomeStep") == step
