"""What a decision promises: each behavior does what it says, the profile decides nothing, and whatever led
to the decision can be read from it.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from recorded import records_of

from agenttool_otel import ApprovalAnswer, agent_context
from agenttool_otel.hooks import Hooks
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision
from function_engine import FunctionEngine

RULE_SOURCES = [
    "user_settings",
    "project_settings",
    "local_settings",
    "flag_settings",
    "policy_settings",
    "cli_arg",
    "command",
    "session",
]
"""The standard's origins of permission rules."""


class Act:
    """A tool that notes what it runs with."""

    def __init__(self) -> None:
        self.ran: list[int] = []

    def __call__(self, number: int = 0) -> int:
        self.ran.append(number)
        return number


def decided(answer: Any, **options: Any) -> Any:
    """The decision on a call, as its result has it."""
    engine = StaticEngine(answer)
    with capture(policy=engine) as captured:
        return captured.governor.govern(Act(), name="act", **options).tool.invoke().permission


# --- profile --------------------------------------------------------------------------------------


@pytest.mark.covers("profile-for-policies")
def test_a_policy_gets_the_profile_of_a_tool() -> None:
    stated: Any = {
        "risk_level": "critical",
        "access_kinds": ["payment"],
        "write_effects": ["irreversible"],
        "network_scope": "internal",
        "tenant_scope": "single",
        "credential_refs": ["bank"],
        "sandbox_profile": "jail",
        "approval_required": True,
        "prompt_avoidable": True,
        "redaction_required": True,
    }
    engine = StaticEngine("deny")
    with capture(policy=engine) as captured:
        captured.governor.govern(Act(), name="act", **stated).tool.invoke()
    assert stated.items() <= engine.documents[0]["permission_profile"].items()


@pytest.mark.covers("profile-is-no-decision")
def test_a_profile_decides_nothing() -> None:
    act, engine = Act(), StaticEngine("allow")
    with capture(policy=engine) as captured:
        stated: Any = {"approval_required": True, "risk_level": "critical"}
        captured.governor.govern(act, name="act", **stated).tool.invoke()
    assert act.ran == [0]
    assert engine.documents[0]["permission_profile"]["approval_required"] is True


@pytest.mark.covers("decision-of-each-call")
def test_every_call_has_a_decision_of_its_own() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(Act(), name="act").tool
        tool.invoke()
        tool.invoke()
        calls, decisions = (
            records_of(captured, "tool_invocation"),
            records_of(captured, "tool_permission_decision"),
        )
    assert [record["invocation_id"] for record in decisions] == [
        call["invocation_id"] for call in calls
    ]
    assert [[record["decision_id"]] for record in decisions] == [
        call["permission_decision_refs"] for call in calls
    ]


# --- behaviors ------------------------------------------------------------------------------------


@pytest.mark.covers("decision-allow-updated-input")
def test_an_allow_with_another_input_runs_with_that() -> None:
    act = Act()
    with capture(policy=StaticEngine(decision("allow", updated_input={"number": 7}))) as captured:
        captured.governor.govern(act, name="act").tool.invoke(number=1)
    assert act.ran == [7]


@pytest.mark.covers("decision-allow-feedback")
def test_an_allow_of_a_person_has_their_words() -> None:
    yes = FixedApprover(ApprovalAnswer(approved=True, answered_by="user:eve", reason="fine by me"))
    with capture(policy=StaticEngine("ask"), approver=yes) as captured:
        result = captured.governor.govern(Act(), name="act").tool.invoke()
    assert result.permission is not None
    assert result.permission["accept_feedback"] == "fine by me"


@pytest.mark.covers("decision-ask-asks")
def test_an_ask_is_put_before_a_person_before_the_tool_runs() -> None:
    act, nobody = Act(), FixedApprover(None)
    with capture(policy=StaticEngine("ask"), approver=nobody) as captured:
        result = captured.governor.govern(act, name="act").tool.invoke()
    assert [request.tool_name for request in nobody.asked] == ["act"]
    assert (act.ran, result.status) == ([], "pending")


@pytest.mark.covers("denied-body-does-not-run")
def test_the_body_of_a_denied_call_does_not_run() -> None:
    act = Act()
    with capture(policy=StaticEngine("deny")) as captured:
        result = captured.governor.govern(act, name="act").tool.invoke()
    assert (act.ran, result.status, result.is_error) == ([], "denied", True)


@pytest.mark.covers("decision-passthrough-delegates")
def test_a_passthrough_leaves_the_decision_to_the_next_policy() -> None:
    for last, ran in (("allow", [0]), ("deny", [])):
        act = Act()
        engines = [StaticEngine("passthrough"), StaticEngine(last)]
        with capture(policy=engines) as captured:
            captured.governor.govern(act, name="act").tool.invoke()
        assert act.ran == ran


