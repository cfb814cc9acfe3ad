"""A sandbox whose starter was killed at a bad moment: it is ended, and its layer is removed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from agenttool_otel.enforcement.rehearsal import Rehearsals, sandbox

WAITING = """#!/bin/sh
exec 8>/dev/null 9<>{fifo}
exec {bubblewrap} --unshare-user --info-fd 8 --userns-block-fd 9 "$@"
"""


@pytest.fixture
def waiting(tmp_path: Path, host: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that is bubblewrap, but waits between its ``clone`` and its word to the child."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    program = tmp_path / "waiting"
    program.write_text(WAITING.format(fifo=fifo, bubblewrap=sandbox.bubblewrap()))
    program.chmod(0o700)
    monkeypatch.setattr(sandbox, "bubblewrap", lambda: str(program))
    return program


def sandboxes(folder: Path) -> list[int]:
    """Return the processes of bubblewrap with a path below a folder among their arguments."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            program = os.readlink(f"/proc/{name}/exe")
            words = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if program.endswith("/bwrap") and os.fsencode(folder) in words:
            found.append(int(name))
    return found


def wait_for(number: int, folder: Path) -> None:
    """Wait until there are so many of them."""
    deadline = time.monotonic() + 60
    while len(sandboxes(folder)) != number:
        assert time.monotonic() < deadline, sandboxes(folder)
        time.sleep(0.01)


def run_and_be_killed(state: Path, root: Path) -> None:
    """Run a command in a child process, and kill that while bubblewrap is between the two."""
    process = os.fork()
    if not process:
        try:
            Rehearsals(state).open([root], places=()).run(["true"], cwd=root)
        finally:
            os._exit(0)
    wait_for(2, root)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    wait_for(1, root)


def test_a_run_ends_though_the_child_waits(waiting: Path, root: Path, tmp_path: Path) -> None:
    with Rehearsals(tmp_path / "state").open([root], places=()) as layer:
        assert layer.run(["true"], cwd=root, timeout=1).timed_out
        assert not sandboxes(root)


def test_a_sweep_ends_what_its_opener_left(waiting: Path, root: Path, tmp_path: Path) -> None:
    run_and_be_killed(tmp_path / "state", root)
    swept = Rehearsals(tmp_path / "state").sweep()
    assert len(swept.removed) == 1
    assert not swept.busy
    assert not sandboxes(root)


def test_a_sweep_leaves_a_living_openers(root: Path, tmp_path: Path) -> None:
    with Rehearsals(tmp_path / "state").open([root], places=()) as layer:
        swept = Rehearsals(tmp_path / "state").sweep()
        assert swept.busy == (layer.id,)
        assert layer.run(["true"], cwd=root).exit_code == 0
