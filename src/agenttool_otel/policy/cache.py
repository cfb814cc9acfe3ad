"""The decision cache: an answer is used again only where it is proven to be the same.

The key is the compiled bundle's generation and exactly those parts of the input that the entry
point can read for a call of this tool (``reads.py``). One that allows is found by what the rule
``permitted`` reads, which a decision is wherever that allows. An engine that can't prove its reads is never
cached. Errors, timeouts and decisions that expire are not kept.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import operator
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson
from cachetools import LRUCache

from agenttool_otel.facts.types import Facts
from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.flows import EMPTY, KEYS, TRUTH, TYPE
from agenttool_otel.policy.bundles.reads import VIEW, ReadSet
from agenttool_otel.policy.jsonio import ENCODE_STRICT
from agenttool_otel.policy.projection import projection
from agenttool_otel.policy.rego.syntax import Path
from agenttool_otel.policy.types import PolicyEngine, Verdict
from agenttool_otel.values.forks import new_lock

_SHORT: Final = 256
_MAX_PROJECTORS: Final = 4096
_MAX_GUARDING: Final = 16
_LARGE: Final = 16_384
_DEEP: Final = 64
_IN_KEY: Final = {("input",)} | {
    ("input", view) for view in (KEYS, TYPE, EMPTY, TRUTH, VIEW + "object.keys", VIEW + "is_object")
}
_OF_EACH_CALL: Final = (("session", "counters"), ("session", "history"))
"""Members of the document that differ from call to call, beside the arguments and the invocation."""
_OF_EACH_FIRST_TRY: Final = frozenset({"attempt", "resumed", "preflight"})
"""Members of the invocation that are the same in the first decision of each call."""
_CHANGING: Final = {"invocation", *(path[0] for path in _OF_EACH_CALL)}
"""The members of the document that those stand in; the others are mostly those of the call before."""
_MAX_STEADY: Final = 64

_Take = tuple[str, Callable[[Any], Any]]
"""A member of the document, and what takes out of it what guards read."""


_Case = tuple[int, str, bytes, bytes]
"""A bundle's generation, an entry point, what most of its guards read, and which of the others hold."""

_fields: Final = operator.attrgetter(*(item.name for item in dataclasses.fields(Verdict)))


class CacheKey(NamedTuple):
    """What a cached verdict is found by."""

    generation: int  # number of the compiled bundle, unique in this process
    entry_point: str  # the rule
    projection: bytes  # what the rule can read, or its digest


class Lookup(NamedTuple):
    """What is known of a decision."""

    verdict: Verdict | None  # a copy of what was decided before, marked as cached
    permitted: CacheKey | None = None  # what an answer of ``EntryPoint.PERMITTED`` is found by
    decision: CacheKey | None = None  # what every other one is found by


