"""Many calls at once, with failures, cancellations and time limits: order kept, nothing lost,
doubled or leaked.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from batch_tools import Overlaps, chance
from batch_tools import governor as of
from opentelemetry.sdk.trace import TracerProvider

from agenttool_otel import BatchCall, Governor, SchedulerPolicy, current_call
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.testing import StaticEngine

MANY = 10_000
ENDS = {"succeeded", "failed", "timed_out", "canceled", "partial_succeeded", "synthetic_error"}


class Spans:
    """Counts spans that began and ended."""

    def __init__(self) -> None:
        self.open = 0
        self.ids: Counter[str] = Counter()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.open += 1

    def on_end(self, span: Any) -> None:
        self.open -= 1
        self.ids[span.attributes["agenttool.invocation.id"]] += 1

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return True

    def _on_ending(self, span: Any) -> None: ...


@contextlib.contextmanager
def chaos(governor: Governor) -> Iterator[None]:
    """Cancel calls at random while the block runs."""
    stop = threading.Event()

    def cancels() -> None:
        chooser = random.Random(1)
        while not stop.wait(0.003):
            running = list(governor.pipeline.running)
            if running:
                with contextlib.suppress(LookupError):  # it has ended meanwhile
                    governor.cancel(chooser.choice(running), "chaos")

    thread = threading.Thread(target=cancels)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["threads", "asyncio"])
def test_ten_thousand_calls_keep_order_and_leak_nothing(way: str) -> None:
    spans, provider = Spans(), TracerProvider()
    provider.add_span_processor(spans)  # type: ignore[arg-type]
    telemetry = TelemetrySettings(tracer_provider=provider)
    governor = Governor(policy=StaticEngine("allow"), telemetry=telemetry, policy_timeout=60)
    ran: Counter[int] = Counter()
    writers = Overlaps()

    def safe(arguments: Any) -> bool:
        return bool(arguments["number"] % 20)

    def fate(number: int) -> float:
        ran[number] += 1
        return random.Random(number).random()

    def ends(number: int, value: float) -> int:
        if value < 0.05:
            raise ValueError(str(number))
        if not number % 20:
            with writers.inside(number):
                time.sleep(0)
        return number

    @governor.govern(concurrency_safe=safe, timeout_ms=200)
    async def act(number: int) -> int:
        value = fate(number)
        if value > 0.998:
            await asyncio.sleep(0.5)
        return ends(number, value)

    @governor.govern(concurrency_safe=safe)
    def do(number: int) -> int:
        value = fate(number)
        call = current_call()
        assert call is not None
        if value > 0.99:
            time.sleep(0.002)
            call.raise_if_canceled()
        return ends(number, value)

    @governor.govern(concurrency_safe=True, timeout_ms=20)
    def late(number: int) -> int:
        ran[number] += 1
        time.sleep(0.05)
        return number

    tool = do if way == "threads" else act
    calls = [
        BatchCall(tool if number % 200 != 7 else late, {"number": number}) for number in range(MANY)
    ]
    before = threading.active_count()
    with chaos(governor):
        results = governor.batch(calls) if way == "threads" else asyncio.run(governor.abatch(calls))
    assert len(results) == MANY
    assert {"succeeded", "failed", "timed_out", "canceled"} <= {
        str(result.status) for result in results
    }
    assert [result.value for result in results if result.value is not None] == [
        number for number, result in enumerate(results) if result.value is not None
    ]
    odd = [result.summary for result in results if str(result.status) not in ENDS]
    assert odd == []
    assert len({result.invocation_id for result in results}) == MANY
    assert max(ran.values()) == 1
    assert writers.most == 1
    assert writers.order == sorted(writers.order)
    assert (spans.open, len(spans.ids), max(spans.ids.values())) == (0, MANY, 1)
    gate = governor.pipeline.gate
    assert (gate._held, gate._waiting, governor.pipeline.running) == ({}, [], {})
    assert threading.active_count() <= before


@pytest.mark.slow
def test_ten_thousand_bodies_in_processes_keep_their_order() -> None:
    policy = SchedulerPolicy(max_parallel=8)
    with ProcessPoolExecutor(2) as pool, chaos(of):
        results = of.batch(
            [BatchCall(chance, {"seed": seed}) for seed in range(MANY)],
            policy=policy,
            executor=pool,
        )
    assert len(results) == MANY
    for seed, result in enumerate(results):
        assert result.value in (None, seed)
        assert str(result.status) in ENDS
    assert {"succeeded", "failed", "timed_out", "canceled"} <= {
        str(result.status) for result in results
    }
    assert len({result.invocation_id for result in results}) == MANY
    # a busy machine times many out
    assert sum(result.value is not None for result in results) > MANY // 10
    assert of.pipeline.running == {}


def test_two_writers_on_one_lock_never_overlap_anywhere() -> None:
    governor = Governor(policy=StaticEngine("allow"))
    writers = Overlaps()

    @governor.govern(concurrency_safe=True, resource_locks=["db"])
    def write(number: int) -> None:
        with writers.inside(number):
            time.sleep(0.001)

    @governor.govern(concurrency_safe=True, resource_locks=["db", "log"])
    async def awrite(number: int) -> None:
        with writers.inside(number):
            await asyncio.sleep(0.001)

    calls = [BatchCall(write, {"number": number}) for number in range(40)]

    def in_loop() -> None:
        asyncio.run(
            governor.abatch([*calls, *(BatchCall(awrite, {"number": n}) for n in range(40))])
        )

    def plainly() -> None:
        for number in range(40):
            write(number)

    jobs = [in_loop, in_loop, lambda: governor.batch(calls), plainly]
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert writers.most == 1
    assert len(writers.order) == 240


def test_a_tool_that_calls_a_tool_does_not_wait_for_its_own_lock() -> None:
    governor = Governor(policy=StaticEngine("allow"))
    inner = Overlaps()

    @governor.govern(concurrency_safe=True, resource_locks=["db"])
    def write(number: int) -> None:
        with inner.inside(number):
            time.sleep(0.005)

    @governor.govern(resource_locks=["db"])
    def both() -> None:
        write(0)
        governor.batch([BatchCall(write, {"number": number}) for number in range(1, 5)])

    thread = threading.Thread(target=both)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert (inner.most, len(inner.order)) == (1, 5)


def test_an_open_question_holds_no_lock() -> None:
    governor = Governor(policy=StaticEngine("ask"))

    @governor.govern(resource_locks=["db"])
    def write() -> int:
        return 1

    assert str(write.tool.invoke().status) == "pending"
    assert str(write.tool.invoke().status) == "pending"
    assert governor.pipeline.gate._held == {}
