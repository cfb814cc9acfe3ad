"""The bundle's own Rego tests, on a real OPA with coverage and on the engine that ships."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
import regorus
from stock_bundle import POLICIES, data_document, modules, rego_tests, run_opa

from agenttool_otel.authoring.project import load_project
from agenttool_otel.authoring.testing import run_tests


@functools.cache
def _engine() -> Any:
    engine = regorus.Engine()
    for file, text in modules(tests=True):
        engine.add_policy(file, text)
    engine.add_data_json(data_document())
    return engine


# decisions as a whole take the interpreter minutes, as each "with" begins anew: the slow part has them
WHOLE = ("data.agenttool.permission.", "data.agenttool.vouching.")


@pytest.mark.parametrize("name", [name for name in rego_tests() if not name.startswith(WHOLE)])
def test_rego_test_passes_on_the_embedded_engine(name: str) -> None:
    answer = json.loads(_engine().eval_rule_as_json(name))
    # a test over many cases gives an object of them
    cases = answer if isinstance(answer, dict) else {"": answer}
    assert cases
    assert set(cases.values()) == {True}, answer


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_command_finds_each_case_of_each_rego_test() -> None:
    report = run_tests(load_project(POLICIES, standalone=True), engine="embedded")
    assert [(failed.name, failed.cases) for failed in report.failures] == []
    assert len(report.results) > 300


@pytest.mark.slow
@pytest.mark.opa
def test_rego_tests_pass_on_opa_and_cover_the_rules() -> None:
    done = run_opa("test", "--coverage", "--format=json", "--timeout=60s", str(POLICIES))
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    missed = {
        file: [part["start"]["row"] for part in entry["not_covered"]]
        for file, entry in report["files"].items()
        if entry.get("not_covered")
    }
    assert report["coverage"] == 100, missed
    assert len([file for file in report["files"] if not file.endswith("_test.rego")]) == len(
        modules()
    )


@pytest.mark.slow
@pytest.mark.opa
def test_a_broken_rule_fails_the_rego_tests(tmp_path: Any) -> None:
    """The suite is worth something: allowing sensitive places is noticed."""
    for file, text in modules(tests=True):
        target = tmp_path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    for source in POLICIES.rglob("data.json"):
        target = tmp_path / source.relative_to(POLICIES)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            source.read_text("utf-8").replace('"key": {"read": "deny"', '"key": {"read": "allow"'),
            "utf-8",
        )
    done = run_opa("test", str(tmp_path))
    assert done.returncode != 0
    assert "paths_test" in done.stdout
