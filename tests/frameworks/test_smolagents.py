"""Governed functions as tools of smolagents."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("smolagents", reason="smolagents is not installed: tools/frameworks.py")

import smolagents

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ToolDenied
from agenttool_otel.records import ToolResult
from agenttool_otel.testing import Capture, StaticEngine, capture


def governed(captured: Capture) -> Any:
    @smolagents.tool
    @captured.governor.govern(read_only=True)
    def look_up(word: str) -> str:
        """Look a word up.

        Args:
            word: the word.
        """
        return f"found {word}"

    return look_up


def test_an_allowed_call_runs_in_a_span() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert governed(captured)(word="tree") == "found tree"
        assert captured.span.name == "execute_tool look_up"


def test_a_denied_call_raises_the_denial() -> None:
    with capture(policy=StaticEngine("deny")) as captured, pytest.raises(ToolDenied):
        governed(captured)(word="tree")


def test_a_model_is_shown_the_same_schema() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert governed(captured).inputs == {"word": {"type": "string", "description": "the word."}}


def test_an_ask_waits_in_the_approval_store() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        tool = governed(captured)
        with pytest.raises(ApprovalRequired) as asked:
            tool(word="tree")
        yes = ApprovalAnswer(approved=True, answered_by="user:kit")
        captured.governor.approvals.store.answer(asked.value.request_id, yes)
        result = captured.governor.resume(asked.value.invocation_id)
    assert isinstance(result, ToolResult)
    assert result.value == "found tree"
