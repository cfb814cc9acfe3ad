"""Calls that would wait for each other for ever: one fails and may be sent again."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agenttool_otel import (
    BatchCall,
    Governor,
    ToolCanceled,
    ToolUnavailable,
    agent_context,
    current_call,
)
from agenttool_otel.testing import StaticEngine

SECONDS = 20


def governor(**options: Any) -> Governor:
    return Governor(policy=StaticEngine("allow"), policy_timeout=60, **options)


def ring(size: int, **options: Any) -> tuple[Governor, list[Any]]:
    """Tools in a circle: each holds a lock of its own and calls the next, all at the same time."""
    of, tools, together = governor(**options), [], threading.Barrier(size)

    def make(number: int) -> Any:
        @of.govern(name=f"tool_{number}", resource_locks=[f"lock_{number}"], concurrency_safe=True)
        def tool(deep: bool = True) -> str:
            if not deep:
                return "done"
            together.wait(SECONDS)
            return str(tools[(number + 1) % size](deep=False))

        return tool

    tools += [make(number) for number in range(size)]
    return of, tools


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """What each returns or raises, all at the same time; a thread that hangs fails the test."""
    found: list[Any] = [None] * len(functions)

    def run(number: int) -> None:
        try:
            found[number] = functions[number]()
        except BaseException as error:
            found[number] = error

    threads = [
        threading.Thread(target=run, args=(number,), daemon=True)
        for number in range(len(functions))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads)
    return found


@pytest.mark.parametrize("size", [2, 3, 5])
def test_one_call_of_a_circle_fails_and_the_others_run(size: int) -> None:
    _, tools = ring(size)
    found = in_threads(*tools)
    assert [type(one) for one in found if one != "done"] == [ToolUnavailable]


def test_the_call_that_fails_says_that_it_may_be_sent_again() -> None:
    _, tools = ring(2)
    [error] = [one for one in in_threads(*tools) if one != "done"]
    assert error.error_class == "dependency_unavailable"
    assert error.result.error.recoverability.value == "retry_later"
    assert "lock_" in str(error)


def test_locks_of_a_broken_circle_are_free_again() -> None:
    _, tools = ring(2)
    in_threads(*tools)
    assert [tool(deep=False) for tool in tools] == ["done", "done"]


def test_a_circle_of_a_batch_ends() -> None:
    of, tools = ring(2)
    results = in_threads(lambda: of.batch([BatchCall(tool, {}) for tool in tools]))[0]
    assert sorted(result.status.value for result in results) == ["failed", "succeeded"]


async def test_a_circle_of_tasks_ends() -> None:
    of, tools = governor(), []
    together = asyncio.Barrier(2)

    def make(number: int) -> Any:
        @of.govern(name=f"tool_{number}", resource_locks=[f"lock_{number}"])
        async def tool(deep: bool = True) -> str:
            if deep:
                await together.wait()
                return str(await tools[1 - number](deep=False))
            return "done"

        return tool

    tools += [make(0), make(1)]
    found = await asyncio.wait_for(
        asyncio.gather(tools[0](), tools[1](), return_exceptions=True), SECONDS
    )
    assert sorted(type(one).__name__ for one in found) == ["ToolUnavailable", "str"]


def test_a_circle_through_two_calls_of_one_session_ends() -> None:
    of, together = governor(), threading.Barrier(2)

    @of.govern(requires_exclusive_context=True)
    def alone(deep: bool = True) -> str:
        if deep:
            together.wait(SECONDS)
            return str(locked(deep=False))
        return "done"

    @of.govern(resource_locks=["db"])
    def locked(deep: bool = True) -> str:
        if deep:
            together.wait(SECONDS)
            return str(alone(deep=False))
        return "done"

    def within(tool: Any) -> Any:
        with agent_context(actor="agent:a", session_id="one"):
            return tool()

    found = in_threads(lambda: within(alone), lambda: within(locked))
    assert sorted(type(one).__name__ for one in found) == ["ToolUnavailable", "str"]


def test_who_waits_behind_a_holder_is_overtaken_by_its_own_calls() -> None:
    of, holds, queued = governor(), threading.Event(), threading.Event()

    @of.govern(resource_locks=["b"])
    def outer() -> str:
        holds.set()
        queued.wait(SECONDS)
        time.sleep(0.2)
        return str(inner())

    @of.govern(resource_locks=["a"])
    def inner() -> str:
        return "inner"

    @of.govern(resource_locks=["a", "b"])
    def both() -> str:
        return "both"

    def late() -> Any:
        holds.wait(SECONDS)
        queued.set()
        return both()

    assert in_threads(outer, late) == ["inner", "both"]


def test_a_wait_for_a_lock_has_a_limit() -> None:
    of, entered, leave = governor(lock_timeout=0.2), threading.Event(), threading.Event()

    @of.govern(resource_locks=["db"])
    def holder() -> None:
        entered.set()
        leave.wait(SECONDS)

    @of.govern(resource_locks=["db"])
    def waits() -> None:
        raise AssertionError("it has no lock")

    def late() -> Any:
        entered.wait(SECONDS)
        try:
            return waits()
        finally:
            leave.set()

    _, error = in_threads(holder, late)
    assert isinstance(error, ToolUnavailable)
    assert "0.2 s" in str(error)


@pytest.mark.covers("cancellation-reaches-inner-calls")
def test_who_stops_a_call_stops_the_call_that_it_waits_for() -> None:
    of, entered, leave, outer_id = governor(), threading.Event(), threading.Event(), []

    @of.govern(resource_locks=["db"])
    def holder() -> None:
        entered.set()
        leave.wait(SECONDS)

    @of.govern(resource_locks=["db"])
    def inner() -> None:
        raise AssertionError("it has no lock")

    @of.govern()
    def outer() -> None:
        outer_id.append(current_call().invocation_id)  # type: ignore[union-attr]
        inner()

    def stop() -> None:
        entered.wait(SECONDS)
        while not outer_id:
            time.sleep(0.01)
        time.sleep(0.2)
        of.cancel(outer_id[0], "stop")

    def late() -> Any:
        entered.wait(SECONDS)
        try:
            return outer()
        finally:
            leave.set()

    found = in_threads(holder, late, stop)
    assert isinstance(found[1], ToolCanceled)


def test_a_call_that_ended_is_not_stopped_with_the_one_around_it() -> None:
    of, seen = governor(), []

    @of.govern(supports_cancel=True)
    def inner() -> None:
        seen.append(current_call())

    @of.govern(supports_cancel=True)
    def outer() -> None:
        inner()
        of.cancel(current_call().invocation_id, "stop")  # type: ignore[union-attr]

    in_threads(outer)
    assert seen[0].cancellation is None


def test_a_batch_in_a_full_executor_waits_for_no_place() -> None:
    of = governor()
    with ThreadPoolExecutor(1) as pool:

        @of.govern()
        def inner(number: int) -> int:
            return number

        @of.govern()
        def outer() -> list[Any]:
            return [
                one.value
                for one in of.batch(
                    [BatchCall(inner, {"number": n}) for n in range(3)], executor=pool
                )
            ]

        [result] = in_threads(lambda: of.batch([BatchCall(outer, {})], executor=pool))[0]
    assert result.value == [0, 1, 2]


def test_to_stop_a_call_that_has_ended_is_no_error() -> None:
    of, ids = governor(), []

    @of.govern()
    def tool() -> None:
        ids.append(current_call().invocation_id)  # type: ignore[union-attr]

    tool()
    assert of.cancel(ids[0], "too late").outcome == "cancel_failed"
