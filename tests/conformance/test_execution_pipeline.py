"""Each phase of the pipeline: what it does, how a call ends there, and that whatever ends is a result."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import pytest
from recorded import records_of

from agenttool_otel import (
    ApprovalAnswer,
    BatchCall,
    ContextModifier,
    Governor,
    SchedulerPolicy,
    ToolDenied,
    agent_context,
    current_call,
)
from agenttool_otel.hooks import Hooks, PermissionResult, UpdatedInput, UpdatedOutput
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture, decision
from function_engine import FunctionEngine


class Act:
    """A tool that counts its runs."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def __call__(self, text: str = "a") -> Any:
        self.ran.append(text)
        return {"said": text}


def hook(event: str, function: Any, **options: Any) -> Hooks:
    hooks = Hooks()
    hooks.add(function, event, hook_id="h", **options)
    return hooks


def broken(context: Any) -> None:
    raise ValueError("broken")


def error_of(result: Any) -> str:
    assert result.error is not None
    assert result.is_error
    return str(result.error.error_class)


def ends(policy: Any = "allow", *, given: Any = None, hooks: Any = None, **options: Any) -> str:
    """How a call ends whose body never runs."""
    act = Act()
    engine = StaticEngine(policy) if isinstance(policy, str) else policy
    with capture(policy=engine, hooks=hooks) as captured:
        governed = captured.governor.govern(act, name="act", **options)
        result = governed.tool.invoke(given or {"text": "b"})
    assert act.ran == []
    return error_of(result)


# --- resolve_tool ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("act", marks=pytest.mark.covers("resolve-by-name")),
        pytest.param("do_it", marks=pytest.mark.covers("resolve-by-alias")),
    ],
)
def test_a_tool_is_found_by_name_and_alias(name: str) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        act = captured.governor.govern(Act(), name="act", aliases=["do_it"])
        [result] = captured.governor.batch([BatchCall(name, {"text": "b"})])
        assert result.value == {"said": "b"}
        del act


@pytest.mark.covers("resolve-unknown-tool")
def test_a_name_that_no_tool_has_ends_as_unknown() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        [result] = captured.governor.batch([BatchCall("nobody", {})])
    assert error_of(result) == "unknown_tool"


@pytest.mark.covers("resolve-blocked-tool")
def test_a_tool_that_is_switched_off_ends_as_blocked() -> None:
    assert ends(lifecycle="disabled") == "blocked_tool"


@pytest.mark.covers("resolve-schema-not-loaded")
def test_a_tool_whose_schema_was_not_sent_asks_for_discovery() -> None:
    act, governor = Act(), Governor()
    governed = governor.govern(act, name="act", read_only=True, access_kinds=[], defer=True)
    with agent_context(surface=governor.surface()):
        result = governed.tool.invoke(text="b")
    governor.close()
    assert error_of(result) == "schema_not_loaded"
    assert result.error is not None
    assert result.error.retry.discovery_required
    assert act.ran == []


# --- parse_schema, validate_values, prepare_observable_input --------------------------------------


@pytest.mark.covers("parse-schema-validation-failed")
def test_arguments_of_another_type_end_as_a_failed_validation() -> None:
    assert ends(given={"text": 1}) == "schema_validation_failed"


@pytest.mark.covers("validate-invalid-arguments")
def test_a_value_that_a_check_refuses_ends_as_invalid() -> None:
    assert ends(validate=broken) == "invalid_arguments"


@pytest.mark.covers("validate-before-side-effects")
def test_a_check_runs_before_hooks_and_the_tool() -> None:
    seen: list[Any] = []
    assert ends(validate=broken, hooks=hook("pre_tool_use", seen.append))
    assert seen == []


@pytest.mark.covers("observable-before-hooks")
def test_hooks_get_the_observable_input() -> None:
    seen: list[Any] = []
    hooks = hook("pre_tool_use", lambda ctx: seen.append((ctx.model_input, ctx.arguments)))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke()
    assert seen == [({}, {"text": "a"})]


