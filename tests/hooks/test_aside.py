"""Hooks in shadow mode, and hooks that a cancellation interrupts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from recorded import records_of

from agenttool_otel import ApprovalAnswer, Governor
from agenttool_otel.hooks import Hooks, UpdatedInput
from agenttool_otel.testing import FixedApprover, StaticEngine, capture


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_what_a_decision_hook_changes_is_what_runs(mode: str) -> None:
    hooks = Hooks()

    @hooks.on("permission_decision")
    def clean(context: Any) -> UpdatedInput | None:
        return UpdatedInput({"text": "clean"}) if context.arguments["text"] != "clean" else None

    governor = Governor(policy=StaticEngine("allow"), hooks=hooks, policy_mode=mode)
    ran: list[str] = []

    @governor.govern
    def act(text: str) -> None:
        ran.append(text)

    act("dirty")
    assert ran == ["clean"]


async def test_an_approved_run_cancelled_in_a_later_hook_has_an_end() -> None:
    hooks, begun = Hooks(), asyncio.Event()

    @hooks.on("post_tool_use")
    async def slow(context: Any) -> None:
        begun.set()
        await asyncio.sleep(60)

    approver = FixedApprover(ApprovalAnswer(True, answered_by="user:u"))
    governor = Governor(policy=StaticEngine("ask"), approver=approver, hooks=hooks)

    @governor.govern
    async def act() -> int:
        return 1

    task = asyncio.create_task(act())
    await asyncio.wait_for(begun.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [request] = governor.approvals.store.list()
    assert (request.status, request.outcome) == ("consumed", "succeeded")


@pytest.mark.parametrize("event", ["pre_tool_use", "permission_decision", "post_tool_use"])
async def test_a_hook_that_is_cancelled_has_a_record(event: str) -> None:
    hooks, begun = Hooks(), asyncio.Event()

    async def slow(context: Any) -> None:
        begun.set()
        await asyncio.sleep(60)

    hooks.add(slow, event, hook_id="slow")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:

        @captured.governor.govern
        async def act() -> int:
            return 1

        task = asyncio.create_task(act())
        await asyncio.wait_for(begun.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        [record] = records_of(captured, "tool_hook")
        completed = [e for e in captured.events if (e.data or {}).get("hook_id") == "slow"]
    assert record["failure"] == {
        "error_type": "asyncio.exceptions.CancelledError",
        "timed_out": False,
        "effect": "canceled",
    }
    assert record["ended_at"] >= record["started_at"]
    assert len(completed) == 2
    assert records_of(captured, "tool_invocation")[-1]["hook_refs"] == ["slow"]


async def test_a_hook_that_is_cancelled_keeps_the_tool_from_running() -> None:
    hooks, begun, ran = Hooks(), asyncio.Event(), []

    @hooks.on("pre_tool_use")
    async def slow(context: Any) -> None:
        begun.set()
        await asyncio.sleep(60)

    governor = Governor(policy=StaticEngine("allow"), hooks=hooks)

    @governor.govern
    async def act() -> None:
        ran.append(1)

    task = asyncio.create_task(act())
    await asyncio.wait_for(begun.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ran == []
