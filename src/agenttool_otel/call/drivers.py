"""Run the pipeline: one driver performs its effects, the other awaits them, and both stop before a stream's body.

A call's span is current while its effects are performed, so that whatever is done for it nests under it; it is not
current in the pipeline's own code, nor in that of the caller.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Generator
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace

from agenttool_otel.call.effects import Attempt, Effect, Execute
from agenttool_otel.call.envelope import outcome_of
from agenttool_otel.call.invocation import Invocation

Steps = Generator[Any, Any, Invocation]
"""A pipeline in progress: yields effects, returns the invocation in its terminal state."""


def run(call: Invocation, steps: Steps) -> Invocation:
    """Perform every effect, the tool's body included."""
    advance(call, steps, through=True)
    return call


async def arun(call: Invocation, steps: Steps) -> Invocation:
    """Await every effect, the tool's body included."""
    await aadvance(call, steps, through=True)
    return call


def advance(call: Invocation, steps: Steps, result: Any = None, *, through: bool = False) -> Execute | None:
    """Perform effects until the tool's body is due, or the call has ended without it.

    Args:
        call: the call.
        steps: its pipeline.
        result: result of the effect that the pipeline waits for.
        through: perform the body too, and everything after it.

    Returns:
        The body's effect, or ``None`` at the end.
    """
    token = None
    error: BaseException | None = None
    try:
        while True:
            effect: Effect = _step(steps, result, error)
            if token is None:
                token = otel_context.attach(trace.set_span_in_context(call.span))
            if isinstance(effect, Execute) and not through:
                return effect
            result = error = None
            try:
                if isinstance(effect, Execute):
                    result = run_body(effect)
                else:
                    result = effect.function(*effect.args, **effect.kwargs)
            except BaseException as raised:
                error = raised
    except StopIteration:
        return None
    finally:
        del error
        if token is not None:
            otel_context.detach(token)


async def aadvance(call: Invocation, steps: Steps, result: Any = None, *, through: bool = False) -> Execute | None:
    """The same, awaiting the effects."""
    token = None
    error: BaseException | None = None
    try:
        while True:
            effect: Effect = _step(steps, result, error)
            if token is None:
                token = otel_context.attach(trace.set_span_in_context(call.span))
            if isinstance(effect, Execute) and not through:
                return effect
            result = error = None
            try:
                if isinstance(effect, Execute):
                    result = await arun_body(effect)
                elif effect.afunction is not None:
                    result = await effect.afunction(*effect.args, **effect.kwargs)
                else:
                    result = await asyncio.to_thread(effect.function, *effect.args, **effect.kwargs)
            except BaseException as raised:
                error = raised
    except StopIteration:
        return None
    finally:
        del error
        if token is not None:
            otel_context.detach(token)


def _step(steps: Steps, result: Any, error: BaseException | None) -> Any:
    """Hand the outcome of an effect to the pipeline, and return the next effect."""
    return steps.send(result) if error is None else steps.throw(error)


def run_body(effect: Execute) -> Attempt:
    """Run a plain callable in this thread, or in one of its own when its time is limited."""
    if effect.timeout is not None:
        return _run_limited(effect, effect.timeout)
    try:
        return Attempt(effect.target(*effect.args, **effect.kwargs))
    except BaseException as error:
        return Attempt(exception=error)


async def arun_body(effect: Execute) -> Attempt:
    """Await a coroutine function, or run a plain callable off the event loop when its time is limited."""
    if not effect.is_async:
        return run_body(effect) if effect.timeout is None else await asyncio.to_thread(run_body, effect)
    deadline: asyncio.Timeout | None = None
    try:
        if effect.timeout is None:
            return Attempt(await effect.target(*effect.args, **effect.kwargs))
        awaitable = effect.target(*effect.args, **effect.kwargs)
        async with asyncio.timeout(effect.timeout) as deadline:
            return Attempt(await awaitable)
    except BaseException as error:
        if deadline is not None and deadline.expired() and isinstance(error, TimeoutError):
            # as for a plain function, which may still be running: the time of the whole call is over
            return Attempt(timed_out=True)
        return Attempt(exception=error)


def _run_limited(effect: Execute, timeout: float) -> Attempt:
    """Run in a thread of its own: Python can't stop a running function, so past the deadline it is left behind."""
    box: list[Attempt] = []
    context = contextvars.copy_context()

    def body() -> None:
        try:
            box.append(Attempt(context.run(effect.target, *effect.args, **effect.kwargs)))
        except BaseException as error:
            box.append(Attempt(exception=error))

    worker = threading.Thread(target=body, name="agenttool-limited", daemon=True)
    worker.start()
    worker.join(timeout)
    return box[0] if box else Attempt(timed_out=True)


def deliver(call: Invocation) -> Any:
    """Give the caller of the plain function what is due: the value, the tool's own exception, or a typed outcome."""
    error = call.exception
    if error is not None:
        try:
            raise error
        finally:
            del error, call
    if call.ran:
        return call.delivered
    raise outcome_of(call)
