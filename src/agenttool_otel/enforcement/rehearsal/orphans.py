"""Sandboxes that outlive the process that started them.

bubblewrap asks the kernel to end it with its parent, and its child with itself. Killed between its ``clone`` and
its word to the child, it leaves a child that waits for that word for ever, and holds the layer's lock meanwhile.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from agenttool_otel.enforcement.processes import pids

_PROGRAM: Final = "bwrap"
_ROUNDS: Final = 100
_PAUSE: Final = 0.01


def end_sandboxes(lock: os.stat_result) -> None:
    """Kill the processes of bubblewrap that have a lock open, and wait until they have ended.

    Args:
        lock: the status of the layer's lock file. The process that opened the layer has ended, or
            waits for this.
    """
    for _ in range(_ROUNDS):
        left = list(_holders(lock))
        if not left:
            return
        for process in left:
            _kill(process, lock)
        time.sleep(_PAUSE)


def _holders(lock: os.stat_result) -> Iterator[int]:
    return (process for process in pids() if _holds(process, lock))


def _holds(process: int, lock: os.stat_result) -> bool:
    """Return whether a process is one of bubblewrap's, alive, with the lock open.

    An agent's own process that was forked while the layer was open has it open, too.
    """
    try:
        program = os.path.basename(os.readlink(f"/proc/{process}/exe"))
        if program.removesuffix(" (deleted)") != _PROGRAM:
            return False
        folder = f"/proc/{process}/fd"
        return any(_is_at(f"{folder}/{name}", lock) for name in os.listdir(folder))
    except OSError:  # it has ended, or is another user's
        return False


def _is_at(path: str, lock: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), lock)
    except OSError:
        return False


def _kill(process: int, lock: os.stat_result) -> None:
    with suppress(OSError):
        descriptor = os.pidfd_open(process)
        try:
            # the id may be another process' by now; that of a descriptor is not
            if _holds(process, lock):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)
