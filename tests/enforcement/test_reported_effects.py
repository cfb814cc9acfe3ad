"""A body reports what it is about to do: that is decided before it commits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rehearsed_calls import ADA, Decides, stated

from agenttool_otel import (
    ApprovalAnswer,
    ApprovalRequired,
    EffectChange,
    EffectsDenied,
    EffectsError,
    EffectsPending,
    ToolDenied,
    agent_context,
    areport_effects,
    report_effects,
)
from agenttool_otel.call.reported_effects import reported_fact
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.cli.story import why
from agenttool_otel.names import Attr, ErrorClass, Event, GenAI, Label, Metric
from agenttool_otel.testing import Capture, capture, decision

TOKEN = "ghp_" + "a1B2c3D4" * 4 + "e5F6"


class Ledger:
    """A table with a transaction, and the tools that change it."""

    def __init__(self, rows: int = 12) -> None:
        self.rows = rows
        self.committed: list[int] = []
        self.runs = 0

    def discount(self) -> int:
        """Give a discount."""
        self.runs += 1
        rows = self.rows
        report_effects([EffectChange("sql", "orders", "changed", rows)])
        self.committed.append(rows)
        return rows

    async def adiscount(self) -> int:
        """Give a discount."""
        self.runs += 1
        await areport_effects([EffectChange("sql", "orders", "changed", self.rows)])
        self.committed.append(self.rows)
        return self.rows

    def deaf(self) -> int:
        """Give a discount, whatever is decided."""
        try:
            return self.discount()
        except EffectsError:
            self.committed.append(self.rows)
            return -1


def always() -> Callable[[Any], Any]:
    return lambda document: decision("allow")


def opened(policy: Decides, **settings: Any) -> Any:
    return capture(policy=policy.engine, **settings)


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with agent_context(actor="agent:a", session_id="s-1", interactive=True):
        yield


def governed(captured: Capture, function: Any, **facts: Any) -> Any:
    return captured.governor.govern(
        function, name="discount", read_only=False, reports_effects=True, **facts
    )


def decides(behavior: str, first: Callable[[Any], Any] | None = None) -> Decides:
    return Decides(stated(behavior), first or always())


def names_of(captured: Capture) -> list[str]:
    return [event.name for event in captured.span.events]


def test_an_allowed_report_lets_the_body_go_on() -> None:
    ledger, policy = Ledger(), decides("allow")
    with opened(policy) as captured:
        assert governed(captured, ledger.discount)() == 12
    assert policy.effects["changes"] == [
        {"kind": "sql", "target": "orders", "operation": "changed", "count": 12}
    ]
    assert Event.EFFECTS_COMMITTED in names_of(captured)
    assert captured.span.attributes[Attr.EFFECTS_REPORTED] == 12


def test_a_denied_report_ends_the_call_as_denied() -> None:
    ledger = Ledger()
    with opened(decides("deny")) as captured:
        result = governed(captured, ledger.discount).tool.invoke({})
    assert ledger.committed == []
    assert result.error.error_class is ErrorClass.PERMISSION_DENIED
    assert Event.EFFECTS_DISCARDED in names_of(captured)


@pytest.mark.parametrize(("behavior", "outcome"), [("allow", "committed"), ("deny", "discarded")])
def test_reported_changes_are_counted_by_outcome(behavior: str, outcome: str) -> None:
    with opened(decides(behavior)) as captured:
        governed(captured, Ledger().discount).tool.invoke({})
        [point] = captured.points(Metric.EFFECTS_SETTLED)
    assert point.value == 12
    assert dict(point.attributes) == {
        GenAI.TOOL_NAME: "discount",
        Label.EFFECTS_KIND: "reported",
        Label.EFFECTS_OUTCOME: outcome,
    }


def test_the_caller_of_a_denied_report_gets_tool_denied() -> None:
    with opened(decides("deny")) as captured, pytest.raises(ToolDenied):
        governed(captured, Ledger().discount)()


def test_a_coroutine_is_decided_too() -> None:
    ledger = Ledger()
    with opened(decides("deny")) as captured, pytest.raises(ToolDenied):
        asyncio.run(governed(captured, ledger.adiscount)())
    assert ledger.committed == []


def test_a_coroutine_goes_on_when_it_may() -> None:
    ledger = Ledger()
    with opened(decides("allow")) as captured:
        assert asyncio.run(governed(captured, ledger.adiscount)()) == 12


def test_a_body_with_a_time_limit_is_decided_too() -> None:
    ledger = Ledger()
    with opened(decides("deny")) as captured, pytest.raises(ToolDenied):
        governed(captured, ledger.discount, timeout_ms=60_000)()
    assert ledger.committed == []


def test_a_body_that_swallows_a_denial_ends_as_denied() -> None:
    with opened(decides("deny")) as captured:
        result = governed(captured, Ledger().deaf).tool.invoke({})
    assert result.error.error_class is ErrorClass.PERMISSION_DENIED
    assert "went on" in result.error.message
    assert Event.EFFECTS_UNHEEDED in names_of(captured)


def test_a_body_that_swallows_a_pause_can_not_run_again() -> None:
    ledger = Ledger()
    with opened(decides("ask")) as captured:
        result = governed(captured, ledger.deaf).tool.invoke({})
        assert result.error.error_class is ErrorClass.POLICY_BLOCKED
        assert captured.governor.approvals.store.list(status="pending") == []
    assert ledger.runs == 1


def asked(captured: Capture, tool: Any) -> ApprovalRequired:
    with pytest.raises(ApprovalRequired) as raised:
        tool()
    return raised.value


def test_an_asked_report_pauses_before_anything_is_committed() -> None:
    ledger = Ledger()
    with opened(decides("ask")) as captured:
        waiting = asked(captured, governed(captured, ledger.discount))
        request = captured.governor.approvals.store.get(waiting.request_id)
    assert ledger.committed == []
    assert request.effects["counts"]["reported"] == 12
    assert request.diff == "changed 12  sql orders"


def test_an_approved_report_runs_the_body_again() -> None:
    ledger = Ledger()
    with opened(decides("ask")) as captured:
        tool = governed(captured, ledger.discount)
        waiting = asked(captured, tool)
        captured.governor.approvals.store.answer(waiting.request_id, ADA)
        result = captured.governor.resume(waiting.invocation_id)
    assert result.status == "succeeded"
    assert ledger.committed == [12]
    assert ledger.runs == 2


def test_an_approved_report_runs_the_body_once_only() -> None:
    ledger = Ledger()
    with opened(decides("ask")) as captured:
        tool = governed(captured, ledger.discount)
        waiting = asked(captured, tool)
        captured.governor.approvals.store.answer(waiting.request_id, ADA)
        captured.governor.resume(waiting.invocation_id)
        again = captured.governor.resume(waiting.invocation_id)
    assert again.error is not None
    assert ledger.committed == [12]


def test_another_report_is_another_question() -> None:
    ledger = Ledger()
    with opened(decides("ask")) as captured:
        tool = governed(captured, ledger.discount)
        waiting = asked(captured, tool)
        captured.governor.approvals.store.answer(waiting.request_id, ADA)
        ledger.rows = 13
        result = captured.governor.resume(waiting.invocation_id)
        assert result.status == "pending"
        (request,) = captured.governor.approvals.store.list(status="pending")
        assert request.diff == "changed 13  sql orders"
        captured.governor.approvals.store.answer(request.request_id, ADA)
        captured.governor.resume(waiting.invocation_id)
    assert ledger.committed == [13]


def test_a_rejected_report_does_not_run_again() -> None:
    ledger = Ledger()
    with opened(decides("ask")) as captured:
        tool = governed(captured, ledger.discount)
        waiting = asked(captured, tool)
        no = ApprovalAnswer(approved=False, answered_by="user:ada")
        captured.governor.approvals.store.answer(waiting.request_id, no)
        result = captured.governor.resume(waiting.invocation_id)
    assert result.error.error_class is ErrorClass.APPROVAL_REJECTED
    assert ledger.runs == 1


def test_an_approver_in_the_process_lets_the_body_go_on() -> None:
    ledger = Ledger()
    with opened(decides("ask"), approver=lambda request: ADA) as captured:
        assert governed(captured, ledger.discount)() == 12
    assert ledger.runs == 1


def test_a_rejection_in_the_process_denies_the_body() -> None:
    ledger = Ledger()
    no = ApprovalAnswer(approved=False, answered_by="user:ada")
    with opened(decides("ask"), approver=lambda request: no) as captured:
        result = governed(captured, ledger.discount).tool.invoke({})
    assert result.error.error_class is ErrorClass.APPROVAL_REJECTED
    assert ledger.committed == []


def reason(rule: str) -> dict[str, str]:
    return {"type": "rule", "rule_ref": rule, "message": rule}


def ask_by(rule: str) -> Callable[[Any], Any]:
    return lambda document: {**decision("ask"), "reason": reason(rule), "rule_refs": [rule]}


def test_a_question_that_was_answered_is_not_asked_again() -> None:
    ledger, requests = Ledger(), []

    def approve(request: Any) -> ApprovalAnswer:
        requests.append(request)
        return ADA

    policy = Decides(ask_by("own.writes"), ask_by("own.writes"))
    with opened(policy, approver=approve) as captured:
        assert governed(captured, ledger.discount)() == 12
    assert len(requests) == 1


def test_a_question_of_the_effects_is_asked_beside_the_first() -> None:
    ledger, requests = Ledger(), []

    def approve(request: Any) -> ApprovalAnswer:
        requests.append(request)
        return ADA

    policy = Decides(ask_by("own.rows"), ask_by("own.writes"))
    with opened(policy, approver=approve) as captured:
        assert governed(captured, ledger.discount)() == 12
    assert len(requests) == 2


def test_a_question_that_the_effects_raise_was_not_answered() -> None:
    """A rule that asks unless few rows change asks about a call of which nothing is known, too."""
    ledger, requests = Ledger(rows=5_000_000), []

    def approve(request: Any) -> ApprovalAnswer:
        requests.append(request)
        return ADA

    def unless_few(document: Any) -> Any:
        effects = document["facts"].get("effects", {"changes": [{"count": 11}]})
        few = sum(change["count"] for change in effects["changes"]) <= 10
        return decision("allow") if few else ask_by("own.rows")(document)

    with opened(Decides(unless_few, unless_few), approver=approve) as captured:
        assert governed(captured, ledger.discount)() == 5_000_000
    assert len(requests) == 2


@pytest.mark.parametrize(
    "changes",
    [
        [EffectChange("rows", "orders", "changed", 1)],
        [EffectChange("sql", "orders", "vanished", 1)],
        [EffectChange("sql", "", "changed", 1)],
        [EffectChange("sql", "o" * 501, "changed", 1)],
        [EffectChange("sql", "\ud800", "changed", 1)],
        [EffectChange("sql", "orders", "changed", -1)],
        [EffectChange("sql", "orders", "changed", True)],
        [EffectChange("sql", "orders", "changed", 1.5)],  # type: ignore[arg-type]
        [EffectChange("sql", "orders", "changed", 2**53)],
        [{"kind": "sql"}],
        [EffectChange("sql", f"t{number}", "changed", 1) for number in range(1001)],
        7,
    ],
    ids=range(12),
)
def test_a_report_of_the_wrong_form_denies_the_call(changes: Any) -> None:
    def body() -> str:
        """Report."""
        report_effects(changes)
        return "went on"

    with opened(decides("allow")) as captured:
        result = governed(captured, body).tool.invoke({})
    assert result.error.error_class is ErrorClass.POLICY_BLOCKED


def test_a_second_report_of_a_body_fails_the_call() -> None:
    ledger = Ledger()

    def body() -> None:
        """Report twice."""
        ledger.discount()
        ledger.discount()

    with opened(decides("allow")) as captured:
        result = governed(captured, body).tool.invoke({})
    assert result.error is not None
    assert ledger.committed == [12]


def test_outside_of_a_call_a_report_is_an_error() -> None:
    with pytest.raises(EffectsError, match="outside"):
        report_effects([])


def test_a_thread_without_the_context_can_not_report() -> None:
    raised: list[BaseException] = []

    def report() -> None:
        try:
            report_effects([])
        except EffectsError as error:
            raised.append(error)

    def body() -> None:
        """Report elsewhere."""
        thread = threading.Thread(target=report)
        thread.start()
        thread.join()

    with opened(decides("allow")) as captured:
        governed(captured, body)()
    assert len(raised) == 1


def test_a_policy_that_fails_denies_the_report() -> None:
    def broken(document: Any) -> Any:
        raise RuntimeError("no")

    ledger = Ledger()
    with opened(Decides(broken, always())) as captured:
        result = governed(captured, ledger.discount).tool.invoke({})
    assert result.error.error_class is ErrorClass.POLICY_BLOCKED
    assert ledger.committed == []


def test_a_denied_report_is_not_tried_again() -> None:
    ledger = Ledger()
    with opened(decides("deny")) as captured:
        governed(captured, ledger.discount, retry={"max_attempts": 3}).tool.invoke({})
    assert ledger.runs == 1


def test_a_shadowed_denial_lets_the_body_go_on() -> None:
    ledger = Ledger()
    with opened(decides("deny"), policy_mode="shadow") as captured:
        assert governed(captured, ledger.discount)() == 12


def test_what_a_person_is_shown_is_redacted() -> None:
    def body() -> None:
        """Send a message."""
        report_effects([EffectChange("message", TOKEN, "sent")])

    with opened(decides("ask")) as captured:
        waiting = asked(captured, governed(captured, body))
        request = captured.governor.approvals.store.get(waiting.request_id)
    assert TOKEN not in request.model_dump_json()


def test_the_order_of_changes_does_not_matter() -> None:
    one, other = EffectChange("sql", "a", "changed", 1), EffectChange("sql", "b", "deleted", 2)
    twice = EffectChange("sql", "a", "changed", 2)
    assert reported_fact([one, other, one])["digest"] == reported_fact([other, twice])["digest"]


def test_the_pause_and_the_denial_are_errors_of_one_kind() -> None:
    assert issubclass(EffectsDenied, EffectsError)
    assert issubclass(EffectsPending, EffectsError)


def test_the_stock_policy_asks_about_many_rows() -> None:
    ledger = Ledger(101)
    with capture() as captured:
        tool = governed(captured, ledger.discount, write_effects=["remote_mutation"])
        request = captured.governor.approvals.store.get(asked(captured, tool).request_id)
        captured.governor.approvals.store.answer(request.request_id, ADA)
        result = captured.governor.resume(request.invocation_id)
        assert result.status == "pending"
        (second,) = captured.governor.approvals.store.list(status="pending")
    assert "agenttool.rules.effects.reported" in second.rule_refs


def test_the_story_of_a_call_tells_what_was_reported() -> None:
    with opened(decides("allow")) as captured:
        governed(captured, Ledger().discount)()
    text = why(SpanView.from_sdk(captured.span))
    assert "It reported to change 12" in text
