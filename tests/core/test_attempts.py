"""What is run again is what was decided, and only for as long as the decision holds."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, Governor, ToolDenied
from agenttool_otel.hooks import Hooks
from agenttool_otel.testing import FixedApprover, StaticEngine, decision
from function_engine import FunctionEngine

TWICE: dict[str, Any] = {"retry": {"max_attempts": 3, "initial_delay_ms": 1, "jitter": 0}}


def held_for(seconds: float, behavior: str = "allow") -> FunctionEngine:
    return FunctionEngine(
        lambda _: decision(
            behavior, expires_at=(datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
        )
    )


@pytest.mark.parametrize("door", ["python", "json"])
def test_an_attempt_sees_no_earlier_change_of_its_arguments(door: str) -> None:
    ran: list[Any] = []
    governor = Governor(policy=StaticEngine("allow"))

    @governor.govern(**TWICE)
    def act(xs: list[str], more: dict[str, list[int]]) -> None:
        ran.append((list(xs), {k: list(v) for k, v in more.items()}))
        xs.append("evil")
        more["a"].append(2)
        if len(ran) < 3:
            raise TimeoutError

    if door == "python":
        act(["safe"], more={"a": [1]})
    else:
        act.tool.invoke(xs=["safe"], more={"a": [1]})
    assert ran == [(["safe"], {"a": [1]})] * 3


def test_a_decision_that_ended_is_not_run_again() -> None:
    ran: list[int] = []
    governor = Governor(policy=held_for(0.2))

    @governor.govern(retry={"max_attempts": 2, "initial_delay_ms": 400, "jitter": 0})
    def act() -> None:
        ran.append(1)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        act()
    assert ran == [1]


def test_a_decision_that_ends_while_a_hook_works_is_a_denial() -> None:
    hooks = Hooks()

    @hooks.on("permission_decision")
    def slow(context: Any) -> None:
        time.sleep(0.3)

    governor = Governor(policy=held_for(0.1), hooks=hooks)
    ran: list[int] = []
    act = governor.govern(lambda: ran.append(1), name="act")
    with pytest.raises(ToolDenied, match="the decision expired"):
        act()
    assert ran == []


def test_a_claimed_approval_of_an_expired_decision_has_an_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    governor = Governor(
        policy=held_for(1.5, "ask"),
        approver=FixedApprover(ApprovalAnswer(True, answered_by="user:u")),
    )
    claim = governor.approvals.claim

    def slow(*args: Any, **kwargs: Any) -> Any:
        time.sleep(1.7)
        return claim(*args, **kwargs)

    monkeypatch.setattr(governor.approvals, "claim", slow)
    ran: list[int] = []
    act = governor.govern(lambda: ran.append(1), name="act")
    with pytest.raises(ToolDenied, match="the decision expired"):
        act()
    assert ran == []
    [request] = governor.approvals.store.list()
    assert request.outcome == "denied"
