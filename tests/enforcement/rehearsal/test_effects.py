"""What a rehearsed command would change is a list of effects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rehearsal_support import tree_of

from agenttool_otel.enforcement.rehearsal import Effects, Kind, Rehearsals, layer_diff


def effects_of(rehearsals: Rehearsals, root: Path, line: str) -> Effects:
    with rehearsals.open([root]) as layer:
        run = layer.run(["sh", "-ec", line], cwd=root)
        assert run.exit_code == 0, run.stderr
        sealed = layer.finish()
    sealed.discard()
    return sealed.effects


def shown(effects: Effects, root: Path) -> list[tuple[str, str]]:
    return [
        (change.operation.value, os.path.relpath(change.path, root)) for change in effects.changes
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cat a.txt", []),
        ("echo x > new", [("created", "new")]),
        ("echo x >> a.txt", [("changed", "a.txt")]),
        ("touch -d 2001-01-01 a.txt", [("changed", "a.txt")]),
        ("chmod 755 a.txt", [("mode", "a.txt")]),
        ("rm a.txt", [("deleted", "a.txt")]),
        ("mkdir n && rmdir n", []),
        ("ln a.txt n", [("linked", "n")]),
        ("ln -s a.txt n", [("created", "n")]),
        ("mv a.txt n", [("deleted", "a.txt"), ("created", "n")]),
        ("rm a.txt && mkdir a.txt", [("changed", "a.txt")]),
        ("chmod 700 .", [("mode", ".")]),
        (
            "rm -r sub && echo x > sub",
            [
                ("changed", "sub"),
                ("deleted", "sub/b.txt"),
                ("deleted", "sub/deep"),
                ("deleted", "sub/deep/c.txt"),
            ],
        ),
        (
            "rm -r sub && mkdir sub && echo two > sub/new",
            [
                ("deleted", "sub/b.txt"),
                ("deleted", "sub/deep"),
                ("deleted", "sub/deep/c.txt"),
                ("created", "sub/new"),
            ],
        ),
    ],
)
def test_each_operation_is_an_effect(
    rehearsals: Rehearsals, root: Path, line: str, expected: list[tuple[str, str]]
) -> None:
    before = tree_of(root)
    effects = effects_of(rehearsals, root, line)
    assert shown(effects, root) == expected
    assert effects.complete
    assert tree_of(root) == before


def test_a_deleted_tree_is_expanded_and_counted(rehearsals: Rehearsals, root: Path) -> None:
    effects = effects_of(rehearsals, root, "rm -r sub")
    top = effects.changes[0]
    assert (top.path, top.below, len(effects.changes)) == (str(root / "sub"), 3, 4)


def test_a_change_has_size_mode_and_target(rehearsals: Rehearsals, root: Path) -> None:
    effects = effects_of(
        rehearsals, root, "echo hey > run; chmod 755 run; ln -s run to; ln run twin"
    )
    run, twin = [change for change in effects.changes if change.kind is Kind.FILE]
    link = next(change for change in effects.changes if change.kind is Kind.SYMLINK)
    assert (run.size, run.executable, run.mode) == (4, True, 0o755)
    assert (link.target, twin.target) == ("run", str(root / "run"))


def test_noise_is_marked_and_not_dropped(rehearsals: Rehearsals, root: Path) -> None:
    effects = effects_of(rehearsals, root, "mkdir __pycache__; echo > __pycache__/x.pyc")
    assert [change.noise for change in effects.changes] == [True, True]
    assert effects.empty


def test_more_changes_than_the_limit_are_incomplete(tmp_path: Path, root: Path) -> None:
    rehearsals = Rehearsals(tmp_path / "state", changes_limit=20)
    effects = effects_of(rehearsals, root, "for i in $(seq 50); do echo > $i; done")
    assert not effects.complete
    assert "more than 20 paths" in effects.reasons[0]


def test_a_changed_file_with_two_names_is_incomplete(rehearsals: Rehearsals, root: Path) -> None:
    os.link(root / "a.txt", root / "twin")
    effects = effects_of(rehearsals, root, "echo >> a.txt")
    assert not effects.complete
    assert "2 names" in effects.reasons[0]


def test_a_pipe_is_incomplete(rehearsals: Rehearsals, root: Path) -> None:
    assert not effects_of(rehearsals, root, "mkfifo p").complete


def test_a_later_command_sees_what_an_earlier_wrote(rehearsals: Rehearsals, root: Path) -> None:
    with rehearsals.open([root]) as layer:
        layer.run(["sh", "-c", "echo first > n"], cwd=root)
        assert layer.run(["cat", "n"], cwd=root).stdout == b"first\n"


def test_several_roots_are_each_a_layer(rehearsals: Rehearsals, root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with rehearsals.open([root, other, root / "sub"]) as layer:
        assert layer.roots == (str(other), str(root))
        layer.run(["sh", "-c", f"echo > {other}/x; echo > y"], cwd=root)
        sealed = layer.finish()
    assert [change.path for change in sealed.effects.changes] == [f"{other}/x", f"{root}/y"]
    sealed.commit(sealed.digest)
    assert (other / "x").exists()


def test_a_root_by_a_link_is_the_directory_itself(
    rehearsals: Rehearsals, root: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    with rehearsals.open([link]) as layer:
        layer.run(["sh", "-c", "echo > x"], cwd=link)
        sealed = layer.finish()
    assert [change.path for change in sealed.effects.changes] == [f"{root}/x"]


def test_what_somebody_else_changed_meanwhile_is_incomplete(
    rehearsals: Rehearsals, root: Path
) -> None:
    with rehearsals.open([root]) as layer:
        layer.run(["sh", "-c", "echo >> a.txt"], cwd=root)
        (root / "a.txt").write_text("by another")
        effects = layer.finish().effects
    assert not effects.complete


def test_the_diff_is_redacted_and_bounded(rehearsals: Rehearsals, root: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    with rehearsals.open([root]) as layer:
        layer.run(["sh", "-c", f"echo token {secret} >> a.txt; seq 9000 > long"], cwd=root)
        sealed = layer.finish()
    diff = layer_diff(sealed, limit_chars=2000)
    assert "+token" in diff
    assert secret not in diff
    assert diff.endswith("(1 more files)")


def test_names_that_are_no_text_are_kept(rehearsals: Rehearsals, root: Path) -> None:
    with rehearsals.open([root]) as layer:
        layer.run(["sh", "-c", "echo > $(printf 'a\\377 b')"], cwd=root)
        sealed = layer.finish()
    assert rehearsals.kept(sealed.id).digest == sealed.digest
    assert sealed.commit(sealed.digest).whole
    assert (root / os.fsdecode(b"a\xff b")).exists()
