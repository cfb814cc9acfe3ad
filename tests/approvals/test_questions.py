"""What a person is asked: the value at stake in clear, its source and the user's words; secrets stay
hidden, and telemetry gets none of it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agenttool_otel import ApprovalAnswer, ApprovalRequired, agent_context
from agenttool_otel.approvals.console import request_panel
from agenttool_otel.approvals.display import describe_suggestion, request_details, request_facts
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.redaction import Redactor
from agenttool_otel.testing import Capture, capture

ADDRESS = "fred.miller" + "9246@gmail.com"
WORDS = "Please invite Dora, her address is on her page."
SECRET = "ghp_" + "CoIF7uxugFdGh5kR2mWq8ZtLbNcVaS3eYj1P"


@contextmanager
def workspace(
    store: ApprovalStore | None = None, preset: str = "assistant", **options: Any
) -> Iterator[tuple[Capture, Any]]:
    """Give a tool that invites people, in a session that has read a page of outsiders."""
    if store is not None:
        options["approvals"] = store
    with capture(policy_preset=preset, **options) as captured:
        governor = captured.governor

        @governor.govern(namespace="web", read_only=True, open_world=True, access_kinds=[])
        def get_page(url: str) -> str:
            return f"Dora writes to {ADDRESS}"

        @governor.govern(
            namespace="team",
            read_only=False,
            destructive=False,
            open_world=True,
            access_kinds=["external_send"],
            write_effects=["remote_mutation"],
        )
        def invite_user(email: str, body: str = "") -> str:
            return "invited"

        with agent_context(actor="agent:x", session_id="s", user_text=WORDS, interactive=True):
            get_page(url="dora.example.net")
            yield captured, invite_user


def asked(store: ApprovalStore, **arguments: Any) -> ApprovalRequest:
    """Return the request about an invitation."""
    with workspace(store) as (_, invite), pytest.raises(ApprovalRequired):
        invite(**arguments)
    [request] = store.list()
    return request


@pytest.fixture
def store(tmp_path: Path) -> ApprovalStore:
    return ApprovalStore(tmp_path / "approvals.db")


def test_the_question_names_value_and_source(store: ApprovalStore) -> None:
    request = asked(store, email=ADDRESS)
    assert request.question == (
        f'invite_user: email is "{ADDRESS}", which stands only in the output of web.get_page '
        "(dora.example.net). Reject it unless you know that this is meant."
    )
    assert request.user_words == WORDS


def test_console_shows_question_and_words_first(store: ApprovalStore) -> None:
    request = asked(store, email=ADDRESS)
    assert [label for label, _ in request_facts(request)][:2] == ["Question", "The user wrote"]
    printed = io.StringIO()
    Console(width=300, file=printed).print(request_panel(request))
    assert ADDRESS in printed.getvalue()
    assert WORDS in printed.getvalue()


def test_rules_and_ids_stand_behind_what_is_asked(store: ApprovalStore) -> None:
    request = asked(store, email=ADDRESS)
    shown, details = dict(request_facts(request)), dict(request_details(request))
    assert "agenttool.rules.dataflow" in details["Rule"]
    assert not shown.keys() & details.keys()


def test_a_secret_is_hidden_from_the_person_too(store: ApprovalStore) -> None:
    request = asked(store, email=ADDRESS, body=f"use {SECRET}")
    shown = request.model_dump_json()
    assert ADDRESS in shown
    assert SECRET not in shown


def test_telemetry_gets_neither_value_nor_words(store: ApprovalStore) -> None:
    with workspace(store) as (captured, invite), pytest.raises(ApprovalRequired):
        invite(email=ADDRESS)
    recorded = "".join(span.to_json() for span in captured.spans) + json.dumps(captured.records)
    assert ADDRESS not in recorded
    assert "her address is on her page" not in recorded


def test_a_redactor_of_the_hosts_own_decides(store: ApprovalStore) -> None:
    class Strict(Redactor):
        """Finds more than settings can state."""

    with (
        workspace(store, redactor=Strict()) as (_, invite),
        pytest.raises(ApprovalRequired),
    ):
        invite(email=ADDRESS)
    [request] = store.list()
    assert ADDRESS not in request.model_dump_json()


def test_a_counterparty_may_be_remembered(store: ApprovalStore) -> None:
    request = asked(store, email=ADDRESS, body="Hello Dora")
    offers = [offer for offer in request.suggested_updates if isinstance(offer["args"], dict)]
    assert [offer["scope"] for offer in offers] == ["session", "actor"]
    assert describe_suggestion(offers[1]) == (
        f'Also email = "{ADDRESS}" with any body for this actor, for 1 h'
    )


@pytest.mark.parametrize(("address", "times"), [(ADDRESS, 1), ("eve@evil.example", 2)])
def test_what_is_remembered_is_that_counterparty(address: str, times: int) -> None:
    seen: list[ApprovalRequest] = []

    def answer(request: ApprovalRequest) -> ApprovalAnswer:
        seen.append(request)
        kinds = [isinstance(offer["args"], dict) for offer in request.suggested_updates]
        return ApprovalAnswer(approved=True, answered_by="user:ann", remember=kinds.index(True))

    with workspace(preset="balanced", approver=answer) as (_, invite):
        invite(email=ADDRESS, body="Hello")
        invite(email=address, body="Another text")
    assert len(seen) == times


def test_no_counterparty_where_a_secret_decides(store: ApprovalStore) -> None:
    request = asked(store, email=SECRET, body="Hello")
    assert not any(isinstance(offer["args"], dict) for offer in request.suggested_updates)


def test_balanced_says_what_would_answer_it(store: ApprovalStore) -> None:
    with workspace(store, "balanced") as (_, invite), pytest.raises(ApprovalRequired):
        invite(email="dora@example.org", body="Hello")
    [request] = store.list()
    assert "preset assistant" in request.message or "result_trust" in request.message
