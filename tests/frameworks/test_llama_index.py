"""Governed functions as tools of LlamaIndex."""

from __future__ import annotations

import asyncio
import importlib
import re
from pathlib import Path

import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from agenttool_otel import ApprovalAnswer, ApprovalRequired
from agenttool_otel.records import ToolResult
from agenttool_otel.testing import StaticEngine, capture

FunctionTool = importlib.import_module("llama_index.core.tools").FunctionTool


def look_up(word: str) -> str:
    """Look a word up."""
    return f"found {word}"


async def look_up_later(word: str) -> str:
    """Look a word up."""
    return f"found {word}"


def test_an_allowed_call_runs_in_a_span() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        tool = FunctionTool.from_defaults(captured.governor.govern(look_up, read_only=True))
        assert tool.call(word="tree").content == "found tree"
        assert captured.span.name == "execute_tool look_up"


def test_an_asynchronous_call_is_decided() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        function = captured.governor.govern(look_up_later, read_only=True)
        tool = FunctionTool.from_defaults(async_fn=function)
        assert asyncio.run(tool.acall(word="tree")).content == "found tree"
        assert captured.span.name == "execute_tool look_up_later"


def test_a_denied_call_raises_the_denial() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        tool = FunctionTool.from_defaults(captured.governor.govern(look_up, read_only=True))
        with pytest.raises(PermissionError):
            tool.call(word="tree")


def test_a_model_is_shown_the_same_schema() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governed = FunctionTool.from_defaults(captured.governor.govern(look_up, read_only=True))
    plain = FunctionTool.from_defaults(look_up)
    assert governed.metadata.get_parameters_dict() == plain.metadata.get_parameters_dict()


def test_an_ask_waits_in_the_approval_store() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        tool = FunctionTool.from_defaults(captured.governor.govern(look_up, read_only=True))
        with pytest.raises(ApprovalRequired) as asked:
            tool.call(word="tree")
        yes = ApprovalAnswer(approved=True, answered_by="user:kit")
        captured.governor.approvals.store.answer(asked.value.request_id, yes)
        result = captured.governor.resume(asked.value.invocation_id)
    assert isinstance(result, ToolResult)
    assert result.value == "found tree"


def test_the_pages_example_runs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "doors.md").read_text("utf-8")
    section = page.split("## Functions in other frameworks")[1].split("\n## ")[0]
    (block,) = re.findall(r"```py\n(.*?)```", section, re.DOTALL)
    exec(block, {})
