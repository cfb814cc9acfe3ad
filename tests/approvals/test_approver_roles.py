"""Who may say yes: roles that the policy asks for bind the answer, and bind again when the call is
decided again.
"""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, ApprovalRequired, Governor, ToolDenied, agent_context
from agenttool_otel.errors import ApprovalConflict, PolicyLoadError
from agenttool_otel.testing import FixedApprover, decision
from function_engine import FunctionEngine

SECURITY = {"agenttool": {"settings": {"approval": {"approver_roles": {"high": ["security"]}}}}}


def deploying(answer: ApprovalAnswer, policy_data: dict[str, Any]) -> list[str]:
    """Let somebody answer a call of high risk under the stock policy, and return what ran."""
    ran: list[str] = []
    approver = FixedApprover(answer)
    governor = Governor(policy_data=policy_data, approver=approver)

    @governor.govern(
        risk_level="high",
        read_only=False,
        access_kinds=["file_write"],
        write_effects=["local_draft"],
    )
    def deploy(stage: str) -> None:
        ran.append(stage)

    with agent_context(actor="agent:a", session_id="s", roots=["."]):
        try:
            deploy("production")
        except (ApprovalRequired, ToolDenied):
            assert not ran
    return ran


def test_the_stock_policy_lets_only_the_configured_roles_answer() -> None:
    intern = ApprovalAnswer(True, answered_by="user:intern", roles=("intern",))
    lead = ApprovalAnswer(True, answered_by="user:lead", roles=("intern", "security"))
    assert deploying(intern, SECURITY) == []
    assert deploying(lead, SECURITY) == ["production"]


def test_roles_of_the_wrong_type_let_nobody_answer() -> None:
    data = {"agenttool": {"settings": {"approval": {"approver_roles": {"high": "security"}}}}}
    for roles in (("security",), ("s",), ()):
        with pytest.raises(PolicyLoadError, match="has to be a list"):
            deploying(ApprovalAnswer(True, answered_by="user:lead", roles=roles), data)


@pytest.mark.parametrize("roles", ["admin", {"admin": True}, ["admin", 7], 7])
def test_a_decision_with_unreadable_roles_is_malformed(roles: Any) -> None:
    approver = FixedApprover(ApprovalAnswer(True, answered_by="user:a", roles=("a", "admin")))
    governor = Governor(
        policy=FunctionEngine(lambda _: decision("ask", approver_roles=roles)), approver=approver
    )
    with pytest.raises(ToolDenied, match="malformed: approver_roles"):
        governor.govern(lambda: 1, name="act")()
    assert approver.asked == []


def test_an_edit_for_another_role_needs_more_than_one_yes() -> None:
    ran: list[int] = []

    def policy(document: Any) -> dict[str, Any]:
        role = "admin" if document["input"]["amount"] > 1000 else "clerk"
        return decision("ask", approver_roles=[role])

    edit = ApprovalAnswer(
        True, answered_by="user:clerk", roles=("clerk",), edited_input={"amount": 10**6}
    )
    governor = Governor(policy=FunctionEngine(policy), approver=FixedApprover(edit))

    @governor.govern
    def pay(amount: int) -> None:
        ran.append(amount)

    with pytest.raises(PermissionError, match="one of the roles: admin"):
        pay(5)
    assert ran == []


def test_a_role_asked_for_only_now_is_needed_at_resume() -> None:
    ran: list[int] = []
    needed = ["clerk"]
    engine = FunctionEngine(lambda _: decision("ask", approver_roles=list(needed)))
    governor = Governor(policy=engine)

    @governor.govern
    def pay(amount: int) -> None:
        ran.append(amount)

    with pytest.raises(ApprovalRequired) as asked:
        pay(5)
    store = governor.approvals.store
    with pytest.raises(ApprovalConflict, match="one of the roles"):
        store.answer(
            asked.value.request_id, ApprovalAnswer(True, answered_by="user:x", roles=("intern",))
        )
    store.answer(
        asked.value.request_id, ApprovalAnswer(True, answered_by="user:clerk", roles=("clerk",))
    )
    needed[0], engine.revision = "admin", "test-2"
    result = governor.resume(asked.value.invocation_id)
    assert result.error is not None
    assert "one of the roles: admin" in result.error.message
    assert ran == []


def test_a_policy_that_always_asks_runs_on_one_yes() -> None:
    answer = ApprovalAnswer(True, answered_by="user:clerk", roles=("clerk",))
    engine = FunctionEngine(lambda _: decision("ask", approver_roles=["clerk", "admin"]))
    governor = Governor(policy=engine, approver=FixedApprover(answer))
    assert governor.govern(lambda: "ran", name="act")() == "ran"


def answered_by(name: str, *, actor: str = "agent:bot") -> bool:
    governor = Governor(policy=FunctionEngine(lambda _: decision("ask")))
    act = governor.govern(lambda: "ran", name="act")
    with agent_context(actor=actor), pytest.raises(ApprovalRequired) as asked:
        act()
    try:
        governor.approvals.store.answer(
            asked.value.request_id, ApprovalAnswer(True, answered_by=name)
        )
    except ApprovalConflict:
        return False
    return True


@pytest.mark.parametrize(
    "name",
    [
        *(
            "AGENT:BOT",
            " agent:bot ",
            "agent: bot",
            "agent:\u00a0bot",
            "\uff41gent:bot",
            "agent:b\u043et",
        ),
        *(
            "agent:bot\u200b",
            "agent:\u200bbot",
            "agent:b\u00adot",
            "agent:bot\u2060",
            "\u202aagent:bot",
        ),
        *("agent:bot\x00", "agent:bot\ufe0f", "agent:bot\u034f", "agent:bot\U000e0101"),
    ],
)
def test_no_actor_answers_itself_under_any_spelling(name: str) -> None:
    assert not answered_by(name)


@pytest.mark.parametrize("name", ["user:ann\u200b", "user:ann\x1b[1m", "user:\ud800", "user:ann\n"])
def test_a_name_that_can_not_be_read_answers_nothing(name: str) -> None:
    assert not answered_by(name)


@pytest.mark.parametrize(
    "name", ["user:ann", "user:J\u00f6rg M\u00fcller", "user:\u738b", "agent:bot2", "agent:b0t"]
)
def test_other_people_answer(name: str) -> None:
    assert answered_by(name)


def test_names_that_differ_within_ascii_are_two_people() -> None:
    assert answered_by("user:l", actor="user:1")
