"""Why a call was asked about: what is open comes first, with what would answer it; what is answered
names what answered it.
"""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel import ApprovalRequired, agent_context
from agenttool_otel.approvals.display import request_details, request_facts
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.names import Attr
from agenttool_otel.testing import Capture, capture

RISK = "agenttool.rules.approval.risk"
UNSTATED = "agenttool.rules.declared.writes"
SETTINGS: dict[str, Any] = {"agenttool": {"settings": {"effects": {UNSTATED: "allow"}}}}


def asked() -> tuple[ApprovalRequest, Capture]:
    """Let a write of high risk be asked about, where the settings answer the question of its write."""
    with capture(policy_data=SETTINGS) as captured:
        save = captured.governor.govern(
            lambda text: text,
            name="save",
            risk_level="high",
            read_only=False,
            access_kinds=["file_write"],
            write_effects=["local_draft"],
        )
        with (
            agent_context(actor="agent:a", session_id="s", roots=["."]),
            pytest.raises(ApprovalRequired) as waits,
        ):
            save("x")
        stored = captured.governor.approvals.waiting(waits.value.invocation_id)
    return stored.request, captured


def test_the_request_has_what_is_open_and_what_is_answered() -> None:
    request, _ = asked()
    assert request.open_questions == [RISK]
    assert request.answered_questions == [{"question": UNSTATED, "by": "settings.effects"}]


def test_a_person_is_shown_the_open_question_first() -> None:
    request, _ = asked()
    facts = request_facts(request)
    assert facts[0][0] == "Open question"
    assert facts[0][1].startswith(f"{RISK}; would be answered by: ")
    assert ("Answered", f"{UNSTATED}, by settings.effects") in request_details(request)
    assert "Rule too" not in dict(facts)


def test_the_trace_names_the_open_question() -> None:
    _, captured = asked()
    events = [event for event in captured.span.events if event.attributes]
    found = [
        event.attributes[Attr.PERMISSION_OPEN_QUESTIONS]
        for event in events
        if Attr.PERMISSION_OPEN_QUESTIONS in (event.attributes or {})
    ]
    assert found == [(RISK,)]
