"""``policy init`` makes a project that works as it is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from policy_project import REPOSITORY, example_input, run, run_json

from agenttool_otel.authoring.project import load_project
from agenttool_otel.policy.bundles.input_schema import validate_input


@pytest.mark.usefixtures("no_opa")
def test_init_and_test_work_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "fresh"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run("init").exit_code == 0
    done = run("test", "--min-coverage", "100")
    assert done.exit_code == 0, done.output
    assert "4 of 4 tests passed on embedded" in done.output


def test_the_commands_of_the_readme_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("init", "my-policy").exit_code == 0
    monkeypatch.chdir(tmp_path / "my-policy")
    assert run("test", ".").exit_code == 0
    done = run("explain", ".", "input.json")
    assert done.exit_code == 0
    assert "agenttool/custom/deployments.rego:18" in done.output


def test_a_project_has_what_an_author_needs(project: Path) -> None:
    manifest = json.loads((project / ".manifest").read_text("utf-8"))
    assert manifest["roots"] == ["agenttool/custom", "agenttool/settings"]
    assert manifest["revision"] == "project-0.1.0"
    validate_input(example_input(project))
    schema = (project / "schemas" / "input.json").read_text("utf-8")
    assert schema == (REPOSITORY / "policies" / "schemas" / "input.json").read_text("utf-8")
    assert load_project(project).base is not None
    assert "PROJECT_NAME" not in (project / "README.md").read_text("utf-8")


@pytest.mark.opa
def test_a_project_is_formatted_as_opa_does(project: Path, real_opa: str) -> None:
    done = subprocess.run(
        [real_opa, "fmt", "--list", "--fail", str(project)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.opa
@pytest.mark.usefixtures("real_opa")
def test_a_fresh_project_passes_every_check_strictly(project: Path) -> None:
    status, report = run_json("check", project, "--strict", "--json")
    assert status == 0
    assert {check["name"]: check["status"] for check in report["checks"]} == dict.fromkeys(
        (
            "builtins: embedded",
            "builtins: OPA",
            "load",
            "settings",
            "tests",
            "METADATA",
            "places",
            "reads",
            "words",
            "findings",
            "meaning",
            "unread",
            "test inputs",
            "input types",
            "speed",
        ),
        "passed",
    )


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", "utf-8")
    done = run("init", tmp_path)
    assert done.exit_code == 2
    assert "not empty" in done.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]


def test_force_adds_what_is_missing_and_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine", "utf-8")
    done = run("init", tmp_path, "--force")
    assert done.exit_code == 0
    assert "kept README.md" in done.output
    assert (tmp_path / "README.md").read_text("utf-8") == "mine"
    assert run("test", tmp_path, "--engine", "embedded").exit_code == 0


def test_a_repository_without_files_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert run("init", tmp_path).exit_code == 0


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("", "utf-8")
    assert run("init", tmp_path / "x", "--force").exit_code == 2


def test_the_extension_of_the_governor_is_the_project(project: Path) -> None:
    """What ``configure(extension=...)`` would load decides as ``policy decide`` does."""
    from agenttool_otel.policy.bundles.bundle import default_bundle_path
    from agenttool_otel.policy.bundles.load import load_bundle
    from agenttool_otel.policy.bundles.overlay import overlay

    whole = overlay(load_bundle(default_bundle_path()), extension=load_bundle(project))
    assert whole.digest == load_project(project).whole.digest
