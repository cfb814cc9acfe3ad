"""Recorded decisions as other programs read them: permdiff, OCSF and a table."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from recorded_calls import forms, lines_of, record_calls
from typer.testing import CliRunner

from agenttool_otel.cli.main import app

CANARY = "Marigold4711x"
EFFECTS = {"allow": "allow", "ask": "require_approval", "deny": "deny"}
ACTIONS = {"allow": (1, 1), "ask": (0, 99), "deny": (2, 2), "approved": (1, 8)}


def export(source: Path, form: str, target: Path) -> Result:
    """Run ``agenttool policy export``."""
    given = ["--from", source, "--format", form, "-o", target]
    return CliRunner().invoke(app, ["policy", "export", *map(str, given)])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exports") / "d.jsonl"
    commands = ["ls", f"echo {CANARY} > /srv/acme/{CANARY}.txt"]
    record_calls(path, commands, approver=lambda request: True)
    return path


@pytest.fixture(scope="module")
def events(recorded: Path) -> list[dict[str, Any]]:
    target = recorded.with_name("ocsf.jsonl")
    done = export(recorded, "ocsf", target)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in target.read_text("utf-8").splitlines()]


def outcomes(path: Path) -> list[str]:
    """What each record of a file came to: a decision's behavior, or a person's answer."""
    records = [line["record"] for line in lines_of(path)]
    return [
        each["answer"] if "answer" in each else each["decision"]["behavior"] for each in records
    ]


def text_of(path: Path) -> str:
    """The content of an export; that of a table is compressed."""
    if path.suffix != ".parquet":
        return path.read_text("utf-8")
    return str(pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist())


def test_permdiff_reads_what_opa_would_have_logged(recorded: Path) -> None:
    importers = pytest.importorskip("permdiff.importers.opa_log")
    input_map = pytest.importorskip("permdiff.importers.input_map")
    target = recorded.with_name("opa.jsonl")
    assert export(recorded, "opa", target).exit_code == 0
    pairs = "principal.id=actor.id,agent.id=actor.id,tool.name=tool.id,arguments=input"
    importer = importers.OpaDecisionLogImporter(input_map=input_map.parse_input_map([pairs]))
    found = importer.read(target, strict=True)
    decided = [each for each in outcomes(recorded) if each in EFFECTS]
    assert [call.recorded.effect for call in found.calls] == [EFFECTS[each] for each in decided]
    assert found.stats.skipped == 0


def test_each_record_is_an_event_of_ocsf(recorded: Path, events: list[dict[str, Any]]) -> None:
    found = [(event["action_id"], event["disposition_id"]) for event in events]
    assert found == [ACTIONS[each] for each in outcomes(recorded)]
    assert set(Counter(outcomes(recorded))) == set(ACTIONS)


def test_an_event_has_what_its_class_requires(events: list[dict[str, Any]]) -> None:
    for event in events:
        assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
        assert event["metadata"].keys() >= {"product", "version"}
        assert event["api"]["operation"]
        assert event["actor"]["user"]["uid"]
        assert event.keys() >= {"category_uid", "severity_id", "src_endpoint", "time"}


def test_an_event_fits_the_published_schema(events: list[dict[str, Any]]) -> None:
    published = pytest.importorskip("ocsf.v1_5_0.events")
    for event in events:
        published.ApiActivity.model_validate(event)


def test_in_shadow_mode_nothing_was_blocked(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl", ["ls"], policy_mode="shadow")
    export(tmp_path / "d.jsonl", "ocsf", tmp_path / "ocsf.jsonl")
    lines = (tmp_path / "ocsf.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["disposition"] for line in lines} == {"Logged"}


def test_a_table_has_a_row_for_each_record(recorded: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    target = recorded.with_name("d.parquet")
    assert export(recorded, "parquet", target).exit_code == 0
    rows = parquet.read_table(target).to_pylist()
    assert [row["answer"] or row["behavior"] for row in rows] == outcomes(recorded)
    assert json.loads(rows[0]["record"]) == lines_of(recorded)[0]["record"]


def test_a_table_needs_a_file(recorded: Path) -> None:
    given = ["policy", "export", "--from", str(recorded), "--format", "parquet"]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 2
    assert "--output" in done.output


@pytest.mark.parametrize("form", ["opa", "ocsf", "parquet"])
def test_no_hidden_word_stands_in_an_export(recorded: Path, form: str) -> None:
    target = recorded.with_name(f"canary.{form}")
    assert export(recorded, form, target).exit_code == 0
    text = text_of(target).lower()
    assert [each for each in forms(CANARY) if each.lower() in text] == []