@pytest.mark.covers("observable-mutation-failed")
def test_an_unusable_input_ends_as_a_failed_mutation() -> None:
    hooks = hook("pre_tool_use", lambda ctx: UpdatedInput({"text": 1}))
    assert ends(hooks=hooks) == "input_mutation_failed"


# --- pre_hooks, permission ------------------------------------------------------------------------


@pytest.mark.covers("pre-hook-blocked")
def test_a_hook_that_denies_ends_the_call_as_blocked() -> None:
    hooks = hook("pre_tool_use", lambda ctx: PermissionResult("deny"))
    assert ends(hooks=hooks) == "hook_blocked"


@pytest.mark.covers("pre-hook-failed")
def test_a_hook_that_fails_ends_the_call_as_failed() -> None:
    assert ends(hooks=hook("pre_tool_use", broken)) == "hook_failed"


@pytest.mark.covers("pre-hooks-before-permission")
def test_hooks_run_before_the_decision() -> None:
    order: list[str] = []

    def decide(document: Any) -> Any:
        order.append("policy")
        return decision("allow")

    hooks = hook("pre_tool_use", lambda ctx: order.append("hook"))
    with capture(policy=FunctionEngine(decide), hooks=hooks) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke()
    assert order == ["hook", "policy"]


@pytest.mark.covers("permission-denied")
def test_a_policys_denial_ends_the_call_as_denied() -> None:
    assert ends("deny") == "permission_denied"


@pytest.mark.covers("permission-policy-blocked")
def test_a_policy_that_fails_blocks_the_call() -> None:
    assert ends(FunctionEngine(broken)) == "policy_blocked"


@pytest.mark.covers("permission-approval-rejected")
def test_a_persons_no_ends_the_call_as_rejected() -> None:
    act, no = Act(), FixedApprover(ApprovalAnswer(approved=False, answered_by="user:eve"))
    with capture(policy=StaticEngine("ask"), approver=no) as captured:
        result = captured.governor.govern(act, name="act").tool.invoke()
    assert error_of(result) == "approval_rejected"
    assert act.ran == []


# --- schedule -------------------------------------------------------------------------------------


@pytest.mark.covers("schedule-canceled")
def test_a_queued_call_that_is_canceled_does_not_run() -> None:
    ran: list[int] = []

    with capture(policy=StaticEngine("allow"), verbose=True) as captured:
        governor = captured.governor

        def act(number: int) -> None:
            ran.append(number)
            waiting = list(governor.pipeline.running)
            while len(waiting) < 2:
                time.sleep(0.01)
                waiting = list(governor.pipeline.running)
            [other] = [id_ for id_ in waiting if id_ != current_call().invocation_id]
            governor.cancel(other, "not needed any more")

        governed = governor.govern(act, concurrency_safe=False)
        calls = [BatchCall(governed, {"number": number}) for number in range(2)]
        results = governor.batch(calls)
    assert ran == [0]
    assert error_of(results[1]) == "canceled"


@pytest.mark.covers("schedule-sibling-canceled")
def test_a_call_whose_sibling_failed_ends_as_its_sibling() -> None:
    act = Act()

    def fail() -> None:
        raise RuntimeError("broken")

    with capture(policy=StaticEngine("allow")) as captured:
        failing = captured.governor.govern(fail)
        governed = captured.governor.govern(act, name="act")
        policy = SchedulerPolicy(sibling_failure_policy="cancel_siblings", ordering_policy="serial")
        results = captured.governor.batch(
            [BatchCall(failing, {}), BatchCall(governed, {})], policy=policy
        )
    assert act.ran == []
    assert error_of(results[1]) == "sibling_canceled"


# --- execute --------------------------------------------------------------------------------------


def raised(error: Exception) -> str:
    def act() -> None:
        raise error

    with capture(policy=StaticEngine("allow")) as captured:
        return error_of(captured.governor.govern(act).tool.invoke())


