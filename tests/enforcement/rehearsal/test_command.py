"""``agenttool rehearse``: what a command would change is shown; it is committed if that is stated."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agenttool_otel.cli.rehearse import EXIT_CODES

PROGRAM = "from agenttool_otel.cli import main; main()"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "rehearsals.md"


def agenttool(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    name, *rest = words
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "rehearse", name, "--state", str(root.parent / "s"), *rest],
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


CHANGE = ("--", "sh", "-c", "echo two >> a.txt; echo printed")


def test_without_an_answer_nothing_is_kept(root: Path) -> None:
    done = agenttool(root, "run", *CHANGE)
    assert done.returncode == EXIT_CODES["not_committed"]
    assert "printed" in done.stdout
    assert "+two" in done.stdout
    assert (root / "a.txt").read_text() == "one\n"
    assert json.loads(agenttool(root, "list", "--json").stdout) == []


def test_it_commits_where_that_is_stated(root: Path) -> None:
    assert agenttool(root, "run", "--commit", *CHANGE).returncode == 0
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_a_failing_command_is_not_committed(root: Path) -> None:
    done = agenttool(root, "run", "--commit", "--", "sh", "-c", "echo two >> a.txt; exit 3")
    assert done.returncode == EXIT_CODES["not_committed"]
    assert (root / "a.txt").read_text() == "one\n"


def test_a_kept_layer_is_shown_and_committed_once(root: Path) -> None:
    assert agenttool(root, "run", "--keep", *CHANGE).returncode == 0
    (layer,) = json.loads(agenttool(root, "list", "--json").stdout)
    assert json.loads(agenttool(root, "show", layer["id"], "--json").stdout) == layer
    assert agenttool(root, "commit", layer["id"]).returncode == 0
    assert agenttool(root, "commit", layer["id"]).returncode == EXIT_CODES["unknown"]
    assert (root / "a.txt").read_text() == "one\ntwo\n"


def test_a_kept_layer_is_discarded(root: Path) -> None:
    agenttool(root, "run", "--keep", *CHANGE)
    (layer,) = json.loads(agenttool(root, "list", "--json").stdout)
    assert agenttool(root, "discard", layer["id"]).returncode == 0
    assert json.loads(agenttool(root, "list", "--json").stdout) == []


def test_a_root_that_cannot_be_rehearsed_ends_so(root: Path) -> None:
    done = agenttool(root, "run", "--root", "/", *CHANGE)
    assert done.returncode == EXIT_CODES["unavailable"]
    assert "nothing ran" in done.stderr


def test_two_answers_are_a_usage_error(root: Path) -> None:
    assert agenttool(root, "run", "--keep", "--commit", *CHANGE).returncode == EXIT_CODES["usage"]


@pytest.mark.parametrize("code", EXIT_CODES.values())
def test_the_page_has_each_exit_code(code: int) -> None:
    assert f"\n| {code} | " in PAGE.read_text("utf-8")


def test_what_is_no_name_of_a_command_is_rehearsed(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "rehearse", "--state", str(root.parent / "s"), "ls"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0
    assert "it would change nothing" in done.stdout
