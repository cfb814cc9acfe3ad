"""An agent reads on in a result that was too large to show, with the governed tool for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from agenttool_otel import agent_context
from agenttool_otel.testing import capture


class Reader(BaseChatModel):
    """Asks for a large result, then pages to its end with the reference that the preview names."""

    @property
    def _llm_type(self) -> str:
        return "reader"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Reader:
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        answers = [message for message in messages if isinstance(message, ToolMessage)]
        if not answers:
            call: dict[str, Any] | None = {"name": "report", "args": {}, "id": "1"}
        else:
            found = re.search(
                r"agent-runtime://session/tool-results/[\w.-]+[\w]", str(answers[0].content)
            )
            assert found is not None
            page = re.search(r'"next_offset": ?(\d+)', str(answers[-1].content))
            offset = 0 if len(answers) == 1 else int(page[1]) if page else None
            arguments = {"reference": found[0], "offset": offset, "limit": 20_000}
            call = (
                None
                if offset is None
                else {"name": "read_result", "args": arguments, "id": str(len(answers) + 1)}
            )
        message = AIMessage(content="" if call else "done", tool_calls=[call] if call else [])  # type: ignore[list-item]
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def report() -> str:
    """Write a long report."""
    return "\n".join(f"row {number}" for number in range(8_000))


def test_an_agent_pages_through_a_large_result(tmp_path: Path) -> None:
    with capture(results_dir=tmp_path) as captured:  # the stock policy
        governor = captured.governor
        tools = [
            governor.govern(report, read_only=True, open_world=False),
            governor.read_result_tool(),
        ]
        with agent_context(actor="agent:reader", tenant="acme", session_id="s-1"):
            state = create_agent(Reader(), tools).invoke({"messages": [HumanMessage("go")]})
        answers = [message for message in state["messages"] if isinstance(message, ToolMessage)]
        assert len(answers[0].content) <= 2048
        assert len(answers) >= 5
        assert {message.status for message in answers} == {"success"}
        assert "row 7999" in str(answers[-1].content)
        assert [span.attributes["gen_ai.tool.name"] for span in captured.spans][1:] == [
            "read_result"
        ] * (len(answers) - 1)
