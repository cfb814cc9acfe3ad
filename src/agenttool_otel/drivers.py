"""Run the pipeline: one driver performs its effects, the other awaits them, and both stop before a stream's body.

A call's span is current while its effects are performed, so that whatever is done for it nests under it; it is not
current in the pipeline's own code, nor in that of the caller.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace

from agenttool_otel.effects import Effect, Execute, Services
from agenttool_otel.invocation import Invocation

__all__ = ["Steps", "aadvance", "advance", "arun", "run"]

Steps = Generator[Any, Any, Invocation]
"""A pipeline in progress: yields effects, returns the invocation in its terminal state."""


def run(call: Invocation, steps: Steps, services: Services) -> Invocation:
    """Perform every effect, the tool's body included.

    Args:
        call: the call.
        steps: its pipeline.
        services: what effects are performed with.
    """
    advance(call, steps, services, through=True)
    return call


async def arun(call: Invocation, steps: Steps, services: Services) -> Invocation:
    """Await every effect, the tool's body included.

    Args:
        call: the call.
        steps: its pipeline.
        services: what effects are performed with.
    """
    await aadvance(call, steps, services, through=True)
    return call


def advance(
    call: Invocation, steps: Steps, services: Services, result: Any = None, *, through: bool = False
) -> Execute | None:
    """Perform effects until the tool's body is due, or the call has ended without it.

    Args:
        call: the call.
        steps: its pipeline.
        services: what effects are performed with.
        result: result of the effect that the pipeline waits for.
        through: perform the body too, and everything after it.

    Returns:
        The body's effect, or ``None`` at the end.
    """
    token = None
    try:
        effect: Effect = steps.send(result)
        token = otel_context.attach(trace.set_span_in_context(call.span))
        while through or not isinstance(effect, Execute):
            try:
                answer = effect.perform(services)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(answer)
    except StopIteration:
        return None
    finally:
        if token is not None:
            otel_context.detach(token)
    return effect


async def aadvance(
    call: Invocation, steps: Steps, services: Services, result: Any = None, *, through: bool = False
) -> Execute | None:
    """Await effects until the tool's body is due, or the call has ended without it.

    Args:
        call: the call.
        steps: its pipeline.
        services: what effects are performed with.
        result: result of the effect that the pipeline waits for.
        through: await the body too, and everything after it.

    Returns:
        The body's effect, or ``None`` at the end.
    """
    token = None
    try:
        effect: Effect = steps.send(result)
        token = otel_context.attach(trace.set_span_in_context(call.span))
        while through or not isinstance(effect, Execute):
            try:
                answer = await effect.aperform(services)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(answer)
    except StopIteration:
        return None
    finally:
        if token is not None:
            otel_context.detach(token)
    return effect
