"""Run the pipeline: one driver performs its steps, the other awaits them, and both stop before a
stream's body.

A call's span is current while its steps are performed, so that whatever is done for it nests
under it; it is not current in the pipeline's own code, nor in that of the caller.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace

from agenttool_otel.call.envelope import outcome_of, to_result
from agenttool_otel.call.executors import submit, takes
from agenttool_otel.call.invocation import NOT_RUN, Invocation
from agenttool_otel.call.running.handle import CallHandle, running_body
from agenttool_otel.call.steps import Attempt, Call, Execute, Step
from agenttool_otel.errors import UnsupportedEventLoop
from agenttool_otel.records import ToolResult

Steps = Generator[Any, Any, Invocation]
"""A pipeline in progress: yields steps, returns the invocation in its terminal state."""


def run(call: Invocation, steps: Steps) -> Invocation:
    """Perform every step, the tool's body included."""
    advance(call, steps, through=True)
    return call


async def arun(call: Invocation, steps: Steps) -> Invocation:
    """Await every step, the tool's body included."""
    await aadvance(call, steps, through=True)
    return call


async def aresult(call: Invocation, steps: Steps) -> ToolResult:
    """Await every step and return the envelope; that the caller's own task is canceled is no
    outcome of the call.
    """
    await arun(call, steps)
    if isinstance(call.exception, asyncio.CancelledError):
        raise call.exception
    return to_result(call)


def advance(
    call: Invocation, steps: Steps, result: Any = None, *, through: bool = False
) -> Execute | None:
    """Perform steps until the tool's body is due, or the call has ended without it.

    Args:
        call: the call.
        steps: its pipeline.
        result: result of the step that the pipeline waits for.
        through: perform the body too, and everything after it.

    Returns:
        The body's step, or ``None`` at the end.
    """
    token = None
    error: BaseException | None = None
    try:
        step: Step = steps.send(result)
        # the first step exists because the pipeline has begun the call, and so its span
        token = otel_context.attach(trace.set_span_in_context(call.span))
        while through or not isinstance(step, Execute):
            try:
                if isinstance(step, Execute):
                    result = run_body(call, step)
                else:
                    result = step.function(*step.args, **step.kwargs)
            except BaseException as raised:
                error = raised
            # not in the handler: what the pipeline raises itself is not raised "during" this error
            step = steps.send(result) if error is None else steps.throw(error)
            error = None
        return step
    except StopIteration:
        return None
    finally:
        del error
        if token is not None:
            otel_context.detach(token)


async def aadvance(
    call: Invocation, steps: Steps, result: Any = None, *, through: bool = False
) -> Execute | None:
    """The same, awaiting the steps: what differs from ``advance`` stands in ``aperform``."""
    token = None
    error: BaseException | None = None
    try:
        step: Step = steps.send(result)
        token = otel_context.attach(trace.set_span_in_context(call.span))
        unsupported = unsupported_loop()
        if unsupported is not None:
            # into a pipeline that has begun, which makes a denial of it: thrown into one that
            # has not, it would be raised to the caller by a call without a span
            step = steps.throw(unsupported)
        while through or not isinstance(step, Execute):
            try:
                if isinstance(step, Execute):
                    result = await arun_body(call, step)
                else:
                    result = await aperform(step)
            except GeneratorExit as closed:
                # the coroutine was closed where it waits: nothing can be awaited any more
                if isinstance(step, Execute):
                    advance(call, steps, Attempt(exception=closed), through=True)
                    raise
                error = closed
            except BaseException as raised:
                error = raised
            step = steps.send(result) if error is None else steps.throw(error)
            error = None
        return step
    except StopIteration:
        return None
    finally:
        del error
        if token is not None:
            otel_context.detach(token)


async def aperform(step: Call) -> Any:
    """Await one step; without an asynchronous form it runs in a worker thread.

    Args:
        step: what may block.
    """
    if step.afunction is not None:
        return await step.afunction(*step.args, **step.kwargs)
    return await asyncio.to_thread(step.function, *step.args, **step.kwargs)


