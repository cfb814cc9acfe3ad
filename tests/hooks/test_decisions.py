"""No hook lifts a deny or an ask: whatever hooks say, a call runs only if the policy and every hook
let it run.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel import ApprovalAnswer, ApprovalRejected, ApprovalRequired, ToolDenied
from agenttool_otel.hooks import HookContext, Hooks, PermissionResult, Stop, UpdatedInput
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision

BEHAVIORS = ["allow", "ask", "deny", "passthrough"]
RANK = {"passthrough": 0, "allow": 1, "ask": 2, "deny": 3}


class Tool:
    def __init__(self) -> None:
        self.ran: list[Any] = []

    def __call__(self, x: int = 0) -> str:
        self.ran.append(x)
        return "ran"


def yes() -> FixedApprover:
    return FixedApprover(ApprovalAnswer(True, answered_by="user:eve"))


@settings(max_examples=40, deadline=None)
@given(
    policy=st.sampled_from(["allow", "ask", "deny"]),
    pre=st.lists(st.sampled_from(BEHAVIORS), max_size=3),
    after=st.lists(st.sampled_from(BEHAVIORS), max_size=3),
    asynchronous=st.booleans(),
)
def test_the_strictest_of_policy_and_hooks_wins(
    policy: str, pre: list[str], after: list[str], asynchronous: bool
) -> None:
    hooks, tool = Hooks(), Tool()
    for event, behaviors in (("pre_tool_use", pre), ("permission_decision", after)):
        for behavior in behaviors:
            hooks.add(lambda ctx, b=behavior: PermissionResult(b, "because"), event)
    with capture(policy=StaticEngine(policy), hooks=hooks) as captured:
        handle = captured.governor.govern(tool, name="t").tool
        result = asyncio.run(handle.ainvoke(x=1)) if asynchronous else handle.invoke(x=1)
        strictest = max([policy, *pre, *after], key=RANK.__getitem__)
        assert (len(tool.ran) == 1) is (strictest == "allow")
        assert (
            result.status == {"allow": "succeeded", "ask": "pending", "deny": "denied"}[strictest]
        )
        if strictest == "deny":
            by_hook = "deny" in pre or policy != "deny"
            assert result.error is not None
            assert result.error.error_class == ("hook_blocked" if by_hook else "permission_denied")
            assert captured.span.attributes["agenttool.permission.source"] == (
                "hook" if by_hook else "policy"
            )
        assert captured.span.attributes["agenttool.permission.behavior"] == strictest


def test_an_allow_of_a_hook_is_a_hint_that_the_policy_sees() -> None:
    hooks, engine = Hooks(), StaticEngine("allow")
    hooks.add(lambda ctx: PermissionResult("allow", "looks fine"), "pre_tool_use", hook_id="linter")
    with capture(policy=engine, hooks=hooks) as captured:
        captured.governor.govern(Tool(), name="t")()
        assert engine.documents[0]["hooks"] == [
            {"hook_id": "linter", "behavior": "allow", "message": "looks fine"}
        ]
        assert captured.span.attributes["agenttool.permission.source"] == "policy"


def test_a_denying_hook_tells_why_and_stops_the_later_ones() -> None:
    hooks, seen, tool = Hooks(), [], Tool()
    hooks.add(
        lambda ctx: PermissionResult("deny", "not on Fridays"), "pre_tool_use", hook_id="friday"
    )
    hooks.add(lambda ctx: seen.append(1), "pre_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        with pytest.raises(ToolDenied, match="not on Fridays") as denied:
            captured.governor.govern(tool, name="t")()
        assert denied.value.error_class == "hook_blocked"
        assert denied.value.decision is not None
        assert denied.value.decision.reason.type == "hook"
        assert denied.value.decision.reason.rule_ref == "hook:friday"
        assert captured.span.attributes["error.type"] == "hook_blocked"
    assert tool.ran == seen == []


@pytest.mark.parametrize("event", ["pre_tool_use", "permission_request", "permission_decision"])
def test_a_stop_before_the_tool_ends_the_call(event: str) -> None:
    hooks, tool = Hooks(), Tool()
    hooks.add(lambda ctx: Stop("the user left"), event)
    with capture(policy=StaticEngine("ask"), approver=yes(), hooks=hooks) as captured:
        result = captured.governor.govern(tool, name="t").tool.invoke()
        assert result.status == "denied"
        assert result.error is not None
        assert result.error.error_class == "hook_blocked"
        assert "the user left" in result.error.message
    assert tool.ran == []


def test_a_hook_can_prevent_a_question_but_not_answer_it() -> None:
    hooks, tool, approver = Hooks(), Tool(), yes()
    seen: list[HookContext] = []

    @hooks.on("permission_request")
    def answer(ctx: HookContext) -> Any:
        seen.append(ctx)
        return (
            PermissionResult("deny", "nobody is awake")
            if ctx.arguments["x"]
            else PermissionResult("allow")
        )

    with capture(policy=StaticEngine("ask"), approver=approver, hooks=hooks) as captured:
        governed = captured.governor.govern(tool, name="t")
        with pytest.raises(ToolDenied, match="nobody is awake"):
            governed(1)
        assert approver.asked == []
        assert governed(0) == "ran"
        assert len(approver.asked) == 1
    assert seen[0].request is not None
    assert seen[0].request["tool_name"] == "t"
    assert seen[0].decision == "ask"
    assert tool.ran == [0]


def test_a_hooks_ask_is_an_ask_and_its_approval_runs_once() -> None:
    hooks, tool, approver = Hooks(), Tool(), yes()
    hooks.add(lambda ctx: PermissionResult("ask", "sure?"), "pre_tool_use", hook_id="careful")
    with capture(policy=StaticEngine("allow"), approver=approver, hooks=hooks) as captured:
        assert captured.governor.govern(tool, name="t")(1) == "ran"
    assert tool.ran == [1]
    assert approver.asked[0].rule_ref == "hook:careful"
    assert approver.asked[0].message == "sure?"


def test_an_ask_of_a_hook_that_is_rejected_does_not_run() -> None:
    hooks, tool = Hooks(), Tool()
    hooks.add(lambda ctx: PermissionResult("ask"), "permission_decision")
    no = FixedApprover(ApprovalAnswer(False, answered_by="user:eve", reason="no"))
    with (
        capture(policy=StaticEngine("allow"), approver=no, hooks=hooks) as captured,
        pytest.raises(ApprovalRejected),
    ):
        captured.governor.govern(tool, name="t")()
    assert tool.ran == []


def test_an_approval_does_not_lift_a_hooks_deny() -> None:
    hooks, tool = Hooks(), Tool()

    @hooks.on("permission_decision")
    def late(ctx: HookContext) -> Any:
        calls.append(ctx.decision)
        return PermissionResult("deny", "changed my mind") if len(calls) > 1 else None

    calls: list[Any] = []
    with capture(policy=StaticEngine("ask"), approver=yes(), hooks=hooks) as captured:
        with pytest.raises(ToolDenied) as denied:
            captured.governor.govern(tool, name="t")()
        assert denied.value.error_class == "hook_blocked"
    assert len(calls) == 2
    assert tool.ran == []


def test_hooks_block_although_the_policy_is_only_watched() -> None:
    hooks, tool = Hooks(), Tool()
    hooks.add(
        lambda ctx: PermissionResult("ask") if ctx.arguments["x"] == 1 else None, "pre_tool_use"
    )
    hooks.add(
        lambda ctx: PermissionResult("deny") if ctx.arguments["x"] == 2 else None,
        "permission_decision",
    )
    with capture(policy=StaticEngine("deny"), policy_mode="shadow", hooks=hooks) as captured:
        governed = captured.governor.govern(tool, name="t")
        assert governed(0) == "ran"
        with pytest.raises(ApprovalRequired):
            governed(1)
        with pytest.raises(ToolDenied):
            governed(2)
    assert tool.ran == [0]


def test_a_hooks_deny_is_asked_again_when_the_call_is_resumed() -> None:
    hooks, tool = Hooks(), Tool()
    closed = []
    hooks.add(
        lambda ctx: PermissionResult("deny", "closed by now") if closed else None, "pre_tool_use"
    )
    with capture(policy=StaticEngine("ask"), hooks=hooks) as captured:
        governor = captured.governor
        governed = governor.govern(tool, name="t")
        ids = []
        for _ in range(2):
            with pytest.raises(ApprovalRequired) as asked:
                governed(1)
            governor.approvals.store.answer(
                asked.value.request_id, ApprovalAnswer(True, answered_by="user:eve")
            )
            ids.append(asked.value.invocation_id)
        assert governor.resume(ids[0]).status == "succeeded"
        closed.append(True)
        result = governor.resume(ids[1])
        assert result.status == "denied"
        assert result.error is not None
        assert result.error.error_class == "hook_blocked"
    assert tool.ran == [1]


def test_an_approvers_edit_is_seen_by_pre_hooks_before_the_run() -> None:
    """A hook that guards an argument guards it from the approver's edit as well."""
    hooks, tool = Hooks(), Tool()
    hooks.add(
        lambda ctx: PermissionResult("deny", "too much") if ctx.arguments["x"] > 9 else None,
        "pre_tool_use",
    )
    edit = FixedApprover(ApprovalAnswer(True, answered_by="user:eve", edited_input={"x": 10}))
    with capture(policy=StaticEngine("ask"), approver=edit, hooks=hooks) as captured:
        with pytest.raises(ToolDenied, match="too much"):
            captured.governor.govern(tool, name="t")(1)
        assert captured.span.attributes["error.type"] == "hook_blocked"
    assert tool.ran == []


