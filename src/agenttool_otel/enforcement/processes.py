"""The processes of a command: who is there, and how they end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

_ROUNDS = 100
_PAUSE = 0.005


def pids() -> list[int]:
    """Return the ids of all processes; none where there is no ``/proc``."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    return [int(name) for name in names if name.isdecimal()]


def is_dead(pid: int) -> bool:
    """Return whether a process is gone, or waits only to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # "12 (a) b) S ...": a program's name may have brackets
            return file.read().rpartition(b") ")[2][:1] in b"ZX"
    except OSError:
        return True


def in_session(session: int) -> Iterator[int]:
    """Yield the living processes of a session but its leader."""
    for pid in pids():
        with suppress(OSError):
            if pid != session and os.getsid(pid) == session and not is_dead(pid):
                yield pid


def in_domain() -> Iterator[int]:
    """Yield the living processes that this confined thread may signal."""
    for pid in pids():
        if pid == os.getpid():
            continue
        with suppress(OSError):
            os.kill(pid, 0)
            if not is_dead(pid):
                yield pid


def end_group(group: int) -> None:
    """Kill a process group at once; its leader must not have been reaped yet."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def end_session(session: int) -> int:
    """Kill what is left of a session in other groups; return how many processes were there."""
    ended = set()
    for _ in range(_ROUNDS):
        there = set(in_session(session))
        if not there:
            break
        for pid in there:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended |= there
        time.sleep(_PAUSE)
    return len(ended)
