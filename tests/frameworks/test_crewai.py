"""Governed functions as tools of CrewAI."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from pydantic import Field

pytest.importorskip("crewai", reason="crewai is not installed: tools/frameworks.py")

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ToolDenied
from agenttool_otel.records import ToolResult
from agenttool_otel.testing import Capture, StaticEngine, capture

crewai = importlib.import_module("crewai")
tool = importlib.import_module("crewai.tools").tool

ACTION = 'Thought: look it up\nAction: look_up\nAction Input: {"word": "tree"}'


@pytest.fixture(autouse=True)
def no_telemetry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING"):
        monkeypatch.setenv(name, "true")


def look_up(word: str) -> str:
    """Look a word up."""
    return f"found {word}"


def governed(captured: Capture) -> Any:
    return tool("look_up")(captured.governor.govern(look_up, read_only=True))


def test_an_allowed_call_runs_in_a_span() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert governed(captured).run(word="tree") == "found tree"
        assert captured.span.name == "execute_tool look_up"


def test_a_denied_call_raises_the_denial() -> None:
    with capture(policy=StaticEngine("deny")) as captured, pytest.raises(ToolDenied):
        governed(captured).run(word="tree")


def test_a_model_is_shown_the_same_schema() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        shown = governed(captured).args_schema.model_json_schema()
    assert shown == tool("look_up")(look_up).args_schema.model_json_schema()


def test_an_ask_waits_in_the_approval_store() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        with pytest.raises(ApprovalRequired) as asked:
            governed(captured).run(word="tree")
        yes = ApprovalAnswer(approved=True, answered_by="user:kit")
        captured.governor.approvals.store.answer(asked.value.request_id, yes)
        result = captured.governor.resume(asked.value.invocation_id)
    assert isinstance(result, ToolResult)
    assert result.value == "found tree"


class Scripted(crewai.BaseLLM):  # type: ignore[name-defined,misc]
    """Calls ``look_up`` once, and ends; keeps what it was given."""

    given: list[str] = Field(default_factory=list)

    def call(self, messages: Any, *args: Any, **options: Any) -> str:
        self.given.append(str(messages))
        return ACTION if len(self.given) == 1 else "Thought: done\nFinal Answer: done"

    def supports_function_calling(self) -> bool:
        return False


@pytest.mark.parametrize(("behavior", "answer"), [("allow", "found tree"), ("deny", "denied")])
def test_an_agents_call_is_decided(behavior: str, answer: str) -> None:
    with capture(policy=StaticEngine(behavior)) as captured:
        model = Scripted(model="scripted")
        agent = crewai.Agent(
            role="reader",
            goal="look words up",
            backstory="a reader",
            llm=model,
            tools=[governed(captured)],
            max_iter=3,
        )
        task = crewai.Task(description="What is a tree?", expected_output="a text", agent=agent)
        crewai.Crew(agents=[agent], tasks=[task]).kickoff()
        spans = [span for span in captured.spans if "agenttool.tool.id" in span.attributes]
    assert spans
    assert answer in model.given[1]