class PreparedKey(NamedTuple):
    """All of a key but the arguments' values and the facts, for documents that differ in nothing else
    that is read.
    """

    cache: DecisionCache
    engine: Any
    entry_point: str
    document: dict[str, Any]
    case: _Case
    projector: _Projector
    rests: dict[_Projector, bytes]  # what is read of all but the arguments' values and the facts
    facts: bytes  # what is read of the facts of this document

    def of(self, arguments: dict[str, Any], facts: Facts, *, small: bool = False) -> CacheKey:
        """Return the key of a decision on arguments of the names that it was prepared for.

        Args:
            arguments: the arguments.
            facts: their facts.
            small: whether they are few plain values that are surely JSON, see ``quick_object``.

        Raises:
            LookupError: another bundle is in use, or it depends on more with these facts.
            ValueError, TypeError, RecursionError: they have no exact JSON form.
        """
        case, projector, read = self.case, self.projector, self.facts
        if facts is not self.document["facts"]:
            document = {**self.document, "facts": facts}
            case, projector = self.cache._resorted(self.engine, self.case, document)
            read = projector.facts(document)
        rest = self.rests.get(projector)
        if rest is None:
            rest = self.rests[projector] = projector.rest(self.document)
        fixed = case[2] + case[3] + rest + read
        if small and projector.ignores_small(arguments):
            return CacheKey(case[0], self.entry_point, _short(fixed))
        resources = self.document["resources"]
        projection = projector.with_arguments(fixed, arguments, resources)
        return CacheKey(case[0], self.entry_point, projection)


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
        # an LRUCache is not thread-safe: what uses it holds the lock
        self._entries: LRUCache[CacheKey, Verdict] = LRUCache(max_entries)
        self._takes: dict[tuple[int, str], list[_Take]] = {}
        self._projectors: dict[_Case, _Projector | None] = {}
        self._lock = new_lock()
        self._hits = 0
        self._misses = 0
        self._uncacheable = 0

    def lookup(self, engine: PolicyEngine, document: Any) -> Lookup:
        """Find what was decided of an equal document, and count it."""
        permitted: CacheKey | None = None
        if getattr(engine, "has_permitted", False):
            permitted = self.key(engine, EntryPoint.PERMITTED, document)
            if permitted is not None and (verdict := self._kept(permitted)) is not None:
                return Lookup(verdict)
        decision = self.key(engine, EntryPoint.DECISION, document)
        if decision is not None and (verdict := self._kept(decision)) is not None:
            return Lookup(verdict)
        if permitted is None and decision is None:
            self._uncacheable += 1
        else:
            self._misses += 1
        return Lookup(None, permitted, decision)

    def key(self, engine: PolicyEngine, entry_point: str, document: Any) -> CacheKey | None:
        """Return the key of a decision, or ``None`` when it must not be cached."""
        try:
            case = self._case(engine, entry_point, document)
            projector = self._projector(engine, case, document)
            if projector is not None:
                projection = projector.projection(case[2] + case[3], document)
                return CacheKey(case[0], entry_point, projection)
        except (AttributeError, LookupError, ValueError, TypeError, RecursionError):
            pass  # no engine of ours, or not what the contract states; the engine reports why
        return None

    def prepare(self, engine: PolicyEngine, document: Any) -> PreparedKey | None:
        """Return what makes the keys of documents like this one, that differ in the values of their
        arguments, in the facts, in the session's counters and in the ids of the call.

        They are those of answers that allow. ``None`` where one must not be cached, or depends on more.
        """
        has_permitted = getattr(engine, "has_permitted", False)
        entry_point = EntryPoint.PERMITTED if has_permitted else EntryPoint.DECISION
        try:
            case = self._case(engine, entry_point, document)
            projector = self._prepared(engine, case, document)
            facts = projector.facts(document)
        except (AttributeError, LookupError, ValueError, TypeError, RecursionError):
            return None
        return PreparedKey(self, engine, entry_point, document, case, projector, {}, facts)

    def _prepared(self, engine: Any, case: _Case, document: Any) -> _Projector:
        projector = self._projector(engine, case, document)
        if projector is None or projector.reads_more:
            raise LookupError(case[1])
        return projector

    def _resorted(self, engine: Any, case: _Case, document: Any) -> tuple[_Case, _Projector]:
        """Return the case of a document with other facts."""
        generation, entry_point, guarded, _ = case
        sorting = engine.sorting(generation, entry_point, document)
        other = (generation, entry_point, guarded, sorting)
        return other, self._prepared(engine, other, document)

    def _case(self, engine: Any, entry_point: str, document: Any) -> _Case:
        generation: int = engine.generation
        takes = self._takes.get((generation, entry_point))
        if takes is None:
            takes = self._guards(engine, generation, entry_point)
        if type(document["input"]) is not dict:
            raise TypeError
        guarded: list[Any] = sorted(document["input"])
        for name, take in takes:
            guarded.append(take(document[name]))
        sorting = engine.sorting(generation, entry_point, document)
        return generation, entry_point, orjson.dumps(guarded), sorting

    def _projector(self, engine: Any, case: _Case, document: Any) -> _Projector | None:
        if case in self._projectors:
            return self._projectors[case]
        return self._project(engine, case, document)

    def _guards(self, engine: Any, generation: int, entry_point: str) -> list[_Take]:
        """Return what most of the guards read, by member of the document: where two documents agree in
        it, the same ones hold.

        The names of the arguments are no part of it; they are in the key anyway.
        """
        members: dict[str, set[str]] = {"session": {"mode"}}
        for guard in engine.guards(entry_point):
            for path in guard.reads:
                if not guard.sorts and not path[1].startswith(VIEW):
                    members.setdefault(path[0], set()).add(path[1])
        takes: list[_Take] = []
        for name, read in sorted(members.items()):
            takes.append((name, operator.itemgetter(*sorted(read))))
        if len(self._takes) >= _MAX_GUARDING:
            self._takes.clear()
        self._takes[generation, entry_point] = takes
        return takes

    def _project(self, engine: Any, case: _Case, document: Any) -> _Projector | None:
        generation, entry_point, _, _ = case
        proven = engine.reads(entry_point, document)
        if proven is not None and proven[0] != generation:
            return None  # another bundle by now
        if len(self._projectors) >= _MAX_PROJECTORS:
            self._projectors.clear()
        self._projectors[case] = None if proven is None else _Projector(proven[1])
        return self._projectors[case]

    def _kept(self, key: CacheKey) -> Verdict | None:
        with self._lock:
            verdict = self._entries.get(key)
            if verdict is None:
                return None
            self._hits += 1
        return cached_copy(verdict)

    def peek(self, key: CacheKey) -> Verdict | None:
        """Return the verdict that is kept, which nobody may change; nothing is counted."""
        with self._lock:
            return self._entries.get(key)

    def hit(self, key: CacheKey, verdict: Verdict) -> bool:
        """Count a hit if a verdict is still what is kept, and return whether it is."""
        with self._lock:
            if self._entries.get(key) is not verdict:
                return False
            self._hits += 1
        return True

    def put(
        self, engine: PolicyEngine, found: Lookup, verdict: Verdict, *, permitted: bool
    ) -> None:
        """Keep a verdict, unless it expires, stands for a failure, or the bundle changed while it
        was made.

        Args:
            engine: the engine that gave it.
            found: what was known before.
            verdict: the verdict.
            permitted: whether it is the answer of ``EntryPoint.PERMITTED``.
        """
        key = found.permitted if permitted else found.decision
        if key is None or verdict.expires_at is not None or verdict.fail_closed is not None:
            return
        if getattr(engine, "evaluating", None) != key.generation:
            return
        kept = _copy(verdict)
        with self._lock:
            self._entries[key] = kept

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
        counters = self.stats()
        return {
            "max_entries": int(self._entries.maxsize),
            "hits": counters.hits,
            "misses": counters.misses,
            "uncacheable": counters.uncacheable,
            "entries": counters.entries,
        }


