"""Custom tools are permitted here and run elsewhere: they wait, are completed once, or are
interrupted.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ToolDenied, agent_context
from agenttool_otel.errors import (
    ApprovalConflict,
    InvocationConflict,
    InvocationNotFound,
    ResultInvalid,
    ResultRequired,
)
from agenttool_otel.hooks import AdditionalContext, HookContext, Hooks, UpdatedInput, UpdatedOutput
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture, decision

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"


class Picked(BaseModel):
    path: str


def pick_file(title: str, folder: str = "home") -> str:
    """Let the user pick a file."""
    raise AssertionError("a custom tool must not run here")


def waiting(captured: Capture, **options: Any) -> ResultRequired:
    governed = captured.governor.govern(pick_file, name="pick", ownership="custom", **options)
    with pytest.raises(ResultRequired) as required:
        governed("which?")
    return required.value


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_custom_tools_result_ends_the_same_invocation(asynchronous: bool) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governor = captured.governor
        required = waiting(captured)
        assert required.arguments == {"title": "which?", "folder": "home"}
        assert required.error_class is None
        assert required.result is not None
        assert required.result.status == "pending"
        assert required.result.is_error is False
        assert (
            required.result.to_json_object()["requires_action"]["arguments"] == required.arguments
        )
        (action,) = governor.required_actions
        assert (action.invocation_id, action.tool_name) == (required.invocation_id, "pick")
        first = captured.span
        assert first.attributes["agenttool.invocation.status"] == "needs_input"
        assert first.attributes["agenttool.permission.outcome"] == "pending"
        assert first.status.is_unset
        pending = required.result.to_json_object()

        done = governor.acomplete(required.invocation_id, "notes.txt") if asynchronous else None
        result = (
            asyncio.run(done) if done else governor.complete(required.invocation_id, "notes.txt")
        )
        assert result.status == "succeeded"
        assert result.value == "notes.txt"
        assert result.invocation_id == required.invocation_id
        assert result.result_id == required.result.result_id
        assert result.permission["decision_id"] == required.decision.decision_id
        second = captured.spans[1]
        assert (
            second.attributes["agenttool.invocation.id"]
            == first.attributes["agenttool.invocation.id"]
        )
        assert second.attributes["agenttool.invocation.status"] == "succeeded"
        assert second.attributes["agenttool.permission.outcome"] == "executed"
        assert second.attributes["agenttool.invocation.resumed"] is True
        assert [link.context.span_id for link in second.links] == [first.context.span_id]
        assert governor.required_actions == []
        assert required.result.to_json_object() == pending  # what was handed out stays what it was


def test_the_envelope_door_and_the_coroutine_wait_as_well() -> None:
    async def ask_user(question: str) -> str:
        raise AssertionError("ran")

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(ask_user, ownership="custom")
        with pytest.raises(ResultRequired):
            asyncio.run(governed("a"))
        results = [asyncio.run(governed.tool.ainvoke(question="b"))]
        results.append(
            captured.governor.govern(pick_file, ownership="custom").tool.invoke(title="c")
        )
        for result in results:
            assert result.status == "pending"
            assert "waits for its result" in (result.summary or "")
            assert captured.governor.complete(result.invocation_id, None).status == "succeeded"


def test_a_call_is_completed_once() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governor, required = captured.governor, waiting(captured)
        governor.complete(required.invocation_id, "a")
        for again in (
            lambda: governor.complete(required.invocation_id, "b"),
            lambda: governor.complete(required.invocation_id, error="b"),
            lambda: governor.interrupt(required.invocation_id, "late"),
        ):
            with pytest.raises(InvocationConflict, match="completed"):
                again()
        assert len(captured.spans) == 2


def test_of_many_completions_at_once_one_is_taken() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governor, required = captured.governor, waiting(captured)
        taken, refused = [], []
        gate = threading.Barrier(8)

        def complete(number: int) -> None:
            gate.wait()
            try:
                taken.append(governor.complete(required.invocation_id, number).value)
            except InvocationConflict:
                refused.append(number)

        threads = [threading.Thread(target=complete, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == 1
        assert len(refused) == 7
        assert len(captured.spans) == 2


def test_an_id_that_nobody_waits_under_is_refused() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        for wrong in ("inv_unknown", "", "../x"):
            with pytest.raises(InvocationNotFound):
                captured.governor.complete(wrong, 1)
            with pytest.raises(InvocationNotFound):
                captured.governor.interrupt(wrong, "why")
        ran = captured.governor.govern(lambda: 1, name="here").tool.invoke()
        with pytest.raises(InvocationNotFound):
            captured.governor.complete(ran.invocation_id, 1)


def test_a_completion_says_either_a_result_or_an_error() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governor, required = captured.governor, waiting(captured)
        for wrong in (
            lambda: governor.complete(required.invocation_id),
            lambda: governor.complete(required.invocation_id, 1, error="e"),
            lambda: governor.complete(required.invocation_id, error=7),  # type: ignore[arg-type]
        ):
            with pytest.raises(TypeError):
                wrong()
        assert governor.complete(required.invocation_id, None).value is None


@pytest.mark.parametrize(
    "error", ["user closed the window " + SECRET, OSError("no window " + SECRET)]
)
def test_an_error_from_outside_is_the_calls_error_redacted(error: Any) -> None:
    hooks, seen = Hooks(), []
    hooks.add(lambda ctx: seen.append(ctx.event), "post_tool_use_failure")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        result = captured.governor.complete(waiting(captured).invocation_id, error=error)
        assert result.status == "failed"
        assert result.error is not None
        assert "window" in result.error.message
        assert SECRET not in repr(result)
        assert captured.spans[1].attributes["error.type"] == result.error.error_class
        assert not captured.spans[1].status.is_ok
    assert len(seen) == 1


def test_an_outside_result_meets_obligations_and_hooks(tmp_path: Path) -> None:
    hooks, seen = Hooks(), []

    @hooks.on("pre_tool_use")
    def before(ctx: HookContext) -> UpdatedInput:
        seen.append(ctx.event)
        return UpdatedInput({**ctx.arguments, "title": "changed"})

    @hooks.on("post_tool_use", owns_output=True)
    def after(ctx: HookContext) -> Any:
        seen.append(ctx.event)
        return [UpdatedOutput({**ctx.result, "by": "hook"}), AdditionalContext("c")]

    answer = decision("allow", obligations={"redact_result": ["/password"]})
    with capture(policy=StaticEngine(answer), hooks=hooks, results_dir=str(tmp_path)) as captured:
        required = waiting(captured, max_inline_chars=1000)
        assert required.arguments["title"] == "changed"
        value = {"password": "from-" + "outside", "text": "x" * 50_000}
        result = captured.governor.complete(required.invocation_id, value)
        assert "from-outside" not in repr(result)
        assert result.persistence_refs
        assert result.to_json_object()["additional_context"][0]["text"] == "c"
    assert seen == ["pre_tool_use", "post_tool_use"]


def test_a_result_that_breaks_its_schema_leaves_the_call_waiting() -> None:
    def pick(title: str) -> Picked:
        raise AssertionError("ran")

    with capture(policy=StaticEngine("allow")) as captured:
        governor = captured.governor
        result = governor.govern(pick, ownership="custom").tool.invoke(title="a")
        with pytest.raises(ResultInvalid):
            governor.complete(result.invocation_id, {"path": 7})
        assert governor.complete(result.invocation_id, {"path": "p"}).status == "succeeded"


def test_a_custom_tool_is_permitted_like_any_other() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        with pytest.raises(ToolDenied):
            captured.governor.govern(pick_file, ownership="custom")("a")
        assert captured.governor.required_actions == []


def test_an_ask_comes_first_and_the_result_spends_the_approval() -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        governor = captured.governor
        governed = governor.govern(pick_file, ownership="custom")
        with pytest.raises(ApprovalRequired) as asked:
            governed("a")
        store = governor.approvals.store
        store.answer(asked.value.request_id, ApprovalAnswer(True, answered_by="user:eve"))
        invocation_id = asked.value.invocation_id
        assert governor.resume(invocation_id).status == "pending"
        assert store.get(asked.value.request_id).status == "consumed"
        assert store.get(asked.value.request_id).outcome is None
        result = governor.complete(invocation_id, "done")
        assert result.status == "succeeded"
        assert store.get(asked.value.request_id).outcome == "succeeded"
        assert {span.attributes["agenttool.invocation.id"] for span in captured.spans} == {
            invocation_id
        }
        assert len(captured.spans) == 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_interrupt_clears_a_call_that_waits_for_its_result(asynchronous: bool) -> None:
    approver = FixedApprover(ApprovalAnswer(True, answered_by="user:eve"))
    with capture(policy=StaticEngine("ask"), approver=approver) as captured:
        governor, required = captured.governor, waiting(captured)
        why = f"redirected {SECRET}"
        if asynchronous:
            result = asyncio.run(governor.ainterrupt(required.invocation_id, why))
        else:
            result = governor.interrupt(required.invocation_id, why)
        assert result.status == "canceled"
        assert result.error is not None
        assert result.error.error_class == "canceled"
        assert "redirected" in result.error.message
        assert SECRET not in repr(result)
        span = captured.spans[1]
        assert span.attributes["agenttool.invocation.status"] == "canceled"
        assert span.attributes["agenttool.permission.outcome"] == "not_executed"
        assert span.attributes["agenttool.abort_reason"] == "user_interruption"
        assert span.links[0].context.span_id == captured.spans[0].context.span_id
        assert "tool.invocation.cancel_requested" in {event.name for event in span.events}
        with pytest.raises(InvocationConflict, match="interrupted"):
            governor.complete(required.invocation_id, "late")
        assert governor.approvals.store.get(approver.asked[0].request_id).outcome == "canceled"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_interrupt_clears_a_managed_tools_confirmation(asynchronous: bool) -> None:
    ran = []
    with capture(policy=StaticEngine("ask")) as captured:
        governor = captured.governor
        governed = governor.govern(lambda x=1: ran.append(x), name="act")
        with (
            agent_context(actor="agent:a", session_id="s1", tenant="acme"),
            pytest.raises(ApprovalRequired) as asked,
        ):
            governed()
        why = "the user went on"
        with agent_context(actor="user:operator"):
            if asynchronous:
                result = asyncio.run(governor.ainterrupt(asked.value.invocation_id, why))
            else:
                result = governor.interrupt(asked.value.invocation_id, why)
        assert result.status == "canceled"
        assert why in result.error.message
        assert governor.approvals.store.get(asked.value.request_id).status == "canceled"
        assert governor.approvals.store.get(asked.value.request_id).closed_reason == why
        first, second = captured.spans
        assert second.attributes["agenttool.invocation.id"] == asked.value.invocation_id
        assert second.attributes["agenttool.approval.status"] == "canceled"
        assert second.attributes["agenttool.actor.id"] == "agent:a"
        assert [link.context.span_id for link in second.links] == [first.context.span_id]
        assert sum(point.value for point in captured.points("agenttool.approvals.pending")) == 0
        with pytest.raises(ApprovalConflict):
            governor.approvals.store.answer(
                asked.value.request_id, ApprovalAnswer(True, answered_by="user:eve")
            )
        assert governor.resume(asked.value.invocation_id).status == "rejected"
        with pytest.raises(ApprovalConflict):
            governor.interrupt(asked.value.invocation_id, "again")
    assert ran == []


def test_a_process_without_the_tool_can_interrupt_its_call(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'approvals.db'}"
    with capture(policy=StaticEngine("ask"), approvals=store) as asking:
        with pytest.raises(ApprovalRequired) as asked:
            asking.governor.govern(lambda: 1, name="act", namespace="n")()
        with capture(policy=StaticEngine("ask"), approvals=store) as other:
            result = other.governor.interrupt(asked.value.invocation_id, "shutdown")
            assert result.status == "canceled"
            assert other.span.attributes["gen_ai.tool.name"] == "act"
        assert asking.governor.approvals.store.get(asked.value.request_id).status == "canceled"


def test_too_many_waiting_calls_are_refused_none_forgotten() -> None:
    from agenttool_otel.call.pending.required import RequiredActions

    with capture(policy=StaticEngine("allow")) as captured:
        governor = captured.governor
        governor.pipeline.required = RequiredActions(limit=2)
        tool = governor.govern(pick_file, ownership="custom").tool
        results = [tool.invoke(title="a") for _ in range(3)]
        assert [result.status for result in results] == ["pending", "pending", "failed"]
        assert results[2].error is not None
        assert results[2].error.error_class == "rate_limited"
        assert governor.complete(results[0].invocation_id, 1).status == "succeeded"
        assert tool.invoke(title="a").status == "pending"


def test_the_outcome_can_be_pickled_and_copied() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        required = waiting(captured)
        for again in (pickle.loads(pickle.dumps(required)), copy.copy(required)):
            assert isinstance(again, ResultRequired)
            assert again.arguments == required.arguments
            assert again.invocation_id == required.invocation_id


def test_tools_of_an_mcp_server_run_through_their_client() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert captured.governor.govern(lambda: "ran", name="m", ownership="mcp")() == "ran"


def test_a_custom_langchain_tool_tells_that_it_awaits_a_result() -> None:
    tools = pytest.importorskip("langchain_core.tools")

    @tools.tool
    def ask(question: str) -> str:
        """Ask."""
        raise AssertionError("ran")

    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(ask, ownership="custom")
        message = governed.invoke(
            {"type": "tool_call", "id": "c1", "name": "ask", "args": {"question": "q"}}
        )
        assert "waits for its result" in message.content
        action = message.artifact["requires_action"]
        assert action["arguments"] == {"question": "q"}
        assert captured.governor.complete(action["invocation_id"], "a").value == "a"
        with pytest.raises(ResultRequired):
            governed.invoke({"question": "q"})
