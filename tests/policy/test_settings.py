"""A misspelt setting of the stock bundle is refused when the policy is loaded, and told with what
was meant.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from agenttool_otel import ConfigurationError, Governor
from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.overlay import overlay
from agenttool_otel.policy.bundles.settings_check import settings_problems
from agenttool_otel.policy.bundles.settings_schema import rule_names, settings_schema

STOCK = load_bundle(default_bundle_path())
DEFAULTS = STOCK.data["agenttool"]["defaults"]


def problems(settings: Any) -> list[str]:
    return settings_problems(overlay(STOCK, data={"agenttool": {"settings": settings}}))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("strict", "has to be an object"),
        (
            {"presett": "strict"},
            "settings.presett: there is no such setting (did you mean 'preset'?)",
        ),
        ({"preset": "strikt"}, "can't be 'strikt' (did you mean 'strict'?)"),
        ({"preset": 7}, "settings.preset has to be a text"),
        ({"modes": {"night": "strikt"}}, "modes.night can't be 'strikt'"),
        (
            {"approval": {"alway_ask": ["f"]}},
            "approval.alway_ask: there is no such setting (did you mean 'always_ask'?)",
        ),
        ({"approval": {"always_ask": "f"}}, "always_ask has to be a list, not a text"),
        ({"approval": {"always_ask": [7]}}, "always_ask[0] has to be a text"),
        (
            {"approval": {"always_allow": [{"tool": ["f"]}]}},
            "always_allow[0].tool: there is no such setting (did you mean 'tools'?)",
        ),
        (
            {
                "approval": {
                    "always_allow": [
                        {"tools": ["f"], "rules": ["agenttool.rules.paths.write_insid"]}
                    ]
                }
            },
            "did you mean 'agenttool.rules.paths.write_inside'?",
        ),
        ({"budgets": {"session": {"call": 0}}}, "did you mean 'calls'?"),
        ({"budgets": {"session": {"calls": "5"}}}, "has to be a number, not a text"),
        ({"effects": {"agenttool.rules.paths.read_insid": "deny"}}, "there is no rule"),
        (
            {"effects": {"agenttool.rules.paths.read_outside": "denied"}},
            "can't be 'denied' (did you mean 'deny'?)",
        ),
        ({"effects": {"agenttool.rules.declared.access_payments": "deny"}}, "access_payment'?"),
        ({"network": {"credentials_in_url": "redacted"}}, "did you mean 'redact'?"),
        ({"network": {"listed_only": "yes"}}, "true or false"),
        ({"network": {"allowed_hosts": {"a": True}}}, "has to be a list"),
        ({"roles": {"definitions": {"dev": {"tool": ["*"]}}}}, "did you mean 'tools'?"),
        (
            {"roles": {"definitions": {"dev": {"waives": ["agenttool.rules.path.write_inside"]}}}},
            "there is no rule",
        ),
        ({"presets": {"strict": {"roles": {"enforced": False}}}}, "did you mean 'enforce'?"),
        ({"shell": {"sandboxes": {"checkout": True}}}, "counts for nothing"),
        ({"presets": {"mine": {"shell": {"sandboxes": {}}}}}, "counts for nothing"),
    ],
)
def test_what_is_misspelt_or_of_another_type_is_told(settings: Any, told: str) -> None:
    assert any(told in problem for problem in problems(settings))
    with pytest.raises(ConfigurationError) as refused:
        Governor(policy_data={"agenttool": {"settings": settings}})
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"settings": {"preset": "strict"}}, "belongs into data.agenttool.settings"),
        ({"preset": "strict"}, "belongs into data.agenttool.settings.preset"),
        ({"agentool": {"settings": {}}}, "did you mean 'agenttool'?"),
        ({"agenttool": {"setings": {"preset": "strict"}}}, "did you mean 'settings'?"),
        ({"agenttool": {"preset": "strict"}}, "belongs into data.agenttool.settings.preset"),
    ],
)
def test_settings_where_nothing_reads_them_are_told(data: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Governor(policy_data=data)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        DEFAULTS["presets"]["strict"],
        {name: value for name, value in DEFAULTS.items() if name not in {"permission"}},
        {"modes": {"observe": None}, "network": {"ports": None}, "effects": {"acme.rule": "deny"}},
        {"preset": "mine", "presets": {"mine": {"budgets": {"asks": 3}}}},
        {"effects": {"agenttool.rules.paths.unproven": "deny", "agenttool.custom.deny": "deny"}},
        {
            "redaction": {
                "tools": {"crm.*": {"redact_result": ["/a"], "persistence": "never_persist"}}
            }
        },
    ],
)
def test_what_the_rules_read_is_accepted(settings: Any) -> None:
    assert problems(settings) == []
    jsonschema_rs.Draft7Validator(settings_schema(rule_names(STOCK.modules))).validate(settings)


@pytest.mark.parametrize(
    ("examples", "told"),
    [
        (
            {
                "match": ["git push", "cd x && git push origin"],
                "not_match": ["git pull", "echo git push"],
            },
            None,
        ),
        ({"match": ["git pull"]}, "match: 'git pull' has no command that begins so"),
        (
            {"not_match": ["ls && git push -f"]},
            "not_match: 'ls && git push -f' has a command that begins so",
        ),
        ({"mtach": []}, "did you mean 'match'?"),
    ],
)
def test_examples_of_listed_commands_are_checked(
    examples: dict[str, Any], told: str | None
) -> None:
    for settings in (
        {"shell": {"commands": {"deny": [{"words": ["git", "push"], **examples}]}}},
        {
            "presets": {
                "mine": {"shell": {"commands": {"allow": [{"words": ["git", "push"], **examples}]}}}
            }
        },
    ):
        found = problems(settings)
        assert (found == []) if told is None else any(told in one for one in found)


@pytest.mark.parametrize(
    ("kind", "examples", "told"),
    [
        (
            "deny",
            {
                "match": ["timeout 5 git -C . push", "sh -c 'nice git push'"],
                "not_match": ["git log push"],
            },
            None,
        ),
        ("ask", {"match": ["command git push"]}, None),
        ("ask", {"not_match": ["timeout 5 git push"]}, "has a command that begins so"),
        (
            "allow",
            {
                "match": ["CI=1 timeout 5 git push"],
                "not_match": ["PATH=. git push", "uv run git push"],
            },
            None,
        ),
        ("allow", {"match": ["git -C . push"]}, "has no command that begins so"),
    ],
)
def test_examples_are_judged_as_their_list_is(
    kind: str, examples: dict[str, Any], told: str | None
) -> None:
    found = problems({"shell": {"commands": {kind: [{"words": ["git", "push"], **examples}]}}})
    assert (found == []) if told is None else any(told in one for one in found)


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize(
    "words",
    [
        ["rm"],
        ["git", "push"],
        ["git"],
        ["git", "--no-pager"],
        ["./deploy.sh"],
        ["cd"],
        ["timeout", "5"],
        ["a b"],
    ],
)
def test_each_restricted_command_is_tried_behind_a_wrapper(kind: str, words: list[str]) -> None:
    assert problems({"shell": {"commands": {kind: [words]}}}) == []


def test_an_entry_that_a_wrapper_would_pass_by_is_refused() -> None:
    long = ["prog", *(f"x{number}" for number in range(20))]
    assert any(
        "would run past this entry" in one
        for one in problems({"shell": {"commands": {"deny": [long]}}})
    )
    assert problems({"shell": {"commands": {"allow": [long]}}}) == []


def test_data_of_ones_own_is_left_alone() -> None:
    assert settings_problems(overlay(STOCK, data={"acme": {"freeze": True}})) == []


def test_the_schema_names_every_default() -> None:
    properties = settings_schema(())["properties"]
    assert set(properties) == set(DEFAULTS) - {"permission"} | {"preset", "modes", "presets"}
    for concern, schema in properties.items():
        if "properties" in schema:
            assert set(schema["properties"]) == set(DEFAULTS[concern]), concern


def test_every_rule_that_the_presets_name_exists() -> None:
    known = rule_names(STOCK.modules)
    for preset in DEFAULTS["presets"].values():
        assert set(preset.get("effects", {})) <= known


def test_the_committed_schema_is_current() -> None:
    written = json.loads(
        (Path(default_bundle_path()).parent / "docs/policy-settings.schema.json").read_text("utf-8")
    )
    assert written == settings_schema(rule_names(STOCK.modules))


def test_an_environments_preset_holds_beside_code_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTTOOL_POLICY_PRESET", "strict")
    governor = Governor(
        policy_data={"agenttool": {"settings": {"network": {"allowed_hosts": ["a.example"]}}}}
    )
    read = governor.govern(lambda x: x, name="f", read_only=True, access_kinds=[])
    decision = read.tool.check(x=1).decision
    assert decision is not None
    # which strict alone enforces
    assert decision.reason.rule_ref == "agenttool.rules.roles.not_granted"


def test_settings_that_an_opa_never_sees_are_told_where_to_go() -> None:
    with pytest.raises(
        ConfigurationError, match=r"policy_preset can't be used with an OPA server: .*policy push"
    ):
        Governor(policy_engine="opa_server", opa_url="http://127.0.0.1:9", policy_preset="strict")
