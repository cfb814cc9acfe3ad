"""Run one hook within its deadline, whatever it does: raise, hang, swallow its cancellation, answer nonsense.

Python can't stop a running function. A plain hook therefore runs in a thread of its own, which is left behind when its
time is over; an asynchronous one runs as a task that is cancelled and not waited for, or, for a synchronous caller, in
a private event loop in such a thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from agenttool_otel.hooks.context import HookContext
from agenttool_otel.hooks.outputs import OUTPUT_TYPES, HookOutput
from agenttool_otel.hooks.registry import Hook

_MAX_OUTPUTS = 64


class _Expired(Exception):
    """The time of a hook is over; a TimeoutError of its own is not that."""


class HookRun(NamedTuple):
    """What one run of a hook came to."""

    outputs: tuple[HookOutput, ...] = ()  # its outputs, in order
    exception: BaseException | None = None  # what it raised; never shown, only its type
    timed_out: bool = False  # its time was over

    @property
    def failed(self) -> bool:
        """Whether it raised, hung or answered nonsense."""
        return self.timed_out or self.exception is not None


def run_hook(hook: Hook, context: HookContext) -> HookRun:
    """Run a hook from synchronous code."""
    box: list[HookRun] = []
    _start(hook, context, box.append).join(hook.timeout)
    return box[0] if box else HookRun(timed_out=True)


async def arun_hook(hook: Hook, context: HookContext) -> HookRun:
    """Run a hook from asynchronous code without blocking the event loop."""
    if hook.is_async:
        return await _await_hook(hook, context)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[HookRun] = loop.create_future()

    def settle(run: HookRun) -> None:
        """Give the run to whoever still waits."""
        if not done.done():
            done.set_result(run)

    def tell(run: HookRun) -> None:
        """Pass the run from the hook's thread to the loop."""
        try:
            loop.call_soon_threadsafe(settle, run)
        except RuntimeError:  # the loop is gone, and with it whoever waited
            return

    _start(hook, context, tell)
    try:
        async with asyncio.timeout(hook.timeout):
            return await asyncio.shield(done)
    except TimeoutError:
        done.cancel()
        return HookRun(timed_out=True)


def _start(hook: Hook, context: HookContext, tell: Callable[[HookRun], None]) -> threading.Thread:
    variables = contextvars.copy_context()

    def body() -> None:
        try:
            answer = variables.run(_call, hook, context)
            run = HookRun(outputs_of(answer))
        except _Expired:
            run = HookRun(timed_out=True)
        except BaseException as error:
            run = HookRun(exception=error)
        tell(run)

    worker = threading.Thread(target=body, name=f"agenttool-hook-{hook.hook_id}", daemon=True)
    worker.start()
    return worker


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
    async def body() -> Any:
        return await _collected(hook.function(context))

    task = asyncio.ensure_future(body())
    try:
        await asyncio.wait({task}, timeout=hook.timeout)
    except BaseException:
        task.cancel()
        raise
    if not task.done():
        task.cancel()  # it may swallow that; nobody waits for it
        task.add_done_callback(_forget)
        return HookRun(timed_out=True)
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
