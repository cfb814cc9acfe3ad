"""The four inputs stay four: what a model gave, what was shown, what was decided, what ran, and who
changed what.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ToolDenied, ToolInputInvalid
from agenttool_otel.call.drivers import arun, run
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.records import call_input, invocation_record
from agenttool_otel.hooks import HookContext, Hooks, PermissionResult, UpdatedInput
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture, decision

SCHEMAS = Path(__file__).parent.parent / "spec_schemas"


def valid(record: Any, name: str) -> bool:
    schema = json.loads((SCHEMAS / f"agenttool-{name}.schema.json").read_text())
    return bool(jsonschema_rs.validator_for(schema).is_valid(record.to_json_object()))


def called(
    captured: Capture, function: Any, asynchronous: bool = False, /, *, given: Any, **options: Any
) -> Invocation:
    """Call a tool through the JSON door and keep hold of its invocation."""
    governor = captured.governor
    tool = governor.govern(function, name="t", **options).tool
    call, target = tool.plan(given), tool.json_target()
    steps = governor.pipeline.run(call, target)
    return asyncio.run(arun(call, steps)) if asynchronous else run(call, steps)


def trim(
    text: str, limit: int = 10, *, _tenant: str = "nobody", _session: object = None
) -> list[Any]:
    return [text, limit, _tenant, _session]


@pytest.mark.covers("model-input-kept", "observable-input-derived", "permission-input-decided")
@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_four_inputs_are_told_apart_in_the_record(asynchronous: bool) -> None:
    hooks, engine = Hooks(), StaticEngine("allow")
    hooks.add(
        lambda ctx: UpdatedInput({"text": ctx.arguments["text"].strip(), "limit": 5}, "normalised"),
        "pre_tool_use",
        hook_id="normaliser",
    )
    with capture(policy=engine, hooks=hooks) as captured:
        call = called(captured, trim, asynchronous, given={"text": " a "})
        record = invocation_record(call, show=lambda value: value)
        assert record.model_input == {"text": " a "}
        assert record.observable_input == {"text": " a ", "limit": 10}
        assert record.permission_input == {"text": "a", "limit": 5}
        assert record.call_input == {"text": "a", "limit": 5}
        assert engine.documents[0]["input"] == {"text": "a", "limit": 5}
        assert call.value == ["a", 5, "nobody", None]
        refs = invocation_record(call)
        shown = [
            refs.model_input_ref,
            refs.observable_input_ref,
            refs.permission_input_ref,
            refs.call_input_ref,
        ]
        assert len(set(shown)) == 3  # what was decided is what ran
        assert refs.permission_input_ref == refs.call_input_ref
        assert refs.model_input is refs.call_input is None
        assert valid(record, "invocation")
        assert valid(refs, "invocation")


def test_a_mutation_names_its_author_and_fields_and_no_value() -> None:
    hooks = Hooks()
    hooks.add(
        lambda ctx: UpdatedInput({"text": "new-value", "limit": 10}, "because"),
        "pre_tool_use",
        hook_id="editor",
    )
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        call = called(captured, trim, given={"text": "old-value"})
        (mutation,) = call.inputs.mutations
        assert valid(mutation, "input-mutation")
        assert mutation.invocation_id == call.id
        assert (mutation.source_type, mutation.source_ref) == ("hook", "editor")
        assert mutation.changed_fields == ["/text"]
        assert mutation.reason == "because"
        assert mutation.from_input_ref == invocation_record(call).observable_input_ref
        assert mutation.to_input_ref == invocation_record(call).call_input_ref
        assert "-value" not in repr(mutation)
        (event,) = [e for e in captured.events if e.event_type == "tool.input.mutated"]
        assert event.data["agenttool.mutation.changed_fields"] == ["/text"]
        assert event.data["agenttool.mutation.source_ref"] == "editor"
        assert "-value" not in repr(captured.events)
        assert "-value" not in repr([dict(span.attributes) for span in captured.spans])


def test_a_call_that_did_not_run_has_no_call_input() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        record = invocation_record(
            called(captured, trim, given={"text": "a"}), show=lambda value: value
        )
        assert record.call_input is None
        assert record.permission_input == {"text": "a", "limit": 10}


@pytest.mark.parametrize("event", ["pre_tool_use", "permission_decision"])
def test_a_changed_input_is_decided_again_and_a_deny_wins(event: str) -> None:
    class NoTwo(StaticEngine):
        def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> Any:
            self._answers = {
                "t": {"behavior": "deny" if document["input"]["limit"] == 2 else "allow"}
            }
            return super().evaluate(entry_point, document, timeout=timeout)

    hooks, engine = Hooks(), NoTwo("allow")
    hooks.add(
        lambda ctx: [PermissionResult("allow"), UpdatedInput({**ctx.arguments, "limit": 2})], event
    )
    with capture(policy=engine, hooks=hooks) as captured:
        call = called(captured, trim, given={"text": "a"})
        assert call.outcome.status == "denied"
        assert call.outcome.error is not None
        assert call.outcome.error.error_class == "permission_denied"
        assert not call.ran
        assert engine.documents[-1]["input"]["limit"] == 2


@pytest.mark.parametrize("event", ["pre_tool_use", "permission_decision"])
@pytest.mark.parametrize(
    ("updated", "told"),
    [
        ({"text": 5}, "text: must be string"),
        ({}, "Field required"),
        ({"text": "a", "other": 1}, "members that the schema does not have"),
        ({"text": object()}, "text: must be string"),
    ],
)
def test_a_changed_input_has_to_fit_the_schema_like_a_models(
    event: str, updated: Any, told: str
) -> None:
    hooks = Hooks()
    hooks.add(lambda ctx: UpdatedInput(updated), event)
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        call = called(captured, trim, given={"text": "a"})
        assert call.outcome.error is not None
        assert call.outcome.error.error_class == "input_mutation_failed"
        assert told in call.outcome.error.message
        assert not call.ran
        assert len(call.inputs.mutations) == 1  # the attempt is on record


def test_the_developers_own_check_sees_the_changed_input() -> None:
    def check(arguments: Any) -> None:
        if arguments["limit"] > 100:
            raise ValueError("limit is too large")

    hooks = Hooks()
    hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, "limit": 101}), "pre_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        call = called(captured, trim, given={"text": "a"}, validate=check)
        assert call.outcome.error is not None
        assert call.outcome.error.error_class == "invalid_arguments"
        assert not call.ran


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [("allow", True), ("hooks_only", True), ("approval_only", False), ("forbid", False)],
)
@pytest.mark.parametrize("updated", [{"limit": 3}, {"_tenant": "acme"}])
def test_the_contract_says_whether_a_hook_may_change_the_input(
    policy: str, allowed: bool, updated: dict[str, Any]
) -> None:
    hooks = Hooks()
    hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, **updated}), "pre_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        call = called(captured, trim, given={"text": "a"}, mutation_policy=policy)
        assert call.ran is allowed
        if not allowed:
            assert call.outcome.error is not None
            assert call.outcome.error.error_class == "input_mutation_failed"


# --- internal-only fields -------------------------------------------------------------------------


@pytest.mark.covers("internal-marked-when-used")
@pytest.mark.parametrize("event", ["pre_tool_use", "permission_decision"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_hook_gives_internal_arguments_that_nobody_else_sees(
    event: str, asynchronous: bool
) -> None:
    hooks, engine, live = Hooks(), StaticEngine("allow"), object()
    hooks.add(
        lambda ctx: UpdatedInput(
            {**ctx.arguments, "_tenant": "internal-acme", "_session": live}, "scope"
        ),
        event,
    )
    with capture(policy=engine, hooks=hooks, capture="SPAN_AND_EVENT") as captured:
        call = called(captured, trim, asynchronous, given={"text": "a"})
        assert call.value[2:] == ["internal-acme", live]
        assert (
            "_tenant" not in call.spec.declaration.input_contract.model_input_schema["properties"]
        )
        assert "_tenant" not in call.spec.interface.model_input_schema["properties"]
        assert [d["input"] for d in engine.documents] == [{"text": "a", "limit": 10}]
        (mutation,) = call.inputs.mutations
        assert valid(mutation, "input-mutation")
        assert mutation.changed_fields == ["/_tenant", "/_session"]
        marked = {"pointer": "/_tenant", "visibility": "internal", "mutation_source": "hook"}
        assert marked in mutation.to_json_object()["fields"]
        record = invocation_record(call, show=lambda value: value)
        everything = repr(
            [record, call.inputs.mutations, call.decision.hook_records, engine.documents]
        )
        assert "internal-acme" not in everything
        told = [e for e in captured.events if e.event_type != "tool.result.created"]
        assert "internal-acme" not in repr(told)
        assert call.inputs.model_input == {"text": "a"}


def test_internal_arguments_never_come_from_the_model() -> None:
    def stated(text: str, tenant: str = "nobody") -> str:
        return tenant

    with capture(policy=StaticEngine("allow")) as captured:
        for function, given_, options in (
            (trim, {"text": "a", "_tenant": "evil"}, {}),
            (stated, {"text": "a", "tenant": "evil"}, {"internal_only_fields": ["tenant"]}),
            (
                stated,
                {"text": "a", "tenant": "evil"},
                {"internal_only_fields": ["tenant"], "strict": False},
            ),
        ):
            call = called(captured, function, given=given_, **options)
            assert not call.ran
            assert call.outcome.error is not None
            assert call.outcome.error.error_class == "schema_validation_failed"
            captured.clear()


def test_internal_arguments_do_not_come_from_an_approver_either() -> None:
    edit = FixedApprover(
        ApprovalAnswer(True, answered_by="user:eve", edited_input={"text": "a", "_tenant": "evil"})
    )
    with capture(policy=StaticEngine("ask"), approver=edit) as captured:
        call = called(captured, trim, given={"text": "a"}, strict=False)
        assert not call.ran
        assert call.outcome.error is not None
        assert call.outcome.error.error_class == "input_mutation_failed"


def test_a_hook_can_not_invent_an_internal_argument() -> None:
    hooks = Hooks()
    hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, "ghost": 1}), "pre_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        call = called(captured, trim, given={"text": "a"}, internal_only_fields=["ghost"])
        assert not call.ran
        assert call.outcome.error is not None
        assert call.outcome.error.error_class == "input_mutation_failed"


def test_internal_arguments_are_given_again_on_resume_elsewhere(tmp_path: Path) -> None:
    hooks = Hooks()
    hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, "_tenant": "acme"}), "pre_tool_use")
    store = f"sqlite:///{tmp_path / 'approvals.db'}"
    with capture(policy=StaticEngine("ask"), hooks=hooks, approvals=store) as asking:
        with pytest.raises(ApprovalRequired) as asked:
            asking.governor.govern(trim, name="t", namespace="n")("a")
        answer = ApprovalAnswer(True, answered_by="user:eve")
        asking.governor.approvals.store.answer(asked.value.request_id, answer)
    with capture(policy=StaticEngine("ask"), hooks=hooks, approvals=store) as resuming:
        tool = resuming.governor.govern(trim, name="t", namespace="n")
        result = resuming.governor.resume(asked.value.invocation_id)
        assert result.status == "succeeded", result.error
        assert result.value[2] == "acme"
        assert tool is not None


# --- fixed point ----------------------------------------------------------------------------------


def test_a_hook_that_ran_earlier_sees_what_a_later_one_changed() -> None:
    hooks, seen = Hooks(), []

    @hooks.on("pre_tool_use", order=1)
    def guard(ctx: HookContext) -> Any:
        seen.append(ctx.arguments["text"])
        return (
            PermissionResult("deny", "no etc") if ctx.arguments["text"].startswith("/etc") else None
        )

    hooks.add(
        lambda ctx: UpdatedInput({**ctx.arguments, "text": "/etc/shadow"}), "pre_tool_use", order=2
    )
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        call = called(captured, trim, given={"text": "notes"})
        assert seen == ["notes", "/etc/shadow"]
        assert not call.ran
        assert call.outcome.error is not None
        assert call.outcome.error.error_class == "hook_blocked"


def test_an_ask_about_an_earlier_input_gives_way_to_the_hooks() -> None:
    hooks, engine = Hooks(), StaticEngine("allow")

    @hooks.on("pre_tool_use", order=1, hook_id="guard")
    def guard(ctx: HookContext) -> Any:
        return PermissionResult("ask") if ctx.arguments["limit"] > 5 else PermissionResult("allow")

    hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, "limit": 5}), "pre_tool_use", order=2)
    with capture(policy=engine, hooks=hooks) as captured:
        assert called(captured, trim, given={"text": "a", "limit": 9}).ran
        assert [hint["behavior"] for hint in engine.documents[-1]["hooks"]] == ["allow"]


def test_a_hook_is_not_asked_about_its_own_change() -> None:
    hooks, seen = Hooks(), []

    @hooks.on("pre_tool_use")
    def count(ctx: HookContext) -> Any:
        seen.append(1)
        return UpdatedInput({**ctx.arguments, "limit": ctx.arguments["limit"] + 1})

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        assert called(captured, trim, given={"text": "a"}).value[1] == 11
    assert len(seen) == 1


@pytest.mark.parametrize("event", ["pre_tool_use", "permission_decision"])
def test_hooks_that_never_agree_on_an_input_end_in_a_denial(event: str) -> None:
    hooks = Hooks()
    if event == "pre_tool_use":
        hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, "limit": 1}), event)
        hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, "limit": 2}), event)
    else:
        hooks.add(
            lambda ctx: UpdatedInput({**ctx.arguments, "limit": ctx.arguments["limit"] + 1}), event
        )
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        call = called(captured, trim, given={"text": "a"})
        assert not call.ran
        assert call.outcome.status == "denied"
        assert 2 <= len(call.inputs.mutations) <= 16


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(0, 3), min_size=1, max_size=4), forbidden=st.integers(0, 3))
def test_what_runs_was_decided_and_seen_by_every_hook(values: list[int], forbidden: int) -> None:
    hooks, engine = Hooks(), StaticEngine("allow")
    for value in values:
        hooks.add(
            lambda ctx, v=value: (
                UpdatedInput({**ctx.arguments, "limit": v}) if ctx.arguments["limit"] < v else None
            ),
            "pre_tool_use",
        )
    hooks.add(
        lambda ctx: PermissionResult("deny") if ctx.arguments["limit"] == forbidden else None,
        "pre_tool_use",
        order=-1,
    )
    with capture(policy=engine, hooks=hooks) as captured:
        call = called(captured, trim, given={"text": "a", "limit": 0})
        if call.ran:
            assert call.value[1] != forbidden
            assert engine.documents[-1]["input"] == call_input(call)
            assert call.value[1] == max(values)
        else:
            assert call.outcome.status == "denied"


# --- copies ---------------------------------------------------------------------------------------


@pytest.mark.covers("model-input-not-given-to-hooks")
@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_a_hook_does_to_its_input_never_reaches_the_call(asynchronous: bool) -> None:
    def take(items: list[Any], options: dict[str, Any]) -> Any:
        return {"items": items, "options": options}

    hooks, seen = Hooks(), []

    def meddle(ctx: HookContext) -> None:
        seen.append(json.dumps([ctx.model_input, ctx.arguments, ctx.result]))
        for mapping in (ctx.model_input, ctx.arguments, ctx.labels):
            mapping["items"] = mapping["injected"] = "evil"
        if isinstance(ctx.result, dict):
            ctx.result["items"].append("evil")
            ctx.result["options"]["a"]["b"] = "evil"

    for event in ("pre_tool_use", "permission_decision", "post_tool_use"):
        hooks.add(meddle, event)
        hooks.add(meddle, event)
    given_ = {"items": [1], "options": {"a": {"b": 1}}}
    engine = StaticEngine("allow")
    with capture(policy=engine, hooks=hooks) as captured:
        call = called(captured, take, asynchronous, given=given_)
        assert (
            call.value
            == call.inputs.model_input
            == given_
            == {"items": [1], "options": {"a": {"b": 1}}}
        )
        assert engine.documents[0]["input"] == given_
    assert "evil" not in "".join(seen)


def test_a_python_callers_objects_are_not_given_to_hooks() -> None:
    class Handle:
        pass

    hooks, seen = Hooks(), []
    hooks.add(lambda ctx: seen.append(ctx.arguments), "pre_tool_use")
    hooks.add(lambda ctx: seen.append(ctx.result), "post_tool_use")
    handle = Handle()
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:

        def same(value: Any) -> Any:
            return value

        assert captured.governor.govern(same)(handle) is handle
    assert len(seen) == 2
    assert handle not in [seen[0]["value"], seen[1]]


def test_denials_by_mutation_are_typed_for_plain_callers() -> None:
    hooks = Hooks()
    hooks.add(lambda ctx: UpdatedInput({"text": 1}), "pre_tool_use", tool="bad")
    hooks.add(lambda ctx: PermissionResult("deny"), "pre_tool_use", tool="no")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        with pytest.raises(ToolInputInvalid):
            captured.governor.govern(trim, name="bad")("a")
        with pytest.raises(ToolDenied):
            captured.governor.govern(trim, name="no")("a")


@pytest.mark.parametrize("author", ["pre_tool_use", "permission_decision", "policy", "approver"])
def test_a_change_that_python_takes_for_equal_is_a_change(author: str) -> None:
    """``1 == True`` in Python; in JSON, and for a tool, they are different values."""

    def show(x: Any, deep: Any) -> str:
        return repr([x, deep])

    given_, wanted = {"x": 1, "deep": {"y": [0]}}, {"x": True, "deep": {"y": [False]}}
    hooks, policy = Hooks(), decision("ask" if author == "approver" else "allow")
    if author == "policy":
        policy = decision("allow", updated_input=wanted)
    elif author != "approver":
        hooks.add(lambda ctx: UpdatedInput(wanted), author)
    edit = FixedApprover(ApprovalAnswer(True, answered_by="user:eve", edited_input=wanted))
    with capture(policy=StaticEngine(policy), hooks=hooks, approver=edit) as captured:
        call = called(captured, show, given=given_)
        assert call.value == "[True, {'y': [False]}]"
        assert call.inputs.mutations[0].changed_fields == ["/x", "/deep/y/0"]


def test_a_pre_hook_leaves_an_approved_input_as_it_was() -> None:
    hooks = Hooks()
    hooks.add(
        lambda ctx: UpdatedInput({**ctx.arguments, "limit": ctx.arguments["limit"] + 1}),
        "pre_tool_use",
    )
    with capture(policy=StaticEngine("ask"), hooks=hooks) as captured:
        governor = captured.governor
        governed = governor.govern(trim, name="t")
        with pytest.raises(ApprovalRequired) as asked:
            governed("a")
        governor.approvals.store.answer(
            asked.value.request_id, ApprovalAnswer(True, answered_by="user:eve")
        )
        result = governor.resume(asked.value.invocation_id)
        assert result.status == "succeeded", result.error
        assert result.value[1] == 11


def test_what_a_hook_asked_stands_when_it_fails_on_a_later_input() -> None:
    hooks, seen = Hooks(), []

    @hooks.on("pre_tool_use", order=1, on_failure="continue")
    def fragile(ctx: HookContext) -> Any:
        seen.append(1)
        if len(seen) > 1:
            raise RuntimeError
        return PermissionResult("ask")

    hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, "limit": 5}), "pre_tool_use", order=2)
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        assert not called(captured, trim, given={"text": "a"}).ran
    assert len(seen) == 2


def test_a_decision_hooks_change_is_recorded_as_the_hooks() -> None:
    hooks = Hooks()
    change = UpdatedInput({"text": "b", "limit": 10}, "why")
    hooks.add(lambda ctx: change, "permission_decision", hook_id="judge")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        (mutation,) = called(captured, trim, given={"text": "a"}).inputs.mutations
        assert (mutation.source_type, mutation.source_ref, mutation.reason) == (
            "hook",
            "judge",
            "why",
        )