@pytest.mark.covers("execute-failed")
def test_a_tool_that_fails_ends_as_failed() -> None:
    assert raised(RuntimeError("broken")) == "execution_failed"


@pytest.mark.covers("execute-dependency-unavailable")
def test_a_tool_that_reaches_nobody_ends_as_a_missing_dependency() -> None:
    assert raised(ConnectionRefusedError("nobody")) == "dependency_unavailable"


@pytest.mark.covers("execute-timeout")
def test_a_tool_that_takes_too_long_ends_as_timed_out() -> None:
    async def act() -> None:
        await asyncio.sleep(1)

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(act, timeout_ms=20)
        assert error_of(asyncio.run(governed.tool.ainvoke())) == "timeout"


@pytest.mark.covers("execute-abort-signal")
def test_a_running_tool_can_see_that_it_is_to_stop() -> None:
    seen: list[bool] = []

    with capture(policy=StaticEngine("allow")) as captured:

        def act() -> None:
            call = current_call()
            seen.append(call.canceled)
            captured.governor.cancel(call.invocation_id, "enough")
            seen.append(call.canceled)

        captured.governor.govern(act).tool.invoke()
    assert seen == [False, True]


@pytest.mark.covers("execute-native-ids")
def test_a_call_keeps_the_id_that_the_model_gave_it() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(Act(), name="act")
        [result] = captured.governor.batch([BatchCall(governed, {}, native_call_id="call_1")])
    [mapping] = result.to_json_object()["external_mappings"]
    assert (mapping["tool_call_id"], mapping["function_name"]) == ("call_1", "act")


# --- map_result -----------------------------------------------------------------------------------


@dataclass
class Weather:
    degrees: int


@pytest.mark.covers("map-failed")
def test_an_output_outside_its_schema_ends_as_a_failed_mapping() -> None:
    def weather() -> Weather:
        return Weather("warm")  # type: ignore[arg-type]

    with capture(policy=StaticEngine("allow")) as captured:
        assert error_of(captured.governor.govern(weather).tool.invoke()) == "result_mapping_failed"


@pytest.mark.covers("map-once")
def test_an_output_is_in_the_model_facing_content_once() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = captured.governor.govern(Act(), name="act").tool.invoke(text="b")
    assert result.model_facing_content == [{"type": "text", "text": '{"said":"b"}'}]
    assert result.content == [{"type": "structured_content", "data": {"said": "b"}}]


def contents(result: Any) -> Any:
    return result.content, result.model_facing_content, result.structured_content


@pytest.mark.covers("map-same-after-retries")
def test_an_output_is_mapped_the_same_after_a_retry() -> None:
    tries: list[int] = []

    def act() -> Any:
        tries.append(1)
        if len(tries) == 2:
            raise ConnectionError("again")
        return {"b": [1, 2.5], "a": None}

    with capture(policy=StaticEngine("allow")) as captured:
        retry: Any = {"max_attempts": 3, "initial_delay_ms": 1}
        tool = captured.governor.govern(act, retry=retry).tool
        first, second = tool.invoke(), tool.invoke()
    assert len(tries) == 3
    assert contents(first) == contents(second)


@pytest.mark.covers("map-same-after-resume")
def test_an_output_is_mapped_the_same_after_a_pause() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        governor = captured.governor
        tool = governor.govern(Act(), name="act").tool
        paused = tool.invoke(text="b")
        request = governor.approvals.store.by_invocation(paused.invocation_id)
        assert request is not None
        yes = ApprovalAnswer(approved=True, answered_by="user:eve")
        governor.approvals.store.answer(request.request_id, yes)
        after = governor.resume(paused.invocation_id)
    with capture(policy=StaticEngine("allow")) as captured:
        plain = captured.governor.govern(Act(), name="act").tool.invoke(text="b")
    assert contents(after) == contents(plain)


