"""What CONTRIBUTING.md shows is true: each task is done in a copy of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tutorials import Command, File, fits, steps

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TASKS = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^### |\Z)", PAGE, re.MULTILINE | re.DOTALL))
COPIED = ("src", "policies", "semconv", "tests", "tools", "docs", "dashboards", "pyproject.toml")
PASSED = re.compile(r"(\d+) passed")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the tasks touch, and of what their commands read."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "corpus")
            shutil.copytree(source, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def write(folder: Path, file: File) -> None:
    """Write a file of a task; a name that begins with ``+`` is appended to."""
    target = folder / file.name.removeprefix("+")
    target.parent.mkdir(parents=True, exist_ok=True)
    text = file.text
    if file.name.startswith("+"):
        text = target.read_text("utf-8") + text
    elif file.language == "diff":
        text = changed(target.read_text("utf-8"), text)
    target.write_text(text, "utf-8")


def changed(text: str, diff: str) -> str:
    """Return a text with a change: lines that begin with a blank, ``-`` or ``+``."""
    before = "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] in " -")
    after = "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] in " +")
    assert text.count(before) == 1, before
    return text.replace(before, after)


def run(folder: Path, command: Command) -> None:
    """Run a command of a task on the copy's own source."""
    programs = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PATH": programs}
    done = subprocess.run(
        ["bash", "-c", command.text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == command.status, printed
    assert fits(command.shown, printed.splitlines()), printed


def test_there_are_five() -> None:
    assert len(TASKS) == 5


@pytest.mark.parametrize("task", TASKS)
def test_a_task_touches_at_most_three_files(task: str) -> None:
    files = {step.name for step in steps(TASKS[task]) if not isinstance(step, Command)}
    assert 2 <= len(files) <= 3


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("task", TASKS)
def test_a_task_works_in_a_copy(task: str, copy: Path) -> None:
    commands = 0
    for step in steps(TASKS[task]):
        if isinstance(step, Command):
            run(copy, step)
            commands += 1
        else:
            write(copy, step)
    assert commands
