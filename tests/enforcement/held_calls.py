"""Bodies that try what a sandbox refuses, and the ways to run them: each holds its body, or refuses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenttool_otel import (
    ApprovalAnswer,
    ApprovalRequired,
    BatchCall,
    GovernedOutcome,
    agent_context,
)
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.testing import Capture, StaticEngine, decision
from function_engine import FunctionEngine

READ = {"sandbox": {"profile": "read", "network": "none"}}
FACTS: dict[str, Any] = {"read_only": True, "access_kinds": [], "concurrency_safe": True}
RETRY = {"max_attempts": 3, "initial_delay_ms": 1, "retry_on": ["execution_failed"]}


def held(behavior: str = "allow") -> StaticEngine:
    """A policy that obliges the profile read."""
    return StaticEngine(decision(behavior, obligations=READ))


def held_when_asked() -> FunctionEngine:
    """A policy that obliges the profile in its question alone, and not once that is answered."""
    return FunctionEngine(
        lambda document: (
            decision("allow") if document["approval"] else decision("ask", obligations=READ)
        )
    )


def write(path: str) -> str:
    """Write a file."""
    Path(path).write_text("written", "utf-8")
    return "wrote"


def write_behind_a_coroutine(path: str) -> Any:
    """Return a coroutine that would write a file where nothing holds it."""
    return awrite(path)


async def awrite(path: str) -> str:
    """Write a file."""
    return write(path)


def write_bit_by_bit(path: str) -> Iterator[str]:
    """Write a file when an item is asked for."""
    yield write(path)


async def awrite_bit_by_bit(path: str) -> AsyncIterator[str]:
    """Write a file when an item is asked for."""
    yield write(path)


class InPlace(Executor):
    """An executor of one's own, of which nobody knows where it runs a body."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@dataclass
class Run:
    """One call of a body that writes to a place."""

    captured: Capture
    place: str

    def govern(self, function: Callable[..., Any], **facts: Any) -> Any:
        return self.captured.governor.govern(function, name="write", **FACTS, **facts)

    def call(self, function: Callable[..., Any] = write, **facts: Any) -> Any:
        return self.govern(function, **facts)(self.place)

    def batch(self, executor: Executor | None = None, function: Any = write) -> Any:
        calls = [BatchCall(self.govern(function), {"path": self.place})]
        return self.captured.governor.batch(calls, executor=executor)

    async def abatch(self, executor: Executor | None = None, function: Any = write) -> Any:
        calls = [BatchCall(self.govern(function), {"path": self.place})]
        return await self.captured.governor.abatch(calls, executor=executor)

    def approved(self) -> str:
        try:
            self.call()
        except ApprovalRequired as asked:
            answer = ApprovalAnswer(approved=True, answered_by="user:ada")
            self.captured.governor.approvals.store.answer(asked.request_id, answer)
            self.captured.clear()
            return asked.invocation_id
        raise AssertionError("nobody was asked")


async def _all(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


def _with(kind: Callable[[], Executor], run: Callable[[Executor], Any]) -> Any:
    with kind() as executor:
        return run(executor)


def _processes() -> Executor:
    return ProcessPoolExecutor(1)


def _threads() -> Executor:
    return ThreadPoolExecutor(1)


HOLDS: dict[str, Callable[[Run], Any]] = {
    "call": lambda run: run.call(),
    "invoke": lambda run: run.govern(write).tool.invoke(path=run.place),
    "ainvoke": lambda run: asyncio.run(run.govern(write).tool.ainvoke(path=run.place)),
    "time limit": lambda run: run.call(timeout_ms=60_000),
    "ainvoke, time limit": lambda run: asyncio.run(
        run.govern(write, timeout_ms=60_000).tool.ainvoke(path=run.place)
    ),
    "retries": lambda run: run.call(retry=RETRY),
    "batch": lambda run: run.batch(),
    "abatch": lambda run: asyncio.run(run.abatch()),
    "batch, threads": lambda run: _with(_threads, run.batch),
    "abatch, threads": lambda run: _with(_threads, lambda pool: asyncio.run(run.abatch(pool))),
}
"""Ways that hold a body."""

LATER: dict[str, Callable[[Run], Any]] = {
    "a coroutine": lambda run: run.call(write_behind_a_coroutine),
    "a generator": lambda run: run.call(lambda path: write_bit_by_bit(path)),
    "a map": lambda run: run.call(lambda path: map(write, [path])),
}
"""Bodies that return what would run outside of what holds them."""

REFUSES: dict[str, Callable[[Run], Any]] = {
    "coroutine": lambda run: asyncio.run(run.call(awrite)),
    "coroutine, ainvoke": lambda run: asyncio.run(run.govern(awrite).tool.ainvoke(path=run.place)),
    "coroutine, threads": lambda run: _with(
        _threads, lambda pool: asyncio.run(run.abatch(pool, awrite))
    ),
    "generator": lambda run: list(run.call(write_bit_by_bit)),
    "generator, invoke": lambda run: run.govern(write_bit_by_bit).tool.invoke(path=run.place),
    "async generator": lambda run: asyncio.run(_all(run.call(awrite_bit_by_bit))),
    "async generator, ainvoke": lambda run: asyncio.run(
        run.govern(awrite_bit_by_bit).tool.ainvoke(path=run.place)
    ),
    "batch, processes": lambda run: _with(_processes, run.batch),
    "abatch, processes": lambda run: _with(_processes, lambda pool: asyncio.run(run.abatch(pool))),
    "batch, an own executor": lambda run: _with(InPlace, run.batch),
    "abatch, an own executor": lambda run: _with(
        InPlace, lambda pool: asyncio.run(run.abatch(pool))
    ),
    "custom tool": lambda run: run.call(ownership="custom"),
    "runs elsewhere": lambda run: run.call(runs_elsewhere=True),
    "runs elsewhere, coroutine": lambda run: asyncio.run(
        run.call(awrite, runs_elsewhere=True, runs_commands=True)
    ),
}
"""Ways that can't hold a body, and so run none."""


def run_by(way: Callable[[Run], Any], captured: Capture, place: Path) -> BaseException | None:
    """Run one way; return what its caller got in place of a result."""
    with agent_context(actor="agent:a", session_id="s-1", interactive=True):
        try:
            way(Run(captured, str(place)))
        except (GovernedOutcome, SandboxUnavailable, OSError, TypeError) as error:
            return error
    return None
