"""Two policies, compared on recorded decisions and on made-up inputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_calls import record_calls
from typer.testing import CliRunner

from agenttool_otel.cli.main import app

RULE = """package agenttool.custom.acme

deny contains {{"rule": "custom.acme", "message": "no"}} if {{ {condition} }}
"""
NAMED = 'input.tool.name == "deploy"'


def policy(folder: Path, condition: str) -> Path:
    """An extension with one rule, which denies under a condition."""
    folder.mkdir()
    (folder / "acme.rego").write_text(RULE.format(condition=condition), encoding="utf-8")
    return folder


def diff(*arguments: str | Path) -> tuple[int, Any]:
    """The exit code and the report of ``agenttool policy diff``."""
    done = CliRunner().invoke(app, ["policy", "diff", *map(str, arguments), "--json"])
    assert done.exit_code in (0, 1), done.output
    return done.exit_code, json.loads(done.stdout)


def test_recorded_calls_that_change_are_named_by_rule(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl", ())
    first = policy(tmp_path / "a", 'input.tool.name == "fetch"')
    second = policy(tmp_path / "b", 'input.tool.name == "query"')
    code, report = diff(first, second, "--from", tmp_path / "d.jsonl", "--made-up", "0")
    tools = {(each["tool"].rpartition(".")[2], each["rule_after"]) for each in report["changes"]}
    assert ("query", "custom.acme") in tools
    assert {tool for tool, _ in tools} == {"fetch", "query"}
    assert (code, report["recorded"]) == (1, report["decisions"])


def test_a_boundary_without_traffic_is_found(tmp_path: Path) -> None:
    first = policy(tmp_path / "a", f"{NAMED}; input.session.counters.calls > 7654")
    second = policy(tmp_path / "b", f"{NAMED}; input.session.counters.calls >= 7654")
    code, report = diff(first, second)
    assert code == 0
    assert {each["rule_after"] for each in report["changes"]} == {"custom.acme"}
    assert report["recorded"] == 0


@pytest.mark.slow
def test_a_difference_names_its_condition_and_its_rule(tmp_path: Path) -> None:
    first = policy(tmp_path / "a", f"{NAMED}; input.session.counters.calls > 7654")
    second = policy(tmp_path / "b", f"{NAMED}; input.session.counters.calls >= 7654")
    change = diff(first, second)[1]["changes"][0]
    assert "input.session.counters.calls = 7654" in change["examples"][0]["condition"]
    assert change["where"].endswith("acme.rego:3")


def test_the_rule_of_a_recorded_difference_is_named(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl", ())
    first = policy(tmp_path / "a", 'input.tool.name == "fetch"')
    second = policy(tmp_path / "b", 'input.tool.name == "query"')
    _, report = diff(first, second, "--from", tmp_path / "d.jsonl", "--made-up", "0")
    assert {each["where"].rpartition("/")[2] for each in report["changes"]} == {"acme.rego:3"}


def test_equal_policies_do_not_differ(tmp_path: Path) -> None:
    first = policy(tmp_path / "a", "input.session.counters.calls > 7")
    second = policy(tmp_path / "b", "input.session.counters.calls > 7")
    assert diff(first, second, "--made-up", "40")[1]["changes"] == []
