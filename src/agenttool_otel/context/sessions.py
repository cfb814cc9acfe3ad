"""What a session has done so far: counters for budgets, and the ledger that provenance is read from."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.session_counts import SessionCounts, session_digest
from agenttool_otel.facts.provenance import ProvenanceLedger
from agenttool_otel.facts.targets import target_digests
from agenttool_otel.facts.types import IntentFact, ToolWords

if TYPE_CHECKING:
    from agenttool_otel.facts.intent import Said

_MAX_HEARD: Final = 256
_MAX_APPROVED: Final = 1_024
_MAX_HISTORY: Final = 200
_TOKEN_BYTES: Final = 200
"""What a remembered digest costs, its place in a table included."""

_COUNTED: Final = ("calls", "asks", "denials", "result_bytes")
_UNREADABLE: Final = object()
"""A ledger can't read it, and so knows that it does not know everything."""


@dataclass(slots=True, eq=False)
class Happened:
    """A call as the history remembers it."""

    tool: str
    targets: tuple[bytes, ...]
    outcome: str = "running"
    weight: int = field(init=False)  # in the session's memory, as it was when it began

    def __post_init__(self) -> None:
        self.weight = 4 + len(self.targets)

    @classmethod
    def of(cls, tool_id: str, arguments: Mapping[str, Any]) -> Happened:
        """Return a call that begins."""
        return cls(tool_id, tuple(digest for _, digest in target_digests("", arguments)))

    def entry(self, mine: Mapping[bytes, list[str]]) -> dict[str, Any]:
        """Return its entry in the input of another call, whose values have these pointers."""
        same = sorted(pointer for digest in self.targets for pointer in mine.get(digest, ()))
        targets = [digest.hex() for digest in self.targets]
        return {"tool": self.tool, "outcome": self.outcome, "targets": targets, "same": same}


