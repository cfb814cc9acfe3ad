"""The door of Pydantic AI, with scripted models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed")

from pydantic import BaseModel, field_serializer, field_validator
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.messages import ToolCallPart, ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset
from pydantic_driver import PydanticDriver, returned, scripted

from agenttool_otel import ApprovalAnswer, Governor, agent_context
from agenttool_otel.call.straight.call import StraightCall
from agenttool_otel.integrations.pydantic_ai import Governance, GovernedToolset
from agenttool_otel.testing import StaticEngine, capture, decision
from agenttool_otel.testing.doors import DOOR_CHECKS


class Query(BaseModel):
    word: str


_shared: list[str] = []


class Rows(BaseModel):
    """Holds a list that the program changes while it is shown, as another thread may."""

    rows: list[str]

    @field_validator("rows")
    @classmethod
    def share(cls, rows: list[str]) -> list[str]:
        _shared[:] = rows
        return _shared

    @field_serializer("rows")
    def show(self, rows: list[str]) -> list[str]:
        shown = list(rows)
        _shared.append("another")
        return shown


class Tools:
    """An agent whose tools are its own functions, governed by the capability."""

    def __init__(self, captured: Any) -> None:
        self.captured = captured
        self.ran: list[str] = []

    def agent(self, name: str = "look_up", *, call_id: str = "call_1", **arguments: Any) -> Any:
        part = ToolCallPart(name, arguments or {"word": "tree"}, tool_call_id=call_id)
        facts = {"*": {"read_only": True}}
        agent = Agent(
            scripted(part),
            output_type=[str, DeferredToolRequests],
            capabilities=[Governance(self.captured.governor, facts)],
            retries=2,
        )

        @agent.tool_plain
        def look_up(word: str) -> str:
            self.ran.append(word)
            return f"found {word}"

        @agent.tool_plain
        def search(query: Query) -> str:
            self.ran.append(query.word)
            return f"found {query.word}"

        @agent.tool_plain
        def retry(word: str) -> str:
            raise ModelRetry("another word")

        @agent.tool_plain
        def rich(word: str) -> ToolReturn:
            return ToolReturn("found", content=f"about {word}", metadata={"kept": True})

        return agent

    def asked(self, **fields: Any) -> tuple[Any, Any]:
        agent = self.agent(**fields)
        run = agent.run_sync("go")
        assert isinstance(run.output, DeferredToolRequests)
        return agent, run

    def go_on(self, agent: Any, run: Any, answer: Any) -> Any:
        return agent.run_sync(
            message_history=run.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={"call_1": answer}),
        )

    def request(self) -> Any:
        (request,) = self.captured.governor.approvals.store.list()
        return request


@pytest.fixture
def allowed() -> Iterator[Tools]:
    with capture(policy=StaticEngine("allow")) as captured:
        yield Tools(captured)


@pytest.fixture
def asking() -> Iterator[Tools]:
    with capture(policy=StaticEngine("ask")) as captured:
        yield Tools(captured)


@pytest.mark.parametrize("check", DOOR_CHECKS, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(PydanticDriver())


@pytest.mark.parametrize("tool", ["look_up", "rich", "search"])
def test_a_cached_decision_goes_straight(monkeypatch: pytest.MonkeyPatch, tool: str) -> None:
    begun: list[StraightCall] = []
    begin = StraightCall.begin
    monkeypatch.setattr(StraightCall, "begin", lambda call: begun.append(call) or begin(call))
    with closing(Governor()) as governor, agent_context(actor="agent:one", session_id="s"):
        tools = Tools(SimpleNamespace(governor=governor))
        agent = tools.agent(tool, **({"query": {"word": "tree"}} if tool == "search" else {}))
        runs = [agent.run_sync("go").all_messages() for _ in range(4)]
    assert len({str(returned(messages).content) for messages in runs}) == 1
    assert len(begun) >= 2


def test_what_changes_while_it_is_shown_is_not_what_runs() -> None:
    ran: list[list[str]] = []

    def write(rows: Rows, limit: int) -> str:
        ran.append(list(rows.rows))
        return "done"

    given = ToolCallPart("write", {"rows": {"rows": ["a"]}, "limit": 1}, tool_call_id="call_1")
    with closing(Governor()) as governor, agent_context(actor="agent:one", session_id="s"):
        capabilities = [Governance(governor, {"*": {"read_only": True}})]
        agent: Any = Agent(scripted(given), tools=[write], capabilities=capabilities)
        for _ in range(4):
            agent.run_sync("go")
    assert ran[-1] == ["a"]


def test_an_agents_own_functions_are_governed(allowed: Tools) -> None:
    run = allowed.agent().run_sync("go")
    assert returned(run.all_messages()).content == "found tree"
    assert allowed.captured.span.attributes["agenttool.tool.id"] == "pydantic_ai.look_up"


def test_a_model_reads_why_a_call_is_denied() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        tools = Tools(captured)
        part = returned(tools.agent().run_sync("go").all_messages())
    assert (part.outcome, tools.ran) == ("failed", [])
    assert "permission_denied" in part.content


def test_a_deferred_request_names_the_approval_request(asking: Tools) -> None:
    _, run = asking.asked()
    metadata = run.output.metadata["call_1"]
    assert metadata["request_id"] == asking.request().request_id


def test_an_approval_in_the_framework_runs_the_call(asking: Tools) -> None:
    run = asking.go_on(*asking.asked(), True)
    assert returned(run.all_messages()).content == "found tree"
    assert asking.request().answered_by == "pydantic_ai:deferred_tool_results"


def test_an_approval_runs_the_same_invocation(asking: Tools) -> None:
    asking.go_on(*asking.asked(), True)
    ids = {span.attributes["agenttool.invocation.id"] for span in asking.captured.spans}
    assert len(ids) == 1


def test_overridden_arguments_are_an_edit(asking: Tools) -> None:
    asking.go_on(*asking.asked(), ToolApproved(override_args={"word": "bush"}))
    assert (asking.ran, asking.request().edited) == (["bush"], True)


def test_a_rejection_in_the_framework_is_recorded(asking: Tools) -> None:
    run = asking.go_on(*asking.asked(), ToolDenied("not today"))
    assert returned(run.all_messages()).content == "not today"
    request = asking.request()
    assert (request.status, request.answer_reason, asking.ran) == ("rejected", "not today", [])


def test_a_rejection_on_the_page_wins_over_the_framework(asking: Tools) -> None:
    agent, run = asking.asked()
    store = asking.captured.governor.approvals.store
    store.answer(asking.request().request_id, ApprovalAnswer(False, answered_by="user:me"))
    asking.go_on(agent, run, True)
    assert asking.ran == []


def test_an_approved_call_with_other_arguments_is_asked_again(asking: Tools) -> None:
    _, run = asking.asked()
    for message in run.all_messages():
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                part.tool_call_id = "call_2"
    other = asking.agent(call_id="call_2")
    again = other.run_sync(
        message_history=run.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={"call_2": True}),
    )
    assert isinstance(again.output, DeferredToolRequests)
    assert asking.ran == []


def test_a_model_retry_stays_one(allowed: Tools) -> None:
    run = allowed.agent("retry").run_sync("go")
    assert returned(run.all_messages()).outcome == "retried"
    assert allowed.captured.span.attributes["agenttool.invocation.status"] == "failed"


def test_a_model_as_argument_is_decided_by_its_fields(asking: Tools) -> None:
    agent, run = asking.asked(name="search")
    assert asking.request().arguments_preview == {"word": "tree"}
    asking.go_on(agent, run, True)
    assert asking.ran == ["tree"]


def test_what_is_redacted_is_in_no_part_of_a_return() -> None:
    engine = StaticEngine(decision("allow", obligations={"redact_result": ["*"]}))
    with capture(policy=engine) as captured:
        messages = Tools(captured).agent("rich").run_sync("go").all_messages()
    assert "about tree" not in repr(messages)
    assert returned(messages).metadata == {"kept": True}


def test_a_delegates_calls_are_decided_as_the_parents() -> None:
    policy = StaticEngine({"ask_child": decision("allow"), "look_up": decision("deny")})
    with capture(policy=policy) as captured:
        tools = Tools(captured)
        child = tools.agent()
        parent = Agent(
            TestModel(call_tools=["ask_child"]), capabilities=[Governance(captured.governor)]
        )

        @parent.tool_plain
        async def ask_child() -> str:
            return str((await child.run("go")).output)

        parent.run_sync("go")
        inner, outer = captured.spans
    assert inner.parent.span_id == outer.get_span_context().span_id
    assert (inner.attributes["agenttool.invocation.status"], tools.ran) == ("denied", [])


def test_govern_finds_the_door() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(FunctionToolset([]), read_only=True)
    assert isinstance(governed, GovernedToolset)


def test_hidden_tools_are_not_shown() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        toolset = FunctionToolset([])
        toolset.add_function(lambda word: word, name="look_up")
        model = TestModel()
        Agent(model, toolsets=[GovernedToolset(toolset, captured.governor, hides=True)]).run_sync(
            "go"
        )
    # this engine decides calls and has no rule for surfaces
    assert model.last_model_request_parameters.function_tools == []


def test_a_tool_is_declared_once_for_all_runs(allowed: Tools) -> None:
    agent = allowed.agent()
    declared = []
    for _ in range(2):
        agent.run_sync("go")
        declared.append(allowed.captured.governor.find("look_up").spec)
    assert declared[0] is declared[1]