@pytest.mark.covers("decision-passthrough-to-nobody")
def test_a_passthrough_to_nobody_is_a_denial() -> None:
    act = Act()
    with capture(policy=StaticEngine("passthrough")) as captured:
        result = captured.governor.govern(act, name="act").tool.invoke()
    assert (act.ran, result.status) == ([], "denied")


@pytest.mark.covers("decision-expired-is-none")
def test_a_decision_that_has_expired_meanwhile_lets_nothing_run() -> None:
    act, hooks = Act(), Hooks()
    hooks.add(lambda ctx: time.sleep(0.4), "permission_decision")

    def decide(document: Any) -> Any:
        soon = datetime.now(UTC) + timedelta(seconds=0.3)
        return decision("allow", expires_at=soon.isoformat())

    with capture(policy=FunctionEngine(decide), hooks=hooks) as captured:
        result = captured.governor.govern(act, name="act").tool.invoke()
    assert (act.ran, result.status) == ([], "denied")


# --- what a decision tells ------------------------------------------------------------------------


@pytest.mark.covers("rule-sources-kept")
@pytest.mark.parametrize("source", RULE_SOURCES)
def test_a_decision_keeps_the_origin_of_its_rule(source: str) -> None:
    assert decided(decision("deny", source=source))["source"] == source


@pytest.mark.covers("rules-kept")
def test_a_decision_names_its_rules_and_its_policy() -> None:
    rules = ["rule_b", "rule_a"]
    found = decided({"behavior": "deny", "reason": {"rule_ref": "rule_b"}, "rule_refs": rules})
    assert (found["reason"]["rule_ref"], found["rule_refs"]) == ("rule_b", rules)
    assert found["policy_refs"] == ["policy:static@test-1"]


SUGGESTED = [
    {"type": "add_rules", "behavior": "allow", "rules": ["act:*"]},
    {"type": "replace_rules", "behavior": "deny", "rules": []},
    {"type": "set_mode", "mode": "plan"},
    {"type": "add_directories", "directories": ["/srv"]},
    {"type": "remove_directories", "directories": ["/tmp"]},
]
GRANT = {"type": "grant", "scope": "session", "args": "exact", "expires_in": 600}


@pytest.mark.covers("suggested-updates-kept")
def test_an_ask_may_suggest_updates_of_any_kind() -> None:
    assert decided(decision("ask", suggested_updates=SUGGESTED))["suggested_updates"] == SUGGESTED


@pytest.mark.covers("suggested-updates-are-no-decision")
def test_a_suggested_update_is_nothing_until_somebody_accepts_it() -> None:
    yes = FixedApprover(ApprovalAnswer(approved=True, answered_by="user:eve"))
    engine = StaticEngine(decision("ask", suggested_updates=[GRANT]))
    with capture(policy=engine, approver=yes) as captured:
        tool = captured.governor.govern(Act(), name="act").tool
        with agent_context(actor="agent:a", session_id="s"):
            tool.invoke()
            tool.invoke()
        assert len(yes.asked) == 2
        assert captured.governor.approvals.store.list_grants() == []


@pytest.mark.covers("suggested-updates-accepted")
def test_a_suggested_update_holds_once_a_person_accepts_it() -> None:
    yes = FixedApprover(ApprovalAnswer(approved=True, answered_by="user:eve", remember=0))
    engine = StaticEngine(decision("ask", suggested_updates=[GRANT]))
    with capture(policy=engine, approver=yes) as captured:
        tool = captured.governor.govern(Act(), name="act").tool
        with agent_context(actor="agent:a", session_id="s"):
            tool.invoke()
            tool.invoke()
    assert len(yes.asked) == 1


# --- classifiers ----------------------------------------------------------------------------------

CLASSIFIER = {
    "classifier_ref": "danger-1",
    "confidence": 0.4,
    "classifier_reason": "looks odd",
    "authority": "recommend",
}


@pytest.mark.covers("classifier-is-an-input")
def test_an_evaluators_verdict_is_put_before_the_policy() -> None:
    engine = StaticEngine("allow")
    verdict = {"status": "fail", "trend": "stable", "next_step": "look again"}
    with capture(policy=engine) as captured, agent_context(evaluation=verdict):
        captured.governor.govern(Act(), name="act").tool.invoke()
    assert engine.documents[0]["evaluation"] == verdict


@pytest.mark.covers("classifier-recorded")
def test_a_decision_has_what_a_classifier_said() -> None:
    assert decided({**decision("deny"), "classifier": CLASSIFIER})["classifier"] == CLASSIFIER


@pytest.mark.covers("classifier-authority-recorded")
def test_a_decision_tells_what_a_classifier_may_do() -> None:
    found = decided({**decision("ask"), "classifier": CLASSIFIER})
    assert found["classifier"]["authority"] == "recommend"


@pytest.mark.covers("classifier-pending-recorded")
def test_a_decision_tells_that_a_classifier_is_still_running() -> None:
    pending = {"state": "running"}
    found = decided({**decision("ask"), "pending_classifier_check": pending})
    assert found["pending_classifier_check"] == pending
