"""Private temporary directories, one a call, below one of the process."""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from typing import Final

from agenttool_otel.values.forks import in_child, new_lock
from agenttool_otel.values.own_directory import OwnDirectory, remove

__all__ = ["give_back", "make", "remove"]

_numbers = itertools.count(1)
_base: OwnDirectory | None = None
_spare: Final[list[str]] = []
_MOST_SPARE: Final = 8
_lock: Final = new_lock()


class _Owner:
    """What the directory of the process belongs to, so that it goes when the process ends."""


def _base_directory() -> str:
    global _base
    with _lock:
        if _base is None:
            _base = OwnDirectory("scratch", _owner)
        return _base.path


def _forget() -> None:
    global _base
    _base = None
    _spare.clear()


def _leave() -> None:
    if _base is not None:
        _base.leave()
    _forget()


_owner: Final = _Owner()
in_child(_leave)


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
    below = inside or _base_directory()
    try:
        return _new(below)
    except FileNotFoundError:
        _forget_missing(below)
        return _new(inside or _base_directory())


def _new(below: str) -> str:
    place = os.path.join(below, str(next(_numbers)))
    os.mkdir(place, 0o700)
    return place


def _forget_missing(place: str) -> None:
    """Forget the directory of the process, which a cleaner of /tmp took."""
    with _lock:
        if _base is not None and _base.path == place:
            _base.remove()
            _forget()


def give_back(place: str) -> None:
    """Remove a directory's content; an empty directory is kept for the next call.

    To make and remove one costs as much as a thread.
    """
    try:
        clean = not os.listdir(place)
    except OSError:
        clean = False
    if clean and _is_below_base(place) and len(_spare) < _MOST_SPARE:
        _spare.append(place)
    else:
        remove(place)


def _is_below_base(place: str) -> bool:
    return _base is not None and os.path.dirname(place) == _base.path