def test_a_policys_input_is_seen_by_pre_hooks_before_the_run() -> None:
    hooks, tool, seen = Hooks(), Tool(), []
    hooks.add(lambda ctx: seen.append(ctx.arguments["x"]), "pre_tool_use")
    with capture(
        policy=StaticEngine(decision("allow", updated_input={"x": 7})), hooks=hooks
    ) as captured:
        captured.governor.govern(tool, name="t")(1)
    assert seen == [1, 7]
    assert tool.ran == [7]


def test_no_hook_changes_what_a_person_approved() -> None:
    hooks, tool, approver = Hooks(), Tool(), yes()

    @hooks.on("permission_decision")
    def swap(ctx: HookContext) -> Any:
        return UpdatedInput({"x": 666}) if approver.asked else None

    with capture(policy=StaticEngine("ask"), approver=approver, hooks=hooks) as captured:
        assert captured.governor.govern(tool, name="t")(1) == "ran"
    assert tool.ran == [1]


def test_preflight_runs_no_hook() -> None:
    hooks, seen = Hooks(), []
    for event in ("pre_tool_use", "permission_decision", "permission_request"):
        hooks.add(lambda ctx: seen.append(ctx), event)
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        assert captured.governor.govern(Tool(), name="t").tool.check().behavior == "allow"
    assert seen == []
