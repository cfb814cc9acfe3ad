"""What hooks promise: each output has its effect, no hook lifts what policy or people decide, and no change
of an input goes unrecorded.
"""

from __future__ import annotations

from typing import Any

import pytest
from recorded import records_of

from agenttool_otel import ApprovalAnswer, ApprovalRequired
from agenttool_otel.hooks import (
    AdditionalContext,
    Hooks,
    Message,
    PermissionResult,
    Progress,
    Stop,
    UpdatedInput,
    UpdatedOutput,
)
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision
from function_engine import FunctionEngine


class Act:
    """A tool that notes what it runs with."""

    def __init__(self) -> None:
        self.ran: list[int] = []

    def __call__(self, number: int = 0) -> int:
        self.ran.append(number)
        return number


def hooks_of(event: str, *outputs: Any) -> Hooks:
    hooks = Hooks()
    hooks.add(lambda ctx: list(outputs), event, hook_id="h")
    return hooks


# --- outputs --------------------------------------------------------------------------------------


@pytest.mark.covers("hook-output-message")
def test_a_hooks_message_comes_with_the_result() -> None:
    hooks = hooks_of("pre_tool_use", Message("be careful"))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(Act(), name="act").tool.invoke().to_json_object()
    assert [message["text"] for message in result["hook_messages"]] == ["be careful"]


@pytest.mark.covers("hook-output-progress")
def test_a_hooks_progress_is_numbered_and_told() -> None:
    hooks = hooks_of("pre_tool_use", Progress(percent=10), Progress(percent=90))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke()
        told = [e.data for e in captured.events if e.event_type == "tool.invocation.progress"]
    assert [data["agenttool.progress.percent"] for data in told] == [10.0, 90.0]
    numbers = [data["agenttool.progress.sequence"] for data in told]
    assert numbers == sorted(set(numbers))


@pytest.mark.covers("hook-output-updated-input")
def test_a_hooks_input_is_decided_and_runs() -> None:
    act, engine = Act(), StaticEngine("allow")
    hooks = hooks_of("pre_tool_use", UpdatedInput({"number": 7}))
    with capture(policy=engine, hooks=hooks) as captured:
        captured.governor.govern(act, name="act").tool.invoke(number=1)
    assert engine.documents[0]["input"] == {"number": 7}
    assert act.ran == [7]


@pytest.mark.covers("hook-output-permission-result")
def test_a_hooks_hint_is_put_before_the_policy() -> None:
    engine = StaticEngine("allow")
    hooks = hooks_of("pre_tool_use", PermissionResult("passthrough", "seen"))
    with capture(policy=engine, hooks=hooks) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke()
    [hint] = engine.documents[0]["hooks"]
    assert hint == {"hook_id": "h", "behavior": "passthrough", "message": "seen"}


@pytest.mark.covers("hook-output-additional-context")
def test_a_hooks_context_comes_with_the_result() -> None:
    hooks = hooks_of("post_tool_use", AdditionalContext("the file is old", source="mtime"))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(Act(), name="act").tool.invoke().to_json_object()
    assert result["additional_context"] == [
        {"hook_id": "h", "text": "the file is old", "source": "mtime"}
    ]


@pytest.mark.covers("hook-output-stop")
def test_a_stop_before_the_tool_is_a_terminal_result() -> None:
    act, hooks = Act(), hooks_of("pre_tool_use", Stop("the user left"))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(act, name="act").tool.invoke()
    assert act.ran == []
    assert result.error is not None
    assert (result.status, result.error.error_class) == ("denied", "hook_blocked")


@pytest.mark.covers("hook-output-stop-after")
def test_a_stop_after_the_tool_comes_with_the_result() -> None:
    hooks = hooks_of("post_tool_use", Stop("budget spent"))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(Act(), name="act").tool.invoke().to_json_object()
    assert result["stop"] == {"hook_id": "h", "reason": "budget spent"}


@pytest.mark.covers("hook-output-updated-output")
def test_a_hook_changes_the_output_of_a_remote_tool_alone() -> None:
    hooks = hooks_of("post_tool_use", UpdatedOutput(5))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        govern = captured.governor.govern
        assert govern(Act(), name="remote", tool_kind="mcp_tool").tool.invoke().value == 5
        assert govern(Act(), name="local").tool.invoke().value == 0


@pytest.mark.covers("hook-effects-recorded")
def test_a_hooks_record_tells_what_its_outputs_did() -> None:
    hooks = hooks_of("post_tool_use", UpdatedOutput(5), UpdatedInput({"number": 1}))
    hooks.add(lambda ctx: UpdatedInput({"number": 7}), "pre_tool_use", hook_id="before")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke()
        before, after = records_of(captured, "tool_hook")
    assert before["outputs"][0]["applied"] is True
    assert [output["ignored"] for output in after["outputs"]] == [
        "the hook does not own this tool's output",
        "too late to change the input",
    ]


# --- the permission hook invariant ----------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        pytest.param("pre_tool_use", marks=pytest.mark.covers("hook-allow-over-deny")),
        pytest.param(
            "permission_decision", marks=pytest.mark.covers("hook-allow-over-deny-afterwards")
        ),
    ],
)
def test_a_hooks_allow_lifts_no_denial(event: str) -> None:
    act = Act()
    with capture(
        policy=StaticEngine("deny"), hooks=hooks_of(event, PermissionResult("allow"))
    ) as captured:
        result = captured.governor.govern(act, name="act").tool.invoke()
    assert act.ran == []
    assert result.status == "denied"


