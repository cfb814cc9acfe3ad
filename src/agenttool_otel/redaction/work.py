"""How much work one value may cost: counted, not timed, so that the same value always comes out the
same.

A unit is a kilobyte that one pattern looks at (2 to 5 microseconds); a match, with what is asked
about it, is several.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MOST_WORK: Final = 400_000
"""Units for one value of up to a megabyte: less than a second, and what a log with 3,000 secrets
costs.
"""


_MEGABYTE: Final = 1 << 20


class TooMuchWork(Exception):
    """A value would cost more than it may."""


class Purse:
    """The work that one result may cost which is redacted piece by piece; more of it comes with
    each piece.
    """

    __slots__ = ("_chars", "left")

    def __init__(self) -> None:
        self._chars = 0
        # the places between two pieces are looked at twice
        self.left: float = MOST_WORK * 5 / 4

    def grow(self, chars: int) -> None:
        """Take note of a piece: what is longer than a megabyte may cost as much again for each
        further one.
        """
        before = max(_MEGABYTE, self._chars)
        self._chars += chars
        self.left += max(0, self._chars - before) * MOST_WORK * 5 / 4 / _MEGABYTE


class _Work(threading.local):
    left: float = math.inf
    purse: Purse | None = None


_WORK: Final = _Work()


def spend(units: int) -> None:
    """Count work; raises ``TooMuchWork`` when there has been too much of it."""
    _WORK.left -= units
    if _WORK.left < 0:
        raise TooMuchWork


@contextmanager
def bounded(units: float) -> Iterator[None]:
    """Bound the work of what happens within; what it leaves is not what the work around it
    had left.
    """
    purse = _WORK.purse
    if purse is not None:
        units = max(0, min(units, purse.left))
    before = _WORK.left
    _WORK.left = units
    try:
        yield
    finally:
        # what has raised TooMuchWork has left less than nothing
        if purse is not None:
            purse.left -= units - max(0, _WORK.left)
        _WORK.left = before


def nothing_left() -> bool:
    """Whether the purse that pays for this piece is empty."""
    return _WORK.purse is not None and _WORK.purse.left <= 0


@contextmanager
def paid_from(purse: Purse) -> Iterator[None]:
    """Let everything that is redacted within be paid from one purse; what it can't pay is
    withheld.
    """
    before = _WORK.purse
    _WORK.purse = purse
    try:
        yield
    finally:
        _WORK.purse = before
