"""Approve and remember: the next call that the grant covers is not asked about, and nothing else is lifted by it."""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, ApprovalRequired, Governor, ToolDenied, agent_context
from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.hooks import Hooks, PermissionResult
from agenttool_otel.testing import FixedApprover, decision
from function_engine import FunctionEngine

GRANT = {"type": "grant", "scope": "session", "args": "exact"}
REMEMBER = ApprovalAnswer(True, answered_by="user:u", remember=0)


class Asking:
    """A policy whose answer can be changed, and an approver who remembers once and then says nothing any more."""

    def __init__(self, **options: Any) -> None:
        self.answer = decision("ask", suggested_updates=[GRANT])
        self.approver = FixedApprover(REMEMBER)
        self.governor = Governor(policy=FunctionEngine(lambda _: self.answer), approver=self.approver, **options)
        self.ran: list[str] = []
        self.act = self.governor.govern(self.ran.append, name="act")

    def call(self, value: str = "x", *, session: str | None = "s", actor: str = "agent:a") -> None:
        with agent_context(actor=actor, session_id=session):
            self.act(value)


@pytest.fixture
def asking() -> Asking:
    asking = Asking()
    asking.call()
    asking.approver.answer = None
    assert asking.ran == ["x"]
    return asking


def test_the_same_call_is_not_asked_about_again(asking: Asking) -> None:
    asking.call()
    assert asking.ran == ["x", "x"]
    assert len(asking.approver.asked) == 1
    assert [entry.kind for entry in asking.governor.approvals.store.log_entries()][-1] == "grant_used"


async def test_nor_in_an_event_loop() -> None:
    asking = Asking()

    @asking.governor.govern
    async def later(value: str) -> None:
        asking.ran.append(value)

    with agent_context(actor="agent:a", session_id="s"):
        await later("x")
        asking.approver.answer = None
        await later("x")
    assert asking.ran == ["x", "x"]


@pytest.mark.parametrize("other", [{"value": "y"}, {"session": "t"}, {"session": None}, {"actor": "agent:b"}], ids=str)
def test_another_call_is_asked_about(asking: Asking, other: dict[str, Any]) -> None:
    with pytest.raises(ApprovalRequired):
        asking.call(**other)


@pytest.mark.parametrize(
    "answer",
    [
        decision("ask"),
        decision("ask", suggested_updates=[{**GRANT, "scope": "actor"}]),
        decision("ask", suggested_updates=[{**GRANT, "args": {"object": {"any": True}}}]),
        decision("ask", suggested_updates=[{**GRANT, "more": 1}]),
        decision("ask", suggested_updates=[GRANT], approver_roles=["lead"]),
    ],
    ids=["not offered", "another scope", "other arguments", "unknown member", "roles"],
)
def test_a_question_that_does_not_offer_the_same_grant_is_asked(asking: Asking, answer: dict[str, Any]) -> None:
    asking.answer = answer
    with pytest.raises(ApprovalRequired):
        asking.call()


def test_a_denial_is_not_lifted(asking: Asking) -> None:
    asking.answer = decision("deny", suggested_updates=[GRANT])
    with pytest.raises(ToolDenied):
        asking.call()


def test_a_withdrawn_grant_answers_nothing(asking: Asking) -> None:
    store = asking.governor.approvals.store
    store.revoke(store.list_grants()[0].grant_id)
    with pytest.raises(ApprovalRequired):
        asking.call()


def test_a_store_that_can_not_be_read_grants_nothing(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**call: Any) -> Any:
        raise ApprovalStoreError("x")

    monkeypatch.setattr(asking.governor.approvals.store, "grants_for", broken)
    with pytest.raises(ApprovalRequired):
        asking.call()


@pytest.mark.parametrize("event", ["pre_tool_use", "permission_decision"])
def test_what_a_hook_asks_is_asked(event: str) -> None:
    hooks = Hooks()
    asking = Asking(hooks=hooks)
    asking.call()
    asking.approver.answer = None

    @hooks.on(event)
    def doubt(context: Any) -> PermissionResult:
        return PermissionResult("ask", "sure?")

    with pytest.raises(ApprovalRequired):
        asking.call()


def test_the_stock_policy_offers_it_where_no_question_needs_a_person() -> None:
    approver = FixedApprover(REMEMBER)
    governor = Governor(approver=approver)
    ran: list[str] = []
    facts: dict[str, Any] = {"access_kinds": ["file_write"], "write_effects": ["local_draft"], "read_only": False}
    deploy = governor.govern(ran.append, name="deploy", risk_level="high", **facts)
    demanding = governor.govern(ran.append, name="demanding", approval_required=True, **facts)
    with agent_context(actor="agent:a", session_id="s", roots=["."]):
        deploy("x")
        approver.answer = None
        deploy("x")
        with pytest.raises(ApprovalRequired):
            deploy("y")
        with pytest.raises(ApprovalRequired):
            demanding("x")
    assert ran == ["x", "x"]
    assert approver.asked[-1].suggested_updates == []
