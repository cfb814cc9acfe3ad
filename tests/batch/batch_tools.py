"""Tools by name, for bodies in other processes, and what tests of batches share."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace

from agenttool_otel import Governor, current_call, current_context, report_progress
from agenttool_otel.testing import StaticEngine

governor = Governor(policy=StaticEngine("allow"), policy_timeout=60)


class Overlaps:
    """Counts who runs beside whom."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.order: list[Any] = []
        self._lock = threading.Lock()

    @contextmanager
    def inside(self, name: Any = None) -> Iterator[None]:
        with self._lock:
            self.order.append(name)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            yield
        finally:
            with self._lock:
                self.now -= 1


class Odd(Exception):
    """Can't be pickled back: its arguments are not those of its constructor."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one)


@governor.govern(read_only=True, concurrency_safe=True)
def where(number: int) -> dict[str, Any]:
    """Say where this runs, for whom and under which trace."""
    span = trace.get_current_span().get_span_context()
    return {
        "number": number,
        "pid": os.getpid(),
        "actor": current_context().actor,
        "trace": f"{span.trace_id:032x}",
    }


@governor.govern(read_only=True, concurrency_safe=True)
def odd() -> None:
    """Raise what does not arrive."""
    raise Odd("one", "two")


@governor.govern(read_only=True, concurrency_safe=True, timeout_ms=40)
def chance(seed: int) -> int:
    """Succeed, fail or take too long."""
    fate = random.Random(seed).random()
    if fate < 0.05:
        raise ValueError(str(seed))
    if fate < 0.055:
        time.sleep(0.08)
    return seed


@governor.govern(
    read_only=True, concurrency_safe=True, supports_progress=True, supports_cancel=True
)
def told(seconds: float) -> str:
    """Report, and go on until somebody says stop."""
    call, until = current_call(), time.monotonic() + seconds
    for number in range(1000):
        report_progress(number / 10, "far away", line_count=number)
    while call is not None and time.monotonic() < until:
        if call.canceled:
            return "stopped"
        time.sleep(0.002)
    return "ended"


@governor.govern(read_only=True, concurrency_safe=True)
async def later(number: int) -> int:
    """Be asynchronous."""
    return number
