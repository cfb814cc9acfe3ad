"""What batches, progress, stops, surfaces and sinks cost against their bars; run as ``python -m
benchmarks.batches``.

A ratio is the part of its bar that a figure takes. CPU time, but for what is a wait: reads side by
side, and a stop.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from agenttool_otel import (
    BatchCall,
    Governor,
    SchedulerPolicy,
    TelemetrySettings,
    agent_context,
    carry_context,
    current_call,
)
from agenttool_otel import report_progress as report
from agenttool_otel.telemetry.sinks import CallbackSink

READS: dict[str, Any] = {
    "read_only": True,
    "concurrency_safe": True,
    "risk_level": "low",
    "access_kinds": [],
    "write_effects": ["none"],
}


def _governor(**telemetry: Any) -> Governor:
    return Governor(telemetry=TelemetrySettings(**telemetry), policy_timeout=60)


def _median(measure: Callable[[], float], rounds: int = 9) -> float:
    measure()
    return statistics.median(measure() for _ in range(rounds))


def _cpu(function: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    start = clock()
    function()
    return clock() - start


def _wall(function: Callable[[], object]) -> float:
    return _cpu(function, time.perf_counter)


def beside_invoke(count: int = 500) -> float:
    """Seconds that a batch adds to a call, beside ``tool.invoke``."""
    governor = _governor()
    act = governor.govern(lambda number: number, name="act", **READS)
    calls = [BatchCall(act, {"number": number}) for number in range(count)]

    def one_by_one() -> None:
        for call in calls:
            act.tool.invoke(**call.arguments)

    rounds = [(_cpu(lambda: governor.batch(calls)), _cpu(one_by_one)) for _ in range(9)]
    return statistics.median(batch - plain for batch, plain in rounds[1:]) / count


def reads_together() -> float:
    """Seconds until ten reads of 100 ms have ended."""
    governor = _governor()
    read = governor.govern(lambda: time.sleep(0.1), name="read", **READS)
    policy = SchedulerPolicy(max_parallel=10)
    return _median(lambda: _wall(lambda: governor.batch([BatchCall(read, {})] * 10, policy=policy)))


def stop() -> float:
    """Seconds from the request to the end of a body that looks every millisecond whether to
    stop.
    """
    governor = _governor()
    inside = threading.Event()

    @governor.govern(**READS)
    def work() -> None:
        call = current_call()
        assert call is not None
        inside.set()
        while True:
            time.sleep(0.001)
            call.raise_if_canceled()

    def once() -> float:
        inside.clear()
        thread = threading.Thread(target=carry_context(work.tool.invoke))
        thread.start()
        assert inside.wait(60), "the call was not allowed to run"
        running = next(iter(governor.pipeline.running))
        return _wall(lambda: (governor.cancel(running, "enough"), thread.join()))

    return _median(once, 30)


def reports() -> float:
    """Seconds of 1,000 reports to which nobody listens."""
    took: list[float] = []

    def work() -> None:
        start = time.thread_time()
        for number in range(1000):
            report(number / 10)
        took.append(time.thread_time() - start)

    act = _governor().govern(work, name="work", **READS)
    for _ in range(9):
        act()
    return statistics.median(took)


def slow_sink(count: int = 300) -> float:
    """Seconds that a sink which takes 100 ms a record adds to a call."""
    plain, slow = (
        _governor(sinks=sinks).govern(lambda: 1, name="act", **READS)
        for sinks in ((), (CallbackSink(lambda line: time.sleep(0.1), queue=100_000),))
    )

    def many(act: Any) -> Callable[[], None]:
        def calls() -> None:
            for _ in range(count):
                act()

        return calls

    rounds = [
        (_cpu(many(slow), time.thread_time), _cpu(many(plain), time.thread_time)) for _ in range(9)
    ]
    return statistics.median(with_sink - without for with_sink, without in rounds[1:]) / count


def surface(count: int = 1000) -> tuple[float, float]:
    """Seconds to build a surface of many tools with the stock policy, and to look whether it is
    still the same.
    """
    governor = Governor()
    held = [governor.govern(lambda: 1, name=f"tool_{number}", **READS) for number in range(count)]
    governor.surface()
    with agent_context(session_id="surface"):
        built = _cpu(governor.surface)
        made = governor.surface()
        refreshed = _median(lambda: _cpu(made.refresh))
    assert len(made.loaded) == len(held)
    return built, refreshed


def measured() -> Iterator[tuple[str, float, float]]:
    """Yield what is measured, its seconds and its bar."""
    yield "batch: added to a call", beside_invoke(), 100e-6
    yield "batch: ten reads of 100 ms", reads_together(), 0.150
    yield "stop of a body that looks", stop(), 0.050
    yield "1,000 reports, nobody listens", reports(), 0.005
    yield "slow sink: added to a call", slow_sink(), 50e-6
    built, refreshed = surface()
    yield "surface of 1,000 tools", built, 0.250
    yield "surface: nothing changed", refreshed, 0.001


def bars() -> list[tuple[str, float, float, str]]:
    """Rows of the table of bars."""
    # other benchmarks state one, and then a call without is asked about
    with agent_context(session_id="bench"):
        return [
            (name, seconds / bar, 1.0, f"{seconds * 1e3:.3g} ms of {bar * 1e3:g} ms")
            for name, seconds, bar in measured()
        ]


def rows() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each row and what to time."""
    governor = _governor()
    act = governor.govern(lambda: 1, name="act", **READS)
    calls = [BatchCall(act, {})]

    def of_one() -> None:
        with agent_context(session_id="bench"):
            governor.batch(calls)

    yield "batch of one call", of_one
    yield "report outside a call", lambda: report(1)


if __name__ == "__main__":
    for title, ratio, _, times in bars():
        print(f"{title:32} {ratio:6.2f} of its bar ({times})")
