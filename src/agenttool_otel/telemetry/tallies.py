"""Totals that are read when metrics are collected, so that a call pays next to nothing: decisions,
and cache look-ups.

An SDK makes an observable instrument once for each name and drops the callbacks of later
creations. So there is one callback for a provider, and Governors come and go behind it: totals never
fall, and no Governor is kept alive.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from opentelemetry.metrics import CallbackOptions, Observation, get_meter_provider

from agenttool_otel.names import Attr, GenAI
from agenttool_otel.telemetry.stores import Stores
from agenttool_otel.values.forks import new_lock

_DECISION_LABELS: Final = (
    GenAI.TOOL_NAME,
    Attr.PERMISSION_BEHAVIOR,
    Attr.PERMISSION_OUTCOME,
    Attr.PERMISSION_SOURCE,
    Attr.PERMISSION_MODE,
    Attr.PERMISSION_RULE,
)

Counts: TypeAlias = Callable[[], Iterable[tuple[int, Mapping[str, str]]]]
"""Gives totals with their labels."""


class Tally:
    """The totals of one meter provider: its decisions, and the look-ups of the caches that report
    to it.

    Attributes:
        stores: the approval stores whose levels are reported with them.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._decisions: Counter[tuple[str, ...]] = Counter()
        self._live: set[Counts] = set()
        self._ended: Counter[tuple[tuple[str, str], ...]] = Counter()
        # a finalizer may run anywhere, also while this thread holds the lock: it only leaves a note
        self._notes: deque[Counts] = deque()
        self.stores = Stores()

    def decided(self, *values: str) -> None:
        """Count a decision by the values of ``_DECISION_LABELS``."""
        with self._lock:
            self._decisions[values] += 1

    def observe_decisions(self, options: CallbackOptions) -> list[Observation]:
        """Return the decisions so far, when metrics are collected."""
        del options
        with self._lock:
            totals = self._decisions.copy()
        return [
            Observation(total, dict(zip(_DECISION_LABELS, map(str, values), strict=True)))
            for values, total in totals.items()
        ]

    def add(self, owner: object, counts: Counts) -> None:
        """Count a cache for as long as its owner lives, and keep its last totals afterwards."""
        with self._lock:
            self._settle()
            self._live.add(counts)
        weakref.finalize(owner, self._notes.append, counts).atexit = False

    def observe(self, options: CallbackOptions) -> list[Observation]:
        """Return the totals of all caches, when metrics are collected."""
        del options
        with self._lock:
            self._settle()
            totals = self._ended.copy()
            for counts in self._live:
                _count(totals, counts)
        return [Observation(total, dict(labels)) for labels, total in totals.items()]

    def _settle(self) -> None:
        while self._notes:
            counts = self._notes.popleft()
            self._live.discard(counts)
            _count(self._ended, counts)


def _count(totals: Counter[tuple[tuple[str, str], ...]], counts: Counts) -> None:
    for total, labels in counts():
        totals[tuple(labels.items())] += total


_GLOBAL: Final = Tally()
_of_providers: weakref.WeakKeyDictionary[Any, Tally] = weakref.WeakKeyDictionary()
_lock: Final = new_lock()


def tally_for(provider: Any) -> Tally:
    """Return the tally of a meter provider.

    The global provider has the same one before and after it is set: instruments made early turn
    into real ones then.
    """
    if provider is None or provider is get_meter_provider():
        return _GLOBAL
    try:
        with _lock:
            return _of_providers.setdefault(provider, Tally())
    except TypeError:  # it can't be referred to weakly, or has no hash
        return Tally()
