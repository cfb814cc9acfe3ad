"""A misspelt fact of a tool is refused, with the nearest that exists; words that the standard
leaves open are told.
"""

from __future__ import annotations

import inspect
import logging
from typing import Any, get_args, get_type_hints

import pytest

from agenttool_otel import ConfigurationError, govern
from agenttool_otel.catalog.options import GROUPS, GovernOptions
from agenttool_otel.catalog.vocabulary import _hints
from agenttool_otel.names import (
    InterruptBehavior,
    Lifecycle,
    Ownership,
    PersistenceStrategy,
    RiskLevel,
)
from agenttool_otel.testing import StaticEngine, capture


def pay(pin: str, to: str = "", *, note: str = "") -> str:
    """Pay."""
    return "paid"


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({"readonly": True}, "'readonly' (did you mean 'read_only'?)"),
        ({"persistence": "never-persist"}, "did you mean 'never_persist'?"),
        ({"mutation_policy": "forbidden"}, "did you mean 'forbid'?"),
        ({"lifecycle": "x"}, "lifecycle can't be 'x'"),
        ({"risk_level": "hi"}, "did you mean 'high'?"),
        ({"ownership": "x"}, "managed, mcp, custom"),
        ({"interrupt_behavior": "stop"}, "cancel, block"),
        ({"retry": {"max_attempt": 3}}, "did you mean 'max_attempts'?"),
        ({"retry": {"retry_on": ["ratelimited"]}}, "did you mean 'rate_limited'?"),
        ({"retry": {"retry_on": "timeout"}}, "retry_on=['timeout']"),
        ({"retry": 3}, "dict"),
        ({"sensitive_fields": ["pinn"]}, "'pinn' (did you mean 'pin'?)"),
        ({"sensitive_fields": ["/pinn/x"]}, "did you mean 'pin'?"),
        ({"sensitive_fields": "pin"}, "sensitive_fields=['pin']"),
        ({"internal_only_fields": ["notes"]}, "did you mean 'note'?"),
        ({"access_kinds": "file_read"}, "access_kinds=['file_read']"),
        ({"path_args": "to"}, "path_args=['to']"),
        ({"aliases": [1]}, "list of texts"),
        ({"data_sensitivity": "secrets"}, "did you mean 'secret'?"),
        ({"read_only": "yes"}, "read_only can't be 'yes'"),
        (
            {"read_only": "classifier:command_readonly"},
            "did you mean 'classifier:command_read_only'?",
        ),
        ({"destructive": 1}, "destructive has to be"),
        ({"approval_required": "yes"}, "True or False"),
        ({"timeout_ms": "abc"}, "whole number"),
        ({"max_inline_chars": -1}, "whole number"),
        ({"examples": "x"}, "list of dicts"),
        ({"title": 5}, "title has to be a text"),
    ],
)
def test_what_is_misspelt_is_refused_with_what_was_meant(stated: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        govern(pay, **stated)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "stated",
    [
        {"tool_kind": "fil"},
        {"access_kinds": ["read"]},
        {"write_effects": ["local_write"]},
        {"network_scope": "x"},
        {"content_types": ["poem"]},
        {"execution_kind": "x"},
    ],
)
def test_a_word_that_the_standard_leaves_open_is_told_in_the_log(
    stated: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "agenttool_otel"):
        govern(pay, **stated)
    [record] = caplog.records
    word = next(iter(stated.values()))
    assert repr(word if isinstance(word, str) else word[0]) in record.getMessage()


@pytest.mark.parametrize("stated", [{"access_kinds": ["read"]}, {"write_effects": ["local_write"]}])
def test_the_stock_policy_asks_about_an_unknown_word(stated: dict[str, Any]) -> None:
    with capture() as captured:
        tool = captured.governor.govern(pay, **{"read_only": True, **stated})
        assert tool.tool.check(pin="1").behavior == "ask"


def test_every_word_of_a_closed_vocabulary_can_be_stated() -> None:
    for name, words in (
        ("lifecycle", Lifecycle),
        ("ownership", Ownership),
        ("risk_level", RiskLevel),
        ("persistence", PersistenceStrategy),
        ("interrupt_behavior", InterruptBehavior),
    ):
        assert get_args(_hints()[name]) == tuple(str(word) for word in words), name
        for word in words:
            govern(pay, **{name: word})  # an enumeration's member and its text are the same
            govern(pay, **{name: str(word)})


def test_every_keyword_is_described() -> None:
    classes = get_type_hints(GovernOptions)
    facts_of = {classes[group]: facts for group, facts in GROUPS.items()}
    for options, names in {GovernOptions: GROUPS, **facts_of}.items():
        # Python 3.13 takes the indentation away itself
        described = inspect.cleandoc(options.__doc__ or "")
        for name in names:
            assert f"\n    {name}: " in described, name


def test_arguments_that_no_schema_lists_may_be_sensitive() -> None:
    def anything(**rest: str) -> str:
        return ""

    def nested(who: dict[str, Any], cards: list[dict[str, str]]) -> str:
        return ""

    govern(anything, sensitive_fields=["pin"])
    govern(nested, sensitive_fields=["/who/pin", "cards[].number", "cards.0.number"])
    with capture(policy=StaticEngine("allow"), capture="SPAN_AND_EVENT") as captured:
        captured.governor.govern(pay, sensitive_fields=["pin"])("tango77")
        assert "tango77" not in str(captured.span.attributes)
