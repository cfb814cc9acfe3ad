"""What a thread gives up beside files and sockets, and what the process hides meanwhile."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from agenttool_otel.enforcement.libc import checked, libc, prctl
from agenttool_otel.values.forks import in_child, new_lock

_CAPABILITIES_3: Final = 0x20080522
_DAC_READ_SEARCH: Final = 1 << 2
_PR_GET_DUMPABLE: Final = 3
_PR_SET_DUMPABLE: Final = 4


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def drop_capabilities() -> None:
    """Give up root's capabilities in this thread, but for reading files that root may read.

    With no_new_privs no program that it starts gets them back.

    Raises:
        OSError: the kernel refuses.
    """
    header, data = _Header(_CAPABILITIES_3, 0), (_Data * 2)()
    checked(libc().capget(ctypes.byref(header), data))
    kept = data[0].permitted & _DAC_READ_SEARCH
    for part, allowed in zip(data, (kept, 0), strict=True):
        part.effective = part.permitted = allowed
        part.inheritable = 0
    checked(libc().capset(ctypes.byref(header), data))


_hidden = 0
_before = 0
_lock: Final = new_lock()


@contextmanager
def hidden_memory() -> Iterator[None]:
    """Keep other processes out of this one's memory while a thread of it is confined.

    A command shares the domain of the thread that started it, so Landlock lets it read
    ``/proc/AGENT/task/THREAD/environ`` and ``mem``, which are those of the whole agent. A process
    that can't be dumped has neither.
    """
    global _hidden, _before
    with _lock:
        if _hidden == 0:
            _before = prctl(_PR_GET_DUMPABLE)
            prctl(_PR_SET_DUMPABLE, 0)
        _hidden += 1
    try:
        yield
    finally:
        with _lock:
            _hidden -= 1
            if _hidden == 0 and _before == 1:
                prctl(_PR_SET_DUMPABLE, 1)


def _as_before() -> None:
    """In a forked child nothing is held yet."""
    global _hidden
    if _hidden and _before == 1:
        prctl(_PR_SET_DUMPABLE, 1)
    _hidden = 0


in_child(_as_before)
