"""Facts of a tool may be stated in groups, each named after the record that holds them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agenttool_otel import ConfigurationError, Governor, govern
from agenttool_otel.catalog.groups import flat_options
from agenttool_otel.catalog.options import GROUPS, GovernOptions
from agenttool_otel.catalog.vocabulary import TABLES
from agenttool_otel.integrations.facts import facts_in_metadata, options_for


def pay(pin: str, to: str = "") -> str:
    """Pay."""
    return "paid"


FLAT: dict[str, Any] = {
    "namespace": "shop",
    "read_only": False,
    "access_kinds": ["payment"],
    "approval_required": True,
    "sensitive_fields": ["pin"],
    "max_inline_chars": 10,
    "timeout_ms": 500,
}
GROUPED: dict[str, Any] = {
    "declaration": {"namespace": "shop"},
    "interface": {"read_only": False},
    "permission": {"access_kinds": ["payment"], "approval_required": True},
    "input": {"sensitive_fields": ["pin"]},
    "output": {"max_inline_chars": 10},
    "execution": {"timeout_ms": 500},
}


def test_grouped_facts_declare_what_flat_ones_do() -> None:
    assert govern(pay, **GROUPED).tool.spec.digest == govern(pay, **FLAT).tool.spec.digest


def test_a_decorator_takes_groups() -> None:
    @govern(permission={"risk_level": "critical"})
    def transfer() -> None:
        """Transfer."""

    assert transfer.tool.spec.permission.risk_level == "critical"


def test_groups_and_flat_facts_join() -> None:
    tool = govern(pay, risk_level="high", permission={"access_kinds": ["payment"]}).tool
    assert tool.spec.permission.risk_level == "high"
    assert tool.spec.permission.access_kinds == ["payment"]


def test_the_same_value_twice_is_one_fact() -> None:
    assert flat_options({"risk_level": "low", "permission": {"risk_level": "low"}}) == {
        "risk_level": "low"
    }


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (
            {"risk_level": "low", "permission": {"risk_level": "high"}},
            "risk_level is stated twice, alone and in permission, with different values",
        ),
        (
            {"permission": {"risk_levle": "low"}},
            "permission has no option 'risk_levle' (did you mean 'risk_level'?)",
        ),
        (
            {"permission": {"timeout_ms": 5}},
            "permission has no option 'timeout_ms' (it belongs to 'execution')",
        ),
        ({"permission": ["risk_level"]}, "permission has to be a dict, not list"),
        ({"permision": {}}, "govern has no option 'permision' (did you mean 'permission'?)"),
        ({"permission": {"risk_level": "hi"}}, "risk_level can't be 'hi' (did you mean 'high'?)"),
    ],
)
def test_a_group_that_cannot_be_used_is_refused(stated: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        govern(pay, **stated)
    assert message in str(refused.value)


def test_none_in_a_group_states_nothing() -> None:
    assert flat_options({"risk_level": "low", "permission": {"risk_level": None}}) == {
        "risk_level": "low"
    }


def test_a_catalog_takes_groups() -> None:
    tool = Governor().catalog.add(pay, permission={"risk_level": "critical"})
    assert tool.tool.spec.permission.risk_level == "critical"


def test_facts_by_tool_name_take_groups() -> None:
    facts: dict[str, GovernOptions] = {"pay*": {"permission": {"risk_level": "high"}}}
    assert options_for(facts, "pay_all") == {"risk_level": "high"}


def test_metadata_takes_groups() -> None:
    metadata = {"readOnlyHint": True, "agenttool": {"interface": {"read_only": False}}}
    assert facts_in_metadata(SimpleNamespace(metadata=metadata)) == {"read_only": False}


def test_every_fact_is_in_one_group() -> None:
    names = [name for facts in GROUPS.values() for name in facts]
    assert len(names) == len(set(names))
    assert {*names, *GROUPS} == set(GovernOptions.__annotations__)


@pytest.mark.parametrize(
    ("group", "record"),
    [("permission", "tool_permission_profile"), ("execution", "tool_execution_profile")],
)
def test_a_group_holds_what_its_record_takes(group: str, record: str) -> None:
    # the standard has the sandbox in three records, which state one fact
    stated = set(TABLES["stated"][record]) - {"sandbox_profile"}
    assert stated <= GROUPS[group].keys()
