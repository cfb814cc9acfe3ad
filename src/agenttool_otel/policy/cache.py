"""The decision cache: an answer is used again only where it is proven to be the same.

The key is the compiled bundle's generation and exactly those parts of the input that the entry point can read
(``reads.py``). An engine that can't prove its reads is never cached. Errors, timeouts and decisions that expire are
not kept.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import operator
import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from agenttool_otel.policy.bundles.reads import ReadSet
from agenttool_otel.policy.bundles.rego import Path
from agenttool_otel.policy.jsonio import ENCODE_STRICT
from agenttool_otel.policy.types import PolicyEngine, PolicyInput, Verdict

_SHORT: Final = 256
_ABSENT: Final[list[Any]] = []
_MAX_PROJECTORS: Final = 64
_fields: Final = operator.attrgetter(*(item.name for item in dataclasses.fields(Verdict)))


class CacheKey(NamedTuple):
    """What a cached verdict is found by."""

    generation: int  # number of the compiled bundle, unique in this process
    entry_point: str  # the rule
    mode: str  # the session's mode; another mode may read other parts of the input
    projection: bytes  # what the rule can read, or its digest


class CacheStats(NamedTuple):
    """Counters since the cache was made."""

    hits: int
    misses: int
    uncacheable: int
    entries: int


class DecisionCache:
    """A bounded, thread-safe cache of verdicts, least recently used out first."""

    def __init__(self, max_entries: int = 4096) -> None:
        if max_entries < 1:
            raise ValueError("a decision cache holds at least one entry")
        self._max_entries = max_entries
        self._entries: OrderedDict[CacheKey, Verdict] = OrderedDict()
        self._projectors: dict[tuple[int, str, str], _Projector] = {}
        self._lock = threading.Lock()
        self._hits = self._misses = self._uncacheable = 0

    def key(self, engine: PolicyEngine, entry_point: str, document: PolicyInput) -> CacheKey | None:
        """Return the key of a decision, or ``None`` when it must not be cached."""
        reads = getattr(engine, "reads", None)
        mode = document["session"]["mode"]
        proven: tuple[int, ReadSet] | None = None if reads is None else reads(entry_point, mode)
        if proven is None:
            self._uncacheable += 1
            return None
        generation, read_set = proven
        projector = self._projectors.get((generation, entry_point, mode))
        if projector is None:
            projector = self._projectors[generation, entry_point, mode] = _Projector(read_set)
            while len(self._projectors) > _MAX_PROJECTORS:
                self._projectors.pop(next(iter(self._projectors)), None)
        # the parts that are not tool arguments are typed by the schema, so orjson can't write them ambiguously
        projection = orjson.dumps(projector.typed(document))
        if read_set.arguments:
            try:
                projection += ENCODE_STRICT(_values(document, read_set.arguments)).encode("utf-8")
            except (ValueError, TypeError, RecursionError):  # no JSON; the engine says why
                self._uncacheable += 1
                return None
        if len(projection) > _SHORT:
            projection = hashlib.sha256(projection).digest()
        return CacheKey(generation, entry_point, mode, projection)

    def get(self, key: CacheKey) -> Verdict | None:
        """Return a copy of the verdict of an earlier, equal decision, marked as cached."""
        with self._lock:
            verdict = self._entries.get(key)
            if verdict is None:
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
        verdict = _copy(verdict)
        verdict.cached = True
        return verdict

    def put(self, engine: PolicyEngine, key: CacheKey, verdict: Verdict) -> None:
        """Keep a verdict, unless it expires, stands for a failure, or the bundle changed while it was made."""
        if verdict.expires_at is not None or verdict.fail_closed is not None:
            return
        reads = getattr(engine, "reads", None)
        proven = None if reads is None else reads(key.entry_point, key.mode)
        if proven is None or proven[0] != key.generation:
            return
        kept = _copy(verdict)
        with self._lock:
            self._entries[key] = kept
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()

    def stats(self) -> CacheStats:
        """Return the counters."""
        with self._lock:
            return CacheStats(self._hits, self._misses, self._uncacheable, len(self._entries))

    def describe(self) -> dict[str, Any]:
        """Return size and counters as plain data."""
        return {"max_entries": self._max_entries, **self.stats()._asdict()}


class _Projector:
    """Collects what an entry point reads, without its keys: the order is fixed, so the place tells which it is."""

    def __init__(self, read_set: ReadSet) -> None:
        groups: dict[str, list[str]] = {}
        self._others: list[Path] = []
        for path in read_set.typed:
            # members of the contract's own objects are always there; deeper ones may be missing
            if len(path) == 2:
                groups.setdefault(path[0], []).append(path[1])
            else:
                self._others.append(path)
        self._groups = [(name, operator.itemgetter(*members)) for name, members in groups.items()]
        self._paths = read_set.typed

    def typed(self, document: Any) -> list[Any]:
        """Return the values of a document that fits the schema."""
        try:
            values: list[Any] = [0]
            for name, take in self._groups:
                part = document[name]
                # an approval or evaluation may be null: no list, so that it differs from one whose members are null
                values.append(None if part is None else [take(part)])
        except (KeyError, TypeError):
            # a member that the contract does not have; the first item keeps the two forms apart
            return [1, *_values(document, self._paths)]
        return values + _values(document, self._others)


def _values(document: Any, paths: Iterable[Path]) -> list[list[Any]]:
    """Return for each path a list of the value there, empty where there is none: so ``null`` and absent differ."""
    found = []
    for path in paths:
        value = [document]
        for part in path:
            if type(value[0]) is not dict or part not in value[0]:
                value = _ABSENT  # a list that is indexed by a string has nothing there, in Rego too
                break
            value = [value[0][part]]
        found.append(value)
    return found


def _copy(verdict: Verdict) -> Verdict:
    """Copy a verdict so that nobody's change of it reaches anybody else."""
    new = Verdict(*_fields(verdict))
    if verdict.updated_input is not None:
        new.updated_input = copy.deepcopy(verdict.updated_input)
    if verdict.suggested_updates:
        new.suggested_updates = copy.deepcopy(verdict.suggested_updates)
    if verdict.alternatives:
        new.alternatives = copy.deepcopy(verdict.alternatives)
    new.extra = copy.deepcopy(verdict.extra) if verdict.extra else {}
    return new
