"""The store's clock: wall time that never goes back (docs/approvals.md, "Time").

Expiry has to be wall time, because another machine may resume the call next week; but a wall clock can be set back,
which would revive what has expired. So the store keeps a high-water mark of the time it has seen, and on the boot
that wrote the mark also counts the time that really passed since.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from agenttool_otel.records.base import utc_now

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:  # no Linux: ticks of two processes can't be compared, so each is its own boot
        return f"process-{uuid.uuid4().hex}"


BOOT_ID: Final = _boot_id()
"""Names the running kernel, so that ticks are compared only where they mean the same."""


def _ticks() -> float:
    boottime = getattr(time, "CLOCK_BOOTTIME", None)  # goes on while the machine sleeps
    return time.clock_gettime(boottime) if boottime is not None else time.monotonic()


def to_us(value: datetime) -> int:
    """Return microseconds since 1970 of a time; one without a zone is read as UTC."""
    value = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (value - _EPOCH) // timedelta(microseconds=1)


def from_us(value: int) -> datetime:
    """Return the UTC time of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=value)


class Mark(NamedTuple):
    """The latest time that a store has seen."""

    us: int  # that time, microseconds since 1970
    ticks_us: int  # the boot's ticks at that moment, in microseconds
    boot: str  # the boot that they belong to


class StoreClock:
    """Reads the time against a mark."""

    def __init__(self, wall: Callable[[], datetime] | None = None, ticks: Callable[[], float] | None = None) -> None:
        self._wall = wall or utc_now
        self._ticks = ticks or _ticks

    def advance(self, mark: Mark) -> Mark:
        """Return the present as a mark: never before ``mark``, nor before what has passed since on this boot."""
        ticks_us = int(self._ticks() * 1_000_000)
        now = max(to_us(self._wall()), mark.us)
        if mark.boot == BOOT_ID and ticks_us > mark.ticks_us:
            now = max(now, mark.us + ticks_us - mark.ticks_us)
        return Mark(now, ticks_us, BOOT_ID)
