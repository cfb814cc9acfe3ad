"""OPA's decision log, imported as recorded decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from recorded_calls import lines_of, record_calls, replayed, stock
from typer.testing import CliRunner

from agenttool_otel.cli.main import app
from agenttool_otel.evidence.opa_log import opa_log

SECRET = "Marigold4711x"


def imported(folder: Path, events: list[Any]) -> Result:
    """Run ``agenttool policy import`` on a log, with a line of OPA's own before its events."""
    log = folder / "opa.log"
    lines = [{"level": "info", "msg": "Initializing server."}, *events]
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    target = folder / "imported.jsonl"
    return CliRunner().invoke(app, ["policy", "import", str(log), "-o", str(target)])


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Events as an OPA server would have logged them: of a program's own, and in clear."""
    path = tmp_path_factory.mktemp("imports") / "d.jsonl"
    record_calls(path, ["ls", "rm -rf /srv/acme/build"])
    events = list(opa_log(lines_of(path)))
    for event in events:
        event["labels"] = {"id": "opa-1"}
    return events


def test_a_log_is_replayed_as_it_was_decided(tmp_path: Path, logged: list[Any]) -> None:
    done = imported(tmp_path, logged)
    assert done.exit_code == 0, done.output
    found = replayed(tmp_path / "imported.jsonl", stock())
    assert len(found) == len(logged)
    assert [each for each in found if not each.same or each.unsure] == []


def test_words_of_a_log_are_hidden(tmp_path: Path, logged: list[Any]) -> None:
    event = {**logged[0], "input": {**logged[0]["input"], "input": {"command": SECRET}}}
    assert imported(tmp_path, [event]).exit_code == 0
    assert SECRET.lower() not in (tmp_path / "imported.jsonl").read_text("utf-8").lower()


def lacking(event: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Events that hold too little, by what is printed of them."""
    return {
        "another rule was asked": {**event, "path": "authz/allow"},
        "its words are digests": {**event, "labels": {"app": "agenttool-otel"}},
        "its input is not whole": {**event, "input": {"path": "x"}},
        "parts of its input were erased": {**event, "erased": ["/input/facts"]},
        "it has no decision": {**event, "result": True},
    }


def test_an_event_that_holds_too_little_is_left_out(tmp_path: Path, logged: list[Any]) -> None:
    events = lacking(logged[0])
    done = imported(tmp_path, [*events.values(), logged[1]])
    assert done.exit_code == 0, done.output
    assert "1 decisions" in done.output
    assert [reason for reason in events if reason not in done.output] == []


def test_a_log_without_decisions_fails(tmp_path: Path) -> None:
    assert imported(tmp_path, []).exit_code == 2
