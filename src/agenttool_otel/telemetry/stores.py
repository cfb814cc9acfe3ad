"""What waits in approval stores and was answered there, read when metrics are collected.

Each process that has a lasting store open reports the same numbers: they are of the store, and not
of the process. A store in memory is its process's own. The label says which it is, so that a query
takes the largest of the first kind and the sum of the second.
"""

from __future__ import annotations

import logging
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from opentelemetry.metrics import CallbackOptions, Observation

from agenttool_otel.names import Attr, GenAI, Label
from agenttool_otel.values.forks import new_lock

_logger = logging.getLogger("agenttool_otel.telemetry")


class StoreLevels(NamedTuple):
    """The levels of one approval store."""

    kind: str  # memory or lasting
    pending: int  # requests that wait for an answer
    oldest: float  # seconds since the oldest of them was asked, 0 where none waits
    answered: Mapping[tuple[str, str], int]  # answers by tool name, and approved or rejected


class Stores:
    """The approval stores that are open, without keeping them alive."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._open: dict[int, weakref.WeakMethod[Callable[[], StoreLevels]]] = {}

    def add(self, owner: object, read: Callable[[], StoreLevels]) -> None:
        """Report a store for as long as it lives; one that is added twice is reported once.

        Args:
            owner: the store.
            read: a method of it that reads its levels.
        """
        with self._lock:
            self._open[id(owner)] = weakref.WeakMethod(read)

    def observe_pending(self, options: CallbackOptions) -> list[Observation]:
        """Return how many requests wait, by kind of store."""
        del options
        totals: Counter[str] = Counter()
        for levels in self._levels():
            totals[levels.kind] += levels.pending
        return [Observation(total, _of(kind)) for kind, total in totals.items()]

    def observe_oldest(self, options: CallbackOptions) -> list[Observation]:
        """Return the age of the oldest request that waits, by kind of store."""
        del options
        ages: dict[str, float] = {}
        for levels in self._levels():
            ages[levels.kind] = max(ages.get(levels.kind, 0.0), levels.oldest)
        return [Observation(age, _of(kind)) for kind, age in ages.items()]

    def observe_answered(self, options: CallbackOptions) -> list[Observation]:
        """Return how many answers were given, by kind of store, tool and answer."""
        del options
        totals: Counter[tuple[str, str, str]] = Counter()
        for levels in self._levels():
            for (tool, answer), count in levels.answered.items():
                totals[levels.kind, tool, answer] += count
        return [
            Observation(count, {**_of(kind), GenAI.TOOL_NAME: tool, Attr.APPROVAL_STATUS: answer})
            for (kind, tool, answer), count in totals.items()
        ]

    def _levels(self) -> Iterable[StoreLevels]:
        with self._lock:
            alive = {key: read for key, read in self._open.items() if read() is not None}
            self._open = alive
        for read in alive.values():
            levels = _read(read())
            if levels is not None:
                yield levels


def _read(method: Callable[[], StoreLevels] | None) -> StoreLevels | None:
    """Read a store; of one whose database is away now there is no point, rather than a wrong one."""
    if method is None:
        return None
    try:
        return method()
    except Exception as error:
        _logger.debug("an approval store can't be read for metrics: %s", type(error).__name__)
        return None


def _of(kind: str) -> dict[str, str]:
    return {Label.APPROVAL_STORE: kind}
