"""``AGENTTOOL_GUARDRAIL_NAMES``: a decision in the words of OpenTelemetry's proposal for guardrails."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from agenttool_otel import GovernedOutcome
from agenttool_otel.context.settings import Settings
from agenttool_otel.govern.opening import telemetry_settings
from agenttool_otel.policy.engines.static import StaticEngine, decision
from agenttool_otel.testing import capture

PREFIX = "gen_ai.guardrail."


def words_of(answer: Any, **options: Any) -> dict[str, Any]:
    """Return what a call's span has of the proposal, and the call's id."""
    with capture(policy=StaticEngine(answer), **options) as captured:

        @captured.governor.govern
        def pay(to: str) -> str:
            """Pay."""
            return to

        with suppress(GovernedOutcome):
            pay("a")
        found = dict(captured.span.attributes or {})
    words = {
        name.removeprefix(PREFIX): value for name, value in found.items() if name.startswith(PREFIX)
    }
    assert (
        words.get("target.id", found["agenttool.invocation.id"]) == found["agenttool.invocation.id"]
    )
    return words


def test_spans_have_none_of_them_where_nothing_is_set() -> None:
    assert words_of(decision("deny")) == {}


@pytest.mark.parametrize(
    ("answer", "verdict", "action"),
    [
        (decision("allow"), "allow", "allow"),
        (decision("allow", updated_input={"to": "b"}), "modify", "modify"),
        (decision("ask"), "escalate", "escalate"),
        (decision("deny"), "deny", "block"),
    ],
)
def test_a_decision_is_a_verdict_and_an_action(answer: Any, verdict: str, action: str) -> None:
    words = words_of(answer, guardrail_names=True)
    assert (words["verdict.type"], words["action.type"]) == (verdict, action)


def test_a_call_that_no_layer_decides_is_blocked() -> None:
    words = words_of(decision("passthrough"), guardrail_names=True)
    assert (words["verdict.type"], words["action.type"]) == ("deny", "block")


def test_in_shadow_mode_the_verdict_is_what_would_have_been() -> None:
    words = words_of(decision("deny"), guardrail_names=True, policy_mode="shadow")
    assert (words["verdict.type"], words["action.type"]) == ("deny", "allow")


def test_the_rule_and_what_it_looked_at_are_there() -> None:
    words = words_of(decision("deny"), guardrail_names=True)
    assert words["component.name"] == "agenttool"
    assert (words["target.type"], words["target.subtype"]) == ("input", "tool_call")
    assert words["verdict.reason"] == "rule"
    assert words["security.policy.rule.id"] == "test.deny"
    assert words["security.policy.id"]


def test_the_variable_turns_them_on() -> None:
    stated = Settings.load({"AGENTTOOL_GUARDRAIL_NAMES": "on"})
    assert telemetry_settings(stated).guardrail_names
