"""The processes of a command: who is there, and how they end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import NamedTuple

_ROUNDS = 100
_PAUSE = 0.005
_SHORT = 0.1  # seconds in which ids can't have begun anew
_FEW = 256


def pids() -> list[int]:
    """Return the ids of all processes; none where there is no ``/proc``."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    return [int(name) for name in names if name.isdecimal()]


class Moment(NamedTuple):
    """A point in time, with the id that was given to a process last; 0 where it is not known."""

    pid: int
    seconds: float


def now() -> Moment:
    """Return the present moment."""
    try:
        last = _loadavg().split()[-1]  # "0.20 0.18 0.12 1/80 11206"
    except OSError:
        return Moment(0, time.monotonic())
    return Moment(int(last), time.monotonic())


class _Kept(NamedTuple):
    """A file that stays open: to open one below ``/proc`` costs five times as much as to read it."""

    descriptor: int
    identity: tuple[int, int]


@cache
def _kept() -> _Kept:
    descriptor = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
    return _Kept(descriptor, _identity(descriptor))


def _identity(descriptor: int) -> tuple[int, int]:
    state = os.fstat(descriptor)
    return state.st_dev, state.st_ino


def _loadavg() -> bytes:
    kept = _kept()
    if not _is_open(kept):
        # a daemon closes what it has not opened itself; the number may be another file's
        _kept.cache_clear()
        kept = _kept()
    return os.pread(kept.descriptor, 100, 0)


def _is_open(kept: _Kept) -> bool:
    try:
        return _identity(kept.descriptor) == kept.identity
    except OSError:
        return False


def pids_since(moment: Moment) -> Collection[int]:
    """Return ids among which are those of all processes that were started since a moment.

    After some time that is every process: a program can start so many that ids begin anew.
    """
    present = now()
    started = present.pid - moment.pid
    is_short = present.seconds - moment.seconds < _SHORT
    if moment.pid and is_short and 0 <= started <= _FEW:
        return range(moment.pid + 1, present.pid + 1)
    return pids()


def is_dead(pid: int) -> bool:
    """Return whether a process is gone, or waits only to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # "12 (a) b) S ...": a program's name may have brackets
            return file.read().rpartition(b") ")[2][:1] in b"ZX"
    except OSError:
        return True


def in_session(session: int, ids: Iterable[int]) -> Iterator[int]:
    """Yield the living processes of a session but its leader, of some ids."""
    for pid in ids:
        with suppress(OSError):
            if pid != session and os.getsid(pid) == session and not is_dead(pid):
                yield pid


def in_domain(ids: Iterable[int]) -> Iterator[int]:
    """Yield the living processes that this confined thread may signal, of some ids."""
    for pid in ids:
        if pid == os.getpid():
            continue
        with suppress(OSError):
            # first what most ids fail: they are gone, or another's
            os.kill(pid, 0)
            # a thread's id can be signalled like a process's
            if not os.path.exists(f"/proc/self/task/{pid}") and not is_dead(pid):
                yield pid


def end_group(group: int) -> None:
    """Kill a process group at once; its leader must not have been reaped yet."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def end_session(session: int, since: Moment) -> int:
    """Kill what is left of a session in other groups; return how many processes were there."""
    ended = set()
    for _ in range(_ROUNDS):
        there = set(in_session(session, pids_since(since)))
        if not there:
            break
        for pid in there:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended |= there
        time.sleep(_PAUSE)
    return len(ended)
