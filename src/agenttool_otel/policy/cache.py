"""The decision cache: an answer is used again only where it is proven to be the same.

The key is the compiled bundle's generation and exactly those parts of the input that the entry
point can read for a call of this tool (``reads.py``). An engine that can't prove its reads is never
cached. Errors, timeouts and decisions that expire are not kept.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import orjson

from agenttool_otel.policy.bundles.reads import VIEW, ReadSet
from agenttool_otel.policy.jsonio import ENCODE_STRICT
from agenttool_otel.policy.rego.syntax import Path
from agenttool_otel.policy.types import PolicyEngine, Verdict
from agenttool_otel.values.forks import new_lock

_SHORT: Final = 256
_MAX_PROJECTORS: Final = 4096
_LARGE: Final = 16_384
_DEEP: Final = 64
_TYPES: Final = {VIEW + "is_object": dict, VIEW + "is_string": str}
_LOOKS: Final = {VIEW + "empty", *_TYPES}
_TOLD: Final = {("input",), ("input", VIEW + "object.keys"), ("input", VIEW + "is_object")}
_Take = tuple[str, Callable[[Any], Any]]
_fields: Final = operator.attrgetter(*(item.name for item in dataclasses.fields(Verdict)))


class CacheKey(NamedTuple):
    """What a cached verdict is found by."""

    generation: int  # number of the compiled bundle, unique in this process
    entry_point: str  # the rule
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
        self._takes: dict[tuple[int, str], list[_Take]] = {}
        self._projectors: dict[tuple[int, str, bytes], _Projector | None] = {}
        self._lock = new_lock()
        self._hits = self._misses = self._uncacheable = 0

    def key(self, engine: PolicyEngine, entry_point: str, document: Any) -> CacheKey | None:
        """Return the key of a decision, or ``None`` when it must not be cached."""
        try:
            generation: int = engine.generation  # type: ignore[attr-defined]
            takes = self._takes.get((generation, entry_point)) or self._guarding(
                engine, generation, entry_point
            )
            if type(document["input"]) is not dict:
                raise TypeError
            told: list[Any] = sorted(document["input"])
            for name, take in takes:
                told.append(take(document[name]))
            same = generation, entry_point, orjson.dumps(told)
            projector = (
                self._projectors[same]
                if same in self._projectors
                else self._project(engine, same, document)
            )
            if projector is not None:
                return CacheKey(generation, entry_point, projector.projection(same[2], document))
        except (AttributeError, LookupError, ValueError, TypeError, RecursionError):
            pass  # no engine of ours, or not what the contract says; the engine says why
        self._uncacheable += 1
        return None

    def _guarding(self, engine: Any, generation: int, entry_point: str) -> list[_Take]:
        """What the guards read, which tells them all; the arguments' names are told apart
        from it.
        """
        members: dict[str, set[str]] = {"session": {"mode"}}
        for path in (path for guard in engine.guards(entry_point) for path in guard.reads):
            if not path[1].startswith(VIEW):
                members.setdefault(path[0], set()).add(path[1])
        takes: list[_Take] = [
            (name, operator.itemgetter(*sorted(names))) for name, names in sorted(members.items())
        ]
        self._takes = {(generation, entry_point): takes}  # of few bundles, mostly of one
        return takes

    def _project(
        self, engine: Any, same: tuple[int, str, bytes], document: Any
    ) -> _Projector | None:
        proven = engine.reads(same[1], document)
        if proven is not None and proven[0] != same[0]:
            return None  # another bundle by now
        if len(self._projectors) >= _MAX_PROJECTORS:
            self._projectors.clear()
        self._projectors[same] = None if proven is None else _Projector(proven[1])
        return self._projectors[same]

    def get(self, key: CacheKey) -> Verdict | None:
        """Return a copy of the verdict of an earlier, equal decision, marked as cached."""
        with self._lock:
            if (verdict := self._entries.get(key)) is None:
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
        verdict = _copy(verdict)
        verdict.cached = True
        return verdict

    def put(self, engine: PolicyEngine, key: CacheKey, verdict: Verdict) -> None:
        """Keep a verdict, unless it expires, stands for a failure, or the bundle changed while it
        was made.
        """
        if verdict.expires_at is not None or verdict.fail_closed is not None:
            return
        if getattr(engine, "evaluating", None) != key.generation:
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
    """Collects what an entry point reads, without its keys: the order is fixed, so the place tells
    which it is.
    """

    def __init__(self, read_set: ReadSet) -> None:
        groups: dict[str, list[str]] = {}
        self._others: list[Path] = []
        self._looked_at: dict[tuple[str, str], None] = {}
        for path in read_set.typed:
            # members of the contract's own objects are always there; deeper ones may be missing
            if len(path) == 2:
                groups.setdefault(path[0], []).append(path[1])
            elif len(path) == 3 and path[2] in _LOOKS:
                self._looked_at[path[0], path[1]] = None
            else:
                self._others.append(path)
        self._groups = [(name, operator.itemgetter(*members)) for name, members in groups.items()]
        self._typed = read_set.typed
        self._whole = ("input",) in read_set.arguments
        # the names of the arguments are told before, and what is no object has no key
        self._free = [path for path in read_set.arguments if path not in _TOLD]

    def projection(self, told: bytes, document: Any) -> bytes:
        """Return what is read of a document, or a digest of it."""
        try:
            found: list[Any] = [0]
            for name, take in self._groups:
                part = document[name]
                # an approval or evaluation may be null: no list, so that it differs from one whose
                # members are null
                found.append(None if part is None else [take(part)])
            for name, member in self._looked_at:
                part = document[name][member]
                found.append([type(part).__name__, part == ""])
            found += values(document, self._others)
        except (KeyError, TypeError):
            # a member that the contract does not have; the first item keeps the two forms apart
            found = [1, *values(document, self._typed)]
        # the parts that are not tool arguments are typed by the schema, so orjson can't write them
        # ambiguously
        projection = told + orjson.dumps(found)
        # what an engine would refuse, or stumble over, has to miss even where no rule looks at it
        arguments = ENCODE_STRICT(document["input"]).encode("utf-8")
        if (
            self._whole
            or len(arguments) > _LARGE
            or arguments.count(b"[") + arguments.count(b"{") > _DEEP
        ):
            projection += arguments
        if self._free:
            projection += ENCODE_STRICT(values(document, self._free)).encode("utf-8")
        return projection if len(projection) <= _SHORT else hashlib.sha256(projection).digest()


def values(document: Any, paths: Iterable[Path]) -> list[list[Any]]:
    """Return for each path a list of what is read there, empty where nothing is: so ``null`` and
    absent differ.
    """
    found: list[list[Any]] = []
    for path in paths:
        value = [document]
        for part in path:
            if part.startswith(VIEW):
                if part in _TYPES:
                    value = [isinstance(value[0], _TYPES[part])]
                else:
                    value = [value[0] == "" if part == VIEW + "empty" else sorted(value[0].keys())]
            elif type(value[0]) is not dict or part not in value[0]:
                value = []  # a list that is indexed by a string has nothing there, in Rego too
                break
            else:
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
