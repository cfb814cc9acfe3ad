"""A setting that names a tool which there is not says so, because a slip in a list that restricts
is silent else.
"""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel import Governor, agent_context

FACTS: dict[str, Any] = {
    "read_only": True,
    "access_kinds": [],
    "write_effects": ["none"],
    "risk_level": "low",
}

LISTS = {
    "asked": {"approval": {"always_ask": ["github.get_isue"]}},
    "not remembered": {"approval": {"never_remember": {"tools": ["github.get_isue"]}}},
    "budgets": {"budgets": {"tools": {"github.get_isue": 3}}},
}


def warnings(caplog: pytest.LogCaptureFixture, text: str = "get_isue") -> list[str]:
    return [record.getMessage() for record in caplog.records if text in record.getMessage()]


def governed(settings: dict[str, Any], **options: Any) -> tuple[Governor, Any]:
    governor = Governor(policy_data={"agenttool": {"settings": settings}}, **options)
    return governor, governor.govern(get_issue, namespace="github", **FACTS)


def get_issue(number: int) -> str:
    return "text"


def called(tool: Any, times: int = 1) -> None:
    with agent_context(actor="agent:x", session_id="s"):
        for _ in range(times):
            tool.tool.invoke(number=1)


@pytest.mark.parametrize("settings", LISTS.values(), ids=LISTS.keys())
def test_an_entry_that_fits_no_tool_is_named(
    settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    _, tool = governed(settings)
    called(tool)
    assert len(warnings(caplog)) == 1


def test_an_entry_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    _, tool = governed(LISTS["asked"])
    called(tool, 5)
    assert len(warnings(caplog)) == 1


def test_shadow_tools_are_a_list_of_tools_too(caplog: pytest.LogCaptureFixture) -> None:
    _, tool = governed({}, shadow_tools=("github.get_isue",))
    called(tool)
    assert len(warnings(caplog)) == 1


def test_an_entry_that_fits_a_tool_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    _, tool = governed({"approval": {"always_ask": ["github.get_*"]}})
    called(tool)
    assert warnings(caplog, "always_ask") == []


def test_tools_that_come_later_are_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    governor, tool = governed({"approval": {"always_ask": ["github.get_issue", "late.tool"]}})
    late = governor.govern(lambda: "x", name="tool", namespace="late", **FACTS)
    called(tool)
    assert late.tool.check().behavior == "ask"
    assert warnings(caplog, "late.tool") == []
