"""An obligation on a result is about all of it: the artifact, the message's other parts, a
command.
"""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from agenttool_otel.integrations.langchain.agents import ToolNodeGuard
from agenttool_otel.testing import StaticEngine, capture, decision

EVERYTHING = {"redact_result": ["*"]}
DROP = {"persistence": "drop_with_reason"}


def message() -> Any:
    """Give a message."""
    return ToolMessage(
        "hidden content",
        artifact={"a": "hidden artifact"},
        additional_kwargs={"k": "hidden more"},
        response_metadata={"m": "hidden metadata"},
        tool_call_id="1",
    )


def pair() -> Any:
    """Give content and artifact."""
    return "hidden content", {"a": "hidden artifact"}


def message_in_pair() -> Any:
    """Give a message and an artifact."""
    return message(), "hidden artifact"


class Opaque:
    """No plain data."""

    def __init__(self) -> None:
        self.password = "hidden"


def opaque() -> Any:
    """Give an artifact that nobody can look into."""
    return "content", Opaque()


def command(call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Give a command."""
    return Command(update={"messages": [ToolMessage("hidden content", tool_call_id=call_id)]})


def made(function: Any) -> BaseTool:
    form: Any = (
        "content_and_artifact" if "pair" in function.__name__ or function is opaque else "content"
    )
    return StructuredTool.from_function(function, response_format=form)


def answer(captured: Any, function: Any, door: str) -> Any:
    guard = ToolNodeGuard(captured.governor)
    if door == "tool":
        node = ToolNode([captured.governor.govern(made(function))])
    else:
        node = ToolNode([made(function)], wrap_tool_call=guard)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    call = {"name": function.__name__, "args": {}, "id": "1"}
    return graph.invoke({"messages": [AIMessage("", tool_calls=[call])]})["messages"][-1]  # type: ignore[call-overload]


@pytest.mark.parametrize("door", ["tool", "guard"])
@pytest.mark.parametrize("obligation", [EVERYTHING, DROP], ids=["redact", "drop"])
@pytest.mark.parametrize("function", [message, pair, message_in_pair, command, opaque])
def test_nothing_of_an_obliged_result_comes_beside_its_content(
    function: Any, obligation: dict[str, Any], door: str
) -> None:
    with capture(policy=StaticEngine(decision("allow", obligations=obligation))) as captured:
        seen = answer(captured, function, door)
        assert isinstance(seen, ToolMessage)
        assert "hidden" not in repr(seen)
        assert not isinstance(seen.artifact, Opaque)


@pytest.mark.parametrize("door", ["tool", "guard"])
def test_a_pointer_into_the_artifact_takes_that_value_alone(door: str) -> None:
    def structured_pair() -> Any:
        """Give content and artifact."""
        return "content", {"note": "kept", "private": "hidden"}

    rule = decision("allow", obligations={"redact_result": ["/private"]})
    with capture(policy=StaticEngine(rule)) as captured:
        seen = answer(captured, structured_pair, door)
        assert (seen.content, seen.artifact["note"]) == ("content", "kept")
        assert "hidden" not in repr(seen)


@pytest.mark.parametrize("door", ["tool", "guard"])
def test_a_result_without_obligations_stays_as_it_is(door: str) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        seen = answer(captured, message, door)
        assert (seen.content, seen.artifact) == ("hidden content", {"a": "hidden artifact"})
        assert seen.additional_kwargs == {"k": "hidden more"}
        assert answer(captured, command, door).content == "hidden content"


def test_a_clean_artifact_goes_along() -> None:
    artifact = {"rows": [1, 2, 3]}

    @tool(response_format="content_and_artifact")
    def rows() -> Any:
        """Give rows."""
        return "three rows", artifact

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(rows, redaction_required=True)
        call = {"type": "tool_call", "name": "rows", "args": {}, "id": "1"}
        assert governed.invoke(call).artifact == artifact
