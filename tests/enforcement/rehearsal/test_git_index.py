"""An index that git has only refreshed is no effect; every other change of one is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agenttool_otel.enforcement.rehearsal import Rehearsals
from agenttool_otel.enforcement.rehearsal.git_index import is_refreshed

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

ORDINARY = {
    "diff": "git diff",
    "diff against a commit": "git diff HEAD",
    "status": "git status",
    "diff of what changed": "echo more >> notes.txt; git diff >/dev/null; git checkout -q notes.txt",
}
OTHERS = {
    "add": "echo x > new.txt; git add new.txt",
    "remove": "git rm -q --cached notes.txt",
    "mode": "git update-index --chmod=+x notes.txt",
    "assumed unchanged": "git update-index --assume-unchanged notes.txt",
    "skipped": "git update-index --skip-worktree notes.txt",
    "intended": "echo x > new.txt; git add -N new.txt",
    "other content": "echo x > notes.txt; git add notes.txt",
    "other format": "git update-index --index-version 4",
    "no index of git": "echo x > .git/index",
    "empty": ": > .git/index",
    "cut": "truncate -s -30 .git/index",
}


@pytest.fixture
def checkout(root: Path) -> Path:
    """A repository whose index is older than its files."""
    (root / "notes.txt").write_text("first\n", "utf-8")
    for line in ("git init -q", "git add -A", "git -c user.name=a -c user.email=a@b commit -qm a"):
        subprocess.run(line.split(), cwd=root, check=True)
    for path in root.rglob("*.txt"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    return root


def changed(rehearsals: Rehearsals, root: Path, line: str) -> bool:
    """Whether a line has an effect on the index."""
    with rehearsals.open([root]) as layer:
        run = layer.run(["sh", "-ec", line], cwd=root)
        assert run.exit_code == 0, run.stderr
        sealed = layer.finish()
    try:
        return str(root / ".git" / "index") in {change.path for change in sealed.effects.changes}
    finally:
        sealed.discard()


@pytest.mark.parametrize("line", ORDINARY.values(), ids=ORDINARY)
def test_an_index_that_is_refreshed_is_no_effect(
    rehearsals: Rehearsals, checkout: Path, line: str
) -> None:
    assert not changed(rehearsals, checkout, line)


@pytest.mark.parametrize("line", OTHERS.values(), ids=OTHERS)
def test_every_other_change_of_an_index_is_one(
    rehearsals: Rehearsals, checkout: Path, line: str
) -> None:
    assert changed(rehearsals, checkout, line)


def test_a_refreshed_index_is_not_committed(rehearsals: Rehearsals, checkout: Path) -> None:
    index = checkout / ".git" / "index"
    before = index.read_bytes()
    with rehearsals.open([checkout]) as layer:
        layer.run(["sh", "-ec", "git diff; echo x > made.txt"], cwd=checkout)
        sealed = layer.finish()
    sealed.commit(sealed.digest)
    assert index.read_bytes() == before
    assert (checkout / "made.txt").read_text("utf-8") == "x\n"


@pytest.mark.parametrize("name", ["index", "src/index", ".git/index.txt", "x.git/index"])
def test_a_file_elsewhere_is_no_index(tmp_path: Path, checkout: Path, name: str) -> None:
    index = str(checkout / ".git" / "index")
    assert is_refreshed(".git/index", index, index)
    assert not is_refreshed(name, index, index)