@pytest.mark.parametrize(
    "event",
    [
        pytest.param("pre_tool_use", marks=pytest.mark.covers("hook-allow-over-ask")),
        pytest.param(
            "permission_request", marks=pytest.mark.covers("hook-allow-over-ask-when-asked")
        ),
        pytest.param(
            "permission_decision", marks=pytest.mark.covers("hook-allow-over-ask-afterwards")
        ),
    ],
)
def test_a_hooks_allow_answers_no_question(event: str) -> None:
    act = Act()
    with capture(
        policy=StaticEngine("ask"), hooks=hooks_of(event, PermissionResult("allow"))
    ) as captured:
        governed = captured.governor.govern(act, name="act")
        with pytest.raises(ApprovalRequired):
            governed()
    assert act.ran == []


@pytest.mark.covers("hook-authoritative-by-policy")
def test_a_policy_may_trust_a_hooks_allow() -> None:
    def decide(document: Any) -> Any:
        trusted = any(hint["behavior"] == "allow" for hint in document["hooks"])
        return decision("allow" if trusted else "deny")

    for hooks, status in (
        (hooks_of("pre_tool_use", PermissionResult("allow")), "succeeded"),
        (hooks_of("pre_tool_use"), "denied"),
    ):
        with capture(policy=FunctionEngine(decide), hooks=hooks) as captured:
            assert captured.governor.govern(Act(), name="act").tool.invoke().status == status


@pytest.mark.covers("hook-ask-binds")
def test_a_hooks_ask_is_asked() -> None:
    act, hooks = Act(), hooks_of("pre_tool_use", PermissionResult("ask"))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(act, name="act").tool.invoke()
    assert (act.ran, result.status) == ([], "pending")


# --- mutations ------------------------------------------------------------------------------------


def changed(by: str) -> tuple[Any, list[Any]]:
    """The invocation and the mutations of a call whose input somebody changed."""
    hooks = (
        hooks_of("pre_tool_use", UpdatedInput({"number": 7}, "because")) if by == "hook" else None
    )
    edit = FixedApprover(
        ApprovalAnswer(approved=True, answered_by="user:eve", edited_input={"number": 7})
    )
    answers = {
        "hook": decision("allow"),
        "permission_prompt": decision("ask"),
        "runtime": decision("allow", updated_input={"number": 7}),
    }
    with capture(policy=StaticEngine(answers[by]), approver=edit, hooks=hooks) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke(number=1)
        return records_of(captured, "tool_invocation")[-1], records_of(captured, "input_mutation")


@pytest.mark.covers("mutation-leads-from-input-to-input")
def test_a_mutation_leads_from_one_input_to_the_next() -> None:
    invocation, [mutation] = changed("hook")
    assert mutation["from_input_ref"] == invocation["observable_input_ref"]
    assert mutation["to_input_ref"] == invocation["call_input_ref"]
    assert mutation["from_input_ref"] != mutation["to_input_ref"]


@pytest.mark.covers("mutation-names-fields")
def test_a_mutation_names_what_was_changed() -> None:
    _, [mutation] = changed("hook")
    assert mutation["changed_fields"] == ["/number"]


@pytest.mark.parametrize(
    "by",
    [
        pytest.param("hook", marks=pytest.mark.covers("mutation-by-hook-recorded")),
        pytest.param("permission_prompt", marks=pytest.mark.covers("mutation-by-prompt-recorded")),
        pytest.param("runtime", marks=pytest.mark.covers("mutation-by-policy-recorded")),
    ],
)
def test_a_mutation_names_its_author(by: str) -> None:
    invocation, [mutation] = changed(by)
    assert mutation["source_type"] == by
    assert mutation["invocation_id"] == invocation["invocation_id"]


@pytest.mark.covers("mutation-that-fails-recorded")
def test_a_change_that_can_not_be_used_is_recorded_too() -> None:
    hooks = hooks_of("pre_tool_use", UpdatedInput({"number": "seven"}))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke(number=1)
        [mutation] = records_of(captured, "input_mutation")
    assert mutation["source_type"] == "hook"


# --- what sinks get of hooks ----------------------------------------------------------------------

WORDS = "marigold, 12 Elm Street"


@pytest.mark.parametrize(
    ("event", "output"),
    [
        ("pre_tool_use", Stop(WORDS)),
        ("post_tool_use", Stop(WORDS)),
        ("pre_tool_use", PermissionResult("deny", WORDS)),
        ("pre_tool_use", UpdatedInput({"number": 2}, WORDS)),
        ("post_tool_use", UpdatedOutput(2, WORDS)),
        ("pre_tool_use", Progress(WORDS, 10)),
        ("pre_tool_use", AdditionalContext(WORDS)),
        ("pre_tool_use", Message(WORDS)),
    ],
)
def test_no_sink_is_given_what_a_hook_wrote(event: str, output: Any) -> None:
    with capture(policy=StaticEngine("allow"), hooks=hooks_of(event, output)) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke(number=1)
    assert WORDS not in str(records_of(captured, "tool_hook"))
    assert WORDS not in str(records_of(captured, "input_mutation"))


def test_a_sink_is_given_which_fields_are_internal() -> None:
    hooks = hooks_of("pre_tool_use", UpdatedInput({"number": 1, "token": "t"}, WORDS))

    def act(number: int, token: str = "") -> int:
        return number

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        captured.governor.govern(act, internal_only_fields=["token"]).tool.invoke(number=1)
    [mutation] = records_of(captured, "input_mutation")
    assert mutation["fields"] == [
        {"pointer": "/token", "visibility": "internal", "mutation_source": "hook"}
    ]
    assert "reason" not in mutation
