"""The standard's scenarios pass against this package, and each turns red when what it is about is
broken.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agenttool_otel.call import envelope, records, resume
from agenttool_otel.call.batch import Batch
from agenttool_otel.call.phases import execute
from agenttool_otel.call.phases.inputs import Inputs
from agenttool_otel.call.phases.refusals import Refusals
from agenttool_otel.call.recording import finished
from agenttool_otel.call.recording.reporter import Reporter
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.records import invocation_record
from agenttool_otel.call.scheduling.gate import Turn
from agenttool_otel.catalog import Entry
from agenttool_otel.cli.main import app
from agenttool_otel.conformance import own
from agenttool_otel.conformance.checking import Report, examine, problems_of
from agenttool_otel.conformance.scenarios import SCENARIOS
from agenttool_otel.conformance.subject import load_subject
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.preflight import discovery
from agenttool_otel.results.content import map_content
from agenttool_otel.results.persistence.keeper import ResultKeeper

Patch = pytest.MonkeyPatch
PLAIN = """
from agenttool_otel.conformance import own
from agenttool_otel.conformance.own import declare, surface, records

def invoke(request):
    return [{{**result, {change}}} for result in own.invoke(request)]
"""


def run(*numbers: int) -> Report:
    chosen = [scenario for scenario in SCENARIOS if not numbers or scenario.number in numbers]
    return examine(load_subject(""), chosen, name="own", standard="0.2.0")


@pytest.fixture(scope="module")
def whole() -> Report:
    return run()


def test_all_scenarios_pass(whole: Report) -> None:
    assert [
        (one.number, one.failure, one.problems) for one in whole.outcomes if not one.passed
    ] == []
    assert [one.number for one in whole.outcomes] == list(range(1, 18))


def test_the_scenarios_are_the_standards_own_words() -> None:
    page = (Path(__file__).parent / "acceptance-scenarios.md").read_text(encoding="utf-8")
    words = [line.split(". ", 1)[1] for line in page.splitlines() if line[:1].isdigit()]
    assert [scenario.title for scenario in SCENARIOS] == [line.replace("`", "") for line in words]


def test_a_record_that_misses_its_schema_is_named() -> None:
    assert problems_of([{"object": "tool_result", "record": {"status": 7}}])
    assert problems_of([{"object": "tool_search_result", "record": {}}]) == []


def nothing(*args: Any, **kwargs: Any) -> None:
    return None


def changed(owners: Any, name: str, value: Any) -> Callable[[Patch], None]:
    def change(patch: Patch) -> None:
        for owner in owners if isinstance(owners, tuple) else (owners,):
            patch.setattr(owner, name, value)

    return change


def misnumbered(
    self: Reporter, call: Any, sequence: int, facts: Any, was: Any = Reporter.progress
) -> None:
    was(self, call, 7, facts)


MUTATIONS: dict[int, tuple[str, Callable[[Patch], None]]] = {
    1: (
        "every tool is loaded",
        changed(Entry, "is_deferred", property(lambda self: False, nothing)),
    ),
    2: ("what is found is not loaded", changed(discovery, "load", lambda *_: [])),
    3: ("a schema failure is ignored", changed(Refusals, "invalid", nothing)),
    4: ("values are not checked", changed(Inputs, "validate", nothing)),
    5: (
        "records show inputs",
        changed(finished, "invocation_record", partial(invocation_record, show=lambda v: v)),
    ),
    6: ("changes of the input are not recorded", changed(Inputs, "_mutated", nothing)),
    7: ("a resumed call forgets its past", changed(resume, "recall", nothing)),
    8: ("the end of a call is not told", changed(CallSpan, "_emit_end", nothing)),
    9: ("progress is not in order", changed(Reporter, "progress", misnumbered)),
    10: ("exclusive calls do not wait", changed(Turn, "admits", lambda *_: True)),
    11: ("a failed sibling stops nobody", changed(Batch, "stopped", nothing)),
    12: ("large results stay whole", changed(ResultKeeper, "choose", nothing)),
    13: (
        "empty results look like others",
        lambda patch: patch.setitem(map_content._EMPTY_BLOCK, "empty", False),
    ),
    14: ("artifacts of a call are forgotten", changed((execute, envelope), "examine", nothing)),
    15: ("nobody says whether a result is trusted", changed(records, "trust", nothing)),
    16: ("a person's answer is no decision", changed(Refusals, "answered", lambda *_: "")),
    17: ("native ids are lost", changed(records, "mappings_of", lambda call: [])),
}


@pytest.mark.parametrize("number", sorted(MUTATIONS), ids=lambda number: MUTATIONS[number][0])
def test_a_broken_package_turns_its_scenario_red(number: int, monkeypatch: Patch) -> None:
    MUTATIONS[number][1](monkeypatch)
    [outcome] = run(number).outcomes
    assert not outcome.passed
    # its own judgement, no mishap
    assert outcome.failure.startswith("AssertionError: ") or outcome.problems


# --- the command ----------------------------------------------------------------------------------


def module(folder: Path, change: str, patch: Patch) -> str:
    (folder / "foreign_subject.py").write_text(PLAIN.format(change=change), encoding="utf-8")
    patch.syspath_prepend(str(folder))
    sys.modules.pop("foreign_subject", None)
    return "foreign_subject"


def test_another_module_is_examined_and_reported(tmp_path: Path, monkeypatch: Patch) -> None:
    name = module(tmp_path, "'vendor': 1", monkeypatch)
    report = tmp_path / "report.json"
    shown = CliRunner().invoke(
        app, ["conformance", name, "--scenario", "13", "--report", str(report)]
    )
    assert shown.exit_code == 0, shown.output
    assert "1 of 1 scenarios pass" in shown.output
    told = json.loads(report.read_text(encoding="utf-8"))
    assert (told["subject"], told["passed"], told["outcomes"][0]["number"]) == (name, True, 13)
    assert "succeeded" in told["seen"]["results"]


def test_a_module_that_fails_ends_with_one(tmp_path: Path, monkeypatch: Patch) -> None:
    name = module(tmp_path, "'status': 'fine'", monkeypatch)
    shown = CliRunner().invoke(app, ["conformance", name, "--scenario", "13"])
    assert shown.exit_code == 1
    assert "FAIL" in shown.output


@pytest.mark.parametrize("name", ["no.such.module", "json"])
def test_a_module_without_the_four_functions_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        load_subject(name)
    assert CliRunner().invoke(app, ["conformance", name]).exit_code == 2


def test_what_a_foreign_module_raises_is_the_finding() -> None:
    class Broken:
        declare = surface = invoke = staticmethod(own.declare)

        def records(self) -> Any:
            raise SyntaxError("no records")

    [outcome] = examine(Broken(), SCENARIOS[12:13], name="broken", standard="0.2.0").outcomes  # type: ignore[arg-type]
    assert not outcome.passed
    assert "TypeError" in outcome.failure or "KeyError" in outcome.failure
