"""What a session has done so far: counters for budgets, and the ledger that provenance is
read from.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cachetools import LRUCache
from opentelemetry.trace import SpanContext

from agenttool_otel.context.context import AgentContext
from agenttool_otel.facts.provenance import ProvenanceLedger
from agenttool_otel.facts.targets import target_digests
from agenttool_otel.facts.types import IntentFact, ToolWords
from agenttool_otel.values.canonical import digest as digest_of
from agenttool_otel.values.forks import new_lock

if TYPE_CHECKING:
    from agenttool_otel.facts.intent import UserWords

SessionKey: TypeAlias = tuple[str, str, str]
"""Tenant, and session id or actor: see ``AgentContext.session_key``."""

_MAX_TEXT_HASHES: Final = 256
_MAX_APPROVED: Final = 1_024
_MAX_REFUSED: Final = 64
_MAX_HISTORY: Final = 200
_TOKEN_BYTES: Final = 64
"""What a remembered digest costs, its place in a table included: 45 to 70, as measured."""


@dataclass(frozen=True, slots=True)
class SandboxRefusal:
    """What a sandbox refused to a call, which a person may let run outside of it."""

    kinds: tuple[str, ...]  # read, write, connect ..., each once
    span: SpanContext  # of the call


@dataclass(slots=True, eq=False)
class HistoryEntry:
    """A call as the history remembers it."""

    tool: str
    targets: tuple[bytes, ...]
    outcome: str = "running"
    id: str = ""  # of a call that other processes see
    weight: int = field(init=False)  # in the session's memory, as it was when it began

    def __post_init__(self) -> None:
        self.weight = 4 + len(self.targets)

    @classmethod
    def of(cls, tool_id: str, arguments: Mapping[str, Any], key: bytes) -> HistoryEntry:
        """Return a call that begins."""
        return cls(tool_id, tuple(digest for _, digest in target_digests("", arguments, key)))

    def entry(self, mine: Mapping[bytes, list[str]]) -> dict[str, Any]:
        """Return its entry in the input of another call, whose values have these pointers."""
        same = sorted(pointer for digest in self.targets for pointer in mine.get(digest, ()))
        targets = [digest.hex() for digest in self.targets]
        return {"tool": self.tool, "outcome": self.outcome, "targets": targets, "same": same}


class Session:
    """The counters and the ledger of a session; preflight never changes them."""

    shared = False  # whether counting may block
    key = secrets.token_bytes(32)  # of digests

    def __init__(self, exempt: Container[str] = ()) -> None:
        self.exempt = exempt
        self._lock = new_lock()
        self._tools: dict[str, int] = {}
        self._text_hashes: set[int] = set()
        self._user_words: UserWords | None = None
        self._approved: LRUCache[bytes, None] = LRUCache(maxsize=_MAX_APPROVED)
        self.refused_something = False  # whether a sandbox has ever refused something to a call
        self._refused: LRUCache[str, SandboxRefusal] = LRUCache(maxsize=_MAX_REFUSED)
        self.history: deque[HistoryEntry] = deque(maxlen=_MAX_HISTORY)
        self._past = 0  # what the history weighs
        self._forgot = False
        self.calls = 0
        self.asks = 0
        self.denials = 0
        self.result_bytes = 0
        self.ledger: ProvenanceLedger | None = None
        self._ledger_options: dict[str, Any] = {}
        # ids of the deferred tools that were loaded in it
        self.loaded: frozenset[str] = frozenset()

    @property
    def is_plain(self) -> bool:
        """Whether it is this process's alone, and has nothing but counters that a decision or a span
        may depend on.
        """
        if self.shared or self.refused_something:
            return False
        return self._user_words is None and not self._approved

    def counters(self, tool_id: str) -> dict[str, int]:
        """Return ``input.session.counters`` for a call of a tool."""
        return {
            "calls": self.calls,
            "tool_calls": self._tools.get(tool_id, 0),
            "asks": self.asks,
            "denials": self.denials,
            "result_bytes": self.result_bytes,
        }

    def begin(self, history_entry: HistoryEntry | None) -> None:
        """Take a call into the history, before it is decided; ``None`` where no rule reads it."""
        with self._lock:
            if history_entry is None:
                self._forgot = True
                return
            if len(self.history) == _MAX_HISTORY:
                # appending drops the oldest
                self._forgot = True
                self._past -= self.history[0].weight
            self._past += history_entry.weight
            self.history.append(history_entry)

    def past_calls(
        self, arguments: Mapping[str, Any], *, without: HistoryEntry | None
    ) -> tuple[list[dict[str, Any]], bool]:
        """Return ``input.session.history`` for a call, and whether nothing is missing in it."""
        mine: dict[bytes, list[str]] = {}
        for pointer, digest in target_digests("", arguments, self.key):
            mine.setdefault(digest, []).append(pointer)
        with self._lock:
            earlier = [call for call in self.history if call is not without]
            complete = not self._forgot
        return [call.entry(mine) for call in earlier], complete

    def admit(
        self, tool_id: str, call_id: str = "", history_entry: HistoryEntry | None = None
    ) -> dict[str, int]:
        """Count a call that is about to be decided, and return the counters as they were before it.

        Both at once: of calls that a model makes in parallel each sees the ones before it, so that
        together they can't spend more than is left. A call that is not let through is given back.
        """
        with self._lock:
            seen = self.counters(tool_id)
            if tool_id not in self.exempt:
                self._count_call(tool_id)
        return seen

    def admit_unread(self, tool_id: str) -> None:
        """Count a call that is let through, where no rule reads the counters or the history."""
        with self._lock:
            self._forgot = True
            self._count_call(tool_id)

    def _count_call(self, tool_id: str) -> None:
        self.calls += 1
        self._tools[tool_id] = self._tools.get(tool_id, 0) + 1

    def give_back(self, tool_id: str) -> None:
        """Take back the count of a call that does not run."""
        if tool_id in self.exempt:
            return
        with self._lock:
            self.calls -= 1
            self._tools[tool_id] -= 1

    def returned(self, tool_id: str, size: int | None) -> None:
        """Count the bytes of a result."""
        if size and tool_id not in self.exempt:
            self.count("result_bytes", size)

    def load(self, tool_ids: Iterable[str]) -> None:
        """Remember that deferred tools were loaded."""
        with self._lock:
            self.loaded = self.loaded.union(tool_ids)

    def settle(self, call_id: str, history_entry: HistoryEntry | None) -> None:
        """Take the end of a call."""

    def count(self, name: str, n: int = 1) -> None:
        """Count ``asks``, ``denials`` or ``result_bytes``."""
        with self._lock:
            setattr(self, name, getattr(self, name) + n)

    def _publish(self, name: str, *values: Any) -> None:
        """Publish an entry for the other processes of the session, where there are any."""

    def record_user_text(self, texts: tuple[str, ...]) -> None:
        """Remember the user's words, each text once."""
        for text in texts:
            # of this process; two texts that share it make for a question more, not for one less
            text_hash = hash(text)
            if text_hash in self._text_hashes:
                continue
            with self._lock:
                if len(self._text_hashes) > _MAX_TEXT_HASHES:
                    self._text_hashes.clear()
                self._text_hashes.add(text_hash)
            words = self._words_in(text).digests
            self._take_user_words(*words)
            self._publish("heard", *words)
            self.open_ledger().record_user(text)

    def _words_in(self, text: str) -> UserWords:
        from agenttool_otel.facts.intent import UserWords  # the stemmer is slow to import

        user_words = UserWords(self.key)
        user_words.add(text)
        return user_words

    def _take_user_words(self, asked: list[str], named: list[str]) -> None:
        """Take words of the user's; what was there stays as it is, for it may be read meanwhile."""
        from agenttool_otel.facts.intent import UserWords

        with self._lock:
            self._user_words = (self._user_words or UserWords(self.key)).with_more(asked, named)

    def intent(self, tool: ToolWords, texts: tuple[str, ...]) -> IntentFact | None:
        """Return whether the user asked for what a tool does; ``None`` where no text of the user
        was recorded.

        Texts that were not recorded, as in a preflight, count for this one answer.
        """
        user_words = self._user_words
        for text in texts:
            if hash(text) in self._text_hashes:
                continue
            new_words = self._words_in(text)
            if user_words is None:
                user_words = new_words
            else:
                user_words = user_words.with_more(*new_words.digests)
        return user_words.intent(tool) if user_words is not None else None

    def approve(self, tool_id: str, arguments: Mapping[str, Any]) -> None:
        """Remember that a person approved a call, and so its targets."""
        digests = [digest.hex() for _, digest in target_digests(tool_id, arguments, self.key)]
        self._take_approved(digests)
        self._publish("known", digests)

    def _take_approved(self, digests: list[str]) -> None:
        with self._lock:
            for digest in digests:
                self._approved[bytes.fromhex(digest)] = None

    def approved(self, tool_id: str, arguments: Mapping[str, Any]) -> list[str]:
        """Return the JSON pointers of the values that a person approved as targets earlier."""
        if not self._approved:
            return []
        targets = target_digests(tool_id, arguments, self.key)
        return sorted(pointer for pointer, digest in targets if digest in self._approved)

    def remember_refusal(
        self, tool_id: str, arguments: Mapping[str, Any], refusal: SandboxRefusal
    ) -> None:
        """Remember that a sandbox refused something to a call, in this process alone."""
        with self._lock:
            self.refused_something = True
            self._refused[digest_of([tool_id, dict(arguments)])] = refusal

    def refusal_of(self, tool_id: str, arguments: Mapping[str, Any]) -> SandboxRefusal | None:
        """Return what a sandbox refused to the same call earlier; ``None`` where nothing was."""
        if not self.refused_something:
            return None
        with self._lock:
            return self._refused.get(digest_of([tool_id, dict(arguments)]))

    @property
    def memory(self) -> int:
        """Bytes that it remembers, about."""
        digests = len(self._text_hashes) + 2 * len(self._approved) + self._past
        if self.ledger is not None:
            digests += len(self.ledger)
        if self._user_words is not None:
            digests += len(self._user_words)
        return _TOKEN_BYTES * digests

    def forget(self) -> None:
        """Let go of all but the counters; what is asked for later is uncertain."""
        with self._lock:
            self.ledger = None
            self._user_words = None
            self._text_hashes.clear()
            self._approved.clear()
            self._refused.clear()
            self.history.clear()
            self._past = 0
        self.mark_incomplete()

    def mark_incomplete(self) -> None:
        """Mark what this process has of the session as incomplete."""
        self._forgot = True
        self.open_ledger().mark_incomplete()

    def ledger_with(self, texts: tuple[str, ...]) -> ProvenanceLedger | None:
        """Return the ledger; with texts of the user's that were not recorded, as in a preflight,
        for this answer.
        """
        new_texts = [text for text in texts if hash(text) not in self._text_hashes]
        if not new_texts:
            return self.ledger
        copied = self.ledger.copy() if self.ledger is not None else ProvenanceLedger()
        for text in new_texts:
            copied.record_user(text)
        return copied

    def open_ledger(self) -> ProvenanceLedger:
        """Return the ledger, made at first use."""
        if self.ledger is None:
            with self._lock:
                if self.ledger is None:
                    self.ledger = ProvenanceLedger(**self._ledger_options)
        return self.ledger


