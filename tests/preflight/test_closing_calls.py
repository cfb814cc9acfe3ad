"""A call that will not run after all has an end: a terminal result and a span, wherever that was
found out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, ApprovalRequired, agent_context
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.call.expire import close_call, close_expired
from agenttool_otel.errors import ApprovalConflict, ApprovalNotFound
from agenttool_otel.testing import Capture, StaticEngine, capture


def asked(captured: Capture) -> tuple[ApprovalRequired, Any]:
    def remove(path: str) -> str:
        """Remove."""
        raise AssertionError("ran")

    governed = captured.governor.govern(remove, namespace="t")
    with (
        agent_context(actor="agent:a", session_id="s-1"),
        pytest.raises(ApprovalRequired) as waiting,
    ):
        governed("b")
    return waiting.value, governed


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("end", ["reject", "cancel", "expire"])
def test_the_process_that_ends_a_call_leaves_its_result_and_span(
    tmp_path: Path, end: str, known: bool
) -> None:
    moments = [datetime.now(UTC)]
    store = ApprovalStore(
        f"sqlite:///{tmp_path}/approvals.db", clock=lambda: moments[-1], ticks=lambda: 1.0
    )
    with (
        capture(policy=StaticEngine("ask"), approvals=store) as one,
        capture(policy=StaticEngine("allow"), approvals=store) as two,
    ):
        waiting, held = asked(one)
        answering = one if known else two  # the other one knows neither the tool nor the caller
        if end == "reject":
            store.answer(
                waiting.request_id,
                ApprovalAnswer(approved=False, answered_by="user:alice", reason="no"),
            )
        elif end == "cancel":
            store.cancel(waiting.request_id, "user_interrupt")
        if end == "expire":
            moments.append(moments[0] + timedelta(days=400))
            [result] = close_expired(answering.governor)
        else:
            result = close_call(answering.governor, waiting.request_id)
        assert result.invocation_id == waiting.invocation_id
        assert result.is_error
        assert result.error is not None
        kind = "policy_blocked" if end == "expire" else "approval_rejected"
        assert str(result.error.error_class) == kind
        span = answering.spans[-1]
        assert span.name == "execute_tool remove"
        assert span.attributes["agenttool.invocation.id"] == waiting.invocation_id
        assert span.attributes["agenttool.permission.outcome"] == "not_executed"
        assert span.attributes["agenttool.actor.id"] == "agent:a"
        assert span.attributes["error.type"] == kind
        assert [link.context.span_id for link in span.links] == [one.spans[0].context.span_id]
        assert held is not None


def test_a_call_that_may_still_run_is_not_ended() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        waiting, _held = asked(captured)
        with pytest.raises(ApprovalConflict):
            close_call(captured.governor, waiting.request_id)
        store = captured.governor.approvals.store
        store.answer(waiting.request_id, ApprovalAnswer(approved=True, answered_by="user:alice"))
        with pytest.raises(ApprovalConflict):
            close_call(captured.governor, waiting.request_id)
        with pytest.raises(ApprovalNotFound):
            close_call(captured.governor, "appr_nothing")
        assert close_expired(captured.governor) == []
