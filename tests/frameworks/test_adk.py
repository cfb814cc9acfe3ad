"""Governed functions as tools of Google's ADK."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed: tools/frameworks.py")

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ToolDenied
from agenttool_otel.errors import GovernedOutcome
from agenttool_otel.records import ToolResult
from agenttool_otel.testing import Capture, StaticEngine, capture

models = importlib.import_module("google.adk.models")
types = importlib.import_module("google.genai.types")
FunctionTool = importlib.import_module("google.adk.tools").FunctionTool

LOOK_UP = types.Part(function_call=types.FunctionCall(name="look_up", args={"word": "tree"}))


def look_up(word: str) -> str:
    """Look a word up."""
    return f"found {word}"


def governed(captured: Capture) -> Any:
    return FunctionTool(captured.governor.govern(look_up, read_only=True))


def call(tool: Any) -> Any:
    # a tool context is only looked at by functions that take one
    return asyncio.run(tool.run_async(args={"word": "tree"}, tool_context=None))


def test_an_allowed_call_runs_in_a_span() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert call(governed(captured)) == "found tree"
        assert captured.span.name == "execute_tool look_up"


def test_a_denied_call_raises_the_denial() -> None:
    with capture(policy=StaticEngine("deny")) as captured, pytest.raises(ToolDenied):
        call(governed(captured))


def test_a_model_is_shown_the_same_schema() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        shown = governed(captured)._get_declaration()
    assert shown == FunctionTool(look_up)._get_declaration()


def test_an_ask_waits_in_the_approval_store() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        tool = governed(captured)
        with pytest.raises(ApprovalRequired) as asked:
            call(tool)
        yes = ApprovalAnswer(approved=True, answered_by="user:kit")
        captured.governor.approvals.store.answer(asked.value.request_id, yes)
        result = captured.governor.resume(asked.value.invocation_id)
    assert isinstance(result, ToolResult)
    assert result.value == "found tree"


class Scripted(models.BaseLlm):
    """Calls ``look_up``, and ends when it has the response."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        responses = [
            part.function_response
            for content in llm_request.contents
            for part in content.parts
            if part.function_response
        ]
        part = types.Part(text=str(responses[-1].response)) if responses else LOOK_UP
        yield models.LlmResponse(content=types.Content(role="model", parts=[part]))


async def texts_of(agent: Any) -> list[str]:
    runner = importlib.import_module("google.adk.runners").InMemoryRunner(agent, app_name="words")
    session = await runner.session_service.create_session(app_name="words", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="go")])
    texts: list[str] = []
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        texts.extend(part.text for part in event.content.parts if part.text)
    return texts


async def refuse(tool: Any, args: Any, tool_context: Any, error: Exception) -> Any:
    return {"error": str(error)} if isinstance(error, GovernedOutcome) else None


@pytest.mark.parametrize(("behavior", "answer"), [("allow", "found tree"), ("deny", "denied")])
def test_an_agents_call_is_decided(behavior: str, answer: str) -> None:
    with capture(policy=StaticEngine(behavior)) as captured:
        agent = importlib.import_module("google.adk.agents").Agent(
            name="reader",
            model=Scripted(model="scripted"),
            tools=[governed(captured)],
            on_tool_error_callback=refuse,
        )
        texts = asyncio.run(texts_of(agent))
        assert [span.name for span in captured.spans if "agenttool.tool.id" in span.attributes]
    assert answer in texts[-1]