@pytest.mark.covers("map-again-after-owner")
def test_an_output_that_its_owner_changed_is_mapped_anew() -> None:
    hooks = hook("post_tool_use", lambda ctx: UpdatedOutput({"said": "c"}), owns_output=True)
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(Act(), name="act").tool.invoke(text="b")
    assert result.model_facing_content == [{"type": "text", "text": '{"said":"c"}'}]


@pytest.mark.covers("map-owners-change-recorded")
def test_a_change_of_an_output_is_recorded() -> None:
    hooks = hook(
        "post_tool_use", lambda ctx: UpdatedOutput({"said": "c"}, "tidy"), owns_output=True
    )
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke(text="b")
        [record] = records_of(captured, "tool_hook")
    [output] = record["outputs"]
    assert (output["kind"], output["applied"]) == ("updated_output", True)
    assert output["from"] != output["to"]


# --- post_hooks -----------------------------------------------------------------------------------


@pytest.mark.covers("post-hooks-run")
def test_post_hooks_run_once_the_tool_has_returned() -> None:
    seen: list[Any] = []
    hooks = hook("post_tool_use", lambda ctx: seen.append((ctx.status, ctx.result)))
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke(text="b")
    assert seen == [("succeeded", {"said": "b"})]


@pytest.mark.covers("failure-hooks-run")
def test_failure_hooks_run_once_the_tool_has_failed() -> None:
    seen: list[Any] = []

    def act() -> None:
        raise RuntimeError("broken")

    hooks = hook("post_tool_use_failure", lambda ctx: seen.append(ctx.error["error_class"]))
    hooks.add(lambda ctx: seen.append("succeeded"), "post_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        captured.governor.govern(act).tool.invoke()
    assert seen == ["execution_failed"]


@pytest.mark.covers("post-hook-failed")
def test_a_post_hook_that_fails_is_told_with_the_result() -> None:
    with capture(policy=StaticEngine("allow"), hooks=hook("post_tool_use", broken)) as captured:
        result = captured.governor.govern(Act(), name="act").tool.invoke(text="b")
    assert result.value == {"said": "b"}
    assert result.error is not None
    assert result.error.error_class == "post_hook_failed"


# --- persist_result -------------------------------------------------------------------------------


@pytest.mark.covers("persist-after-post-hooks")
def test_what_a_post_hook_gives_meets_the_policys_obligations() -> None:
    hooks = hook("post_tool_use", lambda ctx: UpdatedOutput({"said": "s3cr3t"}), owns_output=True)
    obliged = StaticEngine(decision("allow", obligations={"redact_result": ["/said"]}))
    with capture(policy=obliged, hooks=hooks) as captured:
        result = captured.governor.govern(Act(), name="act").tool.invoke(text="b")
    assert "s3cr3t" not in repr(result.to_json_object())


@pytest.mark.parametrize(
    ("obligation", "error"),
    [
        pytest.param(
            {"max_inline_chars": 5},
            "result_too_large",
            marks=pytest.mark.covers("persist-too-large"),
        ),
        pytest.param(
            {"redact_result": ["/a"]},
            "result_redacted",
            marks=pytest.mark.covers("persist-redacted"),
        ),
    ],
)
def test_a_result_that_can_not_be_shown_ends_so(obligation: Any, error: str) -> None:
    class Odd:
        __slots__ = ()

    engine = StaticEngine(decision("allow", obligations=obligation))
    with capture(policy=engine) as captured:
        result = captured.governor.govern(lambda: Odd(), name="odd").tool.invoke()
    assert error_of(result) == error


@pytest.mark.covers("persist-links-resources")
def test_a_large_result_is_linked() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(lambda: "line\n" * 20_000, name="large").tool
        result = tool.invoke()
        [kept] = records_of(captured, "tool_result_persistence")
    assert result.persistence_refs == [kept["decision_id"]]
    assert result.resource_refs[0]["uri"] == kept["persisted_ref"]["uri"]


@pytest.mark.covers("persist-links-evidence")
def test_a_result_refers_to_what_proves_its_approval() -> None:
    yes = FixedApprover(ApprovalAnswer(approved=True, answered_by="user:eve"))
    with capture(policy=StaticEngine("ask"), approver=yes) as captured:
        result = captured.governor.govern(Act(), name="act").tool.invoke()
    assert result.evidence_refs == [f"approval_log:{yes.asked[0].request_id}"]


# --- emit_terminal --------------------------------------------------------------------------------


@pytest.mark.covers("terminal-of-every-call")
def test_a_call_that_never_ran_has_a_terminal_event() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke()
        [invocation] = records_of(captured, "tool_invocation")
        told = [event.event_type for event in captured.events]
    assert invocation["status"] == "denied"
    assert told.count("tool.invocation.failed") == 1


@pytest.mark.covers("explained-before-execution")
def test_a_call_that_fails_early_says_how_far_it_came() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        captured.governor.govern(Act(), name="act").tool.invoke(text=1)
        [invocation] = records_of(captured, "tool_invocation")
        [result] = records_of(captured, "tool_result")
    states = [step["status"] for step in invocation["status_transitions"]]
    assert states == ["planned", "selected", "schema_parse_failed"]
    assert result["error"]["error_class"] == "schema_validation_failed"


@pytest.mark.covers("terminal-even-of-a-bug")
def test_a_bug_on_the_way_is_a_result_too() -> None:
    class Broken(Hooks):
        def matching(self, *args: Any) -> Any:
            raise LookupError("a bug")

    act, hooks = Act(), Broken()
    hooks.add(lambda ctx: None, "pre_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(act, name="act").tool.invoke()
        [told] = records_of(captured, "tool_result")
    assert act.ran == []
    assert error_of(result) == "policy_blocked"
    assert told["result_id"] == result.result_id


# --- normal failures are results ------------------------------------------------------------------


def denied(captured: Capture) -> None:
    with pytest.raises(ToolDenied):
        captured.governor.govern(Act(), name="no")()


def rejected(captured: Capture) -> None:
    captured.governor.govern(Act(), name="ask").tool.invoke()


def invalid(captured: Capture) -> None:
    captured.governor.govern(Act(), name="act").tool.invoke(text=1)


def missing(captured: Capture) -> None:
    captured.governor.batch([BatchCall("nobody", {})])


def discarded(captured: Capture) -> None:
    def act() -> None:
        call = current_call()
        captured.governor.cancel(call.invocation_id, "another answer", abort_reason="fallback")
        call.raise_if_canceled()

    captured.governor.govern(act).tool.invoke()


def sibling(captured: Capture) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    calls = [BatchCall(captured.governor.govern(each, name=name), {}) for name, each in
             (("fail", fail), ("act", Act()))]  # fmt: skip
    policy = SchedulerPolicy(sibling_failure_policy="cancel_siblings", ordering_policy="serial")
    captured.governor.batch(calls, policy=policy)


@pytest.mark.parametrize(
    ("way", "error"),
    [
        pytest.param(
            denied, "permission_denied", marks=pytest.mark.covers("normal-failure-denial")
        ),
        pytest.param(
            rejected, "approval_rejected", marks=pytest.mark.covers("normal-failure-rejection")
        ),
        pytest.param(
            invalid, "schema_validation_failed", marks=pytest.mark.covers("normal-failure-schema")
        ),
        pytest.param(
            missing, "unknown_tool", marks=pytest.mark.covers("normal-failure-missing-tool")
        ),
        pytest.param(
            discarded,
            "streaming_fallback_discarded",
            marks=pytest.mark.covers("normal-failure-fallback"),
        ),
        pytest.param(
            sibling, "sibling_canceled", marks=pytest.mark.covers("normal-failure-sibling")
        ),
    ],
)
def test_a_normal_failure_is_a_result(way: Any, error: str) -> None:
    answers = {name: decision("allow") for name in ("act", "fail", "nobody")}
    engine = StaticEngine({**answers, "no": decision("deny"), "ask": decision("ask")})
    no = FixedApprover(ApprovalAnswer(approved=False, answered_by="user:eve"))
    with capture(policy=engine, approver=no) as captured:
        way(captured)
        result = records_of(captured, "tool_result")[-1]
    assert result["is_error"] is True
    assert result["error"]["error_class"] == error


# --- the phases together ---------------------------------------------------------------------------


@pytest.mark.covers("phases-in-order")
def test_the_phases_come_in_their_order() -> None:
    hooks = hook("pre_tool_use", lambda ctx: None)
    hooks.add(lambda ctx: None, "post_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks, verbose=True) as captured:
        captured.governor.govern(Act(), name="act", persistence="preview_and_persist").tool.invoke()
        names = [event.event_type.removeprefix("tool.") for event in captured.events]
    assert [name for name in names if name != "invocation.progress"] == [
        "invocation.planned",
        "invocation.selected",
        "invocation.arguments_ready",
        "hook.pre.started",
        "hook.pre.completed",
        "permission.decided",
        "invocation.started",
        "hook.post.started",
        "hook.post.completed",
        "result.persisted",
        "result.created",
        "invocation.succeeded",
    ]


@pytest.mark.covers("model-layers-kept")
def test_a_function_leaves_the_layers_of_the_model_apart() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        act = captured.governor.govern(Act(), name="act", persistence="preview_and_persist")
        captured.governor.surface()
        captured.governor.batch([BatchCall(act, {})])
        kinds = {line["object"] for line in captured.records}
    assert kinds >= {
        "tool_declaration",
        "tool_interface",
        "tool_surface",
        "tool_invocation",
        "tool_permission_decision",
        "tool_scheduler_policy",
        "tool_execution_profile",
        "tool_result",
        "tool_result_persistence",
    }


# --- context modifiers ----------------------------------------------------------------------------


def modified(policy: str, *, safe: bool, count: int = 2) -> tuple[list[Any], list[Any]]:
    """What a batch of calls does to shared context, and what its results say of it."""
    applied: list[Any] = []

    def act(number: int) -> Any:
        if number == 0:
            time.sleep(0.05)  # the second call ends first, where it may
        return ContextModifier(number, lambda: applied.append(number))

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(act, concurrency_safe=safe)
        calls = [BatchCall(governed, {"number": number}) for number in range(count)]
        chosen = SchedulerPolicy(context_modifier_policy=policy)
        results = captured.governor.batch(calls, policy=chosen)
        [stated] = records_of(captured, "tool_scheduler_policy")
    assert stated["context_modifier_policy"] == policy
    return applied, [result.to_json_object()["context_modifier"] for result in results]


@pytest.mark.covers("modifier-honored-alone")
def test_a_context_modifier_is_honored_where_its_call_was_alone() -> None:
    applied, told = modified("allow_serial_only", safe=False)
    assert applied == [0, 1]
    assert [each["applied"] for each in told] == [True, True]


@pytest.mark.covers("modifier-rejected-beside-others")
def test_a_context_modifier_of_concurrent_calls_is_rejected() -> None:
    applied, told = modified("allow_serial_only", safe=True)
    assert applied == []
    assert [each["applied"] for each in told] == [False, False]


@pytest.mark.covers("modifier-forbidden-by-policy")
def test_a_scheduler_that_forbids_context_modifiers_honors_none() -> None:
    applied, told = modified("forbid", safe=False)
    assert applied == []
    assert "forbids" in told[0]["reason"]


@pytest.mark.covers("modifier-deferred-in-order")
def test_deferred_context_modifiers_keep_the_order_of_calls() -> None:
    applied, _ = modified("defer_until_batch_complete", safe=True, count=4)
    assert applied == [0, 1, 2, 3]
