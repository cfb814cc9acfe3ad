"""Several calls at once: what may run together does, everything else keeps its order, and each call
has a result.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from batch_tools import Overlaps, governor, later, odd, told, where
from opentelemetry.sdk.trace import TracerProvider

from agenttool_otel import (
    BatchCall,
    ConfigurationError,
    ContextModifier,
    Governor,
    SchedulerPolicy,
    agent_context,
    current_call,
    progress_to,
)
from agenttool_otel.names import ErrorClass, ResultStatus
from agenttool_otel.records import ToolEvent, ToolResult
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.testing import StaticEngine, decision
from function_engine import FunctionEngine

Run = Callable[..., list[ToolResult]]


@pytest.fixture(params=["threads", "asyncio"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a batch, and see that nothing of it is held afterwards."""

    def through(
        calls: list[BatchCall], of: Governor = governor, **options: Any
    ) -> list[ToolResult]:
        threads = request.param == "threads"
        results = (
            of.batch(calls, **options) if threads else asyncio.run(of.abatch(calls, **options))
        )
        gate = of.pipeline.gate
        assert (gate._held, gate._waiting, of.pipeline.running) == ({}, [], {})
        return results

    return through


@pytest.fixture
def seen() -> Overlaps:
    return Overlaps()


def fresh(policy: Any = None, **options: Any) -> Governor:
    return Governor(policy=policy or StaticEngine("allow"), **options)


@pytest.mark.covers("safe-calls-run-together")
def test_reads_run_together_and_keep_their_order(run: Run, seen: Overlaps) -> None:
    of = fresh()

    @of.govern(read_only=True, concurrency_safe=True)
    def read(number: int) -> int:
        with seen.inside():
            time.sleep(0.1 - number / 100)
            return number

    results = run([BatchCall(read, {"number": number}) for number in range(8)], of)
    assert [result.value for result in results] == list(range(8))
    assert seen.most > 1


@pytest.mark.covers("exclusive-calls-keep-order")
def test_a_call_that_is_not_safe_runs_alone_and_in_order(run: Run, seen: Overlaps) -> None:
    of = fresh()

    @of.govern(concurrency_safe=lambda arguments: bool(arguments["safe"]))
    def act(number: int, safe: bool) -> None:
        alone = Overlaps()
        with seen.inside(number):
            time.sleep(0.01)
            if not safe:
                alone.most = seen.now
        assert alone.most <= 1

    calls = [BatchCall(act, {"number": number, "safe": number % 3 == 0}) for number in range(12)]
    results = run(calls, of)
    assert [str(result.status) for result in results] == ["succeeded"] * 12
    unsafe = [number for number in seen.order if number % 3]
    assert unsafe == sorted(unsafe)


@pytest.mark.parametrize(("ordering", "most"), [("preserve_terminal_order", 3), ("serial", 1)])
@pytest.mark.covers("max-parallel-binds", "serial-order-runs-one-at-a-time")
def test_no_more_calls_run_at_once_than_the_policy_says(
    ordering: str, most: int, run: Run, seen: Overlaps
) -> None:
    of = fresh()

    @of.govern(read_only=True, concurrency_safe=True)
    def read() -> None:
        with seen.inside():
            time.sleep(0.02)

    run(
        [BatchCall(read, {})] * 9,
        of,
        policy=SchedulerPolicy(max_parallel=3, ordering_policy=ordering),
    )
    assert seen.most == most


def test_a_call_is_decided_when_it_is_its_turn(run: Run) -> None:
    written: list[int] = []
    of = fresh(FunctionEngine(lambda document: decision("deny" if written else "allow")))

    @of.govern(name="write")
    def write(number: int) -> None:
        written.append(number)

    results = run([BatchCall("write", {"number": 1}), BatchCall("write", {"number": 2})], of)
    assert [str(result.status) for result in results] == ["succeeded", "denied"]
    assert written == [1]


def test_an_unknown_tool_and_bad_arguments_have_results_too(run: Run) -> None:
    results = run(
        [
            BatchCall("nobody", {}),
            BatchCall(where, {"number": "x"}),
            BatchCall(where, {"number": 1}),
        ]
    )
    assert [result.error.error_class if result.error else None for result in results] == [
        ErrorClass.UNKNOWN_TOOL,
        ErrorClass.SCHEMA_VALIDATION_FAILED,
        None,
    ]


def test_what_can_not_be_a_batch_is_refused_before_it_runs() -> None:
    with pytest.raises(ConfigurationError, match="before it"):
        governor.batch([BatchCall(where, {"number": 1}, depends_on=[0])])
    with pytest.raises(ConfigurationError, match="no tool of this Governor"):
        fresh().batch([BatchCall(where, {"number": 1})])
    with pytest.raises(TypeError, match="abatch"):
        governor.batch([BatchCall(later, {"number": 1})])
    with pytest.raises(ConfigurationError, match="max_parallel"):
        governor.batch([], policy=SchedulerPolicy(max_parallel=0))


