"""The store's clock: wall time that never goes back and is never dragged ahead (docs/approvals.md,
"Time").

Expiry has to be wall time, because another machine may resume the call next week; but a wall clock
can be set back, which would revive what has expired, or ahead, which would end what is open for
everybody. So the store keeps a high-water mark of the time it has seen. On the boot that wrote the
mark the time that really passed since bounds the wall from both sides; PostgreSQL's own clock is
the wall of all who use that server.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from agenttool_otel.records.base import utc_now
from agenttool_otel.values.process_identity import BOOT_ID

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _ticks() -> float:
    # CLOCK_BOOTTIME goes on while the machine sleeps, and macOS does not have it
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    if boottime is None:
        return time.monotonic()
    return time.clock_gettime(boottime)


def to_us(value: datetime) -> int:
    """Return microseconds since 1970 of a time; one without a zone is read as UTC."""
    if not value.tzinfo:
        value = value.replace(tzinfo=UTC)
    return (value - _EPOCH) // timedelta(microseconds=1)


def from_us(value: int) -> datetime:
    """Return the UTC time of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=value)


MAX_AHEAD_US: Final = 5 * 60 * 1_000_000
"""So far a process's wall clock may be ahead of the time that really passed; what is more is not
believed.
"""


class Mark(NamedTuple):
    """The latest time that a store has seen."""

    us: int  # that time, microseconds since 1970
    ticks_us: int  # the boot's ticks at that moment, in microseconds
    boot: str  # the boot that they belong to
    # how far the wall clock of this process is ahead, where that is not believed; not stored
    ahead_us: int = 0


class StoreClock:
    """Reads the time against a mark."""

    def __init__(
        self, wall: Callable[[], datetime] | None = None, ticks: Callable[[], float] | None = None
    ) -> None:
        self._wall = wall or utc_now
        self._ticks = ticks or _ticks
        self._is_given = wall is not None
        self._is_simulated = wall is not None and ticks is not None

    def advance(self, mark: Mark, server_us: int | None = None) -> Mark:
        """Return the present as a mark: never before ``mark``, nor before what has passed since on
        this boot.

        Args:
            mark: the latest time that the store has seen.
            server_us: the time of the database's server, if it has one.
        """
        ticks_us = self._ticks_us()
        wall_us = to_us(self._wall())
        passed_us = 0
        if mark.boot == BOOT_ID:
            passed_us = ticks_us - mark.ticks_us
        least_us = mark.us + max(passed_us, 0)
        if server_us is not None and not self._is_simulated:
            now_us = max(server_us, least_us)
            ahead_us = wall_us - server_us
            if not self._is_given or ahead_us <= MAX_AHEAD_US:
                ahead_us = 0
            return Mark(now_us, ticks_us, BOOT_ID, ahead_us)
        ahead_us = wall_us - least_us
        # ticks that stand still, as a test's do, prove nothing about the wall clock
        if passed_us > 0 and ahead_us > MAX_AHEAD_US:
            return Mark(least_us, ticks_us, BOOT_ID, ahead_us)
        return Mark(max(wall_us, least_us), ticks_us, BOOT_ID)

    def accept(self, mark: Mark) -> Mark:
        """Return the present as the wall clock has it, however far it is ahead of ``mark``."""
        wall_us = to_us(self._wall())
        return Mark(max(wall_us, mark.us), self._ticks_us(), BOOT_ID)

    def _ticks_us(self) -> int:
        return int(self._ticks() * 1_000_000)