class Session:
    """One session's counters and ledger; preflight never touches them."""

    shared = False  # whether counting may block

    def __init__(self, exempt: Container[str] = ()) -> None:
        self.exempt = exempt
        self._lock = threading.Lock()
        self._tools: dict[str, int] = {}
        self._heard: set[int] = set()
        self._said: Said | None = None
        self._approved: OrderedDict[bytes, None] = OrderedDict()
        self.history: deque[Happened] = deque(maxlen=_MAX_HISTORY)
        self._past = 0  # what the history weighs
        self._forgot = False
        self.calls = 0
        self.asks = 0
        self.denials = 0
        self.result_bytes = 0
        self.ledger: ProvenanceLedger | None = None
        self.loaded: frozenset[str] = frozenset()  # ids of the deferred tools that were loaded in it

    def counters(self, tool_id: str) -> dict[str, int]:
        """Return ``input.session.counters`` for a call of a tool."""
        return {
            "calls": self.calls,
            "tool_calls": self._tools.get(tool_id, 0),
            "asks": self.asks,
            "denials": self.denials,
            "result_bytes": self.result_bytes,
        }

    def begin(self, happened: Happened | None) -> None:
        """Take a call into the history, before it is decided; ``None`` where no rule reads it."""
        with self._lock:
            self._forgot |= happened is None or len(self.history) == _MAX_HISTORY
            if happened is not None:
                self._past += happened.weight - (self.history[0].weight if len(self.history) == _MAX_HISTORY else 0)
                self.history.append(happened)

    def told(self, arguments: Mapping[str, Any], *, but: Happened | None) -> tuple[list[dict[str, Any]], bool]:
        """Return ``input.session.history`` for a call, and whether nothing is missing in it."""
        mine: dict[bytes, list[str]] = {}
        for pointer, digest in target_digests("", arguments):
            mine.setdefault(digest, []).append(pointer)
        with self._lock:
            earlier, complete = [one for one in self.history if one is not but], not self._forgot
        return [one.entry(mine) for one in earlier], complete

    def admit(self, tool_id: str) -> dict[str, int]:
        """Count a call that is about to be decided, and return the counters as they were before it.

        Both at once: of calls that a model makes in parallel each sees the ones before it, so that together they can't
        spend more than is left. A call that is not let through is given back."""
        with self._lock:
            seen = self.counters(tool_id)
            if tool_id not in self.exempt:
                self.calls += 1
                self._tools[tool_id] = seen["tool_calls"] + 1
        return seen

    def give_back(self, tool_id: str) -> None:
        """Take back the count of a call that does not run."""
        if tool_id in self.exempt:
            return
        with self._lock:
            self.calls -= 1
            self._tools[tool_id] -= 1

    def returned(self, tool_id: str, size: int | None) -> None:
        """Count the bytes of a result."""
        if not size or tool_id in self.exempt:
            return
        with self._lock:
            self.result_bytes += size

    def load(self, tool_ids: Iterable[str]) -> None:
        """Remember that deferred tools were loaded."""
        with self._lock:
            self.loaded = self.loaded.union(tool_ids)

    def asked(self) -> None:
        """Count one ask."""
        with self._lock:
            self.asks += 1

    def denied(self) -> None:
        """Count one denial."""
        with self._lock:
            self.denials += 1

    def record_user_text(self, texts: tuple[str, ...]) -> None:
        """Remember the user's words, each text once."""
        for text in texts:
            heard = hash(text)  # of this process; two texts that share it make for a question more, not for one less
            if heard in self._heard:
                continue
            with self._lock:
                if len(self._heard) > _MAX_HEARD:
                    self._heard.clear()
                self._heard.add(heard)
                self._said = _heard_too(self._said, text)
            self.open_ledger().record_user(text)

    def intent(self, tool: ToolWords, texts: tuple[str, ...]) -> IntentFact | None:
        """Return whether the user asked for what a tool does; ``None`` where no words of the user are known.

        Texts that were not recorded, as in a preflight, count for this one answer."""
        said = self._said
        for text in texts:
            if hash(text) not in self._heard:
                said = _heard_too(said, text)
        return said.intent(tool) if said is not None else None

    def approve(self, tool_id: str, arguments: Mapping[str, Any]) -> None:
        """Remember that a person approved a call, and so its targets."""
        digests = [digest for _, digest in target_digests(tool_id, arguments)]
        with self._lock:
            for digest in digests:
                self._approved[digest] = None
                self._approved.move_to_end(digest)
            while len(self._approved) > _MAX_APPROVED:
                self._approved.popitem(last=False)

    def approved(self, tool_id: str, arguments: Mapping[str, Any]) -> list[str]:
        """Return the JSON pointers of the values that a person approved as targets earlier."""
        known = self._approved
        if not known:
            return []
        return sorted(pointer for pointer, digest in target_digests(tool_id, arguments) if digest in known)

    def record_output(self, tool_id: str, value: Any, *, open_world: bool) -> None:
        """Let the ledger know a tool's output."""
        if open_world or self.ledger is not None:
            self.open_ledger().record_tool_output(tool_id, value, open_world)

    @property
    def memory(self) -> int:
        """Bytes that it remembers, about."""
        kept = len(self.ledger) if self.ledger is not None else 0
        said = len(self._said) if self._said is not None else 0
        return _TOKEN_BYTES * (kept + len(self._approved) + said + self._past)

    def forget(self) -> None:
        """Let go of all but the counters; what is asked for later is uncertain."""
        with self._lock:
            self.ledger, self._said = None, None
            self._heard.clear()
            self._approved.clear()
            self.history.clear()
            self._past = 0
        self.doubt()

    def doubt(self) -> None:
        """Know that something of this session is not known here."""
        self._forgot = True
        self.open_ledger().record_user(_UNREADABLE)

    def open_ledger(self) -> ProvenanceLedger:
        """Return the ledger, made at first use."""
        if self.ledger is None:
            with self._lock:
                if self.ledger is None:
                    self.ledger = ProvenanceLedger()
        return self.ledger


def _heard_too(said: Said | None, text: str) -> Said:
    """Return what was said with one text more; what was there stays as it is, for it may be read meanwhile."""
    from agenttool_otel.facts.intent import Said  # the stemmer is slow to import

    more = Said() if said is None else said.copy()
    more.add(text)
    return more


