"""A replay's report as SARIF and HTML, and records as OPA's decision log."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given, settings
from recorded_calls import WORD, forms, record_calls, stock
from typer.testing import CliRunner

from agenttool_otel.cli.main import app
from agenttool_otel.evidence.reports import page, sarif
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine

CHANGE = {
    "before": "ask",
    "after": "allow",
    "count": 2,
    "tool": "demo.<b>sh</b>",
    "rule_before": "agenttool.rules.sql.writes",
    "rule_after": "agenttool.rules.shell.agreed",
    "widens": True,
    "approved": False,
    "examples": [{"invocation_id": "inv_1", "time": "2026-11-28T08:39:10Z", "unsure": ""}],
}
REPORT: dict[str, Any] = {
    "decisions": 3,
    "same": 1,
    "widened": 2,
    "unsure": {"the candidate reads <i>resources</i>": 1},
    "lost": 0,
    "torn": [],
    "changes": [CHANGE],
}


def run(*arguments: str | Path) -> Result:
    """Run ``agenttool policy``."""
    return CliRunner().invoke(app, ["policy", *map(str, arguments)])


class Tags(HTMLParser):
    """Collects the tags of a page, and what they lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [(name, value) for name, value in attrs if name in ("src", "href")]


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    found = Tags(page(REPORT))
    assert not found.links
    assert not found.tags & {"script", "link", "img", "iframe", "b", "i"}


def test_the_page_names_what_would_be_permitted() -> None:
    text = page(REPORT)
    assert "2 decisions would permit more" in text
    assert "demo.&lt;b&gt;sh&lt;/b&gt;" in text


def test_a_widening_is_an_error_of_sarif() -> None:
    document = sarif(REPORT, stock())
    first, second = document["runs"][0]["results"]
    assert (document["version"], first["level"], second["level"]) == ("2.1.0", "error", "warning")


def test_sarif_leads_to_the_line_of_the_rule() -> None:
    (location,) = sarif(REPORT, stock())["runs"][0]["results"][0]["locations"]
    place = location["physicalLocation"]
    file, line = place["artifactLocation"]["uri"], place["region"]["startLine"]
    text = stock().modules[file].splitlines()[line - 1]
    assert CHANGE["rule_after"] in text


def test_an_approved_widening_is_a_note() -> None:
    report = {**REPORT, "changes": [{**CHANGE, "approved": True}], "unsure": {}}
    (result,) = sarif(report, stock())["runs"][0]["results"]
    assert result["level"] == "note"


def test_replay_writes_both_beside_its_answer(tmp_path: Path) -> None:
    record_calls(tmp_path / "d.jsonl", ["ls"])
    html, sarif_file = tmp_path / "r.html", tmp_path / "r.sarif"
    done = run("replay", "--from", tmp_path / "d.jsonl", "--html", html, "--sarif", sarif_file)
    assert done.exit_code == 0, done.output
    assert html.read_text("utf-8").startswith("<!doctype html>")
    assert json.loads(sarif_file.read_text("utf-8"))["runs"][0]["results"] == []


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("exported")
    record_calls(folder / "d.jsonl")
    done = run("export", "--from", folder / "d.jsonl", "-o", folder / "opa.jsonl")
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in (folder / "opa.jsonl").read_text("utf-8").splitlines()]


def test_an_event_of_opas_log_has_its_members(exported: list[dict[str, Any]]) -> None:
    assert len(exported) == 27
    wanted = {"decision_id", "timestamp", "path", "input", "result", "labels", "bundles", "type"}
    assert all(wanted <= event.keys() for event in exported)
    assert exported[0]["path"] == "agenttool/permission/decision"


def test_an_exported_input_decides_as_it_did(exported: list[dict[str, Any]]) -> None:
    decider = Decider((EmbeddedEngine(stock()),), timeout=10)
    for event in exported:
        document: Any = {**event["input"], "resources": {}}
        verdict = decider.decide(document)
        assert verdict.behavior.value == event["result"]["behavior"]


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("canaries")


@pytest.mark.slow
@settings(max_examples=2, deadline=None)
@given(word=WORD)
def test_no_hidden_word_stands_in_a_report_or_export(canaries: Path, word: str) -> None:
    path = canaries / "d.jsonl"
    for old in canaries.iterdir():
        old.unlink()
    record_calls(path, [f"echo {word} > /srv/acme/{word}.txt", f"curl https://{word}.example/"])
    data = canaries / "data.json"
    data.write_text('{"agenttool": {"settings": {"preset": "coding"}}}', encoding="utf-8")
    reports = ["--html", canaries / "r.html", "--sarif", canaries / "r.sarif"]
    text = run("replay", "--from", path, "--data", data, "--json", *reports).output
    text += run("export", "--from", path).output
    text += run("coverage", "--from", path, "--json").output
    text += "".join(each.read_text("utf-8") for each in canaries.glob("r.*"))
    assert [form for form in forms(word) if form.lower() in text.lower()] == []
