"""A rehearsed and committed sequence of file operations gives the tree that a plain run gives."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rehearsal_support import ENVIRONMENT, operator, run_plain, script, tree_of

from agenttool_otel.enforcement.rehearsal import Rehearsals

NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "n", "n/a", "n/m"])
TEXTS = st.sampled_from(["", "x", "line\n" * 50])
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o700])
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), NAMES, TEXTS),
    st.tuples(st.just("append"), NAMES, TEXTS),
    st.tuples(st.just("truncate"), NAMES, st.integers(0, 9)),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("mkdir"), NAMES),
    st.tuples(st.just("rmtree"), NAMES),
    st.tuples(st.just("symlink"), NAMES, NAMES),
    st.tuples(st.just("link"), NAMES, NAMES),
    st.tuples(st.just("chmod"), NAMES, MODES),
)


def make_tree(top: Path) -> None:
    (top / "d" / "e").mkdir(parents=True)
    for name in ("a", "d/a", "d/b", "d/e/a"):
        (top / name).write_text(f"{name}\n" * 3)
    (top / "b").symlink_to("a")


SEQUENCES = st.lists(OPERATIONS.map(list), min_size=1, max_size=14)


@given(operations=SEQUENCES)
@settings(max_examples=20)
def test_a_commit_gives_the_tree_of_a_plain_run(host: None, operations: list[list[Any]]) -> None:
    compare(operations)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@given(operations=SEQUENCES)
@settings(max_examples=400)
def test_many_commits_give_the_trees_of_plain_runs(host: None, operations: list[list[Any]]) -> None:
    compare(operations)


def compare(operations: list[list[Any]]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="rehearsal-"))
    try:
        plain, root = folder / "plain", folder / "root"
        for top in (plain, root):
            make_tree(top)
        before = tree_of(root)
        outcomes = run_plain(operations, plain)
        rehearsals = Rehearsals(folder / "state")
        for committed in (False, True):
            with rehearsals.open([root], places=()) as layer:
                run = layer.run(operator(), cwd=root, env=ENVIRONMENT, input=script(operations))
                sealed = layer.finish()
            assert run.stdout.decode() == outcomes, run.stderr
            assert tree_of(root) == before
            if not committed:
                sealed.discard()
                assert tree_of(root) == before
                continue
            assert sealed.effects.complete, sealed.effects.reasons
            assert sealed.commit(sealed.digest).whole
            assert tree_of(root) == tree_of(plain)
    finally:
        shutil.rmtree(folder)
