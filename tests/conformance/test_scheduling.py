"""Requirements of "Scheduling and concurrency": what runs beside what, and what becomes of calls
that are stopped.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from batch_tools import Overlaps
from recorded import last_of, records_of

from agenttool_otel import (
    BatchCall,
    CancelState,
    SchedulerPolicy,
    agent_context,
    current_call,
    progress_to,
    report_progress,
)
from agenttool_otel.testing import Capture, StaticEngine, capture


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture(policy=StaticEngine("allow")) as made:
        yield made


def overlaps_of(captured: Capture, **facts: Any) -> int:
    """Return how many of four calls of a tool ran at once."""
    seen = Overlaps()

    @captured.governor.govern(**facts)
    def act() -> None:
        with seen.inside():
            time.sleep(0.03)

    captured.governor.batch([BatchCall(act, {})] * 4)
    return seen.most


@pytest.mark.covers("concurrency-safe-by-input")
def test_safe_beside_others_is_a_fact_of_the_input(captured: Capture) -> None:
    @captured.governor.govern(concurrency_safe=lambda arguments: arguments["path"] == "a")
    def act(path: str) -> None: ...

    captured.governor.batch([BatchCall(act, {"path": path}) for path in "ab"])
    facts = {
        record["invocation_id"]: record["scheduler"]["is_concurrency_safe"]
        for record in records_of(captured, "tool_invocation")
    }
    assert sorted(facts.values()) == [False, True]


@pytest.mark.covers("read-only-is-not-concurrency-safe")
def test_a_tool_that_only_reads_is_not_safe_by_that(captured: Capture) -> None:
    assert overlaps_of(captured, read_only=True) == 1


@pytest.mark.covers("write-beside-others-only-if-stated")
def test_a_tool_that_writes_runs_alone_unless_it_is_safe(captured: Capture) -> None:
    assert overlaps_of(captured, name="plain", access_kinds=["file_write"]) == 1
    assert overlaps_of(captured, name="safe", concurrency_safe=True) > 1


@pytest.mark.covers("progress-before-ordered-results")
def test_progress_comes_before_the_results_of_earlier_calls(captured: Capture) -> None:
    reported = threading.Event()

    @captured.governor.govern(concurrency_safe=True)
    def act(number: int) -> bool:
        if number:
            report_progress(50, "half")
            return True
        # the first call ends once somebody has had the progress of the second
        return reported.wait(2)

    def note(step: Any) -> None:
        if step.message == "half":
            reported.set()

    with progress_to(note):
        results = captured.governor.batch([BatchCall(act, {"number": n}) for n in range(2)])
    assert [result.value for result in results] == [True, True]


@pytest.mark.covers("interrupt-defaults-to-block")
async def test_an_interrupt_blocks_where_nobody_states_it(captured: Capture) -> None:
    ended: list[str] = []

    @captured.governor.govern
    async def act() -> None:
        await asyncio.sleep(0.1)
        ended.append("as it wanted")

    task = asyncio.create_task(captured.governor.abatch([BatchCall(act, {})]))
    await asyncio.sleep(0.03)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["as it wanted"]


@pytest.mark.covers("synthetic-result-for-timeout")
def test_a_call_that_took_too_long_has_that_reason(captured: Capture) -> None:
    act = captured.governor.govern(lambda: time.sleep(0.2), name="act", timeout_ms=20)
    result = act.tool.invoke()
    assert (result.status, result.abort_reason) == ("timed_out", "timeout")
    assert last_of(captured, "tool_result")["abort_reason"] == "timeout"


def overlaps_of_two_batches(captured: Capture, session: str, **facts: Any) -> int:
    seen = Overlaps()

    @captured.governor.govern(concurrency_safe=True, **facts)
    def act() -> None:
        with seen.inside():
            time.sleep(0.05)

    def batch() -> None:
        with agent_context(session_id=session):
            captured.governor.batch([BatchCall(act, {})] * 2)

    threads = [threading.Thread(target=batch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen.most


@pytest.mark.covers("resource-locks-held-alone")
def test_a_resource_is_held_by_one_call_of_all_batches(captured: Capture) -> None:
    assert overlaps_of_two_batches(captured, "s", resource_locks=["db"]) == 1


@pytest.mark.covers("exclusive-context-held-alone")
def test_a_context_is_held_by_one_call_of_all_batches(captured: Capture) -> None:
    assert overlaps_of_two_batches(captured, "s", requires_exclusive_context=True) == 1


@pytest.mark.covers("scheduler-policy-resolves")
def test_the_policy_of_a_batch_is_recorded(captured: Capture) -> None:
    act = captured.governor.govern(lambda: 1, name="act")
    captured.governor.batch([BatchCall(act, {})], policy=SchedulerPolicy(max_parallel=3))
    policy = last_of(captured, "tool_scheduler_policy")
    assert policy["max_parallel"] == 3
    assert (
        last_of(captured, "tool_invocation")["scheduler_policy_ref"]
        == (policy["scheduler_policy_id"])
    )


FACTS = {
    "is_read_only": True,
    "is_destructive": False,
    "is_open_world": False,
    "requires_exclusive_context": True,
    "context_modifier_policy": "defer",
    "interrupt_behavior": "cancel",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.covers(f"call-fact-{row}"), id=row)
        for name, row in [
            ("is_read_only", "read-only"),
            ("is_destructive", "destructive"),
            ("is_open_world", "open-world"),
            ("requires_exclusive_context", "exclusive-context"),
            ("context_modifier_policy", "context-modifiers"),
            ("interrupt_behavior", "interrupt-behavior"),
        ]
    ],
)
def test_an_invocation_has_the_facts_of_its_input(name: str, captured: Capture) -> None:
    @captured.governor.govern(
        read_only=lambda arguments: arguments["path"] == "a",
        destructive=lambda arguments: arguments["path"] != "a",
        open_world=lambda arguments: arguments["path"] != "a",
        requires_exclusive_context=True,
        context_modifiers="defer",
        interrupt_behavior="cancel",
    )
    def act(path: str) -> None: ...

    act("a")
    assert last_of(captured, "tool_invocation")["scheduler"][name] == FACTS[name]


@pytest.mark.covers("call-fact-resource-locks")
def test_an_invocation_has_the_resources_that_it_holds(captured: Capture) -> None:
    captured.governor.govern(lambda: 1, name="act", resource_locks=["db", "cache"])()
    assert last_of(captured, "tool_invocation")["scheduler"]["resource_locks"] == ["cache", "db"]


def queue_states(captured: Capture) -> list[str]:
    return [record["scheduler"]["state"] for record in records_of(captured, "tool_invocation")]


@pytest.mark.covers("queue-state-of-completed-call", "queue-state-of-handed-on-call")
def test_a_call_is_completed_and_then_yielded(captured: Capture) -> None:
    act = captured.governor.govern(lambda: 1, name="act")
    captured.governor.batch([BatchCall(act, {})])
    assert queue_states(captured) == ["completed", "yielded"]


@pytest.mark.covers("queue-state-of-discarded-call")
def test_a_call_that_is_replaced_is_discarded(captured: Capture) -> None:
    @captured.governor.govern
    def act() -> None:
        call = current_call()
        assert call is not None
        call.request(CancelState(call.invocation_id, "another answers", "fallback"))
        call.raise_if_canceled()

    captured.governor.batch([BatchCall(act, {})])
    assert "discarded" in queue_states(captured)
