"""What a span says, its events leave out, and nothing that only an event says gets lost; metrics
count every call.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from agenttool_otel import ApprovalRequired, Governor, TelemetrySettings, ToolDenied, agent_context
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.call.recording import span
from agenttool_otel.names import Attr, Event
from agenttool_otel.telemetry.telemetry import EventEmitter
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

_LEAN = {
    Attr.PERMISSION_BEHAVIOR,
    Attr.PERMISSION_RULE,
    Attr.PERMISSION_RULES,
    Attr.PERMISSION_REASON_MESSAGE,
}


def act(text: str) -> str:
    """Do something."""
    return text * 3


def decided(captured: Capture) -> list[dict[str, Any]]:
    events = [event for span in captured.spans for event in span.events]
    return [
        dict(event.attributes or {}) for event in events if event.name == Event.PERMISSION_DECIDED
    ]


def run(
    behavior: str, detail: Literal["lean", "full"]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Attributes of the span, of its event of the decision, and of what a subscriber gets."""
    answer = {**decision(behavior), "rule_refs": ["test.first", "test.second"]}
    with (
        capture(policy=StaticEngine(answer), detail=detail) as captured,
        agent_context(session_id="s"),
    ):
        captured.governor.govern(act).tool.invoke(text="b")
        told = [
            event.data or {}
            for event in captured.events
            if event.event_type == Event.PERMISSION_DECIDED
        ]
        return dict(captured.span.attributes or {}), decided(captured)[0], told[0]


@pytest.mark.parametrize("behavior", ["allow", "deny"])
def test_lean_leaves_out_exactly_what_the_span_says(behavior: str) -> None:
    span, full, _ = run(behavior, "full")
    again, lean, told = run(behavior, "lean")
    assert again.keys() == span.keys()
    assert lean.keys() <= _LEAN
    left_out = full.keys() - lean.keys()
    assert len(left_out) >= 7
    assert left_out <= span.keys()
    assert told.keys() >= full.keys()
    assert {name: lean[name] for name in lean} == {name: full[name] for name in lean}


def test_a_decision_that_another_follows_is_told_in_full() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        governed = captured.governor.govern(act)
        with pytest.raises(ApprovalRequired) as asked:
            governed("b")
        store = captured.governor.approvals.store
        store.answer(asked.value.request_id, ApprovalAnswer(approved=True, answered_by="user:ada"))
        captured.governor.resume(asked.value.invocation_id)
        events = decided(captured)
        assert [event[Attr.PERMISSION_SOURCE] for event in events] == ["policy", "user", "policy"]
        assert len({event[Attr.PERMISSION_DECISION_ID] for event in events}) == 3


def test_an_unsampled_call_makes_no_event_or_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_: Any, **__: Any) -> Any:
        raise AssertionError("made for nobody")

    governor = Governor(
        policy=StaticEngine("allow"),
        telemetry=TelemetrySettings(tracer_provider=TracerProvider(sampler=ALWAYS_OFF)),
    )
    governed = governor.govern(act)
    assert governed("b") == "bbb"
    for name in ("decision_attributes", "lean_decision", "final_attributes"):
        monkeypatch.setattr(span, name, unwanted)
    monkeypatch.setattr(EventEmitter, "emit", unwanted)
    assert governed("b") == "bbb"
    assert governor.telemetry.losses.total == 0


@pytest.mark.slow
def test_the_count_of_decisions_misses_none_of_many_threads() -> None:
    with capture(policy=StaticEngine("deny"), sampler=ALWAYS_OFF) as captured:
        governed = captured.governor.govern(act)

        def attempt(number: int) -> None:
            with pytest.raises(ToolDenied):
                governed(str(number))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(attempt, range(200)))
        [point] = captured.points("agenttool.permission.decisions")
        assert point.value == 200
        assert point.attributes[Attr.PERMISSION_BEHAVIOR] == "deny"


def test_a_cached_decision_is_counted_and_not_timed() -> None:
    with capture() as captured, agent_context(actor="a", session_id="s"):
        governed = captured.governor.govern(act, read_only=True, access_kinds=["file_read"])
        for _ in range(3):
            governed.tool.invoke(text="b")
        [counted] = captured.points("agenttool.permission.decisions")
        [timed] = captured.points("agenttool.permission.duration")
        assert (counted.value, timed.count) == (3, 1)
