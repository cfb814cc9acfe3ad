"""How much work one value may cost: counted, not timed, so that the same value always comes out the same.

A unit is a kilobyte that one pattern looks at (2 to 5 microseconds); a match, with what is asked about it, is several.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MOST_WORK: Final = 400_000
"""Units for one value of up to a megabyte: less than a second, and what a log with 3,000 secrets costs."""


class TooMuchWork(Exception):
    """A value would cost more than it may."""


class _Work(threading.local):
    left: float = math.inf


_WORK: Final = _Work()


def spend(units: int) -> None:
    """Count work; raises ``TooMuchWork`` when there has been too much of it."""
    _WORK.left -= units
    if _WORK.left < 0:
        raise TooMuchWork


@contextmanager
def bounded(units: float) -> Iterator[None]:
    """Bound the work of what happens within; what it leaves is not what the work around it had left."""
    before, _WORK.left = _WORK.left, units
    try:
        yield
    finally:
        _WORK.left = before
