"""The steps of a call: what the pipeline asks its driver to do.

The pipeline itself does no I/O: it yields steps and receives their results. So there is one copy of
the logic for synchronous and asynchronous callers, and its tests need no event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agenttool_otel.approvals.types import Claim
from agenttool_otel.call.services import Services
from agenttool_otel.names import ResultStatus


@dataclass(slots=True)
class Call:
    """Call something that may block: the policy, an approver, a hook, a store; the result is what
    it returns.
    """

    function: Callable[..., Any]
    # its asynchronous form; else it runs in a worker thread
    afunction: Callable[..., Awaitable[Any]] | None = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Attempt:
    """What one run of the tool came to."""

    value: Any = None  # what it returned
    exception: BaseException | None = None  # what it raised, untouched
    timed_out: bool = False  # the attempt's time was over
    items: int | None = None  # how many items a stream gave
    size: int | None = None  # bytes of a stream's items, when they could be counted
    abandoned: bool = False  # the consumer left a stream before its end


@dataclass(slots=True)
class Execute:
    """Run the tool; the result is an Attempt. For streams the driver stops here and the wrapper
    runs the body.
    """

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    is_async: bool  # whether the callable returns an awaitable
    timeout: float | None = None  # seconds that the attempt may take


Step = Call | Execute


def finish_claim(services: Services, claim: Claim, outcome: ResultStatus) -> Call:
    """Record how a claimed run ended, even while the task is being canceled."""

    record = partial(services.approvals.finish, claim, outcome)

    async def finish() -> None:
        await asyncio.shield(asyncio.to_thread(record))

    return Call(record, finish)
