"""An ask inside LangGraph pauses the graph and is answered there, behind every door, plain and
asynchronous.
"""

from __future__ import annotations

from typing import Any

import pytest
from graph_agents import (
    DOORS,
    Agent,
    SwitchEngine,
    approve,
    counting,
    edit,
    interrupts,
    reject,
    results,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from agenttool_otel import ApprovalAnswer, agent_context
from agenttool_otel.names import ApprovalStatus
from agenttool_otel.testing import FixedApprover, StaticEngine, capture, decision

SCRIPT = [("remover", {"path": "b"})]
WAYS = pytest.mark.parametrize(
    ("door", "is_async", "async_tool"),
    [(door, *way) for door in DOORS for way in ((False, False), (True, False), (True, True))],
)


@WAYS
def test_an_ask_pauses_the_graph_and_its_approval_runs_once(
    door: str, is_async: bool, async_tool: bool
) -> None:
    remover, ran = counting(is_async=async_tool)
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver(), door=door, is_async=is_async)
        [asked] = agent.start()
        assert ran == []
        assert asked.value["type"] == "tool_approval"
        assert asked.value["tool_call_id"] == "call-0-0"
        assert (asked.value["name"], asked.value["args"]) == ("remover", {"path": "b"})
        assert asked.value["rule"] == "test.ask"
        state = agent.answer(approve())
        assert results(state) == [("success", "removed b")]
        assert ran == ["b"]
        assert state["messages"][-1].content == "done"
        first, last = captured.spans
        assert first.attributes["agenttool.permission.outcome"] == "pending"
        assert first.status.status_code.name == last.status.status_code.name == "UNSET"
        assert last.attributes["agenttool.permission.outcome"] == "executed"
        assert (
            first.attributes["agenttool.invocation.id"]
            == last.attributes["agenttool.invocation.id"]
        )
        assert [link.context.span_id for link in last.links] == [first.context.span_id]
        assert asked.value["invocation_id"] == last.attributes["agenttool.invocation.id"]


@WAYS
def test_a_rejection_reaches_the_model_and_leaves_a_span(
    door: str, is_async: bool, async_tool: bool
) -> None:
    remover, ran = counting(is_async=async_tool)
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver(), door=door, is_async=is_async)
        agent.start()
        [(status, content)] = results(agent.answer(reject("not on a Friday")))
        assert (status, ran) == ("error", [])
        assert "not on a Friday" in content
        assert captured.spans[-1].attributes["error.type"] == "approval_rejected"
        assert captured.spans[-1].attributes["agenttool.approval.status"] == "rejected"


@WAYS
def test_an_edit_runs_the_edited_arguments_and_no_others(
    door: str, is_async: bool, async_tool: bool
) -> None:
    remover, ran = counting(is_async=async_tool)
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver(), door=door, is_async=is_async)
        agent.start()
        [(status, content)] = results(agent.answer(edit("remover", path="c")))
        assert (status, content.partition("\n\n")[0]) == ("success", "removed c")
        assert ran == ["c"]
        assert captured.governor.approvals.store.verify_chain().ok


@WAYS
def test_a_response_is_given_to_the_model_in_the_tools_place(
    door: str, is_async: bool, async_tool: bool
) -> None:
    remover, ran = counting(is_async=async_tool)
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver(), door=door, is_async=is_async)
        agent.start()
        state = agent.answer({"type": "respond", "message": "it is gone already"})
        assert results(state) == [("success", "it is gone already")]
        assert ran == []
        assert captured.spans[-1].attributes["agenttool.permission.outcome"] == "not_executed"


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "value",
    [
        {"type": "resume"},
        {"type": "APPROVE"},
        {"type": "edit", "edited_action": {"name": "other", "args": {"path": "c"}}},
        {"type": "edit", "edited_action": {"name": "remover"}},
        {"type": "respond"},
        {"decisions": [{"type": "approve"}, {"type": "approve"}]},
        "approve",
        True,
        ["approve"],
        {"approved": True},
    ],
)
def test_what_is_not_plainly_an_answer_leaves_the_call_waiting(door: str, value: Any) -> None:
    remover, ran = counting()
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver(), door=door)
        [asked] = agent.start()
        [again] = interrupts(agent.answer(value))
        assert again.value["request_id"] == asked.value["request_id"]
        assert ran == []
        assert results(agent.answer(approve())) == [("success", "removed b")]
        assert ran == ["b"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("yes", [True, False])
def test_a_stores_answer_counts_whatever_the_graph_resumes_with(door: str, yes: bool) -> None:
    remover, ran = counting()
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver(), door=door)
        [asked] = agent.start()
        captured.governor.approvals.store.answer(
            asked.value["request_id"],
            ApprovalAnswer(approved=yes, answered_by="user:alice", reason="seen"),
        )
        # the graph's own late answer does not overrule the one that was given first
        [(status, _)] = results(agent.answer(reject() if yes else approve()))
        assert (status, ran) == (("success", ["b"]) if yes else ("error", []))