class SharedSession(Session):
    """A session that other processes may serve too: its counters are theirs, and its memory is of this process alone.

    So once another process was seen to count, what is unknown here is uncertain."""

    shared = True
    __slots__ = ("_counts", "_gate", "_key", "_mine", "_owed")

    def __init__(self, exempt: Container[str], counts: SessionCounts, key: str) -> None:
        super().__init__(exempt)
        self._counts = counts
        self._key = key
        self._gate = threading.Lock()  # one change at a time, so that what others add is told from one's own
        self._mine = 0
        self._owed: dict[str, int] = {}

    def admit(self, tool_id: str) -> dict[str, int]:
        """Count a call in all processes at once; raises where that can't be done."""
        spent = 0 if tool_id in self.exempt else 1
        tool = _tool_name(tool_id)
        with self._gate:
            changes = _sum(self._owed, {**dict.fromkeys(_COUNTED, 0), "calls": spent, tool: spent})
            after = self._counts.add(self._key, changes)
            self._owed = {}
            foreign = after["calls"] != self._mine + changes["calls"]
            self._mine = after["calls"]
        seen = {**{name: after[name] for name in _COUNTED}, "calls": after["calls"] - spent}
        seen["tool_calls"] = after[tool] - spent
        with self._lock:
            self.calls, self._tools[tool_id] = seen["calls"], seen["tool_calls"]
            self.asks, self.denials, self.result_bytes = seen["asks"], seen["denials"], seen["result_bytes"]
        if foreign:
            self.doubt()
        return seen

    def give_back(self, tool_id: str) -> None:
        """Take back the count of a call that does not run."""
        if tool_id not in self.exempt:
            self._add({"calls": -1, _tool_name(tool_id): -1})

    def returned(self, tool_id: str, size: int | None) -> None:
        """Count the bytes of a result."""
        if size and tool_id not in self.exempt:
            self._add({"result_bytes": size})

    def asked(self) -> None:
        """Count one ask."""
        self._add({"asks": 1})

    def denied(self) -> None:
        """Count one denial."""
        self._add({"denials": 1})

    def _add(self, changes: dict[str, int]) -> None:
        """Add to the counters; what can't be added now is owed by the next call, which needs the store anyway."""
        with self._gate:
            try:
                self._counts.add(self._key, changes)
                self._mine += changes.get("calls", 0)
            except Exception:
                self._owed = _sum(self._owed, changes)


def _tool_name(tool_id: str) -> str:
    return f"tool:{session_digest((tool_id,))}"


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *other)}


class SessionBook:
    """The sessions of one Governor; of those that were not used for longest the memory, then all is forgotten first."""

    def __init__(
        self, limit: int = 10_000, *, max_bytes: int = 256 * 2**20, counts: SessionCounts | None = None
    ) -> None:
        self.exempt: set[str] = set()
        self._sessions: OrderedDict[tuple[str, str, str], Session] = OrderedDict()
        self._remembering: OrderedDict[tuple[str, str, str], int] = OrderedDict()
        self._bytes = 0
        self._limit = limit
        self._max_bytes = max_bytes
        self._counts = counts
        self._lock = threading.Lock()

    def of(self, context: AgentContext) -> Session:
        """Return the session of a context; calls without a session id share one by tenant and actor."""
        key = context.session_key
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                session = self._sessions[key] = self._new(key)
                if len(self._sessions) > self._limit:
                    gone, _ = self._sessions.popitem(last=False)
                    self._bytes -= self._remembering.pop(gone, 0)
            else:
                self._sessions.move_to_end(key)
                self._weigh(key, session)
        return session

    def _new(self, key: tuple[str, str, str]) -> Session:
        if self._counts is None:
            return Session(self.exempt)
        return SharedSession(self.exempt, self._counts, session_digest(key))

    def _weigh(self, key: tuple[str, str, str], session: Session) -> None:
        """Note how much a session remembers by now, and let the longest unused forget where it is too much in all."""
        size = session.memory
        self._bytes += size - self._remembering.pop(key, 0)
        if size:
            self._remembering[key] = size
        while self._bytes > self._max_bytes and len(self._remembering) > 1:
            other, freed = self._remembering.popitem(last=False)
            self._bytes -= freed
            self._sessions[other].forget()

    def close(self) -> None:
        """Release what counts."""
        if self._counts is not None:
            self._counts.close()
