"""What contracts promise: four inputs that stay apart, an original that nobody changes, and the limits that
a tool's author stated.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from recorded import last_of, records_of

from agenttool_otel import ApprovalAnswer
from agenttool_otel.hooks import Hooks, UpdatedInput
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision


def take(items: list[Any], limit: int = 10, *, tenant: str = "nobody") -> Any:
    """Take some items."""
    return {"items": items, "limit": limit, "tenant": tenant}


def declared(**options: Any) -> Any:
    with capture(policy=StaticEngine("allow")) as captured:
        return captured.governor.govern(take, **options).tool.declaration.to_json_object()


# --- four inputs ----------------------------------------------------------------------------------


@pytest.mark.covers("model-input-not-changed-in-place")
def test_a_check_that_changes_its_arguments_changes_nothing() -> None:
    def meddle(arguments: Any) -> bool:
        arguments["items"].append("evil")
        return True

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        tool = captured.governor.govern(take, validate=meddle).tool
        result = tool.invoke(items=[1])
    assert result.value["items"] == [1]
    assert engine.documents[0]["input"]["items"] == [1]


@pytest.mark.covers("model-input-not-changed-by-classifiers")
def test_a_classifier_that_changes_its_arguments_changes_nothing() -> None:
    def meddle(arguments: Any) -> bool:
        arguments["items"].append("evil")
        return True

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        tool = captured.governor.govern(take, read_only=meddle).tool
        assert tool.invoke(items=[1]).value["items"] == [1]
    assert engine.documents[0]["input"]["items"] == [1]


@pytest.mark.covers("call-input-runs")
def test_what_a_person_edited_is_what_runs() -> None:
    edit = ApprovalAnswer(
        approved=True, answered_by="user:eve", edited_input={"items": [2], "limit": 3}
    )
    with capture(policy=StaticEngine("ask"), approver=FixedApprover(edit)) as captured:
        result = captured.governor.govern(take).tool.invoke(items=[1])
    assert (result.value["items"], result.value["limit"]) == ([2], 3)


@pytest.mark.covers("internal-injection-on-result")
def test_a_result_names_who_gave_an_internal_field() -> None:
    hooks = Hooks()
    hooks.add(
        lambda ctx: UpdatedInput({**ctx.arguments, "tenant": "acme"}),
        "pre_tool_use",
        hook_id="scope",
    )
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.govern(take, internal_only_fields=["tenant"]).tool.invoke(
            items=[]
        )
    assert result.value["tenant"] == "acme"
    assert result.input_mutations is not None
    [change] = result.input_mutations
    assert (change["source_type"], change["source_ref"]) == ("hook", "scope")
    assert change["changed_fields"] == ["/tenant"]


@pytest.mark.covers("internal-never-from-models")
def test_a_model_gives_no_internal_field() -> None:
    def act(**given: Any) -> Any:
        return given

    with capture(policy=StaticEngine("allow")) as captured:
        anything = {"type": "object"}
        tool = captured.governor.govern(
            act, internal_only_fields=["tenant"], strict=False, model_input_schema=anything
        ).tool
        assert tool.invoke(text="a").value == {"text": "a"}
        refused = tool.invoke(text="a", tenant="evil")
    assert refused.value is None
    assert refused.error is not None
    assert refused.error.error_class == "schema_validation_failed"


# --- mutation policy ------------------------------------------------------------------------------


def outcome(mutation_policy: str, *, by: str) -> str | None:
    """The error class of a call whose input somebody changes."""
    hooks = Hooks()
    if by == "hook":
        hooks.add(lambda ctx: UpdatedInput({**ctx.arguments, "limit": 3}), "pre_tool_use")
    edit = ApprovalAnswer(
        approved=True, answered_by="user:eve", edited_input={"items": [], "limit": 3}
    )
    with capture(
        policy=StaticEngine("allow" if by == "hook" else "ask"),
        approver=FixedApprover(edit),
        hooks=hooks,
    ) as captured:
        governed = captured.governor.govern(take, mutation_policy=mutation_policy)
        error = governed.tool.invoke(items=[]).error
        return None if error is None else str(error.error_class)


@pytest.mark.covers("mutation-policy-of-hooks")
def test_hooks_replace_an_input_where_the_contract_lets_them() -> None:
    assert outcome("hooks_only", by="hook") is None
    for refusing in ("approval_only", "forbid"):
        assert outcome(refusing, by="hook") == "input_mutation_failed"


@pytest.mark.covers("mutation-policy-of-prompts")
def test_people_replace_an_input_where_the_contract_lets_them() -> None:
    assert outcome("approval_only", by="person") is None
    for refusing in ("hooks_only", "forbid"):
        assert outcome(refusing, by="person") == "input_mutation_failed"


# --- input contract -------------------------------------------------------------------------------


@pytest.mark.covers("contract-defaults")
def test_a_contract_has_the_defaults_of_arguments() -> None:
    assert declared()["input_contract"]["defaults"]["limit"] == 10


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("examples", [{"items": []}], marks=pytest.mark.covers("contract-examples")),
        pytest.param("sensitive_fields", ["items"], marks=pytest.mark.covers("contract-sensitive")),
        pytest.param(
            "internal_only_fields", ["tenant"], marks=pytest.mark.covers("contract-internal-only")
        ),
        pytest.param("argument_mode", "file", marks=pytest.mark.covers("contract-argument-mode")),
        pytest.param(
            "mutation_policy", "forbid", marks=pytest.mark.covers("contract-mutation-policy")
        ),
        pytest.param("strict", False, marks=pytest.mark.covers("contract-strict")),
    ],
)
def test_an_input_contract_has_what_was_stated(field: str, value: Any) -> None:
    assert declared(**{field: value})["input_contract"][field] == value


@pytest.mark.covers("sensitive-fields-redacted")
def test_a_sensitive_field_is_nowhere_in_telemetry() -> None:
    with capture(policy=StaticEngine("allow"), capture="SPAN_AND_EVENT", verbose=True) as captured:
        tool = captured.governor.govern(lambda pin, name: name, name="t", sensitive_fields=["pin"])
        tool.tool.invoke(pin="word-of-the-day", name="Ada")
        seen = repr(
            [captured.span.attributes, captured.span.events, captured.events, captured.records]
        )
    assert "Ada" in seen
    assert "word-of-the-day" not in seen


# --- output contract ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        pytest.param(
            {"output_schema": {"type": "object"}},
            "structured_schema",
            {"type": "object"},
            marks=pytest.mark.covers("contract-structured-schema"),
        ),
        pytest.param(
            {"content_types": ["image"]},
            "content_types",
            ["image"],
            marks=pytest.mark.covers("contract-content-types"),
        ),
        pytest.param(
            {"output_facts": {"artifact_expectations": {"kind": "report"}}},
            "artifact_expectations",
            {"kind": "report"},
            marks=pytest.mark.covers("contract-artifact-expectations"),
        ),
        pytest.param(
            {"persistence": "ref_only"},
            "persistence_policy_ref",
            "ref_only",
            marks=pytest.mark.covers("contract-persistence-policy"),
        ),
        pytest.param(
            {"output_facts": {"rendering_boundary": {"model": "content"}}},
            "rendering_boundary",
            {"model": "content"},
            marks=pytest.mark.covers("contract-rendering-boundary"),
        ),
        pytest.param(
            {"redaction_rules": ["/pin"]},
            "redaction_rules",
            ["/pin"],
            marks=pytest.mark.covers("contract-redaction-rules"),
        ),
        pytest.param(
            {"output_facts": {"fallback_summary": "gone"}},
            "fallback_summary",
            "gone",
            marks=pytest.mark.covers("contract-fallback-summary"),
        ),
    ],
)
def test_an_output_contract_has_what_was_stated(options: Any, field: str, value: Any) -> None:
    assert declared(**options)["output_contract"][field] == value


@pytest.mark.covers("contract-limit-binds")
def test_a_contracts_limit_keeps_a_large_result_out_of_prompts() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(lambda: "x" * 9_000, name="t", max_inline_chars=3_000).tool
        result = tool.invoke()
        assert sum(len(block["text"]) for block in result.model_facing_content) <= 3_000
        assert result.value == "x" * 9_000


@pytest.mark.covers("redaction-rules-bind")
def test_a_contracts_redaction_rule_keeps_a_member_out() -> None:
    def read() -> Any:
        return {"name": "Ada", "pin": "word-of-the-day"}

    with capture(policy=StaticEngine("allow")) as captured:
        tool = captured.governor.govern(read, redaction_rules=["/pin"]).tool
        shown = repr(tool.invoke().to_json_object())
    assert "Ada" in shown
    assert "word-of-the-day" not in shown


# --- what a signature makes of a changed input ----------------------------------------------------


def pay(amount: Decimal, currency: str = "EUR") -> str:
    return f"{amount} {currency}"


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({"amount": "0.10", "currency": "CHF"}, ["/amount"]),
        ({"amount": 2}, ["/currency"]),
    ],
)
@pytest.mark.parametrize("by", ["hook", "person", "policy"])
def test_what_is_read_of_a_change_is_a_mutation_too(
    changed: dict[str, Any], fields: list[str], by: str
) -> None:
    hooks = Hooks()
    engine: Any = StaticEngine("allow")
    approver = None
    if by == "hook":
        hooks.add(lambda _: UpdatedInput(changed), "pre_tool_use", hook_id="h")
    elif by == "policy":
        engine = StaticEngine(decision("allow", updated_input=changed))
    else:
        engine = StaticEngine("ask")
        approver = FixedApprover(ApprovalAnswer(True, answered_by="user:u", edited_input=changed))
    with capture(policy=engine, hooks=hooks, approver=approver) as captured:
        captured.governor.govern(pay).tool.invoke(amount=1)
    first, second = records_of(captured, "input_mutation")
    record = last_of(captured, "tool_invocation")
    assert first["from_input_ref"] == record["observable_input_ref"]
    assert second["from_input_ref"] == first["to_input_ref"]
    assert second["to_input_ref"] == record["permission_input_ref"] == record["call_input_ref"]
    assert (second["source_type"], second["changed_fields"]) == ("runtime", fields)
    assert record["mutation_refs"] == [first["mutation_id"], second["mutation_id"]]


def test_a_contract_for_hooks_alone_lets_their_changes_be_read() -> None:
    hooks = Hooks()
    hooks.add(lambda _: UpdatedInput({"amount": "0.10"}), "pre_tool_use", hook_id="h")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governed = captured.governor.govern(pay, mutation_policy="hooks_only")
        assert governed.tool.invoke(amount=1).value == "0.10 EUR"
