"""When to try again: the execution profile's retry policy as a pure function (standard, "Errors and
Retries").

Every attempt runs within the decision that the call had; an expired decision ends the retries in
the pipeline.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import ErrorClass, Recoverability
from agenttool_otel.records.error import ToolError
from agenttool_otel.records.execution_profile import ExecutionProfile
from agenttool_otel.results.errors.error_tables import NEVER_RETRIED

_RETRIED_BY_DEFAULT: Final = frozenset(
    {ErrorClass.TIMEOUT, ErrorClass.RATE_LIMITED, ErrorClass.DEPENDENCY_UNAVAILABLE}
)
_NOT_BY_RETRY: Final = frozenset({Recoverability.SETUP_NEEDED, Recoverability.NOT_RECOVERABLE})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, how long apart and after which errors a tool may be run again."""

    max_attempts: int = 1  # runs in all, the first one included; 1 means no retry
    initial_delay_s: float = 0.2  # seconds before the second attempt
    max_delay_s: float = 30.0  # longest wait; a server that asks for more ends the retries
    multiplier: float = 2.0  # growth of the delay per attempt
    retry_on: frozenset[ErrorClass] = _RETRIED_BY_DEFAULT  # error classes after which to try again
    # share of the delay that is random, 0 to 1; it keeps many callers from retrying in step
    jitter: float = 0.5

    @classmethod
    def from_profile(cls, profile: ExecutionProfile | None) -> RetryPolicy:
        """Read the policy of an execution profile; without ``supports_retries`` it is a single
        attempt.

        Raises:
            ConfigurationError: the profile's ``retry`` holds no usable number or error class.
        """
        if profile is None or not profile.supports_retries:
            return cls()
        stated = profile.retry or {}
        try:
            retry_on = _RETRIED_BY_DEFAULT
            if stated.get("retry_on") is not None:
                retry_on = frozenset(ErrorClass(name) for name in stated["retry_on"])
            return cls(
                max_attempts=_whole(stated.get("max_attempts", 3), 1, 100),
                initial_delay_s=_number(stated.get("initial_delay_ms", 200)) / 1000,
                max_delay_s=_number(stated.get("max_delay_ms", 30_000)) / 1000,
                multiplier=max(1.0, _number(stated.get("multiplier", 2.0))),
                retry_on=retry_on,
                jitter=min(1.0, _number(stated.get("jitter", 0.5))),
            )
        except (ValueError, TypeError) as error:
            name = profile.execution_profile_id
            raise ConfigurationError(f"retry policy of {name}: {error}") from error

    def next_delay(
        self, attempt: int, error: ToolError, *, uniform: Callable[[], float] = random.random
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or ``None`` to stop.

        Args:
            attempt: number of the attempt that failed, from 1.
            error: how it failed.
            uniform: a random number from 0 to 1.
        """
        if attempt < 1 or attempt >= self.max_attempts:
            return None
        if error.error_class not in self.retry_on or error.error_class in NEVER_RETRIED:
            return None
        if error.recoverability in _NOT_BY_RETRY or error.retry.arguments_must_change:
            return None
        delay = self._delay(attempt)
        delay -= delay * self.jitter * uniform()
        if error.retry_after is None:
            return delay
        if error.retry_after > self.max_delay_s:
            return None
        return max(delay, error.retry_after)

    def _delay(self, attempt: int) -> float:
        # step by step, because multiplier ** 99 may overflow
        delay = self.initial_delay_s
        for _ in range(attempt - 1):
            delay = min(delay * self.multiplier, self.max_delay_s)
        return min(delay, self.max_delay_s)


def _number(value: Any) -> float:
    # True is an int, and no number of milliseconds
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"not a number from 0 to 1e9: {value!r}")
    if not 0 <= value < 1e9:
        raise ValueError(f"not a number from 0 to 1e9: {value!r}")
    return float(value)


def _whole(value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"not a whole number from {low} to {high}: {value!r}")
    if not low <= value <= high:
        raise ValueError(f"not a whole number from {low} to {high}: {value!r}")
    return value
