"""A program that knows the standard's schemas alone finds nothing wrong in the records of 1,000 calls
of every kind, and finds what is broken.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mixed_run import CANARY, MixedRun

from agenttool_otel.telemetry.sinks import JsonlSink
from agenttool_otel.testing import check_records
from known_faults import KNOWN_FAULTS, KNOWN_TO_CONSUMER
from samples import one_case_in

ROOT = Path(__file__).resolve().parents[2]
CONSUMER = ROOT / "examples" / "standard_consumer.py"
SCHEMAS = ROOT / "tests" / "spec_schemas"
CALLS = 1000
KINDS = 22


class Finished(NamedTuple):
    """What is left of a mixed run."""

    path: Path
    run: MixedRun

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of the file."""
        return [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    path = tmp_path_factory.mktemp("mixed") / "calls.jsonl"
    sink = JsonlSink(path)
    run = MixedRun(sink)
    run.run(CALLS)
    assert sink.flush(60)
    run.governor.close()
    assert sink.lost == 0
    return Finished(path, run)


def consume(*files: Path) -> tuple[int, list[str]]:
    """The consumer's exit code and what it prints."""
    done = subprocess.run(
        [sys.executable, "-I", str(CONSUMER), str(SCHEMAS), *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.mark.slow
def test_every_kind_of_call_is_made(finished: Finished) -> None:
    assert finished.run.made.total() >= CALLS
    assert len(finished.run.made) == KINDS


@pytest.mark.slow
def test_the_consumer_finds_nothing_wrong(finished: Finished) -> None:
    _, [summary, *problems, _] = consume(finished.path)
    unknown = []
    for problem in problems:
        if not any(part in problem for part in KNOWN_TO_CONSUMER):
            unknown.append(problem)
    assert unknown == []
    assert f" of {finished.run.made.total()} calls: " in summary


@pytest.mark.slow
def test_the_records_break_no_rule_that_is_not_known(finished: Finished) -> None:
    ran = finished.run.bodies.ran
    check_records(finished.lines, ran=ran, canaries=[CANARY], ignore=KNOWN_FAULTS)


def test_the_consumer_imports_nothing_of_the_package() -> None:
    text = CONSUMER.read_text("utf-8")
    assert "agenttool_otel" not in text
    assert len(text.splitlines()) <= 220


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "field", "value", "words"),
    one_case_in(
        6,
        [
            ("tool_result", "status", "fine", "terminal results"),
            ("tool_invocation", "status", 7, "schema: tool_invocation /status"),
            ("tool_invocation", "tool_id", "nobody", "the tool nobody is not declared"),
            ("tool_invocation", "permission_decision_refs", ["x"], "tool_permission_decision"),
            ("tool_invocation", "call_input_ref", "x", "no mutation leads to its call_input_ref"),
            ("tool_event", "event_type", "tool.lost", "0 terminal events"),
        ],
    ),
)
def test_a_broken_record_is_found(
    finished: Finished, tmp_path: Path, kind: str, field: str, value: Any, words: str
) -> None:
    lines = finished.lines
    ended = {
        line["record"]["invocation_id"]
        for line in lines
        if line["object"] == "tool_result" and line["record"]["status"] == "succeeded"
    }
    for line in reversed(lines):
        if line["object"] == kind and line["record"].get("invocation_id") in ended:
            line["record"][field] = value
            break
    path = tmp_path / "broken.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    code, problems = consume(path)
    assert code == 1
    assert any(words in problem for problem in problems)
