"""Stopping a call that goes on: the request, what the call made of it and its end are
separate facts.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from agenttool_otel import (
    ApprovalRequest,
    CancelState,
    Governor,
    ToolCanceled,
    agent_context,
    current_call,
)
from agenttool_otel.names import CancelOutcome
from agenttool_otel.records import ToolEvent, ToolProgress
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.testing import StaticEngine

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"


class Told:
    def __init__(self) -> None:
        self.events: list[ToolEvent] = []
        self.progress: list[ToolProgress] = []
        telemetry = TelemetrySettings(
            subscribers=(self.events.append,), progress=(self.progress.append,)
        )
        self.governor = Governor(policy=StaticEngine("allow"), telemetry=telemetry)

    def cancels(self) -> list[str]:
        return [e.event_type.rpartition(".")[2] for e in self.events if "cancel" in e.event_type]

    def running(self) -> str:
        for _ in range(500):
            if self.governor.pipeline.running:
                return next(iter(self.governor.pipeline.running))
            time.sleep(0.005)
        raise AssertionError("nothing runs")


@pytest.fixture
def told() -> Told:
    return Told()


def in_thread(function: Any) -> tuple[threading.Thread, list[Any]]:
    box: list[Any] = []

    def run() -> None:
        try:
            box.append(function())
        except BaseException as error:
            box.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, box


@pytest.mark.parametrize("door", ["python", "json"])
@pytest.mark.covers("synthetic-result-for-interruption")
def test_a_cooperative_function_is_stopped_soon(door: str, told: Told) -> None:
    inside = threading.Event()

    @told.governor.govern
    def work() -> None:
        call = current_call()
        assert call is not None
        inside.set()
        while True:
            time.sleep(0.002)
            call.raise_if_canceled()

    thread, box = in_thread(work if door == "python" else work.tool.invoke)
    assert inside.wait(20)
    started = time.monotonic()
    state = told.governor.cancel(told.running(), f"enough of {SECRET}")
    thread.join()
    assert time.monotonic() - started < 30
    assert state.outcome is CancelOutcome.CANCELED
    assert SECRET not in state.reason
    assert told.cancels() == ["cancel_requested", "cancel_acknowledged", "canceled"]
    if door == "python":
        assert isinstance(box[0], ToolCanceled)
    else:
        assert (str(box[0].status), box[0].abort_reason) == ("canceled", "user_interruption")


def test_a_function_that_does_not_look_ends_otherwise(told: Told) -> None:
    inside, go = threading.Event(), threading.Event()

    @told.governor.govern
    def work() -> int:
        inside.set()
        go.wait(5)
        return 1

    thread, box = in_thread(work)
    assert inside.wait(20)
    state = told.governor.cancel(told.running(), "please")
    assert (state.acknowledged_at, state.outcome) == (None, None)
    go.set()
    thread.join()
    assert box == [1]
    assert state.outcome is CancelOutcome.CANCEL_FAILED
    assert told.cancels() == ["cancel_requested", "cancel_failed"]


def test_what_a_stopped_function_returns_is_a_part(told: Told) -> None:
    inside = threading.Event()

    @told.governor.govern
    def work() -> str:
        call = current_call()
        assert call is not None
        inside.set()
        while not call.canceled:
            time.sleep(0.002)
        return "half"

    thread, box = in_thread(work.tool.invoke)
    assert inside.wait(20)
    told.governor.cancel(told.running(), "please")
    thread.join()
    assert (box[0].value, str(box[0].status)) == ("half", "partial_succeeded")


async def test_an_asynchronous_call_is_canceled_and_not_its_task(told: Told) -> None:
    @told.governor.govern
    async def work() -> None:
        await asyncio.sleep(30)

    async def caller() -> str:
        with pytest.raises(ToolCanceled):
            await work()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)
        return "goes on"

    task = asyncio.create_task(caller())
    await asyncio.sleep(0.05)
    state = await told.governor.acancel(told.running(), "please")
    assert await task == "goes on"
    assert state.outcome is CancelOutcome.CANCELED
    assert told.cancels() == ["cancel_requested", "cancel_acknowledged", "canceled"]


async def test_who_cancels_the_task_still_cancels_it(told: Told) -> None:
    @told.governor.govern
    async def work() -> None:
        await asyncio.sleep(30)

    task = asyncio.create_task(work.tool.ainvoke())
    await asyncio.sleep(0.05)
    told.governor.cancel(told.running(), "please")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_stop_after_the_body_reaches_nobody_else(told: Told) -> None:
    handles: list[Any] = []

    @told.governor.govern
    async def work() -> None:
        handles.append(current_call())

    await work()
    handles[0].request(CancelState(handles[0].invocation_id))
    await asyncio.sleep(0.01)


def test_a_time_limit_that_stops_nothing_says_so_and_the_end(told: Told) -> None:
    go = threading.Event()

    @told.governor.govern(timeout_ms=30)
    def work() -> None:
        go.wait(5)

    result = work.tool.invoke()
    assert str(result.status) == "timed_out"
    assert told.cancels() == ["cancel_requested", "cancel_failed"]
    go.set()
    for _ in range(200):
        if str(told.progress[-1].status) == "completed":
            break
        time.sleep(0.01)
    statuses = [str(record.status) for record in told.progress]
    assert statuses == ["started", "backgrounded", "completed"]
    assert [record.sequence for record in told.progress] == [0, 1, 2]


def test_a_call_behind_its_limit_can_see_that_it_should_stop(told: Told) -> None:
    stopped = threading.Event()

    @told.governor.govern(timeout_ms=30)
    def work() -> None:
        call = current_call()
        assert call is not None
        assert call.deadline is not None
        while not call.canceled:
            time.sleep(0.005)
        stopped.set()

    work.tool.invoke()
    assert stopped.wait(5)


def test_a_call_that_waits_for_an_approval_can_be_canceled() -> None:
    governor = Governor(policy=StaticEngine("ask"))
    act = governor.govern(lambda: 1, name="act")
    pending = act.tool.invoke()
    assert str(pending.status) == "pending"
    assert governor.cancel(pending.invocation_id, "no").outcome is CancelOutcome.CANCELED


def test_a_running_call_is_found_and_stopped_from_another_thread() -> None:
    governor = Governor(policy=StaticEngine("allow"))
    began = threading.Event()

    @governor.govern(namespace="t")
    def wait_long(secret: str) -> None:
        began.set()
        call = current_call()
        assert call is not None
        while True:
            call.raise_if_canceled()
            time.sleep(0.005)

    def call_it() -> None:
        with agent_context(actor="agent:a", session_id="s", tenant="acme"):
            wait_long(SECRET)

    thread, box = in_thread(call_it)
    assert began.wait(10)
    [running] = governor.running()
    state = governor.cancel(running.invocation_id, "too slow")
    thread.join(10)
    assert isinstance(box[0], ToolCanceled)
    assert state.outcome is CancelOutcome.CANCELED
    assert governor.running() == []
    assert running.started_at is not None
    assert running.started_at >= running.planned_at
    assert (running.tool_id, running.tool_name, running.status) == (
        "t.wait_long",
        "wait_long",
        "running",
    )
    assert (running.actor_id, running.session_id, running.tenant) == ("agent:a", "s", "acme")
    assert SECRET not in repr(running)


def test_a_call_that_waits_in_place_is_among_the_running() -> None:
    asked, answer = threading.Event(), threading.Event()

    def approver(request: ApprovalRequest) -> bool:
        asked.set()
        return answer.wait(10)

    governor = Governor(policy=StaticEngine("ask"), approver=approver)

    @governor.govern
    def change() -> str:
        return "changed"

    thread, box = in_thread(change)
    assert asked.wait(10)
    [waiting] = governor.running()
    answer.set()
    thread.join(10)
    assert (waiting.status, waiting.started_at) == ("awaiting_approval", None)
    assert box == ["changed"]


def test_a_call_that_was_paused_does_not_run() -> None:
    governor = Governor(policy=StaticEngine("ask"))

    @governor.govern
    def change() -> str:
        return "changed"

    assert change.tool.invoke().status == "pending"
    assert governor.running() == []
