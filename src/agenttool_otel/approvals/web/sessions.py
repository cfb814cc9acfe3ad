"""Who may use the page: one token, exchanged for sessions; a form token for each session
and purpose.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Final

from agenttool_otel.values.forks import new_lock

SESSION_SECONDS: Final = 12 * 3600
"""How long a session lasts."""

_MAX_SESSIONS: Final = 32


class Sessions:
    """The page's sign-in. Nothing here is stored: a restart signs everybody out."""

    def __init__(self, token: str, *, now: Callable[[], float] = time.monotonic) -> None:
        self._token = hashlib.sha256(token.encode("utf-8")).digest()
        self._secret = secrets.token_bytes(32)
        self._sessions: dict[str, float] = {}
        self._lock = new_lock()
        self._now = now

    def sign_in(self, token: str) -> str | None:
        """Exchange the token for a session id; ``None`` for a wrong token.

        There is no lock-out: 256 random bits can't be guessed, and a lock-out would let any local
        program lock out the person who has the token.
        """
        # a form may hold a lone surrogate, which is no valid UTF-8
        encoded = token.encode("utf-8", "surrogatepass")
        given = hashlib.sha256(encoded).digest()
        if not hmac.compare_digest(given, self._token):
            return None
        with self._lock:
            now = self._now()
            self._drop_old(now)
            while len(self._sessions) >= _MAX_SESSIONS:
                oldest = next(iter(self._sessions))
                del self._sessions[oldest]
            session = secrets.token_urlsafe(32)
            self._sessions[_digest(session)] = now + SESSION_SECONDS
            return session

    def is_signed_in(self, session: str) -> bool:
        """Return whether a session id is signed in."""
        if not session:
            return False
        with self._lock:
            self._drop_old(self._now())
            return _digest(session) in self._sessions

    def sign_out(self, session: str) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(_digest(session), None)

    def form_token(self, session: str, purpose: str) -> str:
        """Return the CSRF token of a session's form."""
        message = f"{_digest(session)}|{purpose}".encode()
        return hmac.new(self._secret, message, hashlib.sha256).hexdigest()

    def form_token_fits(self, session: str, purpose: str, token: str) -> bool:
        """Return whether a form came from this session's own page."""
        expected = self.form_token(session, purpose).encode()
        given = token.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(expected, given)

    def _drop_old(self, now: float) -> None:
        for key, until in list(self._sessions.items()):
            if until <= now:
                del self._sessions[key]


def _digest(session: str) -> str:
    encoded = session.encode("utf-8", "surrogatepass")
    return hashlib.sha256(encoded).hexdigest()
