"""A command is only proven where every text beside it is accounted for."""

from __future__ import annotations

import logging
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenttool_otel import (
    ApprovalRequired,
    ConfigurationError,
    GovernedTool,
    Governor,
    agent_context,
)
from agenttool_otel.facts import FactEnvironment
from agenttool_otel.facts.plan import FactPlan, plan_facts

_SHELL: Any = {
    "tool_kind": "shell_command",
    "access_kinds": ["file_read", "code_execution"],
    "command_args": ["command"],
    "read_only": "classifier:command_read_only",
    "destructive": "classifier:command_destructive",
}


def _plan(properties: dict[str, Any], **options: Any) -> FactPlan:
    schema = {"type": "object", "properties": {"command": {"type": "string"}, **properties}}
    plan = plan_facts(schema=schema, command_args=["command"], **options)
    assert plan is not None
    return plan


def _proven(plan: FactPlan, arguments: dict[str, Any]) -> bool:
    facts = plan.establish(arguments, FactEnvironment())["shell"]
    return bool(facts) and all(fact["read_only"] for fact in facts)


def _tool(governor: Governor, **options: Any) -> GovernedTool:
    @governor.govern(**{**_SHELL, **options})
    def run(
        command: str,
        args: list[str] | None = None,
        flags: str = "",
        env: dict[str, str] | None = None,
        stdin: str | None = None,
        host: str = "",
        label: str = "",
        mode: Literal["fast", "slow"] = "fast",
        timeout: float = 5,
        check: bool = False,
    ) -> str:
        return "ran"

    return run.tool


@pytest.mark.parametrize(
    "beside",
    [
        {"args": ["-delete"]},
        {"args": [".", "-exec", "rm", "{}", ";"]},
        {"flags": "-delete"},
        {"flags": "; rm -rf src"},
        {"args": ["; rm -rf src"]},
        {"args": ["-type", "f"], "flags": "-delete"},
        {"env": {"BASH_ENV": "evil.sh"}},
        {"env": {"LD_PRELOAD": ""}},
        {"stdin": "x"},
        {"host": "prod-db"},
        {"label": "x"},
    ],
)
def test_text_beside_a_command_is_asked_about(beside: dict[str, Any], tmp_path: Path) -> None:
    tool = _tool(Governor())
    with agent_context(actor="agent:a", session_id="s", roots=[str(tmp_path)], cwd=str(tmp_path)):
        assert tool.check(command="find .").allowed
        assert not tool.check(command="find .", **beside).allowed


@pytest.mark.parametrize(
    "beside",
    [
        {"args": ["-type", "f"]},
        {"args": []},
        {"flags": "-print"},
        {"label": "any; rm -rf src"},
        {"mode": "slow", "timeout": 1.5, "check": True},
        {"env": {}, "stdin": None, "host": ""},
    ],
)
def test_what_is_accounted_for_is_no_question(beside: dict[str, Any], tmp_path: Path) -> None:
    tool = _tool(Governor(), inert_args=["label"])
    with agent_context(actor="agent:a", session_id="s", roots=[str(tmp_path)], cwd=str(tmp_path)):
        assert tool.check(command="find .", **beside).allowed


def test_words_beside_a_command_never_run_unasked(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "kept").touch()

    @Governor().govern(**_SHELL)
    def run(command: str, args: list[str] | None = None) -> str:
        done = subprocess.run(
            [command, *(args or [])], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        return done.stdout

    with agent_context(actor="agent:a", session_id="s", roots=[str(tmp_path)], cwd=str(tmp_path)):
        assert "kept" in run("find", ["sub", "-type", "f"])
        with pytest.raises(ApprovalRequired):
            run("find", ["sub", "-type", "f", "-delete"])
    assert (tmp_path / "sub" / "kept").exists()


def test_declared_words_are_read_with_their_command() -> None:
    plan = _plan({"args": {"type": "array", "items": {"type": "string"}}})
    both = plan_facts(
        schema={"properties": {"command": {"type": "string"}, "args": {"type": "array"}}},
        command_args=["command", "args"],
    )
    assert both is not None
    for found in (plan, both):
        assert _proven(found, {"command": "ls", "args": ["-la"]})
        assert not _proven(found, {"command": "find", "args": ["-delete"]})


def test_nested_commands_are_joined_with_their_own_words() -> None:
    plan = plan_facts(schema={"type": "object"}, command_args=["steps.cmd"])
    assert plan is not None
    assert _proven(plan, {"steps": [{"cmd": "ls", "args": ["-l"]}, {"cmd": "pwd"}]})
    assert not _proven(
        plan, {"steps": [{"cmd": "ls", "args": ["-l"]}, {"cmd": "find", "args": ["-delete"]}]}
    )


@pytest.mark.parametrize(
    ("schema", "accounted"),
    [
        ({"type": ["string", "null"], "enum": ["fast", None]}, True),
        ({"type": ["string", "null"]}, False),
        ({"type": []}, False),
        ({"type": 5, "enum": 5}, False),
        ({"enum": "fast"}, False),
    ],
)
def test_lists_of_types_are_read_as_types(schema: dict[str, Any], accounted: bool) -> None:
    plan = _plan({"mode": schema, "limit": {"type": ["integer", "null"]}})
    assert _proven(plan, {"command": "ls", "mode": "fast", "limit": 5}) is accounted


@given(
    st.text(min_size=1, max_size=12),
    st.one_of(st.text(min_size=1), st.lists(st.text(min_size=1), min_size=1)),
)
def test_an_unknown_argument_never_leaves_a_proof(name: str, value: Any) -> None:
    plan = plan_facts(schema={"type": "object"}, command_args=["command"])
    assert plan is not None
    if name == "command":
        return
    facts = plan.establish({"command": "rm x", name: value}, FactEnvironment())["shell"]
    assert not all(fact["read_only"] for fact in facts)
    if not any(fact["argument"] == f"/{name}" for fact in facts):
        assert not _proven(plan, {"command": "ls", name: value})


def test_a_closed_set_holds_its_own_words_alone() -> None:
    plan = _plan(
        {"mode": {"$ref": "#/$defs/Mode"}, "level": {"anyOf": [{"enum": ["a"]}, {"type": "null"}]}}
    )
    assert not _proven(plan, {"command": "ls", "mode": "x"})
    assert _proven(plan, {"command": "ls", "level": "a"})
    assert not _proven(plan, {"command": "ls", "level": "b"})


def test_decoration_says_what_is_not_accounted_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "agenttool_otel.catalog"):
        _tool(Governor(), inert_args=["label"])
        _tool(Governor(), inert_args=["label", "env", "stdin", "host"])
    [message] = [
        record.getMessage() for record in caplog.records if "command" in record.getMessage()
    ]
    assert "env, stdin, host" in message
    assert "inert_args" in message


def test_an_inert_argument_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="inert_args: the tool has no argument 'lable'"):
        _tool(Governor(), inert_args=["lable"])
