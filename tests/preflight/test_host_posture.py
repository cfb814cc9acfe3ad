"""What openboa's agents read, from the permission tools and from files: what waits, how shell and
context are, and what is safer.
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


NAMES = json.loads(Path(__file__).with_name("openboa_names.json").read_text(encoding="utf-8"))
"""The names on openboa's page "Agent Tools"; ``tools/openboa_names.py`` compares them with it."""

OTHERS = {"toolArgs", "totalLineCount", "selectedLineCount"}
"""Names on the page that are no field of the two tools: an argument, and fields of ``read``."""

ASKING = {name: decision("allow") for name in ("permissions_check", "permissions_describe")}
UNSAFE = {"status": "fail", "trend": "improving", "next_step": "outcome_read"}
BUSY = {"shell": {"busy": True, "currentCommand": "make"}, "contextPressure": {"level": "high"}}


def read_bash(command: str) -> str:
    raise AssertionError("nothing runs")


def openboa_tools(captured: Capture) -> list[Any]:
    """Govern the tools that openboa's page names, under its names."""
    reading = {"read_only": True, "destructive": False, "open_world": False}
    files = {**reading, "tool_kind": "file_operation", "access_kinds": ["file_read"]}
    govern = captured.governor.govern
    made: list[Any] = [
        govern(lambda: "", name=name, description=name, access_kinds=[], **reading)
        for name in ("shell_describe", "shell_read_last_output", "session_describe_context")
    ]
    made.append(govern(read_bash, name="bash", command_args=["command"], **reading))
    made.append(govern(look, name="read_file", **files))
    for name in ("shell_run", "shell_exec"):
        made.append(
            govern(
                read_bash,
                name=name,
                tool_kind="shell_command",
                command_args=["command"],
                access_kinds=["code_execution"],
            )
        )
    made.append(govern(change))
    return made