# --- siblings -------------------------------------------------------------------------------------


def family(sibling: str) -> tuple[Governor, list[BatchCall], SchedulerPolicy]:
    of = fresh()

    @of.govern(concurrency_safe=True, name="fails")
    def fails() -> None:
        raise ValueError

    @of.govern(concurrency_safe=True, name="works")
    def works() -> None:
        time.sleep(0.02)

    calls = [
        BatchCall(fails, {}),
        BatchCall(works, {}, depends_on=[0]),
        BatchCall(works, {}, depends_on=[1]),
        BatchCall(works, {}),
    ]
    return of, calls, SchedulerPolicy(max_parallel=2, sibling_failure_policy=sibling)


@pytest.mark.parametrize(
    ("sibling", "canceled"),
    [("ignore", []), ("cancel_dependent", [1, 2]), ("cancel_siblings", [1, 2, 3])],
)
@pytest.mark.covers(
    "sibling-failure-ignored",
    "sibling-failure-cancels-all",
    "sibling-failure-cancels-dependents",
    "sibling-failure-spares-independents",
    "canceled-sibling-has-synthetic-result",
)
def test_a_failure_is_to_its_siblings_what_the_policy_says(
    sibling: str, canceled: list[int], run: Run
) -> None:
    of, calls, policy = family(sibling)
    results = run(calls, of, policy=policy)
    for index, result in enumerate(results[1:], 1):
        if index in canceled:
            assert result.error is not None
            assert result.error.error_class is ErrorClass.SIBLING_CANCELED
            assert (result.status, result.abort_reason) == (
                ResultStatus.SYNTHETIC_ERROR,
                "sibling_error",
            )
        else:
            assert result.status is ResultStatus.SUCCEEDED


@pytest.mark.covers("sibling-failure-cancels-running")
def test_a_sibling_that_runs_is_stopped_where_it_can_be(run: Run) -> None:
    of = fresh()

    @of.govern(concurrency_safe=True)
    def fails() -> None:
        time.sleep(0.05)
        raise ValueError

    @of.govern(concurrency_safe=True)
    def waits() -> None:
        call = current_call()
        assert call is not None
        for _ in range(400):
            call.raise_if_canceled()
            time.sleep(0.01)

    policy = SchedulerPolicy(sibling_failure_policy="cancel_siblings")
    results = run([BatchCall(waits, {}), BatchCall(fails, {})], of, policy=policy)
    assert [str(result.status) for result in results] == ["synthetic_error", "failed"]


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("yields", ["progress_immediate_results_ordered", "unordered_streaming"])
@pytest.mark.covers("terminal-results-keep-order", "unordered-results-where-allowed")
def test_results_come_in_order_unless_the_policy_lets_them_not(yields: str) -> None:
    of = fresh()

    @of.govern(concurrency_safe=True)
    def act(number: int) -> int:
        time.sleep(0.1 if number == 0 else 0)
        return number

    calls = [BatchCall(act, {"number": number}) for number in range(3)]
    results = list(of.batch_stream(calls, policy=SchedulerPolicy(yield_policy=yields)))
    assert (results[0].value == 0) is (yields != "unordered_streaming")
    assert sorted(result.value for result in results) == [0, 1, 2]


def test_who_leaves_a_stream_begins_no_further_call() -> None:
    of = fresh()
    ran: list[int] = []

    @of.govern()
    def act(number: int) -> None:
        ran.append(number)
        time.sleep(0.02)

    stream = of.batch_stream([BatchCall(act, {"number": number}) for number in range(50)])
    next(stream)
    stream.close()
    assert len(ran) < 5
    assert of.pipeline.running == {}


