"""Requirements of "Invocation lifecycle" and of the order of events."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

import pytest
from recorded import event_names, last_of, records_of

from agenttool_otel import ApprovalAnswer, BatchCall, SchedulerPolicy, agent_context
from agenttool_otel.errors import PersistenceError
from agenttool_otel.hooks import Hooks
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture, decision

ENDS = ("succeeded", "failed", "canceled", "timed_out")


def allowing(**options: Any) -> Any:
    return capture(policy=StaticEngine("allow"), **options)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def steps_of(record: dict[str, Any]) -> list[str]:
    return [step["status"] for step in record["status_transitions"]]


def ends_of(captured: Capture) -> list[str]:
    words = [name.removeprefix("tool.invocation.") for name in event_names(captured)]
    return [word for word in words if word in ENDS]


@pytest.mark.covers("invocation-id-is-kept")
def test_a_call_that_waits_goes_on_under_its_id() -> None:
    with allowing() as captured, agent_context(session_id="s"):
        act = captured.governor.govern(lambda: 1, name="act", ownership="custom")
        waiting = act.tool.invoke()
        done = captured.governor.complete(waiting.invocation_id, 5)
        assert done.invocation_id == waiting.invocation_id
        records = records_of(captured, "tool_invocation")
        assert {record["invocation_id"] for record in records} == {waiting.invocation_id}


@pytest.mark.covers("native-call-id-is-kept")
def test_a_call_of_a_batch_keeps_its_native_id() -> None:
    with allowing() as captured:
        act = captured.governor.govern(lambda: 1, name="act")
        captured.governor.batch([BatchCall(act, {}, native_call_id="call_7")])
        assert last_of(captured, "tool_invocation")["native_call_id"] == "call_7"


@pytest.mark.covers(
    "started-time-is-when-it-ran",
    "ended-time-is-when-it-ended",
    "states-are-in-order",
    "states-have-their-times",
    "status-is-the-state-reached",
)
def test_states_and_times_are_those_of_the_call() -> None:
    def slowly(arguments: Any) -> None:
        time.sleep(0.03)

    with allowing() as captured:
        captured.governor.govern(lambda: time.sleep(0.03), name="act", validate=slowly)()
        record = last_of(captured, "tool_invocation")
    created, started, ended = (at(record[f"{word}_at"]) for word in ("created", "started", "ended"))
    assert (started - created).total_seconds() > 0.025
    assert (ended - started).total_seconds() > 0.025
    states = ["planned", "selected", "arguments_ready", "running", "succeeded"]
    assert (steps_of(record), record["status"]) == (states, "succeeded")
    times = [at(step["at"]) for step in record["status_transitions"]]
    assert (times[4] - times[3]).total_seconds() > 0.025


@pytest.mark.covers("never-started-has-no-started-time", "denied-call-is-visible")
def test_a_denied_call_is_recorded_as_never_started() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        captured.governor.govern(lambda: 1, name="act").tool.invoke()
        record = last_of(captured, "tool_invocation")
        assert (record["status"], "started_at" in record) == ("denied", False)


@pytest.mark.covers("approval-states-are-explicit")
def test_an_approved_call_was_asked_about_and_approved() -> None:
    approver = FixedApprover(ApprovalAnswer(approved=True, answered_by="user:ada"))
    with capture(policy=StaticEngine("ask"), approver=approver) as captured:
        captured.governor.govern(lambda: 1, name="act")()
        steps = steps_of(last_of(captured, "tool_invocation"))
        assert steps[-4:] == ["awaiting_approval", "approved", "running", "succeeded"]


# --- calls that remain visible --------------------------------------------------------------------


@pytest.mark.covers("redacted-call-is-visible")
def test_a_call_with_a_redacted_result_is_recorded() -> None:
    policy = StaticEngine(decision("allow", obligations={"redact_result": ["/pin"]}))
    with capture(policy=policy) as captured:
        captured.governor.govern(lambda: {"pin": 4321}, name="act")()
        assert last_of(captured, "tool_result")["redaction_state"] == "redacted"
        assert last_of(captured, "tool_invocation")["status"] == "succeeded"


@pytest.mark.covers("canceled-sibling-is-visible")
def test_a_canceled_sibling_is_recorded() -> None:
    def fails() -> None:
        raise ValueError

    with allowing() as captured:
        act = captured.governor.govern(fails)
        policy = SchedulerPolicy(sibling_failure_policy="cancel_dependent")
        calls = [BatchCall(act, {}), BatchCall(act, {}, depends_on=[0])]
        results = captured.governor.batch(calls, policy=policy)
        recorded = {each["invocation_id"] for each in records_of(captured, "tool_invocation")}
        assert recorded == {result.invocation_id for result in results}


def no_store() -> Any:
    raise PersistenceError("no such bucket")


@pytest.mark.covers("call-without-payload-is-visible")
def test_a_call_whose_payload_is_lost_is_recorded_as_run() -> None:
    with allowing(results=ResultKeeper(no_store)) as captured:
        captured.governor.govern(lambda: "line\n" * 20_000, name="act").tool.invoke()
        assert last_of(captured, "tool_result")["status"] == "too_large"
        assert last_of(captured, "tool_invocation")["started_at"]


# --- events ---------------------------------------------------------------------------------------


@pytest.mark.covers("events-in-lifecycle-order", "events-are-exported")
def test_the_events_of_a_call_follow_its_states() -> None:
    with allowing(verbose=True) as captured:
        captured.governor.govern(lambda: 1, name="act")()
        names = [name.removeprefix("tool.") for name in event_names(captured)]
        wanted = ("planned", "selected", "arguments_ready", "started", "succeeded")
        order = [f"invocation.{word}" for word in wanted]
        assert [name for name in names if name in order] == order
        assert ends_of(captured) == ["succeeded"]
        exported = {record["event_type"] for record in records_of(captured, "tool_event")}
        assert exported >= {f"tool.{name}" for name in order}


@pytest.mark.covers("waiting-call-has-no-terminal-event")
def test_a_call_that_waits_has_no_terminal_event() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        captured.governor.govern(lambda: 1, name="act").tool.invoke()
        assert ends_of(captured) == []


@pytest.mark.covers("hook-events-by-their-place")
def test_events_of_hooks_have_their_place_in_the_class() -> None:
    hooks = Hooks()
    hooks.add(lambda ctx: None, "pre_tool_use", hook_id="first")
    hooks.add(lambda ctx: None, "post_tool_use", hook_id="last")
    with allowing(hooks=hooks, verbose=True) as captured:
        captured.governor.govern(lambda: 1, name="act")()
        found = [name for name in event_names(captured) if name.endswith("started")]
        assert found == [
            "tool.hook.pre.started",
            "tool.invocation.started",
            "tool.hook.post.started",
        ]
