"""The records of a call that is asked about: its decisions by time, its end when it has ended, its
progress from its beginning on.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, report_progress
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture, check_records

YES = ApprovalAnswer(approved=True, answered_by="user:ada")


def act(text: str = "a") -> str:
    report_progress(50)
    return text


def records(captured: Capture, kind: str) -> list[dict[str, Any]]:
    return [line["record"] for line in captured.records if line["object"] == kind]


def paused(captured: Capture, **options: Any) -> str:
    """The invocation id of a call that waits for an approval."""
    # kept: a Governor refers to its tools weakly
    captured.act = captured.governor.govern(act, **options)  # type: ignore[attr-defined]
    result = captured.act.tool.invoke(text="b")  # type: ignore[attr-defined]
    return str(result.invocation_id)


def answer(captured: Capture, invocation_id: str, given: ApprovalAnswer = YES) -> None:
    store = captured.governor.approvals.store
    request = store.by_invocation(invocation_id)
    assert request is not None
    store.answer(request.request_id, given)


# --- decisions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_place", [True, False])
def test_decisions_are_listed_by_their_times(in_place: bool) -> None:
    approver = FixedApprover(YES) if in_place else None
    with capture(policy=StaticEngine("ask"), approver=approver) as captured:
        call = paused(captured)
        if not in_place:
            answer(captured, call)
            captured.governor.resume(call)
        refs = records(captured, "tool_invocation")[-1]["permission_decision_refs"]
        by_id = {one["decision_id"]: one for one in records(captured, "tool_permission_decision")}
        decided = [by_id[ref] for ref in refs]
        assert [one["behavior"] for one in decided] == ["ask", "allow", "ask"]
        times = [one["decided_at"] for one in decided]
        assert times == sorted(times)
        check_records(captured.records)


def test_the_answer_is_the_decision_in_force_of_an_approved_call() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        call = paused(captured)
        answer(captured, call)
        result = captured.governor.resume(call)
        assert result.permission is not None
        assert (result.permission["behavior"], result.permission["source"]) == ("allow", "user")
        in_force = (captured.spans[-1].attributes or {})["agenttool.permission.decision_id"]
        assert in_force == result.permission["decision_id"]


def test_a_custom_call_keeps_its_answer_in_another_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    options: dict[str, Any] = {"policy": StaticEngine("ask"), "approvals": url}
    with capture(**options) as first:
        call = paused(first, ownership="custom", name="act")
        answer(first, call)
        assert first.governor.resume(call).status == "pending"
        with capture(**options) as second:
            kept = second.governor.govern(act, ownership="custom", name="act")
            result = second.governor.complete(call, "done")
            assert kept is not None
    assert result.permission is not None
    assert (result.permission["behavior"], result.permission["source"]) == ("allow", "user")


def test_the_decision_of_an_edit_alone_is_modified_by_a_person() -> None:
    edit = ApprovalAnswer(approved=True, answered_by="user:ada", edited_input={"text": "c"})
    with capture(policy=StaticEngine("ask")) as captured:
        call = paused(captured)
        answer(captured, call, edit)
        assert captured.governor.resume(call).value == "c"
        decided = {one["decision_id"]: one for one in records(captured, "tool_permission_decision")}
        found = [(one["behavior"], one["user_modified"]) for one in decided.values()]
        assert found == [("ask", False), ("allow", True), ("ask", False)]
        check_records(captured.records)


# --- what waits has not ended ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "options", "state"),
    [("ask", {}, "awaiting_approval"), ("allow", {"ownership": "custom"}, "needs_input")],
)
def test_a_call_that_waits_has_no_end(policy: str, options: dict[str, Any], state: str) -> None:
    with capture(policy=StaticEngine(policy)) as captured:
        call = paused(captured, **options)
        (invocation,) = records(captured, "tool_invocation")
        assert (invocation["invocation_id"], invocation["status"]) == (call, state)
        assert "ended_at" not in invocation
        assert records(captured, "tool_result") == []
        assert "tool.result.created" not in [event.event_type for event in captured.events]


def test_a_call_that_waits_has_an_envelope_of_when_it_began_to() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        tool = captured.governor.govern(act).tool
        result = tool.invoke(text="b")
        (invocation,) = records(captured, "tool_invocation")
        assert result.status == "pending"
        waits_since = invocation["status_transitions"][-1]["at"]
        assert result.to_json_object()["created_at"] == waits_since


# --- progress -------------------------------------------------------------------------------------


def test_elapsed_time_of_progress_counts_over_a_pause() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        call = paused(captured)
        time.sleep(0.05)
        answer(captured, call)
        captured.governor.resume(call)
        elapsed = [report["elapsed_ms"] for report in records(captured, "tool_progress")]
        assert elapsed == sorted(elapsed)
        assert elapsed[-1] >= 50
