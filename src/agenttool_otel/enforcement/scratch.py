"""Private temporary directories, one a call, below one of the process."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from weakref import finalize

from agenttool_otel.values.forks import in_child, new_lock

_numbers = itertools.count(1)
_base: str | None = None
_spare: Final[list[str]] = []
_MOST_SPARE: Final = 8
_lock: Final = new_lock()


class _Owner:
    """What the directory of the process belongs to, so that it goes when the process ends."""


def _base_directory() -> str:
    global _base
    with _lock:
        if _base is None:
            _base = tempfile.mkdtemp(prefix="agenttool-")
            finalize(_owner, _remove_of, _base, os.getpid())
        return _base


def _remove_of(place: str, process: int) -> None:
    if os.getpid() == process:
        remove(place)


def _forget() -> None:
    global _base
    _base = None
    _spare.clear()


_owner: Final = _Owner()
in_child(_forget)


def make(inside: str | None = None) -> str:
    """Make a directory that only this user may enter.

    Args:
        inside: where to make it: that of the thread, where the thread is confined.

    Raises:
        OSError: it can't be made.
    """
    if inside is None and _spare:
        with suppress(IndexError):  # another thread took it
            place = _spare.pop()
            if os.path.isdir(place):
                return place
    place = os.path.join(inside or _base_directory(), str(next(_numbers)))
    try:
        os.mkdir(place, 0o700)
    except FileNotFoundError:
        _forget()  # a cleaner of /tmp took the directory of the process
        place = os.path.join(inside or _base_directory(), str(next(_numbers)))
        os.mkdir(place, 0o700)
    return place


def give_back(place: str) -> None:
    """Remove a directory's content; an empty directory is kept for the next call.

    To make and remove one costs as much as a thread.
    """
    try:
        clean = not os.listdir(place)
    except OSError:
        clean = False
    if clean and os.path.dirname(place) == _base and len(_spare) < _MOST_SPARE:
        _spare.append(place)
    else:
        remove(place)


def remove(place: str) -> None:
    """Remove a directory, whatever was made in it; what can't be removed stays."""
    with suppress(OSError):
        os.rmdir(place)
        return
    try:
        shutil.rmtree(place, onerror=_open_and_retry)
    except RecursionError:
        # mkdir -p a/a/a/...: rmtree calls itself for each level
        with suppress(OSError):
            arguments = ["/bin/rm", "-rf", "--", place]
            subprocess.run(arguments, check=False, capture_output=True)  # noqa: S603


def _open_and_retry(function: Any, path: str, _: Any) -> None:
    """Remove what its directory's mode protects: ``mkdir -m 0 x``."""
    with suppress(OSError):
        parent = Path(path).parent
        parent.chmod(0o700)
        if not os.path.islink(path) and os.path.isdir(path):
            os.chmod(path, 0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
