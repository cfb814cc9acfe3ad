"""Who can be asked in place: a callback, a queue, a store that is answered elsewhere; the console
is in ``console``.

An approver gives an answer or ``None``: "not now, the request stays pending". Whatever goes wrong
in one is ``None``, never a yes, and never looks like a person's no.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agenttool_otel.approvals.console import ConsoleApprover
from agenttool_otel.approvals.types import (
    ApprovalAnswer,
    ApprovalRequest,
    Approver,
    AskLimit,
    AsyncApprover,
)
from agenttool_otel.errors import ApprovalError, ConfigurationError
from agenttool_otel.names import INSTRUMENTATION_NAME, ApprovalStatus
from agenttool_otel.values.forks import new_lock
from agenttool_otel.values.inspection import short_name

__all__ = [
    "CallbackApprover",
    "ConsoleApprover",
    "QueueApprover",
    "RateLimitedApprover",
    "StoreWaitingApprover",
    "build_approver",
]

if TYPE_CHECKING:  # SQLAlchemy is imported when a store is opened
    from agenttool_otel.approvals.store.store import ApprovalStore

_LOG = logging.getLogger(f"{INSTRUMENTATION_NAME}.approvals")

Callback = Callable[
    [ApprovalRequest], "ApprovalAnswer | bool | Awaitable[ApprovalAnswer | bool | None] | None"
]


class CallbackApprover:
    """Asks a function of the host program.

    Args:
        callback: takes the request and returns an ``ApprovalAnswer``, ``True``, ``False`` or
            ``None``, at once or as a coroutine. An exception, a value of another type and a timeout
            count as ``None``.
        answered_by: who answers, when the callback gives only yes or no.
        roles: that one's roles.
        timeout: seconds to wait for the callback; ``None``: without limit.

    Attributes:
        failures: how often the callback failed.
        last_failure: type of the last failure, ``None`` when there was none; never its text.
    """

    def __init__(
        self,
        callback: Callback,
        *,
        answered_by: str = "",
        roles: tuple[str, ...] = (),
        timeout: float | None = None,
    ) -> None:
        self._callback = callback
        name = getattr(callback, "__qualname__", type(callback).__name__)
        self._answered_by = answered_by or f"callback:{name}"
        self._roles = tuple(roles)
        self._timeout = timeout
        self.failures = 0
        self.last_failure: str | None = None

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Call the function and wait for its answer; a coroutine runs in an event loop of
        its own.
        """
        if self._timeout is not None or inspect.iscoroutinefunction(self._callback):
            return self._ask_in_thread(self._call(request))
        try:
            value = self._callback(request)
        except Exception as error:
            return self._failed(error)
        return self._ask_in_thread(value) if inspect.isawaitable(value) else self._checked(value)

    async def aask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Call the function; a synchronous one runs in a worker thread."""
        try:
            return self._checked(await asyncio.wait_for(self._call(request), self._timeout))
        except Exception as error:
            return self._failed(error)

    async def _call(self, request: ApprovalRequest) -> Any:
        if inspect.iscoroutinefunction(self._callback):
            return await self._callback(request)
        value = await asyncio.to_thread(self._callback, request)
        return await value if inspect.isawaitable(value) else value

    def _ask_in_thread(self, work: Awaitable[Any]) -> ApprovalAnswer | None:
        box: list[Any] = []

        async def main() -> Any:
            return await asyncio.wait_for(work, self._timeout)

        def run() -> None:
            try:
                box.append(self._checked(asyncio.run(main())))
            except Exception as error:
                box.append(self._failed(error))

        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(run,), name="agenttool-approver", daemon=True
        )
        thread.start()
        # a synchronous callback can't be stopped: it is left behind, and its late answer goes
        # nowhere
        thread.join(None if self._timeout is None else self._timeout + 0.1)
        return box[0] if box else self._failed(TimeoutError())

    def _checked(self, value: Any) -> ApprovalAnswer | None:
        if value is None:
            return None
        if type(value) is bool:
            return ApprovalAnswer(approved=value, answered_by=self._answered_by, roles=self._roles)
        if isinstance(value, ApprovalAnswer) and type(value.approved) is bool:
            return value
        return self._failed(TypeError())

    def _failed(self, error: BaseException) -> ApprovalAnswer | None:
        self.failures += 1
        self.last_failure = short_name(error)
        _LOG.warning("approval callback failed: %s; the request stays pending", self.last_failure)
        return None


def build_approver(approver: Any) -> Approver | AsyncApprover | None:
    """Return an approver as it is, and a plain function as a ``CallbackApprover``."""
    if isinstance(approver, type):
        raise ConfigurationError(
            f"approver is the class {approver.__name__}: write {approver.__name__}(...)"
        )
    if approver is None or isinstance(approver, (Approver, AsyncApprover)):
        return approver
    if callable(approver):
        return CallbackApprover(approver)
    raise ConfigurationError(
        f"approver has to be an approver or a function of the request, not {type(approver).__name__}"
    )


class QueueApprover:
    """Asks nobody now: the request is stored, the agent goes on, a person answers it later.

    Args:
        notify: called with each request, for example to post a link; its failure changes nothing.
    """

    def __init__(self, notify: Callable[[ApprovalRequest], object] | None = None) -> None:
        self._notify = notify

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Notify, and leave the request pending."""
        if self._notify is not None:
            try:
                self._notify(request)
            except Exception as error:
                _LOG.warning("approval notification failed: %s", short_name(error))
        return None

    async def aask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Notify in a worker thread, and leave the request pending."""
        return await asyncio.to_thread(self.ask, request)


class StoreWaitingApprover:
    """Waits until a person answers the stored request, on the page, the command line or elsewhere.

    Args:
        store: the store that holds the request.
        timeout: seconds to wait; then the request stays pending.
        interval: seconds between two looks.
    """

    def __init__(
        self, store: ApprovalStore, *, timeout: float = 300.0, interval: float = 0.5
    ) -> None:
        self._store = store
        self._timeout = timeout
        self._interval = max(0.01, interval)

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Wait for the answer; it has ``stored`` set, since the store has it already."""
        deadline = time.monotonic() + self._timeout
        while True:
            done, answer = self._look(request.request_id)
            left = deadline - time.monotonic()
            if done or left <= 0:
                return answer
            time.sleep(min(self._interval, left))

    async def aask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """As ``ask``, without blocking the event loop."""
        deadline = time.monotonic() + self._timeout
        while True:
            done, answer = await asyncio.to_thread(self._look, request.request_id)
            left = deadline - time.monotonic()
            if done or left <= 0:
                return answer
            await asyncio.sleep(min(self._interval, left))

    def _look(self, request_id: str) -> tuple[bool, ApprovalAnswer | None]:
        try:
            status = self._store.get(request_id).status
            if status is ApprovalStatus.PENDING:
                return False, None
            if status not in {ApprovalStatus.APPROVED, ApprovalStatus.REJECTED}:
                return True, None
            answer = self._store.stored_call(request_id).answer
        except ApprovalError as error:
            _LOG.warning("approval store failed while waiting: %s", short_name(error))
            return False, None
        if answer is None:
            return True, None
        return True, replace(answer, stored=True)


