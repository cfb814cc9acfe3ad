"""Hooks that raise, hang, swallow their cancellation or answer nonsense: before the tool they
block, after it never.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from typing import Any

import pytest

from agenttool_otel import ToolDenied
from agenttool_otel.call.drivers import arun, run
from agenttool_otel.hooks import HookContext, Hooks, Message, PermissionResult
from agenttool_otel.testing import FixedApprover, StaticEngine, capture

BEFORE = ["pre_tool_use", "permission_request", "permission_decision"]
SLOW = 30.0
HANGS_S = 3.0  # far more than the 0.1 s that a hook has


def raises(ctx: HookContext) -> Any:
    raise LookupError("key=" + "s3cr3t-value")


async def araises(ctx: HookContext) -> Any:
    raise LookupError("key=" + "s3cr3t-value")


def hangs(ctx: HookContext) -> Any:
    time.sleep(HANGS_S)


async def ahangs(ctx: HookContext) -> Any:
    await asyncio.sleep(SLOW)


async def swallows(ctx: HookContext) -> Any:
    """Not even cancelling it ends it, for a while."""
    until = time.monotonic() + HANGS_S
    while time.monotonic() < until:
        try:
            await asyncio.sleep(SLOW)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)


def nonsense(ctx: HookContext) -> Any:
    return True


def half_nonsense(ctx: HookContext) -> Any:
    return [PermissionResult("allow"), {"behavior": "deny"}]


def unknown_word(ctx: HookContext) -> Any:
    return PermissionResult("maybe")


def exits(ctx: HookContext) -> Any:
    raise SystemExit(3)


async def acancels(ctx: HookContext) -> Any:
    raise asyncio.CancelledError


def too_many(ctx: HookContext) -> Any:
    return [Message("m")] * 1000


def endless(ctx: HookContext) -> Any:
    until = time.monotonic() + HANGS_S
    while time.monotonic() < until:
        time.sleep(0.01)
        yield Message("m")


BAD = [
    raises, araises, hangs, ahangs, swallows, nonsense, half_nonsense, unknown_word, exits, acancels, too_many, endless,
]  # fmt: skip
TIMED_OUT = {hangs, ahangs, swallows, endless}


class Tool:
    def __init__(self) -> None:
        self.ran = 0

    def __call__(self, x: int = 0) -> str:
        self.ran += 1
        return "ran"


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("event", BEFORE)
@pytest.mark.parametrize("hook", BAD, ids=lambda hook: hook.__name__)
def test_a_hook_that_fails_before_the_tool_blocks_the_call(
    hook: Any, event: str, asynchronous: bool
) -> None:
    hooks, tool = Hooks(), Tool()
    hooks.add(hook, event, timeout=0.1, hook_id="bad")
    policy = "ask" if event == "permission_request" else "allow"
    with capture(
        policy=StaticEngine(policy), hooks=hooks, approver=FixedApprover(None)
    ) as captured:
        handle = captured.governor.govern(tool, name="t").tool
        began = time.monotonic()
        result = asyncio.run(handle.ainvoke()) if asynchronous else handle.invoke()
        took = time.monotonic() - began
        assert tool.ran == 0
        assert result.status == "denied"
        assert result.error is not None
        assert result.error.error_class == "hook_failed"
        assert "bad" in result.error.message
        assert ("took too long" in result.error.message) is (hook in TIMED_OUT)
        assert "s3cr3t" not in repr(result)
        assert "s3cr3t" not in repr(captured.events)
        # asyncio.run itself waits for what swallowed its cancellation
        if not asynchronous or hook is not swallows:
            assert took < HANGS_S
        (event_,) = [e for e in captured.events if e.event_type == "tool.hook.pre.completed"]
        assert event_.data["agenttool.hook.error"]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    "hook", [raises, araises, hangs, ahangs, nonsense], ids=lambda hook: hook.__name__
)
def test_a_hook_may_fail_before_the_tool_only_if_registered_so(
    hook: Any, asynchronous: bool
) -> None:
    hooks, tool = Hooks(), Tool()
    hooks.add(hook, "pre_tool_use", timeout=0.1, on_failure="continue")
    hooks.add(hook, "permission_decision", timeout=0.1, on_failure="continue")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governor = captured.governor
        handle = governor.govern(tool, name="t").tool
        call, target = handle.plan({}), handle.json_target()
        steps = governor.pipeline.run(call, target)
        call = asyncio.run(arun(call, steps)) if asynchronous else run(call, steps)
        assert call.ran
        assert [record.failure["effect"] for record in call.decision.hook_records] == [
            "continue"
        ] * 2
        assert call.decision.hook_records[0].failure["timed_out"] is (hook in TIMED_OUT)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("hook", BAD, ids=lambda hook: hook.__name__)
def test_a_hook_that_fails_after_the_tool_leaves_the_result(hook: Any, asynchronous: bool) -> None:
    hooks, tool, later = Hooks(), Tool(), []
    hooks.add(hook, "post_tool_use", timeout=0.1, hook_id="bad")
    hooks.add(lambda ctx: later.append(ctx.result), "post_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        handle = captured.governor.govern(tool, name="t").tool
        result = asyncio.run(handle.ainvoke()) if asynchronous else handle.invoke()
        assert result.status == "succeeded"
        assert result.value == "ran"
        assert result.is_error is False
        assert result.error is not None
        assert result.error.error_class == "post_hook_failed"
        assert captured.span.attributes["agenttool.invocation.status"] == "succeeded"
        assert captured.span.status.is_unset
        completed = [e for e in captured.events if e.event_type == "tool.hook.post.completed"]
        assert completed[0].data["agenttool.hook.error"]
    assert tool.ran == 1
    assert later == ["ran"]


def test_a_failing_hook_does_not_replace_the_tools_own_exception() -> None:
    class Own(Exception):
        pass

    def tool() -> None:
        raise own

    own, hooks, seen = Own("mine"), Hooks(), []
    hooks.add(raises, "post_tool_use_failure")
    hooks.add(seen.append, "post_tool_use_failure")
    hooks.add(lambda ctx: seen.append("wrong"), "post_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        with pytest.raises(Own) as caught:
            captured.governor.govern(tool)()
        assert caught.value is own
        assert captured.span.attributes["agenttool.invocation.status"] == "failed"
    assert len(seen) == 1
    assert seen[0].status == "failed"
    assert seen[0].error["error_class"] == "execution_failed"
    assert seen[0].result is None


async def test_hooks_do_not_block_the_event_loop() -> None:
    hooks = Hooks()
    beaten, waited = threading.Event(), []
    hooks.add(lambda ctx: waited.append(beaten.wait(20)), "pre_tool_use", timeout=30)

    async def heart() -> None:
        for _ in range(5):
            await asyncio.sleep(0.01)
        beaten.set()

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        beating = asyncio.create_task(heart())

        async def tool() -> str:
            return "ran"

        assert await captured.governor.govern(tool)() == "ran"
        await beating
    assert waited == [True]


async def test_cancelling_during_a_hook_runs_nothing_and_is_recorded() -> None:
    for hook in (hangs, ahangs):
        hooks, ran = Hooks(), []
        hooks.add(hook, "pre_tool_use", timeout=20)

        async def tool(ran: Any = ran) -> None:
            ran.append(1)

        with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
            task = asyncio.create_task(captured.governor.govern(tool)())
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert captured.span.attributes["agenttool.invocation.status"] == "canceled"
        assert ran == []


async def test_async_hooks_run_in_the_callers_loop_plain_ones_beside() -> None:
    hooks, seen = Hooks(), []

    @hooks.on("pre_tool_use")
    async def here(ctx: HookContext) -> None:
        seen.append(asyncio.get_running_loop())

    @hooks.on("pre_tool_use")
    def beside(ctx: HookContext) -> None:
        seen.append(threading.current_thread())

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:

        async def tool() -> None: ...

        await captured.governor.govern(tool)()
    assert seen[0] is asyncio.get_running_loop()
    assert seen[1] is not threading.current_thread()


def test_a_plain_caller_in_a_running_loop_can_use_async_hooks() -> None:
    hooks, seen = Hooks(), []

    @hooks.on("pre_tool_use")
    async def here(ctx: HookContext) -> None:
        await asyncio.sleep(0)
        seen.append(1)

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governed = captured.governor.govern(Tool(), name="t")

        async def main() -> str:
            return governed()

        assert asyncio.run(main()) == "ran"
    assert seen == [1]


def test_hooks_see_context_variables_and_change_them_for_nobody() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("v", default="unset")
    hooks, seen = Hooks(), []

    @hooks.on("pre_tool_use")
    def look(ctx: HookContext) -> None:
        seen.append(variable.get())
        variable.set("changed by the hook")

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        variable.set("set by the caller")
        captured.governor.govern(Tool(), name="t")()
    assert seen == ["set by the caller"]
    assert variable.get() == "set by the caller"


def test_a_hook_may_call_a_governed_tool() -> None:
    hooks, tool, looked = Hooks(), Tool(), Tool()
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        look = captured.governor.govern(looked, name="look")
        hooks.add(lambda ctx: Message(look(1)), "pre_tool_use", tool="act")
        assert captured.governor.govern(tool, name="act")() == "ran"
        spans = {span.name: span for span in captured.spans}
        inner, outer = spans["execute_tool look"], spans["execute_tool act"]
        assert inner.parent is not None
        assert inner.parent.span_id == outer.context.span_id
    assert tool.ran == looked.ran == 1


def test_a_generator_is_blocked_before_its_first_item() -> None:
    hooks = Hooks()
    hooks.add(raises, "pre_tool_use")
    ran = []

    def items() -> Any:
        ran.append(1)
        yield 1

    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured, pytest.raises(ToolDenied):
        list(captured.governor.govern(items)())
    assert ran == []


def test_a_pause_raised_after_the_tool_is_the_hooks_failure() -> None:
    """Passed on, it would make a framework run the node, and so the tool, a second time."""
    errors = pytest.importorskip("langgraph.errors")
    hooks, tool = Hooks(), Tool()

    def pause(ctx: HookContext) -> None:
        raise errors.GraphInterrupt(())

    hooks.add(pause, "post_tool_use")
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        assert captured.governor.govern(tool, name="t")() == "ran"
    assert tool.ran == 1


def test_a_hook_that_is_left_behind_keeps_nobody_waiting() -> None:
    released = threading.Event()
    hooks = Hooks()
    hooks.add(lambda ctx: released.wait(20), "post_tool_use", timeout=0.05)
    with capture(policy=StaticEngine("allow"), hooks=hooks) as captured:
        governed = captured.governor.govern(Tool(), name="t")
        began = time.monotonic()
        assert [governed() for _ in range(5)] == ["ran"] * 5
        assert time.monotonic() - began < 15, "one of them alone would hang for 20 s"
    left = [thread for thread in threading.enumerate() if thread.name.startswith("agenttool-hook")]
    assert all(thread.daemon for thread in left)
    released.set()
