"""The public approval store: every operation, also for asynchronous code.

There each operation runs in a worker thread, so that no lock or disk blocks the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from agenttool_otel.approvals.settling import settled
from agenttool_otel.approvals.store_sync import DEFAULT_TTL, Recovered, SyncApprovalStore
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest, Claim, Grant, StoredCall
from agenttool_otel.errors import ApprovalError
from agenttool_otel.names import ResultStatus

__all__ = ["DEFAULT_TTL", "ApprovalStore", "Recovered"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


_UNDOING: set[asyncio.Future[None]] = set()  # the event loop itself keeps no reference to its tasks


class ApprovalStore(SyncApprovalStore):
    """Approval requests, their answers, claims, grants and evidence in one database.

    ``acreate``, ``aanswer``, ``aclaim`` ... have the arguments, results and exceptions of the methods without the
    ``a``. Safe for threads and across fork.

    Args:
        url: a path, ``sqlite:///path``, ``sqlite://`` (in memory, this process only) or ``postgresql://...``.
        key: 32 bytes, or their base64 or hexadecimal text, that seal what is stored; otherwise
            ``AGENTTOOL_APPROVALS_KEY``, otherwise (SQLite only) a file of mode 0600 beside the database, made on first
            use.
        clock: gives the wall time; for tests.
        ticks: gives seconds that only grow; for tests.
        timeout: seconds that an operation waits for a lock or a connection before it fails.
        default_ttl: lifetime of a request that states none, in seconds if a number.
        lease: after which time a claim of a process that can't be seen from here counts as lost, in seconds if a
            number.
        ask_limit: how often one actor may ask; further requests are refused.
        digest: gives the digest of JSON arguments.

    Raises:
        ConfigurationError: no usable URL or key, or a missing extra.
        ApprovalStoreError: the database can't be opened, or was sealed with another key.
    """

    async def acreate(
        self,
        request: ApprovalRequest,
        arguments: dict[str, Any],
        *,
        context: dict[str, Any] | None = None,
    ) -> ApprovalRequest:
        """As ``create``."""
        return await _settled(self.create, request, arguments, context=context)

    async def aget(self, request_id: str) -> ApprovalRequest:
        """As ``get``."""
        return await asyncio.to_thread(self.get, request_id)

    async def aby_invocation(self, invocation_id: str) -> ApprovalRequest | None:
        """As ``by_invocation``."""
        return await asyncio.to_thread(self.by_invocation, invocation_id)

    async def astored_call(self, ref: str) -> StoredCall:
        """As ``stored_call``."""
        return await asyncio.to_thread(self.stored_call, ref)

    async def aanswer(
        self, request_id: str, answer: ApprovalAnswer, *, allow_requester: bool = False
    ) -> ApprovalRequest:
        """As ``answer``."""
        return await _settled(self.answer, request_id, answer, allow_requester=allow_requester)

    async def acancel(self, ref: str, reason: str) -> ApprovalRequest:
        """As ``cancel``."""
        return await _settled(self.cancel, ref, reason)

    async def aclaim(self, ref: str, **bindings: Any) -> Claim:
        """As ``claim``; when the task is canceled while it commits, the claim is given back."""
        task = asyncio.ensure_future(asyncio.to_thread(self.claim, ref, **bindings))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # a task of its own, so that a second cancellation does not keep the claim
            undoing = asyncio.ensure_future(self._give_back(task))
            _UNDOING.add(undoing)
            undoing.add_done_callback(_UNDOING.discard)
            await asyncio.shield(undoing)
            raise

    async def _give_back(self, claiming: asyncio.Future[Claim]) -> None:
        with contextlib.suppress(ApprovalError):
            await asyncio.to_thread(self.release, await claiming)

    async def afinish(self, claim: Claim, outcome: ResultStatus | str) -> None:
        """As ``finish``."""
        await _settled(self.finish, claim, outcome)

    async def aextend(self, claim: Claim) -> None:
        """As ``extend``."""
        await _settled(self.extend, claim)

    async def arelease(self, claim: Claim) -> None:
        """As ``release``."""
        await _settled(self.release, claim)

    async def arecover(self) -> list[Recovered]:
        """As ``recover``."""
        return await _settled(self.recover)

    async def agrants_for(self, **call: Any) -> list[Grant]:
        """As ``grants_for``."""
        return await asyncio.to_thread(lambda: self.grants_for(**call))


async def _settled(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a write to its end even if the task is canceled: a cancellation must not hide what was committed."""
    value, canceled = await settled(partial(function, *args, **kwargs))
    if canceled is not None:
        raise canceled
    return value
