"""What the author of a tool states of its risk reaches the person who is asked."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from agenttool_otel.approvals.console import request_panel
from agenttool_otel.approvals.display import request_facts
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
FACTS: dict[str, Any] = {
    "approval_reason": f"It leaves the house with {TOKEN}.",
    "risk_level": "high",
    "access_kinds": ["external_send"],
    "write_effects": ["remote_mutation"],
    "data_sensitivity": "confidential",
}


def asked(answer: Any = "ask", **facts: Any) -> ApprovalRequest:
    approver = FixedApprover(None)
    with capture(policy=StaticEngine(answer), approver=approver) as captured:
        captured.governor.govern(lambda to: to, name="send", **facts).tool.invoke(to="bob")
    return approver.asked[0]


@pytest.mark.covers("profile-for-reviewers")
def test_a_person_is_shown_the_declared_reason_and_the_risk() -> None:
    shown = dict(request_facts(asked(**FACTS)))
    assert shown["Declared reason"] == "It leaves the house with [redacted:github_token]."
    assert (shown["Risk"], shown["Accesses"]) == ("high", "external_send")
    assert (shown["Effects"], shown["Data"]) == ("remote_mutation", "confidential")


def test_a_terminal_shows_the_declared_reason_without_secrets() -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(request_panel(asked(**FACTS)))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "It leaves the house" in text
    assert TOKEN not in text


def test_a_stored_request_has_the_redacted_declared_reason() -> None:
    stored = asked(**FACTS).model_dump_json()
    assert "It leaves the house" in stored
    assert TOKEN not in stored


def test_a_declared_reason_stands_in_for_that_of_a_policy() -> None:
    request = asked({**decision("ask"), "reason": {"type": "rule", "rule_ref": "r"}}, **FACTS)
    assert request.message == "It leaves the house with [redacted:github_token]."
    assert "Declared reason" not in dict(request_facts(request))


def test_nothing_is_shown_of_what_nobody_stated() -> None:
    shown = dict(request_facts(asked()))
    assert shown.keys().isdisjoint({"Declared reason", "Risk", "Accesses", "Effects", "Data"})