def seen(captured: Capture, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a permission tool as a model does."""
    [tool] = [
        tool.tool for tool in captured.governor.permission_tools() if tool.tool.spec.name == name
    ]
    found: dict[str, Any] = tool.invoke(arguments).value
    return found


@pytest.mark.covers(
    "openboa-describe-context-pressure",
    "openboa-describe-shell-posture",
    "openboa-posture-file-has-the-fields",
    "openboa-posture-page-has-the-fields",
)
def test_describe_returns_every_field_that_openboa_names(tmp_path: Path) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        held = openboa_tools(captured)
        with agent_context(host=BUSY, evaluation=UNSAFE):
            told = seen(captured, "permissions_describe")
            captured.governor.write_posture(tmp_path)
        assert held
        names = {*NAMES["permissions_describe"], "blockingEventIds"}
        assert names <= told.keys()
        file = json.loads((tmp_path / "permission-posture.json").read_text(encoding="utf-8"))
        assert file.keys() == told.keys()
        text = (tmp_path / "permission-posture.md").read_text(encoding="utf-8")
        assert "## Context pressure" in text
        assert "shell\\_wait" in text


@pytest.mark.covers(
    "openboa-check-outcome-evaluation",
    "openboa-check-next-outcome-step",
    "openboa-check-names-alternative",
    "openboa-check-shell-posture",
)
def test_check_returns_every_field_that_openboa_names() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        held = openboa_tools(captured)
        for name in ("shell_run", "shell_exec"):
            with agent_context(host=BUSY, evaluation=UNSAFE):
                told = seen(
                    captured,
                    "permissions_check",
                    tool=name,
                    arguments={"command": "cat notes.txt"},
                )
            assert set(NAMES["permissions_check"]) - OTHERS <= told.keys()
            assert told["outcomeEvaluation"] == UNSAFE
            assert told["shellMutationPosture"]["currentCommand"] == "make"
            assert told["contextPressure"] == {"level": "high"}
        assert held


def test_managed_tools_have_the_fields_of_openboas_definition(tmp_path: Path) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        held = openboa_tools(captured)
        captured.governor.write_posture(tmp_path)
        managed = json.loads((tmp_path / "managed-tools.json").read_text(encoding="utf-8"))["tools"]
        assert len(managed) == len(held)
        assert {*NAMES["definition"], "toolId"} == set(managed[0])


@pytest.mark.parametrize(
    ("shell", "command", "step"),
    [
        ({"busy": True}, "cat notes.txt", "call read_file instead"),
        ({"busy": True}, "make", "call shell_wait first: the shell is busy"),
        ({"open": False}, "make", "call shell_restart first: the shell is missing"),
        ({"open": True}, "make", "call it"),
    ],
)
@pytest.mark.covers("openboa-check-waits-for-the-shell", "openboa-check-reads-around-the-shell")
def test_an_unsettled_shell_comes_before_its_next_command(
    shell: Any, command: str, step: str
) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        held = openboa_tools(captured)
        with agent_context(host={"shell": shell}):
            told = seen(
                captured, "permissions_check", tool="shell_exec", arguments={"command": command}
            )
        assert held
        assert told["nextStep"].startswith(step)
        assert told["next_step"] == told["nextStep"]


def test_a_denied_command_does_not_wait_for_the_shell() -> None:
    with capture(policy=StaticEngine({**ASKING, "shell_run": decision("deny")})) as captured:
        held = openboa_tools(captured)
        with agent_context(host={"shell": {"busy": True}}):
            told = seen(
                captured, "permissions_check", tool="shell_run", arguments={"command": "make"}
            )
        assert held
        assert told["nextStep"] == "do not call it with these arguments"


def test_the_next_outcome_step_stands_beside_the_shells() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        held = openboa_tools(captured)
        with agent_context(host=BUSY, evaluation={**UNSAFE, "trend": "regressing"}):
            told = seen(
                captured, "permissions_check", tool="shell_run", arguments={"command": "make"}
            )
        assert held
        assert told["nextOutcomeStep"] == "outcome_history"
        assert told["nextStep"] == "call shell_wait first: the shell is busy"


@pytest.mark.covers(
    "openboa-menu-under-pressure", "openboa-menu-has-pwd", "openboa-check-shell-menu"
)
def test_the_menu_begins_with_the_context_under_pressure() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        held = openboa_tools(captured)
        with agent_context(host=BUSY):
            told = seen(captured, "permissions_check", tool="shell_run", arguments={"command": "x"})
        assert held
        menu = told["shellReadFirstAlternatives"]
        assert [entry["tool"] for entry in menu] == [
            "session_describe_context",
            "shell_describe",
            "shell_read_last_output",
            "bash",
            "read_file",
        ]
        assert menu[3]["arguments"] == {"command": "pwd"}


@pytest.mark.covers("openboa-menu-has-nothing-denied")
def test_the_menu_of_a_command_has_nothing_that_is_denied() -> None:
    answers = {"shell_describe": decision("allow"), "shell_run": decision("allow")}
    with capture(policy=StaticEngine({**ASKING, **answers})) as captured:
        held = openboa_tools(captured)
        told = seen(captured, "permissions_check", tool="shell_run", arguments={"command": "x"})
        assert held
        menu = told["shellReadFirstAlternatives"]
        assert [entry["tool"] for entry in menu] == ["shell_describe"]


@pytest.mark.covers("openboa-check-without-shell")
def test_a_call_that_runs_no_command_has_no_shell_in_its_check() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        held = openboa_tools(captured)
        with agent_context(host=BUSY):
            told = seen(captured, "permissions_check", tool="change", arguments={"path": "x"})
        assert held
        assert "shellMutationPosture" not in told
        assert told["nextStep"] == "call it"


def test_a_secret_of_the_hosts_shell_is_in_no_check() -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    with capture(policy=StaticEngine("allow")) as captured:
        held = openboa_tools(captured)
        with agent_context(host={"shell": {"busy": True, "currentCommand": f"login {secret}"}}):
            for name, arguments in (
                ("permissions_check", {"tool": "shell_run", "arguments": {"command": "x"}}),
                ("permissions_describe", {}),
            ):
                assert secret not in json.dumps(seen(captured, name, **arguments))
        assert held


def blocking_ids(captured: Capture) -> list[str]:
    """Pause a call of each sort and return what blocks the session."""
    asking = captured.governor.govern(change).tool
    custom = captured.governor.govern(look, name="elsewhere", ownership="custom")
    asking.invoke(path="x")
    with pytest.raises(ResultRequired):
        custom("y")
    found: list[str] = seen(captured, "permissions_describe")["blockingEventIds"]
    return found


WAITING = {
    "change": decision("ask"),
    "elsewhere": decision("allow"),
    **ASKING,
}


@pytest.mark.covers(
    "openboa-blocking-event-ids",
    "openboa-blocking-tool-use-is-emitted",
    "openboa-custom-tool-use-is-emitted",
)
def test_the_ids_that_block_are_ids_of_events() -> None:
    with capture(policy=StaticEngine(WAITING)) as captured:
        with agent_context(session_id="s", actor="agent:a"):
            blocking = blocking_ids(captured)
        captured.governor.telemetry.flush()
    types = ["tool.approval.requested", "tool.result.requested"]
    by_id = {event.event_id: event.event_type for event in captured.events}
    assert [by_id[event_id] for event_id in blocking] == types
    of_sink = [line["record"] for line in captured.records if line["object"] == "tool_event"]
    in_sink = {record["event_id"]: record["event_type"] for record in of_sink}
    assert [in_sink[event_id] for event_id in blocking] == types


@pytest.mark.covers("openboa-blocking-events-are-stored")
def test_another_process_finds_the_same_events(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/approvals.db"
    with agent_context(session_id="s", actor="agent:a"):
        with capture(policy=StaticEngine(WAITING), approvals=url) as captured:
            blocking = blocking_ids(captured)
        with capture(policy=StaticEngine(WAITING), approvals=url) as other:
            assert seen(other, "permissions_describe")["blockingEventIds"] == blocking
    assert len(set(blocking)) == 2


@pytest.mark.covers("openboa-describe-own-custom-calls")
def test_a_waiting_call_of_another_actor_is_not_shown() -> None:
    with capture(policy=StaticEngine(WAITING)) as captured:
        with agent_context(session_id="s", actor="agent:a"):
            assert len(blocking_ids(captured)) == 2
        with agent_context(session_id="s", actor="agent:b"):
            assert seen(captured, "permissions_describe")["requiresAction"] == []


def document(captured: Capture, folder: Path, **context: Any) -> dict[str, Any]:
    with agent_context(**context):
        files = captured.governor.write_posture(folder)
    assert "permissions.json" in {file.name for file in files}
    found: dict[str, Any] = json.loads((folder / "permissions.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.covers("openboa-describe-custom-calls")
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
        assert told["requiresAction"][1]["invocationId"] == required.value.invocation_id
        assert paused.requires_action is not None
        assert paused.requires_action["request_id"] == told["requiresAction"][0]["requestId"]
        assert document(captured, tmp_path, session_id="other")["requiresAction"] == []


@pytest.mark.parametrize(
    ("shell", "state", "step"),
    [
        ({"busy": True, "busyPlan": {"wait": "shell_wait"}}, "busy", "shell_wait"),
        ({"open": False, "recoveryPlan": {"first": "shell_open"}}, "missing", "shell_restart"),
        ({"open": True}, "ready", None),
    ],
)
@pytest.mark.covers("openboa-describe-busy-shell-step", "openboa-describe-missing-shell-step")
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


@pytest.mark.covers("openboa-menu-is-bounded", "openboa-describe-shell-menu")
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
@pytest.mark.covers("openboa-describe-next-outcome-step")
def test_the_next_outcome_step_follows_the_trend(
    tmp_path: Path, evaluation: Any, step: str | None
) -> None:
    with capture(policy=StaticEngine(ANSWERS)) as captured:
        assert document(captured, tmp_path, evaluation=evaluation).get("nextOutcomeStep") == step
