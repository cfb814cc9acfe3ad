"""Half a million governed calls in one process: is a span lost, does memory grow, and do two processes
do twice the work of one?

``python -m benchmarks.soak [CALLS]`` (500,000). Half of the calls are made by eight threads, half by
coroutines of which 1,000 are open at once. One in ten is denied; most others read a file whose name no
other call has. A session lasts for 500 calls, 50 of them at once, and all may remember 8 MB
(``sessions_memory_mb``). Memory is that of the process after a fifth of the calls against that at the end.
Work is wall time: nothing else may run.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from agenttool_otel import Governor, TelemetrySettings, ToolDenied, agent_context

CALLS: Final = 500_000
MOST_GROWTH: Final = 1.02
LEAST_SCALE: Final = 1.9
_THREADS: Final = 8
_OPEN: Final = 1_000
_SESSIONS: Final = 50
_CALLS_OF_A_SESSION: Final = 500
_SESSIONS_MEMORY_MB: Final = 8
_STEPS: Final = 5
_READS: Final = {"read_only": True, "concurrency_safe": True, "access_kinds": ["file_read"]}
_OF_ONE_PROCESS: Final = 20_000
_start: Barrier
"""Where the processes meet that are compared, in each of them."""


class Spans(SpanExporter):
    """Counts spans by their decision, and keeps none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.found: Counter[Any] = Counter()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._lock:
            for span in spans:
                self.found[(span.attributes or {}).get("agenttool.permission.behavior")] += 1
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass


class Work:
    """Two tools, and calls of them by number."""

    def __init__(self, root: str) -> None:
        self.spans = Spans()
        tracer = TracerProvider()
        tracer.add_span_processor(SimpleSpanProcessor(self.spans))
        governor = Governor(
            telemetry=TelemetrySettings(tracer_provider=tracer, meter_provider=MeterProvider()),
            sessions_memory_mb=_SESSIONS_MEMORY_MB,
        )
        self._root = root
        facts: dict[str, Any] = {**_READS, "path_args": ["path"]}
        self._search = governor.govern(_search, **_READS)
        self._read = governor.govern(_read, **facts)
        self._aread = governor.govern(_aread, **facts)

    def context(self, number: int) -> Any:
        """Return the context of a session."""
        group = number // (_SESSIONS * _CALLS_OF_A_SESSION)
        session = f"session-{group}-{number % _SESSIONS}"
        return agent_context(actor="agent:soak", session_id=session, roots=[self._root])

    def path(self, number: int) -> str:
        """Return a file's name; of every tenth call, one that is denied."""
        return (
            f"/home/u{number}/.ssh/id_rsa"
            if number % 10 == 0
            else f"{self._root}/part-{number}.txt"
        )

    def call(self, number: int) -> None:
        """Make one call."""
        if number % 2:
            self._search("weather of tomorrow")
            return
        with suppress(ToolDenied):
            self._read(self.path(number))

    async def acall(self, number: int) -> None:
        """Make one call by a coroutine that waits."""
        with suppress(ToolDenied):
            await self._aread(self.path(number))


def _search(query: str) -> str:
    return query


def _read(path: str) -> str:
    return path


async def _aread(path: str) -> str:
    await asyncio.sleep(0)
    return path


def in_threads(work: Work, numbers: range) -> None:
    """Make calls by eight threads."""

    def some(first: int) -> None:
        for number in numbers[first::_THREADS]:
            with work.context(number):
                work.call(number)

    threads = [threading.Thread(target=some, args=(first,)) for first in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def on_a_loop(work: Work, numbers: range) -> None:
    """Make calls by coroutines, 1,000 at once."""

    async def one(number: int) -> None:
        with work.context(number):
            await work.acall(number)

    async def all_of_them() -> None:
        for first in range(0, len(numbers), _OPEN):
            await asyncio.gather(*map(one, numbers[first : first + _OPEN]))

    asyncio.run(all_of_them())


def memory() -> int:
    """Return the bytes that this process has in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Soak:
    """What was found.

    Attributes:
        spans: by decision.
        lost: calls without a span.
        sizes: bytes in memory after each fifth of the calls.
    """

    spans: Counter[Any]
    lost: int
    sizes: list[int]

    @property
    def growth(self) -> float:
        """How many times the memory after the first fifth is there at the end."""
        return self.sizes[-1] / self.sizes[0]


def soak(calls: int) -> Soak:
    """Make that many calls."""
    sizes = []
    with tempfile.TemporaryDirectory() as root:
        work = Work(root)
        for step in range(_STEPS):
            first, last = calls * step // _STEPS, calls * (step + 1) // _STEPS
            middle = (first + last) // 2
            in_threads(work, range(first, middle))
            on_a_loop(work, range(middle, last))
            sizes.append(memory())
    return Soak(work.spans.found, calls - work.spans.found.total(), sizes)


def work_of(processes: int) -> float:
    """Return the calls of a second that some processes make together."""
    spawned = multiprocessing.get_context("spawn")
    start = spawned.Barrier(processes, timeout=120)
    with ProcessPoolExecutor(processes, spawned, initializer=_start_at, initargs=(start,)) as pool:
        # each waits for the others, so that none makes two of them
        return sum(pool.map(_rate, range(processes)))


def _start_at(start: Barrier) -> None:
    global _start
    _start = start


def _rate(_: int) -> float:
    """Return the calls of a second that this process makes, once it and the others are warm."""
    with tempfile.TemporaryDirectory() as root:
        work = Work(root)

        def some(numbers: range) -> None:
            for number in numbers:
                with work.context(number):
                    work.call(number)

        some(range(_OF_ONE_PROCESS // 4))
        _start.wait()
        started = time.perf_counter()
        some(range(_OF_ONE_PROCESS))
        return _OF_ONE_PROCESS / (time.perf_counter() - started)


def scale(rounds: int = 5) -> float:
    """Return the work of two processes against that of one: the median of some rounds."""
    return statistics.median(work_of(2) / work_of(1) for _ in range(rounds))


def main(arguments: list[str]) -> int:
    """Print what was found."""
    calls = int(arguments[0]) if arguments else CALLS
    found = soak(calls)
    sizes = ", ".join(f"{size / 2**20:.1f}" for size in found.sizes)
    sys.stdout.write(
        f"{calls} calls: {found.lost} without a span, {dict(found.spans)};"
        f" memory {sizes} MB, {found.growth:.3f} (<= {MOST_GROWTH})\n"
    )
    sys.stdout.write(f"two processes against one: {scale():.2f} (>= {LEAST_SCALE})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
