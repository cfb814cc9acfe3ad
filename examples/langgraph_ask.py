"""An ask pauses a LangGraph run: a person answers with an edit, and the run goes on with the edited
call.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agenttool_otel import AgentToolMiddleware, agent_context

FACTS = {
    "write_file": {
        "tool_kind": "file_operation",
        "access_kinds": ["file_write"],
        "write_effects": ["local_persistent"],
    }
}


class OneCall(BaseChatModel):
    """Stands for a model: it calls a tool once, and then is done."""

    call: dict[str, Any]

    @property
    def _llm_type(self) -> str:
        return "example"

    def bind_tools(self, tools: Any, **kwargs: Any) -> OneCall:
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        called = any(isinstance(message, AIMessage) for message in messages)
        message = (
            AIMessage("done")
            if called
            else AIMessage("", tool_calls=[{**self.call, "id": "call-1"}])
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def write_file(path: str, text: str) -> str:
    """Write a text file."""
    Path(path).write_text(text, encoding="utf-8")
    return f"wrote {path}"


def main() -> None:
    folder = Path(tempfile.mkdtemp()).resolve()
    call = {"name": "write_file", "args": {"path": str(folder / "draft.md"), "text": "first try"}}
    agent = create_agent(
        OneCall(call=call),
        [write_file],
        middleware=[AgentToolMiddleware(facts=FACTS)],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "t-1", "agenttool_answered_by": "user:ada"}}
    with agent_context(actor="agent:example", session_id="s-1", roots=[str(folder)]):
        paused = agent.invoke({"messages": [("user", "Write the draft.")]}, config)
        [asked] = paused["__interrupt__"]
        print("asked:", asked.value["name"], "-", asked.value["description"])

        edited = {
            "name": "write_file",
            "args": {"path": str(folder / "draft.md"), "text": "as a person wants it"},
        }
        agent.invoke(Command(resume={"type": "edit", "edited_action": edited}), config)
    print("written:", (folder / "draft.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