def test_several_pending_calls_are_answered_by_interrupt_id() -> None:
    remover, ran = counting()
    script = [[("remover", {"path": "a"}), ("remover", {"path": "b"}), ("remover", {"path": "c"})]]
    for door in ("tool", "middleware"):
        for is_async in (False, True):
            ran.clear()
            with capture(policy=StaticEngine("ask")) as captured:
                agent = Agent(
                    captured, [remover], script, InMemorySaver(), door=door, is_async=is_async
                )
                asked = {entry.value["args"]["path"]: entry.id for entry in agent.start()}
                assert sorted(asked) == ["a", "b", "c"]
                left = interrupts(agent.answer({asked["b"]: reject("not b")}))
                assert sorted(entry.value["args"]["path"] for entry in left) == ["a", "c"]
                state = agent.answer({asked["c"]: approve(), asked["a"]: edit("remover", path="A")})
                assert [status for status, _ in results(state)] == ["success", "error", "success"]
                assert sorted(ran) == ["A", "c"]


@pytest.mark.parametrize("is_async", [False, True])
def test_several_asks_of_a_task_are_shown_and_answered_singly(is_async: bool) -> None:
    """A ToolNode without Send runs its calls in one task, whose resume values LangGraph numbers by
    position.
    """
    remover, ran = counting()
    script = [[("remover", {"path": "a"}), ("remover", {"path": "b"})]]
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], script, InMemorySaver(), door="node", is_async=is_async)
        [first] = agent.start()
        [second] = interrupts(agent.answer(approve()))
        assert second.value["request_id"] != first.value["request_id"]
        # a call whose thread had not begun when the other paused is cancelled by LangGraph, and
        # runs at the next resume
        assert ran in ([], [first.value["args"]["path"]])
        # LangGraph keeps the last resume value in the checkpoint: it must not approve the other
        # call
        [still] = interrupts(agent.run(None))
        assert still.value["request_id"] == second.value["request_id"]
        state = agent.answer(reject("not this one"))
        assert sorted(status for status, _ in results(state)) == ["error", "success"]
        assert ran == [first.value["args"]["path"]]  # run once, though its task ran three times


def test_an_approver_is_asked_before_the_graph_is_paused() -> None:
    remover, ran = counting()
    approver = FixedApprover(ApprovalAnswer(approved=True, answered_by="user:alice"))
    with capture(policy=StaticEngine("ask"), approver=approver) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver())
        assert agent.start() == []
        assert ran == ["b"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("is_async", [False, True])
def test_without_a_checkpointer_the_model_is_told_of_no_wait(door: str, is_async: bool) -> None:
    remover, ran = counting()
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, None, door=door, is_async=is_async)
        from langchain_core.messages import HumanMessage

        state = agent.run({"messages": [HumanMessage("go")]})
        assert interrupts(state) == []
        [(status, content)] = results(state)
        assert (status, ran) == ("error", [])
        assert "waits for an approval" in content
        assert "can't be waited for here" in content
        [request] = captured.governor.approvals.store.list(ApprovalStatus.PENDING)
        assert captured.span.attributes["agenttool.approval.id"] == request.request_id
        assert captured.span.status.status_code.name == "UNSET"


def test_a_runnable_config_is_not_mistaken_for_a_graph() -> None:
    from langchain_core.runnables import RunnableLambda

    remover, ran = counting()
    with capture(policy=StaticEngine("ask")) as captured:
        governed = captured.governor.govern(remover)
        call = {"type": "tool_call", "name": "remover", "args": {"path": "b"}, "id": "call-1"}
        message = RunnableLambda(lambda _: governed.invoke(call)).invoke(
            "x", {"configurable": {"thread_id": "t"}}
        )
        assert message.status == "error"
        assert "can't be waited for here" in message.content
        assert ran == []


def test_the_question_holds_no_secret() -> None:
    secret = "sk-" + "live-" + "a1B2" * 8

    @tool
    def remover(path: str, api_key: str) -> str:
        """Remove."""
        return "gone"

    with capture(policy=StaticEngine("ask")) as captured:
        saver = InMemorySaver()
        agent = Agent(captured, [remover], [("remover", {"path": "b", "api_key": secret})], saver)
        [asked] = agent.start()
        assert secret not in repr(asked)
        assert asked.value["args"]["path"] == "b"
        assert results(agent.answer(approve())) == [("success", "gone")]


