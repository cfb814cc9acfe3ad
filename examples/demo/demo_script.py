"""What the scripted agent does, step by step, and how each call has to end for the demo to count as
passed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from demo_workspace import World
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from agenttool_otel.catalog import GovernOptions

_SCRIPT: dict[str, Any] = json.loads(Path(__file__).with_name("script.json").read_text("utf-8"))
FACTS: dict[str, GovernOptions] = _SCRIPT["facts"]
"""What the developer knows of the tools: one line each, and no change to the tools."""


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of the script."""

    tool: str  # the tool's name
    arguments: dict[str, Any]  # its arguments
    behavior: str  # how the policy has to decide
    status: str  # how the call has to end
    why: str  # what the step shows
    persisted: bool = False  # the result has to be kept outside and previewed
    redacted: bool = False  # something has to be redacted
    where_nothing_rehearses: dict[str, str] | None = None  # what differs on such a host


def steps_for(world: World, *, rehearses: bool) -> list[Step]:
    """Return the script for a host that can try a command on a layer, or can't."""
    steps = [Step(**row) for row in _SCRIPT["steps"]]
    if not rehearses:
        steps = [
            replace(step, **(step.where_nothing_rehearses or {}))  # type: ignore[arg-type]
            for step in steps
        ]
    page = {"url": world.page_url}
    return [
        replace(step, arguments=page) if "$page_url" in step.arguments.values() else step
        for step in steps
    ]


class ScriptedModel(BaseChatModel):
    """A chat model that says what it was told to say: one tool call at a time, then a last word."""

    steps: list[Any]
    position: int = 0

    @property
    def _llm_type(self) -> str:
        return "agenttool-demo-script"

    def bind_tools(self, tools: Any, **kwargs: Any) -> ScriptedModel:
        """Accept the tools; the script knows them already."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if self.position < len(self.steps):
            step = self.steps[self.position]
            call = {
                "name": step.tool,
                "args": step.arguments,
                "id": f"call-{self.position + 1:02d}",
            }
            message = AIMessage(content="", tool_calls=[call])
        else:
            message = AIMessage(
                content="The summary is written; everything else was explained to me."
            )
        self.position += 1
        return ChatResult(generations=[ChatGeneration(message=message)])
