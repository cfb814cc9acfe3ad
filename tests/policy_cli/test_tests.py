"""``policy test`` runs tests on every engine alike, says where they fail, and never passes by
accident.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from opa_program import find_opa
from policy_project import rule_file, run, run_json, write

from agenttool_otel.authoring.watching import changes

ENGINES = ["embedded", pytest.param("opa", marks=pytest.mark.opa)]

FAILING = """package agenttool.custom_test

import data.agenttool.lib.fixtures_test as f

test_holds if f.base.tool.read_only

test_fails if {
	document := f.base
	document.tool.name == "read_file"
	# a comment
	document.tool.name == "deploy"; document.tool.read_only
}

test_cases[name] if {
	some name, value in {"one": 1, "two": 2, "three": 3}
	value != 2
}

test_no_case_holds[name] if {
	some name in ["a"]
	name == "b"
}

todo_test_later if false
"""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each engine that is at hand."""
    name: str = request.param
    if name == "opa":
        program = find_opa()
        if program is None:
            pytest.skip("no OPA program found")
        monkeypatch.setenv("AGENTTOOL_OPA", program)
    return name


def _outcomes(report: Any) -> dict[str, str]:
    return {result["name"].rsplit(".", 1)[1]: result["outcome"] for result in report["results"]}


def test_every_engine_runs_the_tests_with_coverage(project: Path, engine: str) -> None:
    status, report = run_json("test", project, "--engine", engine, "--json")
    assert status == 0
    assert report["engine"] == engine
    assert (report["tests"], report["failed"]) == (4, 0)
    assert report["coverage"] == 100
    assert [item["file"] for item in report["files"]] == ["agenttool/custom/deployments.rego"]


def test_failures_are_told_alike_with_the_line_that_failed(project: Path, engine: str) -> None:
    write(project, {"agenttool/custom/deployments_test.rego": FAILING})
    status, report = run_json("test", project, "--engine", engine, "--json")
    assert status == 1
    assert _outcomes(report) == {
        "test_holds": "passed",
        "test_fails": "failed",
        "test_cases": "failed",
        "test_no_case_holds": "failed",
        "todo_test_later": "skipped",
    }
    results = {result["name"].rsplit(".", 1)[1]: result for result in report["results"]}
    assert (results["test_fails"]["line"], results["test_fails"]["failed_line"]) == (7, 11)
    assert results["test_fails"]["failed_text"] == 'document.tool.name == "deploy"'
    assert results["test_fails"]["found"] not in ("", '"deploy"')
    assert results["test_cases"]["cases"] == ["two"]
    assert results["test_no_case_holds"]["cases"] == ["a"]
    assert report["skipped"] == 1


def test_failures_are_shown_with_file_and_line(project: Path, engine: str) -> None:
    write(project, {"agenttool/custom/deployments_test.rego": FAILING})
    done = run("test", project, "--engine", engine)
    assert done.exit_code == 1
    assert (
        "agenttool/custom/deployments_test.rego:7  data.agenttool.custom_test.test_fails"
        in done.stdout
    )
    assert (
        'agenttool/custom/deployments_test.rego:11  document.tool.name == "deploy"' in done.stdout
    )
    assert "case two" in done.stdout
    assert "test_holds" not in done.stdout
    assert "3 of 4 tests failed" in done.stderr
    assert "test_holds" in run("test", project, "--engine", engine, "-v").stdout


def test_no_tests_at_all_is_a_failure(project: Path, engine: str) -> None:
    (project / "agenttool/custom/deployments_test.rego").unlink()
    done = run("test", project, "--engine", engine)
    assert done.exit_code == 1
    assert "There are no tests" in done.stderr


def test_only_skipped_tests_are_a_failure(project: Path, engine: str) -> None:
    write(
        project,
        {
            "agenttool/custom/deployments_test.rego": "package agenttool.custom_test\n\ntodo_test_x if true\n"
        },
    )
    assert run("test", project, "--engine", engine).exit_code == 1


def test_too_little_coverage_is_a_failure_and_names_the_lines(project: Path, engine: str) -> None:
    text = "package agenttool.custom_test\n\ntest_it if data.agenttool.custom.deny == set()"
    text += ' with input as {"tool": {"id": "x", "namespace": "", "name": "x", "aliases": []}}\n'
    write(project, {"agenttool/custom/deployments_test.rego": text})
    assert run("test", project, "--engine", engine).exit_code == 0
    done = run("test", project, "--engine", engine, "--min-coverage", "90")
    assert done.exit_code == 1
    assert "below 90 %" in done.stderr
    assert "not covered: agenttool/custom/deployments.rego:" in done.stdout


def test_an_error_in_a_test_is_no_pass(project: Path, engine: str) -> None:
    text = "package agenttool.custom_test\n\ntest_error if {\n\t1 / data.agenttool.custom.zero == 1\n}\n"
    write(
        project,
        {
            "agenttool/custom/deployments_test.rego": text,
            "agenttool/custom/data.json": '{"zero": 0}',
        },
    )
    status, report = run_json("test", project, "--engine", engine, "--json")
    assert status == 1
    assert _outcomes(report)["test_error"] in ("failed", "error")