def test_who_answers_is_what_the_host_says() -> None:
    remover, _ = counting()
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver())
        [asked] = agent.start()
        host = {"configurable": {"thread_id": "t-1", "agenttool_answered_by": "user:bob"}}
        agent.answer(approve(answered_by="user:mallory"), host)
        assert (
            captured.governor.approvals.store.get(asked.value["request_id"]).answered_by
            == "user:bob"
        )


def test_a_request_for_a_role_is_not_answered_without_it() -> None:
    from agenttool_otel.testing import decision

    remover, ran = counting()
    engine = StaticEngine(decision("ask", approver_roles=["lead"]))
    with capture(policy=engine) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver())
        agent.start()
        host: Any = {"configurable": {"thread_id": "t-1", "agenttool_answered_by": "user:bob"}}
        assert interrupts(agent.answer(approve(roles=["lead"]), host))
        assert ran == []
        host["configurable"]["agenttool_answerer_roles"] = ["lead"]
        assert results(agent.answer(approve(), host)) == [("success", "removed b")]


def test_the_asking_actor_may_not_answer_itself() -> None:
    remover, ran = counting()
    with capture(policy=StaticEngine("ask")) as captured, agent_context(actor="agent:a"):
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver())
        agent.start()
        host = {"configurable": {"thread_id": "t-1", "agenttool_answered_by": "agent:a"}}
        assert interrupts(agent.answer(approve(), host))
        assert ran == []


def test_an_approval_is_not_used_by_another_actor() -> None:
    remover, ran = counting()
    engine = SwitchEngine("ask")
    with capture(policy=engine) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver())
        with agent_context(actor="agent:a", session_id="s-1"):
            agent.start()
        engine.switch("allow")
        with agent_context(actor="agent:b", session_id="s-1"):
            [(status, _)] = results(agent.answer(approve()))
        assert (status, ran) == ("error", [])


def test_an_approval_resumed_without_context_runs_for_the_asker() -> None:
    remover, ran = counting()
    with capture(policy=StaticEngine("ask")) as captured:
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver())
        with agent_context(actor="agent:a", session_id="s-1", tenant="acme"):
            agent.start()
        agent.answer(approve())
        assert ran == ["b"]
        assert captured.spans[-1].attributes["agenttool.actor.id"] == "agent:a"


@WAYS
def test_an_approval_that_is_remembered_pauses_the_graph_once(
    door: str, is_async: bool, async_tool: bool
) -> None:
    remover, ran = counting(is_async=async_tool)
    offer = decision(
        "ask", suggested_updates=[{"type": "grant", "scope": "session", "args": "exact"}]
    )
    with (
        capture(policy=StaticEngine(offer)) as captured,
        agent_context(actor="agent:a", session_id="s-1"),
    ):
        agent = Agent(
            captured, [remover], [*SCRIPT, *SCRIPT], InMemorySaver(), door=door, is_async=is_async
        )
        [asked] = agent.start()
        yes = ApprovalAnswer(approved=True, answered_by="user:ada", remember=0)
        captured.governor.approvals.store.answer(asked.value["request_id"], yes)
        state = agent.answer("whatever the store says")
        assert interrupts(state) == []
        assert results(state) == [("success", "removed b"), ("success", "removed b")]
        assert ran == ["b", "b"]
        assert len(captured.governor.approvals.store.list()) == 1
        assert captured.spans[-1].attributes["agenttool.approval.grant_id"].startswith("grant_")


@pytest.mark.parametrize(("index", "grants"), [(0, 1), (1, 0), ("0", 0), (True, 0), (None, 0)])
def test_a_resume_can_remember_its_approval(index: Any, grants: int) -> None:
    remover, ran = counting()
    offer = {"type": "grant", "scope": "session", "args": "exact"}
    engine = StaticEngine(decision("ask", suggested_updates=[offer]))
    with capture(policy=engine) as captured, agent_context(session_id="s-1", actor="agent:a"):
        agent = Agent(captured, [remover], SCRIPT, InMemorySaver())
        [asked] = agent.start()
        assert [one["scope"] for one in asked.value["suggested_updates"]] == ["session"]
        agent.answer(
            approve(remember=index),
            {"configurable": {"thread_id": "t-1", "agenttool_answered_by": "u:bob"}},
        )
        assert [grant.granted_by for grant in captured.governor.approvals.store.list_grants()] == [
            "u:bob"
        ] * grants
        assert ran == (["b"] if grants or index is None else [])