class RateLimitedApprover:
    """Asks another approver, but does not bother people more often than a limit for each actor.

    A call over the limit is not refused: its request stays pending, and can be answered where
    people look at their own pace. ``ApprovalStore(ask_limit=...)`` is the limit that also binds
    across processes.

    Args:
        inner: the approver to protect.
        limit: how often an actor may ask.
        now: gives seconds that only grow; for tests.
    """

    def __init__(
        self,
        inner: Approver | AsyncApprover,
        limit: AskLimit,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._limit = limit
        self._now = now
        self._asked: dict[str, deque[float]] = {}
        self._lock = new_lock()

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Ask, or leave the request pending when its actor asks too often."""
        if not isinstance(self._inner, Approver) or not self._admit(request.actor_id):
            return None
        return self._inner.ask(request)

    async def aask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """As ``ask``."""
        if not self._admit(request.actor_id):
            return None
        if isinstance(self._inner, AsyncApprover):
            return await self._inner.aask(request)
        return await asyncio.to_thread(self._inner.ask, request)

    def _admit(self, actor_id: str) -> bool:
        with self._lock:
            now = self._now()
            since = now - self._limit.seconds
            for actor in [
                name for name, asked in self._asked.items() if not asked or asked[-1] <= since
            ]:
                del self._asked[actor]
            times = self._asked.setdefault(actor_id, deque())
            while times and times[0] <= since:
                times.popleft()
            if len(times) >= self._limit.asks:
                return False
            times.append(now)
            return True
