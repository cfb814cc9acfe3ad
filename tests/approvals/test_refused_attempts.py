"""An attempt to go on with a paused call that is refused ends nothing: it leaves a span and one event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ToolResult, agent_context
from agenttool_otel.call.expire import close_call
from agenttool_otel.conformance.rules.journal import END_EVENTS
from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.testing import Capture, StaticEngine, capture, check_records

YES = ApprovalAnswer(approved=True, answered_by="user:ada")
NO = ApprovalAnswer(approved=False, answered_by="user:ada")

Attempt = Callable[["Paused"], ToolResult]


class AskingUnless(StaticEngine):
    """Asks, and denies while the context has a failing evaluation."""

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> Any:
        fails = (document["evaluation"] or {}).get("status") == "fail"
        engine = StaticEngine("deny") if fails else super()
        return engine.evaluate(entry_point, document, timeout=timeout)


class Paused:
    """One call that waits for an approval."""

    def __init__(self, captured: Capture) -> None:
        self.captured = captured
        self.ran: list[int] = []
        self.tool = captured.governor.govern(lambda item: self.ran.append(item), name="act")
        with agent_context(actor="agent:a"), pytest.raises(ApprovalRequired) as asked:
            self.tool(7)
        self.id = asked.value.invocation_id
        self.request_id = asked.value.request_id

    def answer(self, answer: ApprovalAnswer = YES) -> None:
        self.captured.governor.approvals.store.answer(self.request_id, answer)

    def resume(self) -> ToolResult:
        return self.captured.governor.resume(self.id)

    def events(self) -> list[str]:
        """The event classes of the call that sinks got, in their order."""
        return [
            line["record"]["event_type"]
            for line in self.captured.records
            if line["object"] == "tool_event" and line["record"].get("invocation_id") == self.id
        ]

    def ends(self) -> list[str]:
        return [name for name in self.events() if name in END_EVENTS]


@pytest.fixture
def paused(tmp_path: Path) -> Iterator[Paused]:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    with capture(policy=AskingUnless("ask"), approvals=url) as captured:
        yield Paused(captured)


def another_actor(paused: Paused) -> ToolResult:
    with agent_context(actor="agent:b"):
        return paused.resume()


def a_policy_that_denies(paused: Paused) -> ToolResult:
    with agent_context(evaluation={"status": "fail", "trend": "regressing"}):
        return paused.resume()


def resumed_without(paused: Paused, method: str) -> ToolResult:
    """Resume the call while a method of the approval store fails."""

    def fail(*given: Any, **named: Any) -> Any:
        raise ApprovalStoreError("locked")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paused.captured.governor.approvals.store, method, fail)
        return paused.resume()


def a_store_that_fails(paused: Paused) -> ToolResult:
    return resumed_without(paused, "claim")


def a_store_that_can_not_be_read(paused: Paused) -> ToolResult:
    return resumed_without(paused, "stored_call")


REFUSED = [
    another_actor,
    a_policy_that_denies,
    a_store_that_fails,
    a_store_that_can_not_be_read,
]


@pytest.mark.parametrize("attempt", REFUSED)
def test_a_refused_attempt_ends_nothing(paused: Paused, attempt: Attempt) -> None:
    paused.answer()
    before = Counter(line["object"] for line in paused.captured.records)
    result = attempt(paused)
    assert result.status in ("denied", "rejected")
    assert paused.ends() == []
    assert paused.events()[-1] == "tool.invocation.resume_refused"
    left = Counter(line["object"] for line in paused.captured.records) - before
    assert left == {"tool_event": 1}


@pytest.mark.parametrize("attempt", REFUSED)
def test_a_call_goes_on_after_a_refused_attempt(paused: Paused, attempt: Attempt) -> None:
    paused.answer()
    refused = attempt(paused)
    result = paused.resume()
    assert (result.status, paused.ran) == ("succeeded", [7])
    assert paused.ends() == ["tool.invocation.succeeded"]
    assert refused.result_id != result.result_id
    check_records(paused.captured.records)


def test_a_refused_attempt_has_its_reason(paused: Paused) -> None:
    paused.answer()
    a_policy_that_denies(paused)
    (event,) = [
        line["record"]["data"]
        for line in paused.captured.records
        if line["record"].get("event_type") == "tool.invocation.resume_refused"
    ]
    assert event["error.type"] == "permission_denied"
    assert event["agenttool.permission.behavior"] == "deny"
    assert event["agenttool.approval.status"] == "approved"


def test_a_refused_attempts_span_has_its_error(paused: Paused) -> None:
    paused.answer()
    another_actor(paused)
    span = paused.captured.spans[-1]
    assert span.attributes is not None
    assert span.attributes["error.type"] == "approval_rejected"
    names = [event.name for event in span.events]
    assert "tool.invocation.resume_refused" in names
    assert END_EVENTS.isdisjoint(names)


def test_an_answer_is_counted_once_for_all_attempts(paused: Paused) -> None:
    paused.answer()
    another_actor(paused)
    a_policy_that_denies(paused)
    paused.resume()
    assert [point.value for point in paused.captured.points("agenttool.approvals.pending")] == [0]
    (waited,) = paused.captured.points("agenttool.approval.wait")
    assert waited.count == 1
    assert paused.events().count("tool.approval.answered") == 1


def test_a_call_that_ran_ends_once(paused: Paused) -> None:
    paused.answer()
    first = paused.resume()
    second = paused.resume()
    assert (first.status, second.status) == ("succeeded", "denied")
    assert paused.ends() == ["tool.invocation.succeeded"]
    assert paused.events()[-1] == "tool.invocation.resume_refused"
    check_records(paused.captured.records)


def test_a_rejected_call_ends_once(paused: Paused) -> None:
    paused.answer(NO)
    results = [paused.resume(), paused.resume()]
    assert [result.status for result in results] == ["rejected", "rejected"]
    assert paused.ends() == ["tool.invocation.failed"]
    check_records(paused.captured.records)


def test_a_call_that_was_closed_ends_once(paused: Paused) -> None:
    paused.answer(NO)
    closed = close_call(paused.captured.governor, paused.id)
    resumed = paused.resume()
    assert (closed.status, resumed.status) == ("rejected", "rejected")
    assert paused.ends() == ["tool.invocation.failed"]
    check_records(paused.captured.records)


def test_an_attempt_before_the_answer_leaves_nothing(paused: Paused) -> None:
    before = paused.captured.records
    assert paused.resume().status == "pending"
    assert paused.captured.records == before


def test_a_request_to_stop_a_refused_attempt_is_an_event(paused: Paused) -> None:
    paused.answer()
    governor = paused.captured.governor
    store = governor.approvals.store

    def stopped(*given: Any, **named: Any) -> Any:
        governor.cancel(paused.id, "enough")
        raise ApprovalStoreError("locked")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "claim", stopped)
        paused.resume()
    assert "tool.invocation.cancel_requested" in paused.events()
    assert paused.ends() == []
