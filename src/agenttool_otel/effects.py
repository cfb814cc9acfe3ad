"""What the pipeline asks of the outside world: each effect knows how to be performed, at once or awaited.

The pipeline itself does no I/O: it yields these and receives their results. So there is one copy of the logic for
synchronous and asynchronous callers, and its tests need no event loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest, Claim, ClaimBinding, Grant, GrantQuery
from agenttool_otel.hooks.context import HookContext
from agenttool_otel.hooks.registry import Hook
from agenttool_otel.hooks.running import HookRun, arun_hook, run_hook
from agenttool_otel.names import ResultStatus
from agenttool_otel.policy.types import PolicyInput, Verdict

__all__ = [
    "Ask",
    "Attempt",
    "Decide",
    "Effect",
    "Execute",
    "FindGrant",
    "FinishClaim",
    "RunBlocking",
    "RunHook",
    "Services",
    "Sleep",
    "TakeClaim",
    "UseGrant",
]


class Decides(Protocol):
    """Makes decisions; never raises."""

    def decide(self, document: PolicyInput) -> Verdict:
        """Decide now."""

    async def adecide(self, document: PolicyInput) -> Verdict:
        """Decide without blocking the event loop."""


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

    def use_grant(self, grant: Grant, wanted: GrantQuery, *, invocation_id: str, policy_revision: str) -> bool:
        """Record that it is used, and tell whether it may be."""

    def claim(
        self, request_id: str, binding: ClaimBinding, *, args_digest: str, revision: str, declaration_digest: str
    ) -> Claim:
        """Take the one right to run an approved call."""

    async def aclaim(
        self, request_id: str, binding: ClaimBinding, *, args_digest: str, revision: str, declaration_digest: str
    ) -> Claim:
        """The same without blocking the event loop; given back when that is canceled."""

    def finish(self, claim: Claim, outcome: ResultStatus) -> None:
        """Record how the claimed run ended."""


class Services(Protocol):
    """What effects are performed with; the Governor is one."""

    @property
    def decider(self) -> Decides:
        """Makes decisions."""

    @property
    def approvals(self) -> Asks:
        """Asks."""


class Effect(Protocol):
    """One request to the outside world."""

    def perform(self, services: Services) -> Any:
        """Do it now."""

    async def aperform(self, services: Services) -> Any:
        """Do it without blocking the event loop."""


@dataclass(slots=True)
class Decide:
    """Evaluate the policy on an input; the result is a Verdict."""

    document: PolicyInput

    def perform(self, services: Services) -> Verdict:
        """Decide now."""
        return services.decider.decide(self.document)

    async def aperform(self, services: Services) -> Verdict:
        """Decide without blocking the event loop."""
        return await services.decider.adecide(self.document)


@dataclass(slots=True)
class Ask:
    """Ask for an approval; the result is an answer, or ``None`` while nobody has answered."""

    request: ApprovalRequest
    arguments: dict[str, Any]
    context: dict[str, Any]

    def perform(self, services: Services) -> ApprovalAnswer | None:
        """Ask now."""
        return services.approvals.ask(self.request, self.arguments, self.context)

    async def aperform(self, services: Services) -> ApprovalAnswer | None:
        """Ask without blocking the event loop."""
        return await services.approvals.aask(self.request, self.arguments, self.context)


@dataclass(slots=True)
class FindGrant:
    """Look for a remembered approval before anybody is asked; the result is a Grant or ``None``."""

    wanted: GrantQuery

    def perform(self, services: Services) -> Grant | None:
        """Look now."""
        return services.approvals.find_grant(self.wanted)

    async def aperform(self, services: Services) -> Grant | None:
        """Look without blocking the event loop."""
        return await asyncio.to_thread(self.perform, services)


@dataclass(slots=True)
class UseGrant:
    """Record that a call runs because of a remembered approval; the result tells whether it may.

    Attributes:
        grant: the grant.
        wanted: the call.
        invocation_id: its invocation.
        policy_revision: revision of the bundle that accepted the grant.
    """

    grant: Grant
    wanted: GrantQuery
    invocation_id: str
    policy_revision: str

    def perform(self, services: Services) -> bool:
        """Record now."""
        return services.approvals.use_grant(
            self.grant, self.wanted, invocation_id=self.invocation_id, policy_revision=self.policy_revision
        )

    async def aperform(self, services: Services) -> bool:
        """Record without blocking the event loop."""
        return await asyncio.to_thread(self.perform, services)


@dataclass(slots=True)
class TakeClaim:
    """Take the one right to run an approved call; the result is a Claim, a refusal is thrown into the pipeline.

    Attributes:
        request_id: the approved request.
        binding: for whom it would run, as it is now.
        args_digest: digest of what would run.
        revision: the bundle revision of the second decision.
        declaration_digest: digest of the tool as it is now.
    """

    request_id: str
    binding: ClaimBinding
    args_digest: str
    revision: str
    declaration_digest: str

    def perform(self, services: Services) -> Claim:
        """Claim now."""
        return services.approvals.claim(
            self.request_id,
            self.binding,
            args_digest=self.args_digest,
            revision=self.revision,
            declaration_digest=self.declaration_digest,
        )

    async def aperform(self, services: Services) -> Claim:
        """Claim without blocking the event loop; when that is canceled, the approval can be used later."""
        return await services.approvals.aclaim(
            self.request_id,
            self.binding,
            args_digest=self.args_digest,
            revision=self.revision,
            declaration_digest=self.declaration_digest,
        )


@dataclass(slots=True)
class FinishClaim:
    """Record how a claimed run ended."""

    claim: Claim
    outcome: ResultStatus

    def perform(self, services: Services) -> None:
        """Record now."""
        services.approvals.finish(self.claim, self.outcome)

    async def aperform(self, services: Services) -> None:
        """Record without blocking the event loop, even while the task is being cancelled."""
        await asyncio.shield(asyncio.to_thread(self.perform, services))


@dataclass(slots=True)
class Attempt:
    """What one run of the tool came to.

    Attributes:
        value: what it returned.
        exception: what it raised, untouched; ``None`` when it returned.
        timed_out: the attempt's time was over.
        items: how many items a stream gave.
        size: bytes of a stream's items, when they could be counted.
        abandoned: the consumer left a stream before its end.
    """

    value: Any = None
    exception: BaseException | None = None
    timed_out: bool = False
    items: int | None = None
    size: int | None = None
    abandoned: bool = False


@dataclass(slots=True)
class Execute:
    """Run the tool; the result is an Attempt. For streams the driver stops here and the wrapper runs the body.

    Attributes:
        target: the callable, bound.
        args: positional arguments.
        kwargs: keyword arguments.
        is_async: whether the callable returns an awaitable.
        timeout: seconds that the attempt may take, or ``None``.
    """

    target: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    is_async: bool
    timeout: float | None = None

    def perform(self, services: Services) -> Attempt:
        """Run a plain callable in this thread, or in one of its own when its time is limited."""
        if self.timeout is not None:
            return _run_limited(self.target, self.args, self.kwargs, self.timeout)
        try:
            return Attempt(self.target(*self.args, **self.kwargs))
        except BaseException as error:
            return Attempt(exception=error)

    async def aperform(self, services: Services) -> Attempt:
        """Await a coroutine function, or run a plain callable off the event loop when its time is limited."""
        if not self.is_async:
            if self.timeout is None:
                return self.perform(services)
            return await asyncio.to_thread(self.perform, services)
        try:
            if self.timeout is None:
                return Attempt(await self.target(*self.args, **self.kwargs))
            return await _await_limited(self.target(*self.args, **self.kwargs), self.timeout)
        except BaseException as error:
            return Attempt(exception=error)


@dataclass(slots=True)
class Sleep:
    """Wait between two attempts."""

    seconds: float

    def perform(self, services: Services) -> None:
        """Block this thread."""
        time.sleep(self.seconds)

    async def aperform(self, services: Services) -> None:
        """Wait without blocking the event loop."""
        await asyncio.sleep(self.seconds)


@dataclass(slots=True)
class RunBlocking:
    """Call something that may block: a hook, a payload store."""

    function: Callable[[], Any]
    afunction: Callable[[], Awaitable[Any]] | None = None

    def perform(self, services: Services) -> Any:
        """Call it in this thread."""
        return self.function()

    async def aperform(self, services: Services) -> Any:
        """Await its asynchronous form, or call it in a worker thread."""
        if self.afunction is not None:
            return await self.afunction()
        return await asyncio.to_thread(self.function)


@dataclass(slots=True)
class RunHook:
    """Run one hook within its deadline; the result is a HookRun, whatever the hook does."""

    hook: Hook
    context: HookContext

    def perform(self, services: Services) -> HookRun:
        """Run it in a thread of its own, an asynchronous one in a private event loop there."""
        return run_hook(self.hook, self.context)

    async def aperform(self, services: Services) -> HookRun:
        """Await an asynchronous hook, and run a plain one off the event loop."""
        return await arun_hook(self.hook, self.context)


async def _await_limited(awaitable: Awaitable[Any], timeout: float) -> Attempt:
    deadline: asyncio.Timeout | None = None
    try:
        async with asyncio.timeout(timeout) as deadline:
            return Attempt(await awaitable)
    except TimeoutError as error:
        if deadline is not None and deadline.expired():
            # as for a plain function, which may still be running: the time of the whole call is over
            return Attempt(timed_out=True)
        return Attempt(exception=error)


def _run_limited(target: Callable[..., Any], args: Any, kwargs: Any, timeout: float) -> Attempt:
    """Run in a thread of its own: Python can't stop a running function, so past the deadline it is left behind."""
    box: list[Attempt] = []
    context = contextvars.copy_context()

    def body() -> None:
        try:
            box.append(Attempt(context.run(target, *args, **kwargs)))
        except BaseException as error:
            box.append(Attempt(exception=error))

    worker = threading.Thread(target=body, name="agenttool-limited", daemon=True)
    worker.start()
    worker.join(timeout)
    return box[0] if box else Attempt(timed_out=True)
