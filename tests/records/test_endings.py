"""Every call that ended says so once, by default; states, times and inputs of a call hold over its
pause.
"""

from __future__ import annotations

import time
from itertools import count
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, Governor, TelemetrySettings
from agenttool_otel.hooks import Hooks, UpdatedInput
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import StaticEngine, capture

ENDS = {f"tool.invocation.{word}" for word in ("succeeded", "failed", "canceled", "timed_out")}


def act(text: str = "a") -> str:
    if text == "broken":
        raise ConnectionError(text)
    return text * 3


def events_of(answer: Any, arguments: dict[str, Any], **options: Any) -> list[Any]:
    with capture(policy=StaticEngine(answer)) as captured:
        result = captured.governor.govern(act, **options).tool.invoke(**arguments)
        assert result.status != "pending"
        return list(captured.events)


@pytest.mark.parametrize(
    ("answer", "arguments", "options", "end", "error"),
    [
        ("allow", {"text": "b"}, {}, "succeeded", None),
        ("allow", {"text": "broken"}, {}, "failed", "dependency_unavailable"),
        ("deny", {"text": "b"}, {}, "failed", "permission_denied"),
        ("allow", {"text": 1}, {}, "failed", "schema_validation_failed"),
        ("allow", {"text": "b"}, {"lifecycle": "disabled"}, "failed", "blocked_tool"),
    ],
)
def test_a_call_has_one_terminal_event_and_one_result(
    answer: str, arguments: dict[str, Any], options: dict[str, Any], end: str, error: str | None
) -> None:
    events = events_of(answer, arguments, **options)
    names = [event.event_type for event in events]
    [last] = [event for event in events if event.event_type in ENDS]
    assert last.event_type == f"tool.invocation.{end}"
    assert (last.data or {}).get("error.type") == error
    assert names.count("tool.result.created") == 1
    assert names.count("tool.invocation.validation_failed") == (error == "schema_validation_failed")


@pytest.mark.covers("failed-validation-has-its-phase")
def test_a_value_that_fails_its_check_is_told_once() -> None:
    def refuse(arguments: dict[str, Any]) -> None:
        raise ValueError("no")

    events = events_of("allow", {"text": "b"}, validate=refuse)
    [told] = [event for event in events if event.event_type == "tool.invocation.validation_failed"]
    assert (told.data or {})["agenttool.phase"] == "validate_values"


def test_an_event_speaks_in_the_standards_words() -> None:
    events = {event.event_type: event.data or {} for event in events_of("deny", {"text": "b"})}
    decided = events["tool.permission.decided"]
    assert (decided["behavior"], decided["source"]) == ("deny", "policy")
    assert decided["reason"] == {
        "type": "rule",
        "rule_ref": "test.deny",
        "message": "the test answers deny",
    }
    assert (
        events["tool.invocation.failed"]["status"],
        events["tool.invocation.failed"]["error_class"],
    ) == (
        "denied",
        "permission_denied",
    )


def test_nothing_queues_a_call_that_runs_alone() -> None:
    with capture(policy=StaticEngine("allow"), verbose=True) as captured:
        captured.governor.govern(act).tool.invoke(text="b")
        assert "tool.invocation.queued" not in [event.event_type for event in captured.events]


def test_an_ask_is_an_event_of_the_standard() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        captured.governor.govern(act).tool.invoke(text="b")
        names = [event.event_type for event in captured.events]
        assert "tool.permission.requested" in names
        assert not ENDS & set(names)


def test_an_unknown_tool_was_never_selected() -> None:
    def unknown(governor: Governor) -> None:
        tool = governor.govern(act).tool
        tool.spec.unknown = True
        assert tool.invoke(text="b").error is not None

    lines = records_of(unknown)
    assert states(lines[-1]) == ["planned", "blocked"]


# --- a pause --------------------------------------------------------------------------------------


def records_of(use: Any, answer: Any = "allow", **options: Any) -> list[dict[str, Any]]:
    """Run something and return the invocation records that a sink gets."""
    lines: list[dict[str, Any]] = []
    sink = CallbackSink(lines.append)
    governor = Governor(
        policy=StaticEngine(answer),
        approvals="sqlite://",
        telemetry=TelemetrySettings(sinks=(sink,)),
        **options,
    )
    use(governor)
    governor.close()
    sink.close(10)
    return [line["record"] for line in lines if line["object"] == "tool_invocation"]


def states(record: dict[str, Any]) -> list[str]:
    return [step["status"] for step in record["status_transitions"]]


def test_a_clock_that_is_set_back_puts_no_step_before_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def use(governor: Governor) -> None:
        governed = governor.govern(act)
        monkeypatch.setattr(time, "time_ns", count(time.time_ns(), -(10**9)).__next__)
        governed("b")
        monkeypatch.undo()

    [record] = records_of(use)
    at = [step["at"] for step in record["status_transitions"]]
    assert at == sorted(at)


def paused_and_answered(governor: Governor, approved: bool = True) -> None:
    tool = governor.govern(act).tool  # kept: a Governor holds its tools weakly
    result = tool.invoke(text="b")
    request = governor.approvals.store.by_invocation(result.invocation_id)
    assert request is not None
    governor.approvals.store.answer(
        request.request_id, ApprovalAnswer(approved=approved, answered_by="user:ada")
    )
    assert governor.resume(result.invocation_id).invocation_id == result.invocation_id


@pytest.mark.covers("states-outlive-a-pause")
def test_a_resumed_call_keeps_its_times_states_and_input() -> None:
    hooks = Hooks()
    hooks.add(lambda ctx: UpdatedInput({"text": "cc"}, "longer"), "pre_tool_use", hook_id="longer")
    first, second = records_of(paused_and_answered, "ask", hooks=hooks)
    assert second["created_at"] == first["created_at"]
    assert (
        second["status_transitions"][: len(first["status_transitions"])]
        == first["status_transitions"]
    )
    expected = [
        "planned",
        "selected",
        "arguments_ready",
        "awaiting_approval",
        "approved",
        "running",
        "succeeded",
    ]
    assert [state for state in states(second) if state != "pre_hooks_running"] == expected
    assert second["model_input_ref"] == first["model_input_ref"] != second["permission_input_ref"]
    assert second["permission_decision_refs"][0] == first["permission_decision_refs"][0]
    assert second["mutation_refs"] == first["mutation_refs"]


def test_an_interrupted_call_keeps_its_states() -> None:
    def interrupted(governor: Governor) -> None:
        result = governor.govern(act).tool.invoke(text="b")
        governor.interrupt(result.invocation_id, "enough")

    _, last = records_of(interrupted, "ask")
    assert states(last) == [
        "planned",
        "selected",
        "arguments_ready",
        "awaiting_approval",
        "canceled",
    ]
    assert last["permission_decision_refs"]
