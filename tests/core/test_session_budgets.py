"""A budget holds for calls that run at the same time: a call counts from the moment it is
decided.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import pytest

from agenttool_otel import ApprovalRequired, Governor, ToolDenied, agent_context
from agenttool_otel.context.context import AgentContext
from agenttool_otel.testing import decision
from function_engine import FunctionEngine


def one_call() -> Governor:
    return Governor(policy_data={"agenttool": {"settings": {"budgets": {"session": {"calls": 1}}}}})


READS: dict[str, Any] = {
    "read_only": True,
    "access_kinds": ["file_read"],
    "write_effects": ["none"],
}


def test_calls_at_the_same_time_stay_within_the_budget() -> None:
    governor, inside = one_call(), threading.Event()

    @governor.govern(**READS)
    def look() -> str:
        inside.wait(120)
        return "ran"

    def work() -> str:
        with agent_context(actor="agent:a", session_id="s"):
            start.wait(120)
            try:
                return look()
            except ToolDenied:
                return "denied"

    start = threading.Barrier(6)
    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(work) for _ in range(6)]
        # while the one let through still runs
        refused = list(itertools.islice(as_completed(calls, timeout=120), 5))
        inside.set()
        assert [call.result() for call in refused] == ["denied"] * 5
    assert sorted(call.result() for call in calls) == ["denied"] * 5 + ["ran"]


async def test_the_same_in_an_event_loop() -> None:
    governor, ran = one_call(), []

    @governor.govern(**READS)
    async def look() -> None:
        ran.append(1)
        await asyncio.sleep(0.05)

    with agent_context(actor="agent:a", session_id="s"):
        results = await asyncio.gather(*(look() for _ in range(6)), return_exceptions=True)
    assert ran == [1]
    assert sum(isinstance(result, ToolDenied) for result in results) == 5


def test_what_is_not_let_through_spends_nothing() -> None:
    answers = iter(["deny", "ask", "allow"])
    seen: list[int] = []

    def policy(document: Any) -> dict[str, Any]:
        seen.append(document["session"]["counters"]["calls"])
        return decision(next(answers, "allow"))

    governor = Governor(policy=FunctionEngine(policy))
    act = governor.govern(lambda: 1, name="act")
    with agent_context(actor="agent:a", session_id="s"):
        with pytest.raises(ToolDenied):
            act()
        with pytest.raises(ApprovalRequired):
            act()
        act()
        act.tool.check()
        act()
    assert seen == [0, 0, 0, 1, 1]


def test_a_call_inside_a_call_sees_the_outer_one() -> None:
    seen: list[int] = []

    def policy(document: Any) -> dict[str, Any]:
        seen.append(document["session"]["counters"]["calls"])
        return decision("allow")

    governor = Governor(policy=FunctionEngine(policy))
    inner = governor.govern(lambda: 1, name="inner")
    outer = governor.govern(lambda: inner(), name="outer")
    with agent_context(actor="agent:a", session_id="s"):
        outer()
    assert seen == [0, 1]


def test_no_session_is_taken_for_another() -> None:
    contexts = [
        AgentContext(actor="x"),
        AgentContext(session_id="anonymous:x"),
        AgentContext(tenant="a\x00b", session_id="c"),
        AgentContext(tenant="a", session_id="b\x00c"),
    ]
    assert len({context.session_key for context in contexts}) == len(contexts)
