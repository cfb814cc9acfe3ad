"""Run one hook within its deadline, whatever it does: raise, hang, swallow its cancellation, answer
nonsense.

Python can't stop a running function. A plain hook therefore runs in a thread of its own, which is
left behind when its time is over; an asynchronous one runs as a task that is cancelled and not
waited for, or, for a synchronous caller, in a private event loop in such a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from agenttool_otel.hooks.context import HookContext
from agenttool_otel.hooks.outputs import OUTPUT_TYPES, HookOutput
from agenttool_otel.hooks.registry import Hook

_MAX_OUTPUTS = 64
MAX_WAIT_SECONDS = 60.0
"""So long a hook waits at most for its turn, where a process has more to do than it can."""


class _Expired(Exception):
    """The time of a hook is over; a TimeoutError of its own is not that."""


class HookRun(NamedTuple):
    """What one run of a hook came to."""

    outputs: tuple[HookOutput, ...] = ()  # its outputs, in order
    exception: BaseException | None = None  # what it raised; never shown, only its type
    timed_out: bool = False  # its time was over
    no_turn: bool = False  # it never began: the process was too busy

    @property
    def failed(self) -> bool:
        """Whether it raised, hung, answered nonsense or never began."""
        return self.timed_out or self.no_turn or self.exception is not None


class _Turn:
    """The wait for a hook to begin, which has a bound of its own, and then for its end."""

    def __init__(self, hook: Hook) -> None:
        self._timeout = hook.timeout
        self._asked = time.monotonic()
        self._began: float | None = None
        self._given_up = False
        self.run: HookRun | None = None

    def begin(self) -> bool:
        """Start the hook's deadline; false where nobody waits for the hook any more."""
        self._began = time.monotonic()
        return not self._given_up

    def left(self) -> float:
        """Return the seconds that are left: until the hook has to begin, or to be done."""
        began = self._began
        ends = self._asked + MAX_WAIT_SECONDS if began is None else began + self._timeout
        return ends - time.monotonic()

    def outcome(self) -> HookRun:
        """Return what the run came to, as far as it came."""
        self._given_up = True
        if self.run is not None:
            return self.run
        return HookRun(no_turn=True) if self._began is None else HookRun(timed_out=True)


def run_hook(hook: Hook, context: HookContext) -> HookRun:
    """Run a hook from synchronous code."""
    turn, ended = _Turn(hook), threading.Event()
    _start(hook, context, turn, ended.set)
    while (left := turn.left()) > 0 and not ended.wait(min(left, hook.timeout)):
        continue
    return turn.outcome()


async def arun_hook(hook: Hook, context: HookContext) -> HookRun:
    """Run a hook from asynchronous code without blocking the event loop."""
    if hook.is_async:
        return await _await_hook(hook, context)
    loop = asyncio.get_running_loop()
    turn, done = _Turn(hook), asyncio.Event()

    def wake() -> None:
        """Notify the loop that the hook's thread is done."""
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it the waiting code
            loop.call_soon_threadsafe(done.set)

    _start(hook, context, turn, wake)
    while turn.run is None and (left := turn.left()) > 0:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(left, hook.timeout)):
                await done.wait()
    return turn.outcome()


def _start(hook: Hook, context: HookContext, turn: _Turn, wake: Callable[[], object]) -> None:
    variables = contextvars.copy_context()

    def body() -> None:
        if not turn.begin():
            return
        try:
            answer = variables.run(_call, hook, context)
            turn.run = HookRun(outputs_of(answer))
        except _Expired:
            turn.run = HookRun(timed_out=True)
        except BaseException as error:
            turn.run = HookRun(exception=error)
        wake()

    threading.Thread(target=body, name=f"agenttool-hook-{hook.hook_id}", daemon=True).start()


def _call(hook: Hook, context: HookContext) -> Any:
    answer = hook.function(context)
    if inspect.isasyncgen(answer) or inspect.isawaitable(answer):
        return asyncio.run(_bounded(answer, hook.timeout))
    if inspect.isgenerator(answer):
        return list(answer)
    return answer


async def _bounded(answer: Any, timeout: float) -> Any:
    """Cancel an asynchronous hook that nobody waits for any more, so that its thread ends."""
    deadline: asyncio.Timeout | None = None
    try:
        async with asyncio.timeout(timeout) as deadline:
            return await _collected(answer)
    except TimeoutError:
        if deadline is not None and deadline.expired():
            raise _Expired from None
        raise


async def _collected(answer: Any) -> Any:
    return [output async for output in answer] if inspect.isasyncgen(answer) else await answer


async def _await_hook(hook: Hook, context: HookContext) -> HookRun:
    turn = _Turn(hook)

    async def body() -> Any:
        turn.begin()
        return await _collected(hook.function(context))

    task = asyncio.ensure_future(body())
    try:
        while not task.done() and (left := turn.left()) > 0:
            await asyncio.wait({task}, timeout=min(left, hook.timeout))
    except BaseException:
        task.cancel()
        raise
    if not task.done():
        task.cancel()  # it may swallow that; nobody waits for it
        task.add_done_callback(_forget)
        return turn.outcome()
    if task.cancelled():
        return HookRun(exception=asyncio.CancelledError())
    if (error := task.exception()) is not None:
        return HookRun(exception=error)
    try:
        return HookRun(outputs_of(task.result()))
    except Exception as wrong:
        return HookRun(exception=wrong)


def _forget(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not complain that nobody did


def outputs_of(answer: Any) -> tuple[HookOutput, ...]:
    """Read what a hook returned."""
    if answer is None:
        return ()
    if isinstance(answer, OUTPUT_TYPES):
        return (answer,)
    if not isinstance(answer, (list, tuple)):
        raise TypeError(f"a hook returns outputs, not {type(answer).__name__}")
    if len(answer) > _MAX_OUTPUTS:
        raise ValueError(f"a hook returned more than {_MAX_OUTPUTS} outputs")
    for output in answer:
        if not isinstance(output, OUTPUT_TYPES):
            raise TypeError(f"a hook returns outputs, not {type(output).__name__}")
    return tuple(answer)
