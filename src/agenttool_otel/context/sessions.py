"""What a session has done so far: counters for budgets, and the ledger that provenance is read from."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Container, Iterable
from typing import Any

from agenttool_otel.context.context import AgentContext
from agenttool_otel.facts.provenance import ProvenanceLedger


class Session:
    """One session's counters and ledger; preflight never touches them."""

    __slots__ = ("_exempt", "_heard", "_lock", "_tools", "asks", "calls", "denials", "ledger", "loaded", "result_bytes")

    def __init__(self, exempt: Container[str] = ()) -> None:
        self._exempt = exempt
        self._lock = threading.Lock()
        self._tools: dict[str, int] = {}
        self._heard: set[str] = set()
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

    def admit(self, tool_id: str) -> dict[str, int]:
        """Count a call that is about to be decided, and return the counters as they were before it.

        Both at once: of calls that a model makes in parallel each sees the ones before it, so that together they can't
        spend more than is left. A call that is not let through is given back."""
        with self._lock:
            seen = self.counters(tool_id)
            if tool_id not in self._exempt:
                self.calls += 1
                self._tools[tool_id] = seen["tool_calls"] + 1
        return seen

    def give_back(self, tool_id: str) -> None:
        """Take back the count of a call that does not run."""
        if tool_id in self._exempt:
            return
        with self._lock:
            self.calls -= 1
            self._tools[tool_id] -= 1

    def returned(self, tool_id: str, size: int | None) -> None:
        """Count the bytes of a result."""
        if not size or tool_id in self._exempt:
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
        """Let the ledger know the user's words, each text once."""
        if not texts:
            return
        ledger = self.open_ledger()
        for text in texts:
            if text not in self._heard:
                with self._lock:
                    if len(self._heard) > 256:
                        self._heard.clear()
                    self._heard.add(text)
                ledger.record_user(text)

    def record_output(self, tool_id: str, value: Any, *, open_world: bool) -> None:
        """Let the ledger know a tool's output."""
        if open_world or self.ledger is not None:
            self.open_ledger().record_tool_output(tool_id, value, open_world)

    def open_ledger(self) -> ProvenanceLedger:
        """Return the ledger, made at first use."""
        if self.ledger is None:
            with self._lock:
                if self.ledger is None:
                    self.ledger = ProvenanceLedger()
        return self.ledger


class SessionBook:
    """The sessions of one Governor, the least recently used forgotten first."""

    def __init__(self, limit: int = 10_000) -> None:
        self.exempt: set[str] = set()
        self._sessions: OrderedDict[tuple[str, str, str], Session] = OrderedDict()
        self._limit = limit
        self._lock = threading.Lock()

    def of(self, context: AgentContext) -> Session:
        """Return the session of a context; calls without a session id share one by tenant and actor."""
        key = context.session_key
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                session = self._sessions[key] = Session(self.exempt)
                if len(self._sessions) > self._limit:
                    self._sessions.popitem(last=False)
            else:
                self._sessions.move_to_end(key)
        return session
