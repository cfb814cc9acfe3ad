"""Processes that are killed at any point of a rehearsal: nothing without the word, nothing twice, nothing half."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from agenttool_otel.enforcement.rehearsal import RehearsalError, Rehearsals

FILES = 12
LINE = f"for i in $(seq {FILES}); do cat next > f$i; echo >> count$i; done; rm -r gone; mkdir -p made/in"


def make_tree(root: Path) -> None:
    root.mkdir()
    (root / "next").write_text("new")
    (root / "gone" / "in").mkdir(parents=True)
    (root / "gone" / "in" / "x").write_text("x")
    for number in range(1, FILES + 1):
        (root / f"f{number}").write_text("old")
        (root / f"count{number}").write_text("")


def state_of(root: Path) -> str:
    """Return "before", "after", or what is neither."""
    contents = {(root / f"f{number}").read_text() for number in range(1, FILES + 1)}
    counts = {(root / f"count{number}").read_text() for number in range(1, FILES + 1)}
    gone = (root / "gone" / "in" / "x").exists()
    found = (contents, counts, gone, (root / "made" / "in").exists())
    if found == ({"old"}, {""}, True, False):
        return "before"
    if found == ({"new"}, {"\n"}, False, True):
        return "after"
    return f"half: {found}"


def child(work: object) -> int:
    """Run a function in a child process, and return its id."""
    process = os.fork()
    if process:
        return process
    try:
        work()  # type: ignore[operator]
    finally:
        os._exit(0)


def kill(process: int, seconds: float) -> None:
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def swept_until_free(rehearsals: Rehearsals) -> None:
    """Sweep until no layer is held: the sandbox of a killed process may take a moment to end."""
    deadline = time.monotonic() + 200
    swept = rehearsals.sweep()
    while swept.busy:
        assert time.monotonic() < deadline, "a sandbox outlives its process"
        time.sleep(0.01)
        swept = rehearsals.sweep()
    assert not swept.half


def one_life(folder: Path, chance: random.Random) -> str:
    """Rehearse and commit in a process that is killed, sweep in one that is killed, and sweep."""
    root, state, word = folder / "root", folder / "state", folder / "word"
    make_tree(root)
    gives_word = chance.random() < 0.7
    reading, writing = os.pipe()

    def work() -> None:
        with Rehearsals(state).open([root], places=()) as layer:
            layer.run(["sh", "-c", LINE], cwd=root)
            sealed = layer.finish()
        if gives_word:
            word.write_text(sealed.digest)
            os.write(writing, b"word")
            sealed.commit(sealed.digest)

    process = child(work)
    os.close(writing)
    if chance.random() < 0.6:
        os.read(reading, 4)  # until the word, or the end
        kill(process, chance.uniform(0, 0.03))
    else:
        kill(process, chance.uniform(0, 0.15))
    os.close(reading)
    kill(child(lambda: Rehearsals(state).sweep()), chance.uniform(0, 0.01))
    rehearsals = Rehearsals(state)
    swept_until_free(rehearsals)
    reached = state_of(root)
    if reached == "after":
        assert word.exists(), "committed without a word"
    for layer in rehearsals.layers():
        assert reached == "before", "committed, and kept"
        # a second time by whoever finds it: once in all
        if gives_word:
            layer.commit(layer.digest)
            assert state_of(root) == "after"
            with pytest.raises(RehearsalError):
                layer.commit(layer.digest)
    final = state_of(root)
    late = Rehearsals(state, keep_seconds=0)
    monotone = time.time
    try:
        time.time = lambda: monotone() + 10**6  # type: ignore[assignment]
        swept_until_free(late)
    finally:
        time.time = monotone
    assert os.listdir(state / "layers") == []
    assert os.listdir(state / "trash") == []
    assert state_of(root) == final
    return final


def many_lives(folder: Path, lives: int) -> None:
    chance = random.Random(lives)
    ends = []
    for number in range(lives):
        place = folder / str(number)
        place.mkdir()
        ends.append(one_life(place, chance))
    assert set(ends) == {"before", "after"}


@pytest.mark.slow
def test_killed_at_forty_points_it_is_whole(tmp_path: Path, host: None) -> None:
    many_lives(tmp_path, 40)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_at_300_points_it_is_whole(tmp_path: Path, host: None) -> None:
    many_lives(tmp_path, 300)
