"""What recorded traffic shows of a policy: rules, people's answers, and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from recorded_calls import lines_of, record_calls
from typer.testing import CliRunner

from agenttool_otel.approvals.approvers import CallbackApprover
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.cli.main import app


def run(*arguments: str | Path) -> Result:
    """Run ``agenttool policy coverage``."""
    return CliRunner().invoke(app, ["policy", "coverage", *map(str, arguments)])


def answer(request: Any) -> bool:
    """A person who agrees to what the shell does, and to nothing else."""
    return bool(request.tool_id.endswith(".sh"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answered") / "d.jsonl"
    record_calls(path, approver=CallbackApprover(answer, answered_by="user:ann"))
    return path


@pytest.fixture(scope="module")
def report(recorded: Path) -> dict[str, Any]:
    done = run("--from", recorded, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rule(report: dict[str, Any], name: str) -> dict[str, Any]:
    """The row of a rule."""
    (row,) = [each for each in report["rules"] if each["rule"] == f"agenttool.rules.{name}"]
    return dict(row)


def answers_of(path: Path) -> list[dict[str, Any]]:
    """The records of answers."""
    return [line["record"] for line in lines_of(path) if line["object"] == "agenttool.answer"]


def test_an_answer_is_a_record_in_the_chain(recorded: Path) -> None:
    answers = answers_of(recorded)
    assert {each["answer"] for each in answers} == {"approved", "rejected"}
    assert {each["way"] for each in answers} == {"approver"}


def test_an_answer_names_the_call_that_was_asked_about(recorded: Path) -> None:
    lines = lines_of(recorded)
    asked = {
        line["record"]["input"]["invocation"]["id"]
        for line in lines
        if line["object"] == "agenttool.decision"
    }
    assert {each["invocation_id"] for each in answers_of(recorded)} <= asked


def test_an_answer_holds_no_name_and_no_reason(tmp_path: Path) -> None:
    path, word = tmp_path / "d.jsonl", "Zarquon" + "Vogsphere"

    def reply(request: Any) -> ApprovalAnswer:
        return ApprovalAnswer(False, answered_by=f"user:{word}", roles=(word,), reason=word)

    record_calls(path, approver=CallbackApprover(reply))
    assert answers_of(path)
    assert word not in path.read_text("utf-8")


def test_reached_rules_are_counted(report: dict[str, Any]) -> None:
    assert rule(report, "network.address")["decided"] >= 2
    assert rule(report, "network.address")["sets"] == ["deny"]
    assert "agenttool.rules.network.address" not in report["never_reached"]


def test_a_rule_that_no_call_reached_is_named(report: dict[str, Any]) -> None:
    assert "agenttool.rules.budgets.session" in report["never_reached"]


def test_what_people_always_answer_alike_is_named(report: dict[str, Any]) -> None:
    assert "agenttool.rules.shell.not_read_only" in report["always_approved"]
    assert "agenttool.rules.declared.access_external_send" in report["always_rejected"]
    assert rule(report, "declared.unstated")["approved"] > 0
    assert rule(report, "declared.unstated")["rejected"] > 0


def test_an_answer_is_counted_once_for_each_question(report: dict[str, Any]) -> None:
    assert rule(report, "declared.access_external_send")["rejected"] == 1


def test_the_table_has_what_was_found(recorded: Path) -> None:
    done = run("--from", recorded)
    assert "people always agreed agenttool.rules.shell.not_read_only" in done.stdout
    assert "stock rules were never reached" in done.stdout


EXTENSION = """package agenttool.custom.notes

allow contains {
	"rule": "custom.notes.sending",
	"message": "sending needs no question",
	"waives": [
		"agenttool.rules.declared.access_external_send",
		"agenttool.rules.declared.unstated",
		"agenttool.rules.destructive.effects",
	],
} if {
	input.tool.name == "send"
}

allow contains {
	"rule": "custom.notes.nothing",
	"message": "reading was never asked about",
	"waives": ["agenttool.rules.paths.write_inside"],
} if {
	input.tool.name == "read_file"
}

deny contains {"rule": "custom.notes.never", "message": "never"} if {
	input.tool.name == "launch"
}
"""


@pytest.fixture(scope="module")
def changed(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("own")
    (folder / "notes.rego").write_text(EXTENSION, encoding="utf-8")
    settings = {
        "network": {"allowed_hosts": ["files.example.net", "never.example.net"]},
        "effects": {"agenttool.rules.sql.writes": "deny"},
    }
    data = folder / "more.json"
    data.write_text(json.dumps({"agenttool": {"settings": settings}}), encoding="utf-8")
    done = run("--from", recorded, "-c", folder, "--data", data, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_a_waive_that_never_mattered_is_named(changed: dict[str, Any]) -> None:
    waives = [part for part in changed["never_mattered"] if part.startswith("waives")]
    assert waives == ["waives of custom.notes.nothing (notes.rego:15)"]


@pytest.mark.slow
def test_a_setting_that_never_mattered_is_named(changed: dict[str, Any]) -> None:
    settings = [part for part in changed["never_mattered"] if part.startswith("settings")]
    assert settings == ["settings.network.allowed_hosts[1]"]


@pytest.mark.slow
def test_own_rules_that_were_never_reached_are_named(changed: dict[str, Any]) -> None:
    own = [each["rule"] for each in changed["rules"] if each["own"] and not each["found"]]
    assert own == ["custom.notes.never"]
