"""Decisions say what was decided, by whom and whether it bound; results say what went wrong
with them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.trace import StatusCode
from recorded import last_of

from agenttool_otel import ApprovalAnswer, agent_context
from agenttool_otel.hooks import Hooks, UpdatedInput
from agenttool_otel.names import PolicyMode
from agenttool_otel.testing import Capture, StaticEngine, capture, decision


def act(text: str = "a") -> str:
    return text * 3


def answered(captured: Capture, approved: bool, reason: str = "") -> Any:
    tool = captured.governor.govern(act).tool
    result = tool.invoke(text="b")
    store = captured.governor.approvals.store
    request = store.by_invocation(result.invocation_id)
    assert request is not None
    store.answer(
        request.request_id, ApprovalAnswer(approved=approved, answered_by="user:ada", reason=reason)
    )
    return captured.governor.resume(result.invocation_id)


def decided(captured: Capture) -> list[tuple[Any, Any]]:
    events = [
        event.data or {}
        for event in captured.events
        if event.event_type == "tool.permission.decided"
    ]
    return [(e["agenttool.permission.behavior"], e["agenttool.permission.source"]) for e in events]


def test_a_decision_says_the_hosts_mode_and_that_it_bound() -> None:
    with capture(policy=StaticEngine("allow")) as captured, agent_context(mode="plan"):
        permission = captured.governor.govern(act).tool.invoke(text="b").permission
        assert permission is not None
        assert (permission["mode"], permission["enforced"]) == ("plan", True)


def test_a_shadow_decision_is_recorded_as_what_it_was() -> None:
    answer = decision("deny")
    with capture(policy=StaticEngine(answer), policy_mode=PolicyMode.SHADOW) as captured:
        result = captured.governor.govern(act).tool.invoke(text="b")
        assert result.value == "bbb"
        assert result.permission is not None
        assert (result.permission["behavior"], result.permission["enforced"]) == ("deny", False)
        assert result.permission["reason"]["rule_ref"] == "test.deny"


def test_a_persons_yes_is_a_decision_with_their_words() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        result = answered(captured, approved=True, reason="fine by me")
        assert result.value == "bbb"
        assert result.permission["behavior"] == "allow"
        assert result.permission["source"] == "user"
        assert result.permission["accept_feedback"] == "fine by me"
        assert decided(captured) == [("ask", "policy"), ("allow", "user"), ("ask", "policy")]


def test_a_persons_no_is_a_decision() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        result = answered(captured, approved=False, reason="never")
        assert result.status == "rejected"
        assert (result.permission["behavior"], result.permission["source"]) == ("deny", "user")
        assert result.permission["accept_feedback"] == "never"


def test_what_a_policy_says_beside_its_behavior_is_kept() -> None:
    said = {
        "source": "project_settings",
        "classifier": {"classifier_ref": "c1", "confidence": 0.4, "classifier_reason": "looks odd"},
        "pending_classifier_check": {"state": "running"},
        "content_blocks": [{"type": "text", "text": "look here"}],
    }
    with capture(policy=StaticEngine({**decision("deny"), **said})) as captured:
        permission = captured.governor.govern(act).tool.invoke(text="b").permission
        assert permission is not None
        assert {name: permission[name] for name in said} == said


# --- errors of results ----------------------------------------------------------------------------


@dataclass
class Weather:
    degrees: int


def weather() -> Weather:
    return Weather("warm")  # type: ignore[arg-type]


def test_a_result_that_misses_its_schema_agrees_everywhere() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = captured.governor.govern(weather).tool.invoke()
        assert result.is_error
        assert result.error is not None
        assert result.error.error_class == "result_mapping_failed"
        assert captured.span.attributes["error.type"] == "result_mapping_failed"
        [created] = [
            event for event in captured.events if event.event_type == "tool.result.created"
        ]
        assert (created.data or {})["error.type"] == "result_mapping_failed"
        assert result.status == "failed"
        assert last_of(captured, "tool_result")["status"] == "failed"
        record = last_of(captured, "tool_invocation")
        assert [each["status"] for each in record["status_transitions"]][-2:] == [
            "running",
            "failed",
        ]
        assert [e.event_type for e in captured.events][-1] == "tool.invocation.failed"
        assert captured.span.status.status_code is StatusCode.ERROR


def test_a_redacted_result_fits_the_schema_that_its_value_fits() -> None:
    def weigh() -> Weather:
        return Weather(20)

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(weigh, redaction_rules=["/degrees"])
        result = governed.tool.invoke()
    assert (result.status, result.error) == ("succeeded", None)
    assert result.structured_content != {"degrees": 20}


def test_a_tool_that_misses_its_schema_gives_its_value_to_code() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert captured.governor.govern(weather)() == weather()


def test_a_withheld_result_is_an_error() -> None:
    class Odd:
        __slots__ = ()

    answer = decision("allow", obligations={"max_inline_chars": 5})
    with capture(policy=StaticEngine(answer)) as captured:
        result = captured.governor.govern(lambda: Odd(), name="odd").tool.invoke()
        assert result.status == "too_large"
        assert result.error is not None
        assert (result.is_error, result.error.error_class) == (True, "result_too_large")
    answer = decision("allow", obligations={"redact_result": ["/a"]})
    with capture(policy=StaticEngine(answer)) as captured:
        result = captured.governor.govern(lambda: Odd(), name="odd").tool.invoke()
        assert result.status == "redacted"
        assert result.error is not None
        assert result.error.error_class == "result_redacted"


@pytest.mark.parametrize("event", ["pre_tool_use", "permission_decision", "permission_request"])
def test_a_hook_that_fails_before_blocks_as_failed(event: str) -> None:
    def broken(ctx: Any) -> None:
        raise ValueError("broken")

    hooks = Hooks()
    hooks.add(broken, event, hook_id="broken")
    with capture(policy=StaticEngine("ask"), hooks=hooks) as captured:
        result = captured.governor.govern(act).tool.invoke(text="b")
        assert result.error is not None
        assert (result.status, result.error.error_class) == ("denied", "hook_failed")


def test_a_hook_that_fails_afterwards_is_told_and_breaks_nothing() -> None:
    def broken(ctx: Any) -> None:
        raise ValueError("broken")

    hooks = Hooks()
    hooks.add(broken, "post_tool_use", hook_id="broken")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(act).tool.invoke(text="b")
        assert (result.value, result.is_error, result.status) == ("bbb", False, "succeeded")
        assert result.error is not None
        assert result.error.error_class == "post_hook_failed"


def test_a_result_names_who_changed_the_input() -> None:
    hooks = Hooks()
    hooks.add(lambda ctx: UpdatedInput({"text": "c"}, "shorter"), "pre_tool_use", hook_id="trimmer")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(act).tool.invoke(text="b")
        assert result.input_mutations is not None
        [change] = result.input_mutations
        assert (change["source_type"], change["source_ref"], change["changed_fields"]) == (
            "hook",
            "trimmer",
            ["/text"],
        )


def test_evidence_and_policies_stand_on_result_and_error() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        result = answered(captured, approved=False)
        [ref] = result.evidence_refs
        assert ref.startswith("approval_log:appr_")
        assert result.error.evidence_refs == [ref]
        assert result.error.policy_refs == result.policy_refs


@pytest.mark.parametrize(
    ("open_world", "level"), [(False, "trusted"), (True, "untrusted"), (None, "untrusted")]
)
def test_a_result_says_whether_it_may_be_trusted(open_world: bool | None, level: str) -> None:
    stated = {} if open_world is None else {"open_world": open_world}
    with capture(policy=StaticEngine("allow")) as captured:
        result = captured.governor.govern(act, **stated).tool.invoke(text="b")
        assert result.trust is not None
        assert result.trust["level"] == level


def test_nobody_is_blamed_for_a_cancellation() -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    async def canceled(captured: Capture) -> None:
        task = asyncio.ensure_future(captured.governor.govern(slow).tool.ainvoke())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with capture(policy=StaticEngine("allow")) as captured:
        asyncio.run(canceled(captured))
        assert captured.span.attributes["agenttool.abort_reason"] == "unknown"


def test_the_end_of_a_program_is_its_reason() -> None:
    def leave() -> None:
        raise SystemExit(0)

    with capture(policy=StaticEngine("allow")) as captured:
        with pytest.raises(SystemExit):
            captured.governor.govern(leave)()
        assert captured.span.attributes["agenttool.abort_reason"] == "runtime_shutdown"


@pytest.mark.parametrize(
    ("lifecycle", "words"),
    [("deferred", "find the tool"), ("requires_setup", "set up"), ("draft", "do not call")],
)
def test_preflight_says_what_an_unavailable_tool_needs(lifecycle: Any, words: str) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert (
            words
            in captured.governor.govern(act, lifecycle=lifecycle).tool.check(text="b").next_step
        )
