"""A sealed layer is committed once, as it was shown, or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from rehearsal_support import tree_of

from agenttool_otel.enforcement.rehearsal import (
    CommitConflict,
    CommitRefused,
    RehearsalError,
    Rehearsals,
    SealedLayer,
    UnknownLayer,
)

LINE = "echo more >> a.txt; rm -r sub; mkdir -p n/m; echo x > n/m/x; chmod 500 n/m; ln -s x n/l"


def sealed_by(rehearsals: Rehearsals, root: Path, line: str = LINE) -> SealedLayer:
    with rehearsals.open([root]) as layer:
        assert layer.run(["sh", "-ec", line], cwd=root).exit_code == 0
        return layer.finish()


def test_a_commit_gives_what_was_shown(rehearsals: Rehearsals, root: Path) -> None:
    sealed = sealed_by(rehearsals, root)
    assert sealed.commit(sealed.digest).whole
    assert sorted(tree_of(root)) == ["a.txt", "n", "n/l", "n/m", "n/m/x"]
    assert (root / "a.txt").read_text() == "one\nmore\n"
    assert (root / "n" / "m").stat().st_mode & 0o777 == 0o500


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("rm -r sub; echo x > sub", {"a.txt": "one\n", "sub": "x\n"}),
        (
            "rm a.txt; mkdir a.txt; mv sub/b.txt a.txt/b; rm -r sub; ln -s a.txt sub",
            {"a.txt/b": "two\n", "sub/b": "two\n"},
        ),
    ],
)
def test_a_directory_becomes_a_file_and_a_file_one(
    rehearsals: Rehearsals, root: Path, line: str, left: dict[str, str]
) -> None:
    sealed = sealed_by(rehearsals, root, line)
    assert sealed.commit(sealed.digest).whole
    assert {name: (root / name).read_text() for name in left} == left


def test_a_commit_leaves_no_mark_of_the_overlay(rehearsals: Rehearsals, root: Path) -> None:
    sealed = sealed_by(rehearsals, root)
    sealed.commit(sealed.digest)
    for path in [root, *root.rglob("*")]:
        assert not [name for name in os.listxattr(path, follow_symlinks=False) if "overlay" in name]


def test_a_layer_is_committed_once(rehearsals: Rehearsals, root: Path) -> None:
    sealed = sealed_by(rehearsals, root, "echo more >> a.txt")
    again = rehearsals.kept(sealed.id)
    sealed.commit(sealed.digest)
    with pytest.raises(UnknownLayer):
        again.commit(sealed.digest)
    with pytest.raises(UnknownLayer):
        rehearsals.kept(sealed.id)


def test_another_digest_commits_nothing(rehearsals: Rehearsals, root: Path) -> None:
    sealed = sealed_by(rehearsals, root)
    before = tree_of(root)
    with pytest.raises(CommitRefused):
        sealed.commit("0" * 64)
    assert tree_of(root) == before


def test_another_process_finds_a_kept_layer(tmp_path: Path, root: Path) -> None:
    sealed = sealed_by(Rehearsals(tmp_path / "state"), root)
    found = Rehearsals(tmp_path / "state").kept(sealed.id)
    assert (found.digest, found.effects) == (sealed.digest, sealed.effects)
    assert found.commit(sealed.digest).whole


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a.txt").write_text("two\n"),
        lambda root: (root / "a.txt").unlink(),
        lambda root: (root / "sub" / "deep" / "new").write_text(""),
        lambda root: (root / "sub" / "b.txt").chmod(0o600),
        lambda root: (root / "n").mkdir(),
        lambda root: os.utime(root / "a.txt"),
    ],
)
def test_a_change_below_is_a_conflict(rehearsals: Rehearsals, root: Path, change: object) -> None:
    sealed = sealed_by(rehearsals, root)
    change(root)  # type: ignore[operator]
    before = tree_of(root)
    with pytest.raises(CommitConflict) as conflict:
        sealed.commit(sealed.digest)
    assert conflict.value.paths
    assert tree_of(root) == before


def test_a_directory_that_became_a_link_is_a_conflict(
    rehearsals: Rehearsals, root: Path, tmp_path: Path
) -> None:
    sealed = sealed_by(rehearsals, root, "echo x > sub/new")
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(root / "sub")
    (root / "sub").symlink_to(outside)
    with pytest.raises(CommitConflict):
        sealed.commit(sealed.digest)
    assert not list(outside.iterdir())


def test_a_root_that_was_replaced_is_a_conflict(rehearsals: Rehearsals, root: Path) -> None:
    sealed = sealed_by(rehearsals, root, "echo x > new")
    root.rename(root.with_name("old"))
    root.mkdir()
    with pytest.raises(CommitConflict):
        sealed.commit(sealed.digest)


def test_a_change_elsewhere_is_no_conflict(rehearsals: Rehearsals, root: Path) -> None:
    sealed = sealed_by(rehearsals, root, "echo more >> a.txt")
    (root / "sub" / "other").write_text("theirs")
    assert sealed.commit(sealed.digest).whole
    assert (root / "sub" / "other").read_text() == "theirs"


def test_a_layer_whose_content_was_changed_is_refused(rehearsals: Rehearsals, root: Path) -> None:
    sealed = sealed_by(rehearsals, root)
    Path(sealed.upper(0), "a.txt").write_text("other\n")
    with pytest.raises(CommitRefused):
        sealed.commit(sealed.digest)


def test_incomplete_effects_are_not_committed(rehearsals: Rehearsals, root: Path) -> None:
    sealed = sealed_by(rehearsals, root, "mkfifo p")
    with pytest.raises(CommitRefused):
        sealed.commit(sealed.digest)


def test_a_sealed_layer_runs_nothing(rehearsals: Rehearsals, root: Path) -> None:
    layer = rehearsals.open([root])
    layer.finish()
    with pytest.raises(RehearsalError):
        layer.run(["true"], cwd=root)


def test_a_discarded_layer_leaves_nothing(
    rehearsals: Rehearsals, root: Path, tmp_path: Path
) -> None:
    before = tree_of(root)
    sealed_by(rehearsals, root).discard()
    rehearsals.open([root]).discard()
    assert tree_of(root) == before
    assert not list((tmp_path / "state" / "layers").iterdir())
    assert not list((tmp_path / "state" / "trash").iterdir())


def test_an_expired_layer_is_swept(tmp_path: Path, root: Path) -> None:
    rehearsals = Rehearsals(tmp_path / "state", keep_seconds=0)
    sealed = sealed_by(rehearsals, root)
    with pytest.raises(UnknownLayer):
        sealed.commit(sealed.digest)
    assert rehearsals.sweep().removed == (sealed.id,)
    assert not list((tmp_path / "state" / "layers").iterdir())


def test_a_sweep_leaves_what_is_open_or_kept(rehearsals: Rehearsals, root: Path) -> None:
    sealed = sealed_by(rehearsals, root)
    with rehearsals.open([root]) as layer:
        swept = rehearsals.sweep()
        assert (swept.busy, swept.removed) == ((layer.id,), ())
        assert layer.run(["true"], cwd=root).exit_code == 0
    assert rehearsals.kept(sealed.id).digest == sealed.digest


def test_a_half_commit_that_cannot_be_finished_is_reported(
    rehearsals: Rehearsals, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = sealed_by(rehearsals, root, "echo more >> a.txt; echo x > new")
    rename = os.rename

    def stopped(source: str, target: str, **where: int) -> None:
        if target == "new":
            raise OSError(28, "No space left on device")
        rename(source, target, **where)

    monkeypatch.setattr(os, "rename", stopped)
    committed = sealed.commit(sealed.digest)
    assert [left.path for left in committed.unfinished] == [str(root / "new")]
    assert [half.layer_id for half in rehearsals.sweep().half] == [sealed.id]
    monkeypatch.undo()
    assert rehearsals.sweep().finished == (sealed.id,)
    assert (root / "new").read_text() == "x\n"


def test_a_user_who_writes_into_a_half_commit_is_not_overwritten(
    rehearsals: Rehearsals, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = sealed_by(rehearsals, root, "echo more >> a.txt; echo x > new")
    monkeypatch.setattr(SealedLayer, "finish_commit", lambda self, path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sealed.commit(sealed.digest)
    monkeypatch.undo()
    (root / "a.txt").write_text("the user's")
    (half,) = rehearsals.sweep().half
    assert [left.path for left in half.unfinished] == [str(root / "a.txt")]
    assert (root / "a.txt").read_text() == "the user's"


def test_a_state_elsewhere_copies_files(root: Path) -> None:
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == root.stat().st_dev:
        pytest.skip("there is no second file system")
    folder = Path(f"/dev/shm/rehearsals-{os.getpid()}")
    try:
        sealed = sealed_by(Rehearsals(folder), root, f"{LINE}; ln a.txt n/twin")
        assert sealed.commit(sealed.digest).whole
    finally:
        shutil.rmtree(folder)
    found = tree_of(root)
    assert sorted(found) == ["a.txt", "n", "n/l", "n/m", "n/m/x", "n/twin"]
    assert found["n/twin"] == ("file", 0o644, b"one\nmore\n", "a.txt")
