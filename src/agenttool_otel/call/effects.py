"""What the pipeline asks of the outside world: to call something that may block, or to run the tool.

The pipeline itself does no I/O: it yields effects and receives their results. So there is one copy
of the logic for synchronous and asynchronous callers, and its tests need no event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from agenttool_otel.approvals.types import (
    ApprovalAnswer,
    ApprovalRequest,
    Claim,
    ClaimBinding,
    Grant,
    GrantQuery,
)
from agenttool_otel.names import ResultStatus
from agenttool_otel.policy.types import PolicyInput, Verdict


class Decides(Protocol):
    """Makes decisions; never raises."""

    def decide(self, document: PolicyInput) -> Verdict:
        """Decide now."""

    async def adecide(self, document: PolicyInput) -> Verdict:
        """Decide without blocking the event loop."""

    def visible(self, document: PolicyInput) -> bool:
        """Tell whether a tool may be shown."""

    def wants(self, path: tuple[str, ...], mode: str) -> bool:
        """Tell whether a decision may depend on a part of the input."""


class Asks(Protocol):
    """Brings a question to whoever may answer it."""

    def ask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """Store the request and ask; ``None`` leaves it pending."""

    async def aask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """The same without blocking the event loop."""

    def find_grant(self, wanted: GrantQuery) -> Grant | None:
        """Find a remembered approval; ``None`` also where that fails."""

    def use_grant(
        self, grant: Grant, wanted: GrantQuery, *, invocation_id: str, policy_revision: str
    ) -> bool:
        """Record that it is used, and tell whether it may be."""

    def claim(self, request_id: str, binding: ClaimBinding) -> Claim:
        """Take the one right to run an approved call."""

    async def aclaim(self, request_id: str, binding: ClaimBinding) -> Claim:
        """The same without blocking the event loop; given back when that is canceled."""

    def finish(self, claim: Claim, outcome: ResultStatus) -> None:
        """Record how the claimed run ended."""


class Services(Protocol):
    """Who decides and asks for a call; a Runtime is one."""

    @property
    def decider(self) -> Decides:
        """Makes decisions."""

    @property
    def approvals(self) -> Asks:
        """Asks."""


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


Effect = Call | Execute


def finish_claim(services: Services, claim: Claim, outcome: ResultStatus) -> Call:
    """Record how a claimed run ended, even while the task is being canceled."""

    record = partial(services.approvals.finish, claim, outcome)

    async def finish() -> None:
        await asyncio.shield(asyncio.to_thread(record))

    return Call(record, finish)
