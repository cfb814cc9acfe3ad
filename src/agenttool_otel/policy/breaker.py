"""A circuit breaker: while a server is known to be down, say so at once instead of waiting for it again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from agenttool_otel.errors import PolicyUnavailable
from agenttool_otel.names import FailClosedCause

__all__ = ["CircuitBreaker"]


class CircuitBreaker:
    """Opens after consecutive failures and lets one trial through when its time is over.

    Args:
        threshold: consecutive failures that open it.
        reset_after: seconds that it stays open before one trial is let through.
        clock: monotonic clock, in seconds.
    """

    def __init__(
        self, *, threshold: int = 5, reset_after: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if threshold < 1 or reset_after <= 0:
            raise ValueError("a circuit breaker needs a threshold of at least 1 and a time above 0")
        self._threshold = threshold
        self._reset_after = reset_after
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._retry_at: float | None = None

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half_open``."""
        with self._lock:
            if self._retry_at is None:
                return "closed"
            return "open" if self._clock() < self._retry_at else "half_open"

    def enter(self) -> None:
        """Ask for leave to call the server.

        Raises:
            PolicyUnavailable: not now; the cause is ``circuit_open``.
        """
        # an unlocked look first: closed is the common case, and a stale look only lets one more call try
        if self._retry_at is None:
            return
        with self._lock:
            if self._retry_at is None:
                return
            now = self._clock()
            if now < self._retry_at:
                raise PolicyUnavailable(
                    "the policy server is known to be unreachable; not asked again yet",
                    cause=FailClosedCause.CIRCUIT_OPEN,
                )
            # this caller is the trial; everybody else waits for its outcome, or for its time to run out
            self._retry_at = now + self._reset_after

    def succeeded(self) -> None:
        """Tell that the server answered, whatever it said."""
        if self._failures or self._retry_at is not None:
            with self._lock:
                self._failures = 0
                self._retry_at = None

    def failed(self) -> None:
        """Tell that the server could not be reached or did not answer in time."""
        with self._lock:
            self._failures += 1
            if self._failures >= self._threshold:
                self._retry_at = self._clock() + self._reset_after