def test_a_test_that_gives_something_else_than_true_fails(project: Path, engine: str) -> None:
    text = "package agenttool.custom_test\n\ntest_number := 7\n\ntest_false := false\n"
    write(project, {"agenttool/custom/deployments_test.rego": text})
    status, report = run_json("test", project, "--engine", engine, "--json")
    assert status == 1
    if engine == "opa":
        # OPA takes every defined value but false for a pass
        assert _outcomes(report)["test_false"] == "failed"
    else:
        assert set(_outcomes(report).values()) == {"failed"}


def test_without_a_program_the_embedded_engine_runs(project: Path, no_opa: None) -> None:
    assert run_json("test", project, "--json")[1]["engine"] == "embedded"
    done = run("test", project, "--engine", "opa")
    assert done.exit_code == 2
    assert "no OPA program" in done.stderr


def test_builtins_that_the_engine_lacks_need_an_opa(project: Path, no_opa: None) -> None:
    text = 'package agenttool.custom_test\n\ntest_md5 if crypto.md5("a") != ""\n'
    write(project, {"agenttool/custom/deployments_test.rego": text})
    for engine in ("auto", "embedded"):
        done = run("test", project, "--engine", engine)
        assert done.exit_code == 2
        assert "agenttool/custom/deployments_test.rego:3" in done.stderr
        assert "crypto.md5" in done.stderr


def test_there_is_no_other_engine(project: Path) -> None:
    assert run("test", project, "--engine", "cloud").exit_code == 2


BROKEN = {
    "syntax": ("package agenttool.custom_test\n\ntest_x if {\n\t1 ==\n}\n", ":5"),
    "v0": ("package agenttool.custom_test\n\ntest_x {\n\ttrue\n}\n", ":3"),
    "recursion": ("package agenttool.custom_test\n\ntest_x if test_y\n\ntest_y if test_x\n", ":3"),
    "function": (
        "package agenttool.custom_test\n\nimport data.agenttool.lib\n\ntest_x if lib.nothing(1)\n",
        ":5",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_tests_are_errors_with_file_and_line(project: Path, engine: str, kind: str) -> None:
    text, line = BROKEN[kind]
    write(project, {"agenttool/custom/deployments_test.rego": text})
    done = run("test", project, "--engine", engine)
    assert done.exit_code == 2, done.output
    assert f"agenttool/custom/deployments_test.rego{line}" in done.stderr


@pytest.mark.parametrize("kind", ["unsafe"])
def test_an_unsafe_variable_is_an_error_with_file_and_line(
    project: Path, engine: str, kind: str
) -> None:
    write(
        project,
        {"agenttool/custom/more.rego": rule_file("\tx > 1", package=f"agenttool.custom.{kind}")},
    )
    done = run("test", project, "--engine", engine)
    assert done.exit_code == 2, done.output
    assert "agenttool/custom/more.rego:11" in done.stderr


def test_a_whole_bundle_stands_alone(tmp_path: Path, engine: str) -> None:
    write(
        tmp_path,
        {
            "p.rego": 'package agenttool.permission\n\ndecision := {"behavior": "deny"} if input.x\n',
            "p_test.rego": 'package p_test\n\ntest_it if data.agenttool.permission.decision with input as {"x": 1}\n',
        },
    )
    status, report = run_json("test", tmp_path, "--engine", engine, "--json")
    assert status == 0
    assert report["tests"] == 1


def test_run_takes_the_tests_that_match(project: Path, engine: str) -> None:
    write(project, {"agenttool/custom/deployments_test.rego": FAILING})
    status, report = run_json("test", project, "--engine", engine, "--run", "test_holds$", "--json")
    assert status == 0
    assert _outcomes(report) == {"test_holds": "passed"}
    assert report["coverage"] is None


@pytest.mark.parametrize("pattern", ["no_such_test", "("])
def test_run_without_a_match_is_no_success(project: Path, pattern: str) -> None:
    result = run("test", project, "--engine", "embedded", "--run", pattern)
    assert result.exit_code != 0


def test_part_of_the_tests_reaches_no_coverage(project: Path) -> None:
    result = run("test", project, "--engine", "embedded", "--run", "test_", "--min-coverage", "1")
    assert "only some of the tests ran" in result.output
    assert result.exit_code != 0


def test_a_watch_runs_again_after_a_change(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(folder: Path) -> Iterator[None]:
        yield
        write(folder, {"agenttool/custom/broken_test.rego": "package broken_test\n\ntest_it if {"})
        yield
        write(
            folder,
            {"agenttool/custom/broken_test.rego": "package broken_test\n\ntest_it if true\n"},
        )
        yield

    # the package has a name "app" beside its module
    monkeypatch.setattr(import_module("agenttool_otel.cli.policy.app"), "changes", changed)
    result = run("test", project, "--engine", "embedded", "--run", "test_", "--watch")
    assert result.exit_code == 0
    assert result.output.count("tests passed") == 2
    assert "broken_test.rego" in result.output


def test_a_change_of_a_test_file_is_seen(project: Path) -> None:
    seen = changes(project)
    next(seen)
    write(project, {"agenttool/custom/new_test.rego": "package new_test\n\ntest_it if true\n"})
    next(seen)
