"""What a running tool tells of its progress: in order, not too often, redacted, and to whoever
listens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenttool_otel import (
    ApprovalAnswer,
    Governor,
    current_call,
    mcp_progress,
    progress_to,
    report_progress,
)
from agenttool_otel.records import ToolEvent, ToolProgress
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.testing import StaticEngine

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"


def made(policy: str = "allow", **telemetry: Any) -> Governor:
    return Governor(policy=StaticEngine(policy), telemetry=TelemetrySettings(**telemetry))


def test_reports_of_a_tool_are_ordered_records() -> None:
    told: list[ToolProgress] = []
    governor = made()

    @governor.govern
    def work() -> None:
        report_progress(10, "reading", current_step="read", total_steps=2, bytes_read=7)
        time.sleep(0.11)
        report_progress(500, partial_result_refs=["ref:1"], status="partial_result")

    with progress_to(told.append):
        work()
    assert [(str(one.status), one.sequence) for one in told] == [
        ("started", 0),
        ("running", 1),
        ("partial_result", 2),
        ("completed", 3),
    ]
    assert (told[1].percent, told[1].message, told[1].total_steps, told[1].bytes_read) == (
        10,
        "reading",
        2,
        7,
    )
    assert (told[2].percent, told[2].partial_result_refs) == (100, ["ref:1"])
    assert told[2].elapsed_ms is not None
    assert told[2].elapsed_ms >= 110


@pytest.mark.covers(
    "shell-progress-stream-bytes",
    "shell-progress-timeout",
    "shell-progress-background-task",
    "shell-progress-exit-code",
)
def test_a_shell_tool_states_what_its_process_does() -> None:
    told: list[ToolProgress] = []
    events: list[ToolEvent] = []
    governor = made(subscribers=(events.append,))

    @governor.govern(tool_kind="shell_command", timeout_ms=60_000)
    def run(command: str) -> None:
        report_progress(
            stdout_bytes=2048, stderr_bytes=7, line_count=12, task_id=f"job {SECRET}", exit_code=0
        )

    with progress_to(told.append, steps=False):
        run("make")
    [report] = [record for record in told if record.status == "running"]
    assert (report.stdout_bytes, report.stderr_bytes, report.line_count) == (2048, 7, 12)
    assert (report.timeout_ms, report.exit_code) == (60_000, 0)
    assert report.elapsed_ms is not None
    assert report.task_id is not None
    assert report.task_id.startswith("job ")
    assert SECRET not in report.task_id
    [data] = [event.data for event in events if event.event_type == "tool.invocation.progress"]
    assert data is not None
    names = ("stdout_bytes", "stderr_bytes", "line_count", "timeout_ms", "exit_code")
    numbers = [data[f"agenttool.progress.{name}"] for name in names]
    assert numbers == [2048, 7, 12, 60_000, 0]
    assert "job" not in str(data)


def test_a_text_in_the_place_of_a_count_is_in_no_event() -> None:
    events: list[ToolEvent] = []
    governor = made(subscribers=(events.append,))

    @governor.govern
    def run() -> None:
        report_progress(stdout_bytes="much")  # type: ignore[arg-type]

    run()
    assert "much" not in str([event.data for event in events])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_stream_reports_and_can_be_stopped(asynchronous: bool) -> None:
    told: list[ToolProgress] = []
    governor = made()

    def lines() -> Iterator[int]:
        for number in range(5):
            report_progress(number, status="partial_result")
            yield number
            call = current_call()
            assert call is not None
            if call.canceled:
                return

    async def alines() -> AsyncIterator[int]:
        for line in lines():
            yield line

    async def drain(stream: AsyncIterator[int]) -> list[int]:
        return [stop(item) async for item in stream]

    def stop(item: int) -> int:
        assert current_call() is None  # the consumer's code is not the tool's
        if item == 2:
            governor.cancel(next(iter(governor.pipeline.running)), "enough")
        return item

    with progress_to(told.append):
        if asynchronous:
            assert asyncio.run(drain(governor.govern(alines)())) == [0, 1, 2]
        else:
            assert [stop(item) for item in governor.govern(lines)()] == [0, 1, 2]
    assert "partial_result" in [str(one.status) for one in told]
    assert [one.sequence for one in told] == list(range(len(told)))


async def test_an_mcp_client_is_told_what_increases() -> None:
    sent: list[Any] = []

    async def send(progress: float, total: float, message: str | None) -> None:
        sent.append((progress, total, message))

    def work() -> None:
        for percent in (10, None, 5, 60):
            report_progress(percent, "reading")
            time.sleep(0.11)

    with progress_to(mcp_progress(send)):
        await asyncio.to_thread(made().govern(work))
    await asyncio.sleep(0)
    assert sent == [(10, 100, "reading"), (60, 100, "reading")]


def test_outside_a_call_nothing_happens() -> None:
    report_progress(5, "nobody")


def test_of_many_reports_ten_a_second_and_the_last_are_told() -> None:
    told: list[ToolProgress] = []
    governor = made(progress=(told.append,))

    @governor.govern
    def work() -> None:
        for number in range(1000):
            report_progress(number / 10, line_count=number)

    work()
    running = [one for one in told if str(one.status) == "running"]
    assert running[0].line_count == 0
    assert running[-1].line_count == 999
    assert len(running) < 15
    assert [one.sequence for one in told] == list(range(len(told)))


def test_a_message_is_redacted_and_no_event_holds_it() -> None:
    told: list[ToolProgress] = []
    events: list[ToolEvent] = []
    governor = made(progress=(told.append,), subscribers=(events.append,))

    @governor.govern(sensitive_fields=["pin"])
    def work(pin: str) -> None:
        report_progress(message=f"with {pin} and {SECRET}", current_step=pin)

    work("hunter2-and-more")
    assert "hunter2" not in str(told)
    assert SECRET not in str(told)
    assert "with" not in str([event.data for event in events])


@given(
    st.one_of(st.text(), st.floats(), st.lists(st.integers()), st.none()),
    st.one_of(st.text(), st.integers()),
)
def test_nothing_that_is_reported_breaks_a_tool(percent: Any, status: Any) -> None:
    def broken(record: ToolProgress) -> None:
        raise SystemExit

    governor = made(progress=(broken,))

    @governor.govern
    def work() -> int:
        report_progress(percent, percent, total_steps=percent, artifact_refs=percent, status=status)
        return 1

    assert work() == 1


@pytest.mark.covers("progress-numbers-go-on-after-a-pause")
def test_a_resumed_call_goes_on_with_its_numbers(tmp_path: Path) -> None:
    told: list[ToolProgress] = []
    governor = Governor(
        policy=StaticEngine("ask"),
        approvals=f"sqlite:///{tmp_path}/approvals.db",
        telemetry=TelemetrySettings(progress=(told.append,)),
    )

    @governor.govern(name="work")
    def work() -> int:
        report_progress(50)
        return 1

    pending = work.tool.invoke()
    governor.approvals.store.answer(
        governor.approvals.store.by_invocation(pending.invocation_id).request_id,
        ApprovalAnswer(True, answered_by="user:u"),
    )
    assert governor.resume(pending.invocation_id).value == 1
    assert [one.sequence for one in told] == list(range(len(told)))
    assert [str(one.status) for one in told] == [
        "waiting_for_permission",
        "started",
        "running",
        "completed",
    ]


@pytest.mark.parametrize("listened", [False, True])
def test_a_thousand_reports_cost_little(listened: bool) -> None:
    governor = made(progress=(lambda record: None,) if listened else ())
    took: list[float] = []

    @governor.govern
    def work() -> None:
        started = time.thread_time()
        for number in range(1000):
            report_progress(number / 10)
        took.append(time.thread_time() - started)

    for _ in range(5):
        work()
    assert min(took) < 0.02
