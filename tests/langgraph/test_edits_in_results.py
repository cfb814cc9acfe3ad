"""A person's edit stands in what the model gets of the call: names of the changed arguments, and no
secret.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest
from graph_agents import DOORS, Agent, approve, counting, edit, results
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agenttool_otel import ApprovalAnswer
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision

SCRIPT = [("remover", {"path": "b"})]
NOTE = 'A person changed the arguments of this call: path is now "c". Do not repeat the call as you made it.'
TEXTS = {"json": '{"gone": "ä"}'}
WAYS = pytest.mark.parametrize("is_async", [False, True])


@WAYS
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("form", ["plain", "decisions", "store"])
def test_an_edit_in_a_graph_is_in_the_tool_message(door: str, form: str, is_async: bool) -> None:
    remover, ran = counting()
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver(), door=door, is_async=is_async)
        [asked] = agent.start()
        answer: Any = edit("remover", path="c")
        if form == "store":  # as the page and the command line answer
            yes = ApprovalAnswer(approved=True, answered_by="user:ada", edited_input={"path": "c"})
            captured.governor.approvals.store.answer(asked.value["request_id"], yes)
            answer = {"type": "go on"}
        state = agent.answer({"decisions": [answer]} if form == "decisions" else answer)
        assert results(state) == [("success", f"removed c\n\n{NOTE}")]
        assert ran == ["c"]


@WAYS
@pytest.mark.parametrize("door", DOORS)
def test_an_approval_without_an_edit_adds_nothing(door: str, is_async: bool) -> None:
    remover, _ = counting()
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver(), door=door, is_async=is_async)
        agent.start()
        assert results(agent.answer(approve())) == [("success", "removed b")]


@WAYS
def test_an_edit_by_an_approver_in_place_is_told(is_async: bool) -> None:
    remover, _ = counting(is_async=is_async)
    approver = FixedApprover(
        ApprovalAnswer(approved=True, answered_by="user:ada", edited_input={"path": "c"})
    )
    with capture(policy=StaticEngine("ask"), approver=approver) as captured:
        governed = captured.governor.govern(remover)
        call: Any = {"type": "tool_call", "name": "remover", "args": {"path": "b"}, "id": "c1"}
        message = asyncio.run(governed.ainvoke(call)) if is_async else governed.invoke(call)
        assert message.content == f"removed c\n\n{NOTE}"
        given = {"path": "b"}
        assert (
            asyncio.run(governed.ainvoke(given)) if is_async else governed.invoke(given)
        ) == "removed c"


@WAYS
@pytest.mark.parametrize("edited", [{"path": "c"}, None])
def test_a_plain_resume_tells_the_edit_in_its_envelope(
    edited: dict[str, Any] | None, is_async: bool
) -> None:
    def remover(path: str) -> str:
        """Remove."""
        return f"removed {path}"

    with capture(policy=StaticEngine("ask")) as captured:
        governed = captured.governor.govern(remover)
        waiting = governed.tool.invoke(path="b")
        store = captured.governor.approvals.store
        answer = ApprovalAnswer(approved=True, answered_by="user:ada", edited_input=edited)
        store.answer(waiting.requires_action["request_id"], answer)
        governor = captured.governor
        going = waiting.invocation_id
        result = asyncio.run(governor.aresume(going)) if is_async else governor.resume(going)
        texts = [part["text"] for part in result.model_facing_content]
        assert texts == (["removed c", NOTE] if edited else ["removed b"])
        assert [part["text"] for part in result.content] == texts[:1]


def test_a_secret_that_a_person_typed_is_not_told() -> None:
    secret = "ghp" + "_" + hashlib.sha256(b"edits").hexdigest()[:36]

    @tool
    def remover(path: str, note: str, api_key: str = "") -> str:
        """Remove."""
        return "gone"

    with capture(
        policy=StaticEngine(decision("ask", obligations={"redact_input": ["/note"]}))
    ) as captured:
        agent = Agent(
            captured,
            [remover],
            [("remover", {"path": "b", "note": "n", "api_key": ""})],
            InMemorySaver(),
        )
        agent.start()
        state = agent.answer(edit("remover", path=secret, note="between us", api_key="opensesame"))
        [(status, content)] = results(state)
        assert status == "success"
        assert all(name in content for name in ("path", "note", "api_key"))
        assert not any(value in content for value in (secret, "between us", "opensesame"))


def test_what_was_removed_added_or_long_is_named() -> None:
    ran: list[dict[str, Any]] = []

    def remover(path: str, options: dict[str, Any]) -> str:
        ran.append(options)
        return "gone"

    remove = StructuredTool.from_function(remover, name="remover", description="Remove.")
    before = {"path": "b", "options": {"force": True, "depth": 1}}
    after = {"path": "c" * 500, "options": {"depth": 2, "dry": [True]}}
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remove], [("remover", before)], InMemorySaver())
        agent.start()
        [(_, content)] = results(agent.answer(edit("remover", **after)))
        assert "path changed to a value of 502 characters" in content
        assert (
            "options/force was removed; options/depth is now 2; options/dry is now [true]"
            in content
        )
        assert ran == [after["options"]]


def test_an_edit_that_is_denied_is_told_too() -> None:
    remover, ran = counting()

    class Denies(StaticEngine):
        def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> Any:
            self._answers = decision("deny" if document["input"].get("path") == "c" else "ask")
            return super().evaluate(entry_point, document, timeout=timeout)

    with capture(policy=Denies("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver())
        agent.start()
        [(status, content)] = results(agent.answer(edit("remover", path="c")))
        assert (status, ran) == ("error", [])
        assert NOTE in content


def results_of(kind: str) -> BaseTool:
    """Make a tool whose result has a shape of its own."""

    def remover(path: str) -> Any:
        if kind == "blocks":
            return [{"type": "text", "text": "gone"}]
        if kind == "json":
            return {"gone": "ä"}
        if kind == "message":
            return ToolMessage("gone", tool_call_id="call-0-0")
        if kind == "pair":
            return "gone", {"kept": path}
        return Command(update={"messages": [ToolMessage("gone", tool_call_id="call-0-0")]})

    pair = "content_and_artifact" if kind == "pair" else "content"
    return StructuredTool.from_function(
        remover, name="remover", description="Remove.", response_format=pair
    )


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ["blocks", "json", "message", "pair", "command"])
def test_an_edit_is_told_beside_results_of_every_shape(kind: str, door: str) -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [results_of(kind)], SCRIPT, InMemorySaver(), door=door)
        agent.start()
        state = agent.answer(edit("remover", path="c"))
        [message] = [one for one in state["messages"] if isinstance(one, ToolMessage)]
        if kind == "blocks":
            assert message.content == [
                {"type": "text", "text": "gone"},
                {"type": "text", "text": NOTE},
            ]
        else:
            assert message.content == TEXTS.get(kind, "gone") + f"\n\n{NOTE}"
        assert message.artifact == ({"kept": "c"} if kind == "pair" else None)
