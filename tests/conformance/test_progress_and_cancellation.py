"""Requirements of "Progress and cancellation"."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from recorded import event_names, last_of, records_of

from agenttool_otel import CancelState, current_call, report_progress
from agenttool_otel.testing import Capture, StaticEngine, capture


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture(policy=StaticEngine("allow")) as made:
        yield made


@pytest.mark.covers(
    "running-tool-reports-progress",
    "progress-is-an-event",
    "progress-is-numbered",
    "progress-has-elapsed-time",
)
def test_what_a_tool_reports_becomes_records_in_order(captured: Capture) -> None:
    @captured.governor.govern
    def act() -> None:
        report_progress(10)
        time.sleep(0.11)
        report_progress(60)

    act()
    steps = records_of(captured, "tool_progress")
    assert [(step["sequence"], step["percent"]) for step in steps] == [(0, 10), (1, 60)]
    assert steps[0]["elapsed_ms"] + 100 <= steps[1]["elapsed_ms"]
    assert event_names(captured).count("tool.invocation.progress") == 2


@pytest.mark.covers("progress-keeps-its-last-report", "shell-progress-line-count")
def test_the_last_of_many_reports_is_recorded(captured: Capture) -> None:
    @captured.governor.govern
    def act() -> None:
        for line in range(100):
            report_progress(line_count=line)

    act()
    assert last_of(captured, "tool_progress")["line_count"] == 99


@pytest.mark.covers("unsupported-cancellation-is-stated", "supported-cancellation-is-stated")
def test_a_profile_states_whether_a_tool_can_be_canceled(captured: Capture) -> None:
    def plain() -> None: ...

    async def coroutine() -> None:
        await asyncio.sleep(0)

    def profile(function: object) -> dict[str, object]:
        governed = captured.governor.govern(function)  # type: ignore[call-overload]
        found: dict[str, object] = governed.tool.spec.execution.to_json_object()
        return found

    assert profile(plain)["supports_cancel"] is False
    assert profile(coroutine)["supports_cancel"] is True


def request(reason: str = "user_interruption") -> CancelState:
    """Ask the call in whose body this is to stop."""
    call = current_call()
    assert call is not None
    return call.request(CancelState(call.invocation_id, "enough", reason))


@pytest.mark.covers(
    "cancel-request-is-an-event", "cancel-acknowledged-only-when-taken", "cancel-failed-is-apart"
)
def test_a_tool_that_does_not_stop_failed_to_be_canceled(captured: Capture) -> None:
    @captured.governor.govern
    def act() -> int:
        request()
        return 1

    assert act.tool.invoke().status == "succeeded"
    told = last_of(captured, "tool_invocation")["cancellation"]
    assert told["outcome"] == "cancel_failed"
    assert "acknowledged_at" not in told
    found = [name.rpartition(".")[2] for name in event_names(captured) if "cancel" in name]
    assert found == ["cancel_requested", "cancel_failed"]


@pytest.mark.covers(
    "cancel-acknowledgement-is-apart", "cancel-reason-is-kept", "canceled-call-ends-canceled"
)
def test_a_tool_that_stops_is_canceled_for_the_given_reason(captured: Capture) -> None:
    @captured.governor.govern
    def act() -> None:
        request("runtime_shutdown")
        call = current_call()
        assert call is not None
        call.raise_if_canceled()

    result = act.tool.invoke()
    invocation = last_of(captured, "tool_invocation")
    assert (invocation["status"], result.status) == ("canceled", "canceled")
    assert invocation["cancellation"]["abort_reason"] == "runtime_shutdown"
    assert result.abort_reason == "runtime_shutdown"
    found = [name.rpartition(".")[2] for name in event_names(captured) if "cancel" in name]
    assert found == ["cancel_requested", "cancel_acknowledged", "canceled"]


@pytest.mark.covers("late-cancel-request-is-an-event")
def test_a_request_to_cancel_a_call_that_ended_is_an_event(captured: Capture) -> None:
    result = captured.governor.govern(lambda: 1, name="act").tool.invoke()
    state = captured.governor.cancel(result.invocation_id, "too late")
    assert state.outcome == "cancel_failed"
    events = [line["record"] for line in captured.records if line["object"] == "tool_event"]
    late = [event for event in events if "cancel" in event["event_type"]]
    assert [event["event_type"].rpartition(".")[2] for event in late] == [
        "cancel_requested",
        "cancel_failed",
    ]
    assert {event["invocation_id"] for event in late} == {result.invocation_id}
    assert late[0]["data"]["agenttool.abort_reason"] == "user_interruption"


@pytest.mark.covers("paused-call-can-be-canceled")
def test_a_call_that_waits_is_canceled_with_a_result() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        act = captured.governor.govern(lambda: 1, name="act")
        paused = act.tool.invoke()
        captured.governor.cancel(paused.invocation_id, "enough")
        assert last_of(captured, "tool_result")["status"] == "canceled"
