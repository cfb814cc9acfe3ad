"""What a tool states, and what is derived, stands in the fields that the standard names for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, govern
from agenttool_otel.call.runtime import replace_default
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
        ({}, "result_mapper", "content_blocks"),
        ({}, "empty_result_policy", "empty_marker"),
        ({"supports_cancel": True}, "abort_semantics", "cancel"),
        ({"persistence": "ref_only"}, "persistence_policy_ref", "persistence:ref_only"),
        ({"context_modifiers": "refuse"}, "context_modifier_policy", "refuse"),
    ],
)
def test_an_interface_says_how_its_calls_are_treated(options: Any, field: str, value: Any) -> None:
    assert spec_of(**options).interface.to_json_object()[field] == value


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


@pytest.mark.parametrize(
    ("options", "channel"),
    [
        ({"approver": lambda request: True}, "approver"),
        ({"approvals": "sqlite://"}, "approval_store"),
        ({"approver": lambda request: True, "approvals": "sqlite://"}, "approver"),
        ({}, "host"),
        ({"approver": lambda request: True, "policy_mode": "shadow"}, "none"),
    ],
)
def test_the_permission_channel_is_what_the_governor_has(options: Any, channel: str) -> None:
    with capture(policy=StaticEngine("ask"), **options) as captured:
        tool = captured.governor.govern(shell).tool
        assert tool.interface.permission_channel == channel
        assert tool.permission_profile.permission_channel == channel


def test_the_default_governor_in_charge_gives_the_channel() -> None:
    tool = govern(shell, namespace="channel").tool
    old = replace_default(None)
    try:
        with capture(policy=StaticEngine("ask")) as captured:
            replace_default(captured.governor)
            assert tool.permission_profile.permission_channel == "host"
        with capture(policy=StaticEngine("ask"), approver=lambda request: True) as captured:
            replace_default(captured.governor)
            assert tool.permission_profile.permission_channel == "approver"
    finally:
        replace_default(old)


def test_a_call_goes_on_where_another_channel_answers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/approvals.db"
    with capture(policy=StaticEngine("ask"), approvals=url) as captured:
        paused = captured.governor.govern(shell, namespace="t").tool.invoke(command="ls")
    with capture(
        policy=StaticEngine("ask"), approvals=url, approver=lambda request: True
    ) as captured:
        tool = captured.governor.govern(shell, namespace="t")
        [request] = captured.governor.approvals.store.list()
        captured.governor.approvals.store.answer(
            request.request_id, ApprovalAnswer(approved=True, answered_by="user:ann")
        )
        result = captured.governor.resume(paused.invocation_id)
        assert tool.tool.permission_profile.permission_channel == "approver"
    assert result.status == "succeeded"