def unsupported_loop() -> UnsupportedEventLoop | None:
    """Return what is wrong where no asyncio loop runs; ``None`` where it does."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return UnsupportedEventLoop(
            "asynchronous calls need a running asyncio loop; trio is not supported: call the plain form of the tool in "
            "a thread (trio.to_thread.run_sync), or run the program on asyncio"
        )
    return None


def run_body(call: Invocation, step: Execute) -> Attempt:
    """Run a plain callable here, on the call's executor, or in a thread of its own when its time is
    limited.
    """
    if call.executor is None and step.timeout is None:
        return run_here(call.handle, step.target, step.args, step.kwargs)
    inside = running_body.set(call.handle)
    try:
        if call.executor is not None:
            return _wait_for(call, step, call.executor)
        return _run_limited(call, step, step.timeout or 0.0)
    except BaseException as error:
        return Attempt(exception=error)
    finally:
        running_body.reset(inside)


def run_here(
    handle: CallHandle | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Attempt:
    """Run a plain callable in this thread."""
    inside = running_body.set(handle)
    try:
        return Attempt(function(*args, **kwargs))
    except BaseException as error:
        return Attempt(exception=error)
    finally:
        running_body.reset(inside)


async def arun_body(call: Invocation, step: Execute) -> Attempt:
    """Await a coroutine function or an executor, or run a plain callable off the loop when its time
    is limited.
    """
    executor = call.executor
    if executor is not None and not takes(executor, step):
        executor = None
    if executor is None and not step.is_async:
        if step.timeout is None:
            return run_body(call, step)
        return await asyncio.to_thread(run_body, call, step)
    if executor is None and step.timeout is None:
        return await await_here(call.handle, step.target, step.args, step.kwargs)
    inside = running_body.set(call.handle)
    try:
        return await _await_body(call, step, executor)
    finally:
        running_body.reset(inside)


async def await_here(
    handle: CallHandle | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Attempt:
    """Await a coroutine function in this task."""
    inside = running_body.set(handle)
    stop = _Stop(handle)
    try:
        with stop:
            return Attempt(await function(*args, **kwargs))
    except BaseException as error:
        return stop.attempt(error)
    finally:
        running_body.reset(inside)


async def _await_body(
    call: Invocation, step: Execute, executor: concurrent.futures.Executor | None
) -> Attempt:
    """Await a body in this task, or on an executor, until it ends or its time is over."""
    future: concurrent.futures.Future[Any] | None = None
    deadline: asyncio.Timeout | None = None
    stop = _Stop(call.handle)
    try:
        with stop:
            awaitable: Any
            if executor is not None:
                future = submit(call, executor, step)
                stop.instead(future.cancel)
                awaitable = asyncio.wrap_future(future)
            else:
                awaitable = step.target(*step.args, **step.kwargs)
            if step.timeout is None:
                return Attempt(await awaitable)
            _limit(call, step.timeout)
            async with asyncio.timeout(step.timeout) as deadline:
                return Attempt(await awaitable)
    except BaseException as error:
        if deadline is not None and deadline.expired() and isinstance(error, TimeoutError):
            # as for a plain function, which may still be running: the time of the whole call is
            # over
            _leave(call, future)
            return Attempt(timed_out=True)
        return stop.attempt(error)


class _Stop:
    """Cancels the task that awaits a body, in its own loop and only while the body goes on."""

    def __init__(self, handle: CallHandle | None) -> None:
        self._handle = handle
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._open = self._sent = False
        self.requested = False  # whether the call was canceled, and its caller's task was not

    def __enter__(self) -> None:
        self._open = True
        self.instead(partial(self._loop.call_soon_threadsafe, self._cancel))

    def instead(self, stop: Callable[[], Any]) -> None:
        if self._handle is not None:
            self._handle.stop_with(stop)

    def _cancel(self) -> None:
        if self._open and not self._sent and self._task is not None:
            self._sent = self._task.cancel()

    def attempt(self, error: BaseException) -> Attempt:
        """Return what came of a body that raised, once it has ended."""
        if self.requested and isinstance(error, asyncio.CancelledError):
            # of this call, not of its caller's task
            return Attempt(exception=concurrent.futures.CancelledError())
        return Attempt(exception=error)

    def __exit__(self, *_: object) -> None:
        self._open = False
        if self._handle is None or self._task is None:
            return
        self._handle.stop_with(None)
        left = self._task.uncancel() if self._sent else self._task.cancelling()
        self.requested = self._handle.cancellation is not None and left == 0


def _wait_for(call: Invocation, step: Execute, executor: concurrent.futures.Executor) -> Attempt:
    """Run a body on an executor and wait; what has begun there can't be stopped from here."""
    future = None
    try:
        future = submit(call, executor, step)
        if call.handle is not None:
            call.handle.stop_with(future.cancel)
        _limit(call, step.timeout)
        return Attempt(future.result(step.timeout))
    except BaseException as error:
        if isinstance(error, TimeoutError) and future is not None and not future.done():
            _leave(call, future)
            return Attempt(timed_out=True)
        return Attempt(exception=error)
    finally:
        if call.handle is not None:
            call.handle.stop_with(None)


def _run_limited(call: Invocation, step: Execute, timeout: float) -> Attempt:
    """Run in a thread of its own: Python can't stop a running function, so past the deadline it is
    left behind.
    """
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def body() -> None:
        try:
            future.set_result(context.run(step.target, *step.args, **step.kwargs))
        except BaseException as error:
            future.set_exception(error)

    _limit(call, timeout)
    threading.Thread(target=body, name="agenttool-limited", daemon=True).start()
    if future in concurrent.futures.wait((future,), timeout).done:
        error = future.exception()
        return Attempt(future.result()) if error is None else Attempt(exception=error)
    _leave(call, future)
    return Attempt(timed_out=True)


def _leave(call: Invocation, future: concurrent.futures.Future[Any] | None) -> None:
    if call.handle is not None and future is not None and not future.cancel():
        call.handle.leave_behind(future)


def _limit(call: Invocation, timeout: float | None) -> None:
    if call.handle is not None and timeout is not None:
        call.handle.deadline = time.monotonic() + timeout


def deliver(call: Invocation) -> Any:
    """Give the caller of the plain function what is due: the value, the tool's own exception, or a
    typed outcome.
    """
    if (error := call.exception) is not None:
        try:
            raise error
        finally:
            del error, call
    if call.value is not NOT_RUN:
        return call.delivered
    raise outcome_of(call)