@pytest.mark.covers("interrupt-cancel-stops", "interrupt-block-waits")
async def test_canceling_a_batch_stops_what_may_be_stopped() -> None:
    of = fresh()
    ended: list[str] = []

    def tool(name: str, behavior: Any) -> Any:
        @of.govern(concurrency_safe=True, name=name, interrupt_behavior=behavior)
        async def act() -> None:
            try:
                await asyncio.sleep(0.2)
                ended.append(f"{name} ended")
            except asyncio.CancelledError:
                ended.append(f"{name} canceled")
                raise

        return act

    calls = [BatchCall(tool("stops", "cancel"), {}), BatchCall(tool("stays", "block"), {})]
    task = asyncio.create_task(of.abatch([*calls, *calls], policy=SchedulerPolicy(max_parallel=2)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["stops canceled", "stays ended"]
    assert of.pipeline.running == {}


# --- context modifiers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "applied"),
    [("forbid", []), ("allow_serial_only", [1]), ("defer_until_batch_complete", [0, 1])],
)
def test_context_modifiers_are_made_where_the_policy_lets(
    policy: str, applied: list[int], run: Run
) -> None:
    of = fresh()
    made: list[int] = []

    @of.govern(concurrency_safe=lambda arguments: arguments["number"] == 0)
    def act(number: int) -> Any:
        time.sleep(0.05 if number == 0 else 0)
        return ContextModifier(number, lambda: made.append(number))

    calls = [BatchCall(act, {"number": number}) for number in range(2)]
    results = run(calls, of, policy=SchedulerPolicy(context_modifier_policy=policy))
    assert [result.value for result in results] == [0, 1]
    assert made == applied
    told = [result.context_modifier["applied"] for result in results if result.context_modifier]
    assert told == [number in applied for number in range(2)]
    assert act(1) == 1
    assert made == [*applied, 1]


@pytest.mark.parametrize(
    ("stated", "policy", "during", "after"),
    [
        ("allow", "allow_serial_only", [0], [0]),
        ("defer", "allow_serial_only", [], [0]),
        ("defer", "forbid", [], []),
        ("refuse", "defer_until_batch_complete", [], []),
    ],
)
def test_a_tool_may_want_its_changes_later_or_never(
    stated: Any, policy: str, during: list[int], after: list[int], run: Run
) -> None:
    of = fresh()
    made: list[int] = []
    seen: list[list[int]] = []
    act = of.govern(
        lambda: ContextModifier(1, lambda: made.append(0)), name="act", context_modifiers=stated
    )
    look = of.govern(lambda: seen.append([*made]), name="look")
    calls = [BatchCall(act, {}), BatchCall(look, {})]
    results = run(calls, of, policy=SchedulerPolicy(context_modifier_policy=policy))
    assert (seen, made) == ([during], after)
    assert results[0].value == 1
    assert results[0].context_modifier is not None
    assert results[0].context_modifier["applied"] is bool(after)
    assert act.tool.invoke().context_modifier["applied"] is (stated != "refuse")


# --- what a batch says of its calls ---------------------------------------------------------------


def test_a_call_says_that_it_was_queued_and_handed_on(run: Run) -> None:
    events: list[ToolEvent] = []
    telemetry = TelemetrySettings(subscribers=(events.append,))
    of = fresh(telemetry=telemetry)
    act = of.govern(lambda: 1, name="act")
    run([BatchCall("act", {})], of)
    names = [event.event_type for event in events]
    order = ["tool.invocation.queued", "tool.invocation.succeeded", "tool.invocation.yielded"]
    assert [name for name in names if name in order] == order
    del act


# --- executors ------------------------------------------------------------------------------------


def test_bodies_run_in_other_processes_with_their_context(run: Run) -> None:
    of, provider = governor, TracerProvider()
    with (
        ProcessPoolExecutor(1) as pool,
        provider.get_tracer("t").start_as_current_span("caller") as span,
        agent_context(actor="agent:far"),
    ):
        results = run(
            [BatchCall(where, {"number": number}) for number in range(3)], of, executor=pool
        )
        failed = run([BatchCall(odd, {})], of, executor=pool)
    assert [result.value["number"] for result in results] == [0, 1, 2]
    assert {result.value["actor"] for result in results} == {"agent:far"}
    assert {result.value["trace"] for result in results} == {
        f"{span.get_span_context().trace_id:032x}"
    }
    assert os.getpid() not in {result.value["pid"] for result in results}
    assert str(failed[0].status) == "failed"


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_body_in_another_process_reports(start: str, run: Run) -> None:
    seen: list[Any] = []
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context(start)) as pool,
        progress_to(seen.append, steps=False),
    ):
        [result] = run([BatchCall(told, {"seconds": 0})], executor=pool)
    assert result.value == "ended"
    reported = [step for step in seen if step.message == "far away"]
    assert (reported[0].line_count, reported[-1].line_count) == (0, 999)
    assert [step.sequence for step in seen] == list(range(len(seen)))
    for thread in threading.enumerate():
        if thread.name == "agenttool-far":
            thread.join(20)
            assert not thread.is_alive()


def test_a_body_in_another_process_is_stopped(run: Run) -> None:
    def stop(step: Any) -> None:
        if step.message == "far away" and not state:
            state.append(governor.cancel(step.invocation_id, "enough"))

    state: list[Any] = []
    with ProcessPoolExecutor(1) as pool, progress_to(stop):
        [result] = run([BatchCall(told, {"seconds": 30})], executor=pool)
    assert (result.value, result.status, state[0].outcome) == (
        "stopped",
        "partial_succeeded",
        "canceled",
    )


def test_bodies_run_on_a_given_pool_of_threads(run: Run) -> None:
    with ThreadPoolExecutor(2, "mine") as pool:
        of = fresh()

        @of.govern(concurrency_safe=True)
        def name() -> str:
            return threading.current_thread().name

        assert run([BatchCall(name, {})], of, executor=pool)[0].value.startswith("mine")
