"""Hooks in shadow mode, and hooks that a cancellation interrupts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, Governor
from agenttool_otel.hooks import Hooks, UpdatedInput
from agenttool_otel.testing import FixedApprover, StaticEngine


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
