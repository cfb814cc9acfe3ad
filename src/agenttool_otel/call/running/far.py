"""A call whose body runs in another process: what it reports, and its question whether to stop,
come back by a pipe.

The body asks and this process answers, so that a report is passed on, and a stop is acknowledged, before
the body goes on.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Executor, Future
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from agenttool_otel.call.running.handle import CallHandle
from agenttool_otel.values.forks import new_lock

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class FarHandle(CallHandle):
    """The handle that the body gets there."""

    __slots__ = ("_mutex", "_pipe")

    def __init__(self, invocation_id: str, pipe: Connection[Any, Any]) -> None:
        self.invocation_id, self._pipe = invocation_id, pipe
        self.children = self.parent = self.deadline = self.cancellation = self.held_back = None
        self.locks, self.next_report = frozenset(), 0.0
        self._mutex = new_lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return FarHandle, (self.invocation_id, self._pipe)

    @property
    def canceled(self) -> bool:
        """Whether the call was asked to stop."""
        return self._ask(None)

    def runs_on(self, executor: Executor) -> bool:
        """Return ``False``: the body is in another process and takes no place of an executor."""
        return False

    def report(self, facts: dict[str, Any], pause: float = 0.0) -> None:
        """Report progress, or hold it back where the last report is younger than the pause."""
        now = time.monotonic()
        if pause and now < self.next_report:
            self.held_back = facts
            return
        self.held_back, self.next_report = None, now + pause
        self._ask(facts)

    def _ask(self, message: Any) -> bool:
        with (
            suppress(OSError, EOFError),
            self._mutex,
        ):  # the process that started the call may be gone
            self._pipe.send(message)
            return bool(self._pipe.recv())
        return False

    def end(self, _: Future[Any]) -> None:
        """Let nobody wait for the body any more; called where it was started."""
        with self._pipe, suppress(OSError):
            self._pipe.send(False)


def far_handle(handle: CallHandle) -> FarHandle:
    """Return the handle of a call for its body in another process, and answer it."""
    from multiprocessing import Pipe

    ours, theirs = Pipe()
    listens = copy_context().run  # listeners to progress are in this context
    threading.Thread(
        target=listens, args=(_answer, ours, handle), name="agenttool-far", daemon=True
    ).start()
    return FarHandle(handle.invocation_id, theirs)


def _answer(pipe: Connection[Any, Any], handle: CallHandle) -> None:
    with pipe, suppress(OSError, EOFError):
        while (message := pipe.recv()) is not False:
            if message is not None:
                handle.report(message)
            pipe.send(message is None and handle.canceled)