class SessionBook:
    """The sessions of one Governor; of those that were not used for longest the memory, then all is
    forgotten first.

    Args:
        limit: most sessions.
        max_bytes: most bytes that all sessions together may remember.
    """

    def __init__(self, limit: int = 10_000, *, max_bytes: int = 64 * 2**20) -> None:
        self.exempt: set[str] = set()
        self._remembering = _Remembering(max_bytes)
        self._sessions = _Sessions(limit, self._remembering)
        self._last: tuple[SessionKey, Session] | None = None
        self._lock = new_lock()

    def of(self, context: AgentContext) -> Session:
        """Return the session of a context; calls without a session id share one by tenant
        and actor.
        """
        key = context.session_key
        last = self._last
        if last is not None and last[0] == key and not last[1].memory:
            return last[1]  # used last, and remembers nothing: no other one has to go
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                session = self._sessions[key] = self._new(key)
            else:
                self._remembering.weigh(key, session)
            self._last = key, session
        return session

    def _new(self, key: SessionKey) -> Session:
        del key  # one that others share is found by it
        return Session(self.exempt)

    def close(self) -> None:
        """Release what is shared."""


class _Remembering(LRUCache[SessionKey, Session]):
    """The sessions that remember something; where it is too much in all, those that were not used
    for longest forget.
    """

    def __init__(self, max_bytes: int) -> None:
        # with AGENTTOOL_SESSIONS_MEMORY_MB=0 only the session used last remembers
        super().__init__(max(max_bytes, 1), getsizeof=self._size_of)

    def _size_of(self, session: Session) -> int:
        # one that is larger than all may be is the only one that remembers then
        return min(session.memory, int(self.maxsize))

    def weigh(self, key: SessionKey, session: Session) -> None:
        """Note how much a session that is used now remembers."""
        self.pop(key, None)
        if session.memory:
            self[key] = session

    def popitem(self) -> tuple[SessionKey, Session]:
        """Let the longest unused forget."""
        key, session = super().popitem()
        session.forget()
        return key, session


class _Sessions(LRUCache[SessionKey, Session]):
    """All sessions; of more than there may be the longest unused goes."""

    def __init__(self, limit: int, remembering: _Remembering) -> None:
        super().__init__(limit)
        self._remembering = remembering

    def popitem(self) -> tuple[SessionKey, Session]:
        """Let the longest unused go; calls that still run keep theirs."""
        key, session = super().popitem()
        self._remembering.pop(key, None)
        return key, session
