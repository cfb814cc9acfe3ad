"""A hook's deadline begins when the hook does; the wait for its turn has a bound of its own, and is
named.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from agenttool_otel import Hooks, ToolDenied
from agenttool_otel.hooks import running
from agenttool_otel.testing import StaticEngine, capture


class LateThread(threading.Thread):
    """A thread that gets its first turn late, as on a machine that is busy."""

    def run(self) -> None:
        if self.name.startswith("agenttool-hook"):
            time.sleep(0.5)
        super().run()


def hooked(function: Any, timeout: float) -> Hooks:
    hooks = Hooks()
    hooks.on("pre_tool_use", timeout=timeout)(function)
    return hooks


def test_a_plain_hook_that_begins_late_is_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Thread", LateThread)
    with capture(policy=StaticEngine("allow"), hooks=hooked(lambda context: None, 0.2)) as captured:
        assert captured.governor.govern(lambda: "done", name="act")() == "done"


async def test_a_plain_hook_of_an_async_call_may_begin_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading, "Thread", LateThread)

    async def act() -> str:
        return "done"

    with capture(policy=StaticEngine("allow"), hooks=hooked(lambda context: None, 0.2)) as captured:
        assert await captured.governor.govern(act)() == "done"


async def test_an_async_hook_begins_when_the_loop_is_free() -> None:
    async def hook(context: Any) -> None:
        return None

    async def act() -> str:
        return "done"

    async def busy() -> None:
        for _ in range(6):
            time.sleep(0.05)  # noqa: ASYNC251 - as a loop that is busy
            await asyncio.sleep(0)

    with capture(policy=StaticEngine("allow"), hooks=hooked(hook, 0.1)) as captured:
        governed = captured.governor.govern(act)
        done = await asyncio.gather(*(governed() for _ in range(20)), busy(), busy())
    assert done[:20] == ["done"] * 20


def test_a_hook_that_never_begins_is_told_from_a_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MAX_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(threading, "Thread", LateThread)
    ran: list[int] = []
    with capture(
        policy=StaticEngine("allow"), hooks=hooked(lambda context: ran.append(1), 5)
    ) as captured:
        with pytest.raises(ToolDenied, match="got no turn"):
            captured.governor.govern(lambda: "done", name="act")()
        time.sleep(0.8)
    assert ran == []  # nor does it begin when nobody waits for it any more


def test_a_hook_that_takes_too_long_is_still_stopped() -> None:
    with capture(
        policy=StaticEngine("allow"), hooks=hooked(lambda context: time.sleep(2), 0.1)
    ) as captured:
        began = time.monotonic()
        with pytest.raises(ToolDenied, match="took too long"):
            captured.governor.govern(lambda: "done", name="act")()
        assert time.monotonic() - began < 1.5
