"""A rehearsed call that is asked about, in processes of which each can be killed at any moment."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rehearsed_calls import ADA, Decides, Place, stated

from agenttool_otel import ApprovalRequired
from agenttool_otel.enforcement.rehearsal import Rehearsals, rehearsal_failure
from agenttool_otel.errors import AgentToolError
from agenttool_otel.testing import Capture, capture

FILES = 5
LINE = f"for i in $(seq {FILES}); do echo >> count$i; done; rm -r gone; mkdir -p made/in"


class Life:
    """One directory, one approval store, and the processes that work on them.

    Args:
        folder: an empty directory.
        chance: decides who is killed and when.
    """

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.place = Place(folder / "root", folder / "state")
        self.url = f"sqlite:///{folder / 'approvals.db'}"
        self.approved = False  # whether somebody ever began to agree
        self.kills = 0
        self._chance = chance
        root = self.place.root
        (root / "gone").mkdir(parents=True)
        (root / "gone" / "x").write_text("x")
        for number in range(1, FILES + 1):
            (root / f"count{number}").write_text("")

    def state(self) -> str:
        """Return "before", "after", or what is neither."""
        root = self.place.root
        lines = {(root / f"count{number}").read_text() for number in range(1, FILES + 1)}
        found = (lines, (root / "gone" / "x").exists(), (root / "made" / "in").exists())
        if found == ({""}, True, False):
            return "before"
        if found == ({"\n"}, False, True):
            return "after"
        return f"half: {found}"

    def ask(self) -> None:
        """Rehearse the command, and ask about its effects."""
        with self._governor() as captured, suppress(ApprovalRequired):
            self.place.call(captured, LINE)

    def agree(self) -> None:
        """Answer each question with yes."""
        with self._governor() as captured:
            store = captured.governor.approvals.store
            for request in store.list():
                if request.status.value == "pending":
                    store.answer(request.request_id, ADA)

    def go_on(self) -> None:
        """Resume each call."""
        with self._governor() as captured:
            self.place.govern(captured)
            for invocation in {
                each.invocation_id for each in captured.governor.approvals.store.list()
            }:
                with self.place.context(), suppress(AgentToolError):
                    captured.governor.resume(invocation)

    @contextmanager
    def _governor(self) -> Iterator[Capture]:
        with capture(
            policy=Decides(stated("ask")).engine,
            rehearsals_dir=str(self.place.state),
            approvals=self.url,
        ) as captured:
            yield captured

    def run(self, *steps: Callable[[], None], share: float) -> None:
        """Run steps at once, a process each.

        Args:
            steps: what the processes do.
            share: how many of them are killed, at a moment of their work.
        """
        processes = [_child(step, self.place.state) for step in steps]
        for process, reading in processes:
            os.read(reading, 1)  # proven, so that the work begins
            os.close(reading)
            if self._chance.random() < share:
                time.sleep(self._chance.uniform(0, 0.25))
                self.kills += _kill(process)
        for process, _ in processes:
            with suppress(ChildProcessError):
                os.waitpid(process, 0)

    def sweep(self, *, later: float = 0) -> None:
        """Sweep until no layer is held by a process.

        Args:
            later: seconds by which the clock is put forward.
        """
        clock = time.time
        time.time = lambda: clock() + later  # type: ignore[assignment]
        try:
            deadline = time.monotonic() + 200
            while (swept := Rehearsals(self.place.state).sweep()).busy:
                assert time.monotonic() < deadline, "a sandbox outlives its process"
                time.sleep(0.01)
        finally:
            time.time = clock
        assert not swept.half


def _kill(process: int) -> int:
    """Kill a process; return how many were, as it may have ended."""
    os.kill(process, signal.SIGKILL)
    return int(os.WIFSIGNALED(os.waitpid(process, 0)[1]))


def _child(step: Callable[[], Any], state: Path) -> tuple[int, int]:
    """Run a step in a process of its own; return it, and where it reports that it begins."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    try:
        assert not rehearsal_failure(state)
        os.write(writing, b".")
        step()
    finally:
        os._exit(0)


def one_life(folder: Path, chance: random.Random) -> tuple[str, int]:
    """Ask, answer and commit while processes are killed; return how it ended, and the kills."""
    life = Life(folder, chance)
    life.run(life.ask, share=0.5)
    life.run(life.ask, share=0.0 if chance.random() < 0.7 else 1.0)
    assert life.state() == "before"
    if chance.random() < 0.8:
        life.approved = True
        life.run(life.agree, share=0.3)
    life.run(life.go_on, life.go_on, share=0.7)
    life.sweep()
    assert life.state() in {"before", "after"}, life.state()
    if life.approved and chance.random() < 0.5:
        life.run(life.agree, share=0.0)
    life.run(life.go_on, share=0.0)
    life.sweep()
    reached = life.state()
    assert reached == "before" or (reached == "after" and life.approved), reached
    life.sweep(later=10**6)
    assert life.place.layers == [], "a layer is left"
    assert life.state() == reached
    return reached, life.kills
