"""Every path of the corpora gets the verdict that a policy reads off its fact."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel.facts import PathChanged, open_checked
from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.readers.paths import path_fact
from agenttool_otel.readers.types import PathFact

HERE = Path(__file__).parent
SHARED = (
    Path(os.environ.get("AGENTTOOL_CORPORA", HERE.parents[2] / "shared" / "corpora"))
    / "paths.jsonl"
)
OWN = HERE / "corpus" / "paths.jsonl"
PROTECTED_ALWAYS = {"key", "credential", "policy", "approval", "vcs"}
PROTECTED_WRITES = {"agent_config", "system", "dotfile"}


def load(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def verdict(fact: PathFact) -> str:
    """What the stock policy reads: nothing but fields of the fact."""
    if fact["rejected"] == "special_file" and not fact["roots"]:
        return "outside"  # both refuse; where a thing is counts before what it is
    if fact["rejected"] or fact["windows"] or fact["variables"]:
        return "reject"
    if not fact["inside"] or not fact["certain"]:
        return "outside"
    if fact["access"] != "read" and (fact["hard_links"] or 0) > 1:
        return "outside"
    kind = fact["sensitive"]
    if kind in PROTECTED_ALWAYS or (fact["access"] != "read" and kind in PROTECTED_WRITES):
        return "protected"
    return "inside"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The corpus's /srv/ws below a scratch folder, with the neighbours that its rows speak of."""
    project = tmp_path / "ws" / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "index.js").write_text("x")
    (project / "deeply" / "nested").mkdir(parents=True)
    (project / "deeply" / "nested" / "file.txt").write_text("x")
    for neighbour in ("project2", "project_backup", "other"):
        (tmp_path / "ws" / neighbour).mkdir()
    (tmp_path / "ws" / "project2" / "secret").write_text("x")
    return tmp_path


def environment(tree: Path, **kwargs: Any) -> FactEnvironment:
    project = str(tree / "ws" / "project")
    return FactEnvironment(roots=(project,), cwd=project, home="/home/agent", **kwargs)


def local(text: str, tree: Path) -> str:
    return text.replace("/srv/ws", str(tree / "ws"))


def prepare(setup: dict[str, Any], tree: Path) -> None:
    project = tree / "ws" / "project"
    for key, value in setup.items():
        if key.startswith("symlink"):
            link = project / value[0]
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(local(value[1], tree))
        elif key.startswith("hardlink"):
            os.link(local(value[1], tree), project / value[0])
        elif key.startswith("mkdir"):
            (project / value).mkdir(parents=True)
        elif key.startswith("fifo"):
            os.mkfifo(project / value)
        elif key.startswith("file"):
            (project / value).parent.mkdir(parents=True, exist_ok=True)
            (project / value).write_text("x")
        else:
            raise AssertionError(f"unknown set-up {key}")


def cases() -> list[Any]:
    rows = load(SHARED) + load(OWN)
    return [pytest.param(row, id=row["id"]) for row in rows if "race" not in row.get("setup", {})]


@pytest.mark.parametrize("row", cases())
def test_a_path_of_the_corpus_gets_its_verdict(row: dict[str, Any], tree: Path) -> None:
    prepare(row.get("setup", {}), tree)
    fact = path_fact(
        local(row["input"], tree),
        argument="/path",
        access=row["op"],
        surroundings=environment(tree),
    )
    assert verdict(fact) == row["expected"], (row["why"], fact)
    json.dumps(fact).encode("utf-8")


@pytest.mark.skipif(not SHARED.exists(), reason="the shared corpora are not here")
def test_the_shared_corpus_was_really_read() -> None:
    assert len(load(SHARED)) >= 30


@pytest.mark.parametrize("mode", ["w", "a", "x", "r+", "wb"])
def test_a_directory_swapped_for_a_link_is_not_walked(tree: Path, mode: str) -> None:
    project = tree / "ws" / "project"
    (project / "swap_dir").mkdir()
    fact = path_fact("swap_dir/x", argument="/path", access="write", surroundings=environment(tree))
    assert verdict(fact) == "inside"
    (project / "swap_dir").rmdir()
    (project / "swap_dir").symlink_to(tree / "ws" / "other")
    with pytest.raises((PathChanged, FileNotFoundError)):
        open_checked(fact, mode)
    assert list((tree / "ws" / "other").iterdir()) == []


def test_a_link_put_where_a_new_file_goes_is_not_followed(tree: Path) -> None:
    project = tree / "ws" / "project"
    victim = tree / "ws" / "project2" / "secret"
    fact = path_fact("new.txt", argument="/path", access="write", surroundings=environment(tree))
    assert (verdict(fact), fact["exists"]) == ("inside", False)
    (project / "new.txt").symlink_to(victim)
    with pytest.raises(PathChanged):
        open_checked(fact, "w")
    assert victim.read_text() == "x"


def test_a_new_file_is_not_made_in_a_replaced_directory(tree: Path) -> None:
    project = tree / "ws" / "project"
    (project / "parent").mkdir()
    fact = path_fact(
        "parent/new.txt", argument="/path", access="write", surroundings=environment(tree)
    )
    assert verdict(fact) == "inside"
    (project / "parent").rename(project / "kept")  # keeps its inode in use
    (project / "parent").mkdir()
    with pytest.raises(PathChanged):
        open_checked(fact, "w")
    assert list((project / "parent").iterdir()) == []


def test_a_retargeted_working_directory_is_noticed_at_the_open(tree: Path) -> None:
    # pa22: the link led inside when it was checked, and outside when it was used
    project = tree / "ws" / "project"
    (project / "src" / "file").write_text("inside")
    (tree / "ws" / "other" / "file").write_text("outside")
    link = project / "cwd_link"
    link.symlink_to("src")
    fact = path_fact(
        "cwd_link/file", argument="/path", access="read", surroundings=environment(tree)
    )
    assert verdict(fact) == "inside"
    link.unlink()
    link.symlink_to(tree / "ws" / "other")
    with open_checked(fact) as opened:
        assert opened.read() == "inside"
    again = path_fact(
        "cwd_link/file", argument="/path", access="read", surroundings=environment(tree)
    )
    assert verdict(again) == "outside"


def test_a_file_swapped_for_a_link_after_the_check_is_not_opened(tree: Path) -> None:
    # pa23: a regular file becomes a link to a victim between the check and the write
    project = tree / "ws" / "project"
    victim = tree / "ws" / "project2" / "secret"
    (project / "file_race.txt").write_text("mine")
    fact = path_fact(
        "file_race.txt", argument="/path", access="write", surroundings=environment(tree)
    )
    assert verdict(fact) == "inside"
    (project / "file_race.txt").unlink()
    (project / "file_race.txt").symlink_to(victim)
    with pytest.raises(PathChanged):
        open_checked(fact, "w")
    assert victim.read_text() == "x"
