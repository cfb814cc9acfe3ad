"""A chat model that follows a script."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Scripted(BaseChatModel):
    """Ask for the calls of its script, one step a turn, then answer ``done``."""

    calls: list[Any]
    position: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Scripted:
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        step = self.calls[self.position] if self.position < len(self.calls) else None
        self.position += 1
        if step is None:
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content="done"))])
        batch = step if isinstance(step, list) else [step]
        calls = [
            {"name": name, "args": args, "id": f"call-{self.position}-{n}"}
            for n, (name, args) in enumerate(batch)
        ]
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(content="", tool_calls=calls))]
        )
