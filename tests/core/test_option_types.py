"""An option of the wrong type is refused when a Governor is made, and not by a denial of its first
call.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, ConfigurationError, Governor
from agenttool_otel.govern.option_types import _TYPES
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import FixedApprover, StaticEngine

APPROVER = FixedApprover(ApprovalAnswer(True, answered_by="user:u"))
CHECKED_ELSEWHERE = {"approver", "hooks"}


def options() -> list[str]:
    parameters = inspect.signature(Governor).parameters.values()
    return [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]


@pytest.mark.parametrize("name", options())
@pytest.mark.parametrize("value", [3, object(), True, [object()], (3,)])
def test_an_option_of_another_type_is_refused_at_once(name: str, value: Any) -> None:
    given: dict[str, Any] = {"policy": StaticEngine("ask"), name: value}
    with pytest.raises(ConfigurationError, match=name):
        Governor(**given)


def test_an_approver_is_no_store() -> None:
    for given in (APPROVER, [APPROVER]):
        with pytest.raises(ConfigurationError, match="approver"):
            Governor(policy=StaticEngine("ask"), approvals=given)  # type: ignore[arg-type]


def test_a_class_is_no_engine() -> None:
    with pytest.raises(ConfigurationError, match="the class StaticEngine"):
        Governor(policy=StaticEngine)  # type: ignore[arg-type]


def test_a_text_is_no_list_of_packages() -> None:
    with pytest.raises(ConfigurationError, match="shadow_packages"):
        Governor(shadow_packages="agenttool.rules.paths")


@pytest.mark.parametrize("name", ["sinks", "subscribers", "progress"])
def test_listeners_are_lists_of_what_listens(name: str) -> None:
    for value in (CallbackSink(print), [3], "x"):
        settings = TelemetrySettings(**{name: value})  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match=name):
            Governor(policy=StaticEngine("allow"), telemetry=settings)


def test_every_option_is_checked() -> None:
    assert _TYPES.keys() | CHECKED_ELSEWHERE == set(options())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy_timeout", "5"),
        ("policy_cache", True),
        ("resolve_dns", "false"),
        ("require_context", 1),
        ("approvals_url", 3),
        ("roots", 3),
        ("actor", ["agent:a"]),
    ],
)
def test_a_setting_of_another_type_is_refused_at_once(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        Governor(policy=StaticEngine("allow"), **{name: value})


def test_settings_take_what_they_took() -> None:
    governor = Governor(
        policy=StaticEngine("allow"), policy_timeout=5, roots=["/tmp"], policy_mode="enforce"
    )
    assert governor.settings.roots == ("/tmp",)


@pytest.mark.parametrize("errors", [{"a": 1}, {LookupError: "no_such_class"}, {3: "timeout"}])
def test_errors_are_mapped_to_classes_of_the_taxonomy(errors: Any) -> None:
    with pytest.raises(ConfigurationError, match="errors"):
        Governor(policy=StaticEngine("allow"), errors=errors)


@pytest.mark.parametrize("store", [3, "results", [object()]])
def test_a_store_of_results_is_one(store: Any) -> None:
    with pytest.raises(ConfigurationError, match="store"):
        ResultKeeper(store)
