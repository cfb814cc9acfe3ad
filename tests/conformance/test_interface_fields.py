"""What a tool states, and what is derived, stands in the fields that the standard names for it."""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel.testing import StaticEngine, capture


def shell(command: str, token: str = "") -> str:
    """Run a command."""
    return command


STATED: dict[str, Any] = {
    "user_facing_name": "Shell",
    "ui_summary": "runs a command",
    "activity_description": "running",
    "progress_render_hint": "bar",
    "rejected_render_hint": "red",
    "error_render_hint": "box",
    "sandbox_profile": "jail",
    "model_requirements": ["vision"],
    "always_load": True,
    "progress_schema": {"type": "object"},
}
RENAMED = {
    "requires": "requires_setup",
    "credentials": "required_credentials",
    "feature_gates": "feature_gate_refs",
}


def spec_of(**options: Any) -> Any:
    with capture(policy=StaticEngine("allow")) as captured:
        return captured.governor.govern(shell, **options).tool.spec


@pytest.mark.parametrize("name", sorted(STATED))
def test_what_is_stated_stands_on_the_interface(name: str) -> None:
    assert spec_of(**{name: STATED[name]}).interface.to_json_object()[name] == STATED[name]


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_what_a_tool_needs_stands_on_the_interface(name: str) -> None:
    assert spec_of(**{name: ["it"]}).interface.to_json_object()[RENAMED[name]] == ["it"]


def test_what_is_found_by_its_name_stands_there_too() -> None:
    interface = spec_of(tool_kind="shell_command").interface
    assert interface.classifier_input == "input.command"
    assert interface.permission_matcher == "shell_pattern"


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({"defer": True}, "schema_visibility", "deferred"),
        ({"defer": True}, "should_defer", True),
        ({"lifecycle": "disabled"}, "is_enabled", False),
        ({"validate": lambda arguments: None}, "value_validation", True),
        ({"validate": lambda arguments: None}, "io_preflight_validation", True),
        ({"strict": False}, "schema_validation", "tolerant"),
        ({}, "deny_before_io", True),
        ({}, "decision_ref", "data.agenttool.permission.decision"),
        ({}, "redaction_policy_refs", ["data.agenttool.redaction.obligations"]),
        ({}, "permission_channel", "approver"),
        ({}, "result_mapper", "content_blocks"),
        ({}, "empty_result_policy", "empty_marker"),
        ({"supports_cancel": True}, "abort_semantics", "cancel"),
        ({"persistence": "ref_only"}, "persistence_policy_ref", "persistence:ref_only"),
        ({"context_modifiers": "refuse"}, "context_modifier_policy", "refuse"),
    ],
)
def test_an_interface_says_how_its_calls_are_treated(options: Any, field: str, value: Any) -> None:
    assert spec_of(**options).interface.to_json_object()[field] == value


def test_a_runtime_schema_marks_what_no_model_may_give() -> None:
    spec = spec_of(internal_only_fields=["token"])
    marked = spec.interface.runtime_input_schema["properties"]["token"]
    assert marked == {"visibility": "internal", "mutation_source": "hook"}
    assert "token" not in spec.interface.model_input_schema["properties"]
    assert (
        spec.declaration.input_contract.runtime_input_schema == spec.interface.runtime_input_schema
    )


def test_native_ids_stand_on_all_three_records() -> None:
    spec = spec_of(external_mappings=[{"source": "cli", "command_id": "sh"}])
    for record in (spec.declaration, spec.interface, spec.execution):
        assert record.to_json_object()["external_mappings"] == [
            {"source": "cli", "command_id": "sh"}
        ]


def test_what_nobody_said_is_not_denied() -> None:
    words = (
        "supports_background",
        "supports_artifacts",
        "supports_offline",
        "supports_credential_delegation",
    )
    assert not set(words) & spec_of().execution.to_json_object().keys()
    stated = dict.fromkeys(words, True) | {"cwd_policy": "fixed", "env_policy": "clean"}
    assert stated.items() <= spec_of(execution_facts=stated).execution.to_json_object().items()


def test_profiles_and_contracts_say_what_is_known() -> None:
    facts = {
        "max_inline_bytes": 9,
        "fallback_summary": "gone",
        "artifact_expectations": {"kind": "file"},
    }
    spec = spec_of(
        tool_kind="shell_command",
        persistence="never_persist",
        output_facts=facts,
        argument_mode="text",
    )
    assert spec.execution.to_json_object()["parsing_strategy"] == "tree-sitter-bash"
    assert spec.execution.supports_persistence is False
    assert facts.items() <= spec.declaration.output_contract.model_dump().items()
    assert spec.declaration.input_contract.argument_mode == "text"


def test_hints_of_the_permission_profile_are_kept() -> None:
    profile = spec_of(rule_matching_fields=["command"], retention_hint="a day").permission
    assert profile.permission_channel == "approver"
    assert (profile.rule_matching_fields, profile.retention_hint) == (["command"], "a day")
