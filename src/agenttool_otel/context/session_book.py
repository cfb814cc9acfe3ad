"""The sessions of one Governor, in this process or shared with others."""

from __future__ import annotations

from collections import OrderedDict

from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.session_store import SessionStore
from agenttool_otel.context.sessions import Session
from agenttool_otel.values.forks import new_lock


class SessionBook:
    """The sessions of one Governor; of those that were not used for longest the memory, then all is
    forgotten first.
    """

    def __init__(
        self, limit: int = 10_000, *, max_bytes: int = 64 * 2**20, store: SessionStore | None = None
    ) -> None:
        self.exempt: set[str] = set()
        self._sessions: OrderedDict[tuple[str, str, str], Session] = OrderedDict()
        self._remembering: OrderedDict[tuple[str, str, str], int] = OrderedDict()
        self._bytes = 0
        self._limit = limit
        self._max_bytes = max_bytes
        self._store = store
        self._lock = new_lock()

    def of(self, context: AgentContext) -> Session:
        """Return the session of a context; calls without a session id share one by tenant
        and actor.
        """
        key = context.session_key
        with self._lock:
            if (session := self._sessions.get(key)) is None:
                session = self._sessions[key] = self._new(key)
                if len(self._sessions) > self._limit:
                    gone, _ = self._sessions.popitem(last=False)
                    self._bytes -= self._remembering.pop(gone, 0)
            else:
                self._sessions.move_to_end(key)
                self._weigh(key, session)
        return session

    def _new(self, key: tuple[str, str, str]) -> Session:
        if self._store is None:
            return Session(self.exempt)
        from agenttool_otel.context.shared_session import SharedSession  # loads what seals

        return SharedSession(self.exempt, self._store, key)

    def _weigh(self, key: tuple[str, str, str], session: Session) -> None:
        """Note how much a session remembers by now, and let the longest unused forget where it is
        too much in all.
        """
        size = session.memory
        self._bytes += size - self._remembering.pop(key, 0)
        if size:
            self._remembering[key] = size
        while self._bytes > self._max_bytes and len(self._remembering) > 1:
            other, freed = self._remembering.popitem(last=False)
            self._bytes -= freed
            self._sessions[other].forget()

    def close(self) -> None:
        """Release what is shared."""
        if self._store is not None:
            self._store.close()