class _Projector:
    """Takes out of documents what an entry point reads."""

    def __init__(self, read_set: ReadSet) -> None:
        facts = [path for path in read_set.typed if path[0] == "facts"]
        rest = [path for path in read_set.typed if path[0] != "facts"]
        self._facts = projection(facts, read_set.words)
        changing = [path for path in rest if path[0] in _CHANGING]
        steady = [path for path in rest if path[0] not in _CHANGING]
        self._changing = projection(changing, read_set.words)
        self._steady = projection(steady, read_set.words)
        self._steady_names = sorted({path[0] for path in steady})
        self._steady_known: dict[bytes, bytes] = {}
        # whether it reads what differs from call to call, beside the arguments
        self.reads_more = any(map(_differs, read_set.typed))
        self._whole = ("input",) in read_set.arguments
        # the names of the arguments are in the key before, and what is no object has no key
        free = [path for path in read_set.arguments if path not in _IN_KEY]
        self._free = projection(free, read_set.words) if free else None

    def projection(self, read_by_guards: bytes, document: Any) -> bytes:
        """Return what is read of a document, or a digest of it."""
        fixed = read_by_guards + self.rest(document) + self.facts(document)
        return self.with_arguments(fixed, document["input"], document.get("resources"))

    # the parts that are not tool arguments are typed by the schema, so orjson can't write them
    # ambiguously

    def facts(self, document: Any) -> bytes:
        """Return what is read of a document's facts."""
        return orjson.dumps(self._facts(document))

    def rest(self, document: Any) -> bytes:
        """Return what is read of a document beside its facts and its arguments' values."""
        return orjson.dumps(self._changing(document)) + self._steady_rest(document)

    def _steady_rest(self, document: Any) -> bytes:
        # a tool's whole declaration is written in a twentieth of the time in which it is walked
        members = [(name, document[name]) for name in self._steady_names if name in document]
        whole = orjson.dumps(members)
        known = self._steady_known.get(whole)
        if known is not None:
            return known
        read = orjson.dumps(self._steady(document))
        if len(self._steady_known) >= _MAX_STEADY:
            self._steady_known.clear()
        if len(whole) <= _LARGE:
            self._steady_known[whole] = read
        return read

    def with_arguments(self, projection: bytes, given: dict[str, Any], resources: Any) -> bytes:
        """Return what is read of a document, or a digest of it, from its fixed part."""
        # what an engine would refuse, or stumble over, has to miss even where no rule looks at it
        arguments = ENCODE_STRICT(given).encode("utf-8")
        brackets = arguments.count(b"[") + arguments.count(b"{")
        if self._whole or len(arguments) > _LARGE or brackets > _DEEP:
            projection += arguments
        if self._free is not None:
            document = {"input": given, "resources": resources}
            projection += ENCODE_STRICT(self._free(document)).encode("utf-8")
        return _short(projection)

    def ignores_small(self, given: dict[str, Any]) -> bool:
        """Return whether nothing of few plain values is in the key: nothing reads them, and they are
        neither large nor have many brackets.
        """
        if self._whole or self._free is not None:
            return False
        # as long as the strict encoder's, but for how a fraction is written, and a third as dear
        arguments = orjson.dumps(given)
        if len(arguments) > _LARGE // 2:
            return False
        return arguments.count(b"[") + arguments.count(b"{") <= _DEEP


def _differs(path: Path) -> bool:
    """Return whether what stands at a path differs from call to call."""
    if path[0] == "invocation":
        # which native ids a call has is its door's: input.invocation.external_mappings
        return len(path) == 1 or path[1] not in _OF_EACH_FIRST_TRY
    return any(path[: len(other)] == other[: len(path)] for other in _OF_EACH_CALL)


def _short(projection: bytes) -> bytes:
    if len(projection) <= _SHORT:
        return projection
    return hashlib.sha256(projection).digest()


def cached_copy(verdict: Verdict) -> Verdict:
    """Return a copy of a verdict that was kept, marked as cached."""
    verdict = _copy(verdict)
    verdict.cached = True
    return verdict


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
