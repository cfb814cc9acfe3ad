"""The way of a question: stored first, then asked in place if a person can be asked, else left
pending.

There is one path to a run, in place or resumed: one stored request, one answer, one claim. Whatever
fails on that path leaves the call without an approval.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agenttool_otel.approvals.announcing import AnswerRecorder
from agenttool_otel.approvals.store.leases import LeaseKeeper
from agenttool_otel.approvals.types import (
    ApprovalAnswer,
    ApprovalRequest,
    Approver,
    AsyncApprover,
    Claim,
    ClaimBinding,
    Grant,
    GrantQuery,
    StoredCall,
)
from agenttool_otel.errors import AgentToolError, ApprovalError, ApprovalStoreError
from agenttool_otel.names import AnswerWay, PermissionChannel, ResultStatus
from agenttool_otel.telemetry import Telemetry
from agenttool_otel.values.forks import new_lock

if TYPE_CHECKING:  # SQLAlchemy is imported when a store is opened
    from agenttool_otel.approvals.store.store import ApprovalStore

_logger = logging.getLogger("agenttool_otel.approvals")


@dataclass(eq=False)
class Approvals:
    """Stores questions, asks approvers, claims answers."""

    approver: Approver | AsyncApprover | None
    _open_store: Callable[[], ApprovalStore]
    telemetry: Telemetry  # where answers and levels of the store are recorded
    configured: bool = False
    _store: ApprovalStore | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=new_lock, init=False)
    _leases: LeaseKeeper = field(default_factory=LeaseKeeper, init=False)

    @property
    def store(self) -> ApprovalStore:
        """The approval store, opened at first use."""
        if (store := self._store) is None:
            with self._lock:  # of two stores in memory, one would lose its requests
                if (store := self._store) is None:
                    store = self._store = self._open_store()
                    self._watch(store)
        return store

    def watch(self) -> None:
        """Open the store, so that answers given through it are recorded here."""
        _ = self.store

    def _watch(self, store: ApprovalStore) -> None:
        store.outbox.changed = self._count_unstored
        store.recorder = AnswerRecorder(self.telemetry)
        self.telemetry.instruments.observe_store(store, store.levels)

    def _count_unstored(self, change: int) -> None:
        """Count what is known of approvals and waits to be stored."""
        self.telemetry.count(self.telemetry.instruments.approvals_unstored, change, {})

    @property
    def channel(self) -> PermissionChannel:
        """Through whom a question is answered here."""
        if self.approver is not None:
            return PermissionChannel.APPROVER
        if self.configured:
            return PermissionChannel.APPROVAL_STORE
        return PermissionChannel.HOST

    def lasting(self) -> ApprovalStore | None:
        """Return the store where it outlives this process, ``None`` where it is in memory."""
        if not self.configured:
            return None
        store = self.store
        return store if store.lasting else None

    def close(self) -> None:
        """Close the store, if it was opened."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def ask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """Store the request and ask in place."""
        request = self.store.create(request, arguments, context=context)
        # the protocol takes its time
        if self.approver is None or not isinstance(self.approver, Approver):
            return None
        try:
            answer = self.approver.ask(request)
        except Exception as error:
            _logger.warning("the approver failed: %s", type(error).__name__)
            return None
        return self._take(request, answer)

    async def aask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """The same without blocking the event loop."""
        if self.approver is None or not isinstance(self.approver, AsyncApprover):
            return await asyncio.to_thread(self.ask, request, arguments, context)
        request = await self.store.acreate(request, arguments, context=context)
        try:
            answer = await self.approver.aask(request)
        except Exception as error:
            _logger.warning("the approver failed: %s", type(error).__name__)
            return None
        return await asyncio.to_thread(self._take, request, answer)

    def _take(
        self, request: ApprovalRequest, answer: ApprovalAnswer | None
    ) -> ApprovalAnswer | None:
        if answer is None:
            return None
        if not isinstance(answer, ApprovalAnswer) or not isinstance(answer.approved, bool):
            _logger.warning("the approver gave no answer that can be understood")
            return None
        if answer.stored:
            return answer
        if answer.way is AnswerWay.PROGRAM:
            answer = replace(answer, way=AnswerWay.APPROVER)
        try:
            stored = self.store.answer(request.request_id, answer)
        except ApprovalStoreError:
            self.store.outbox.keep(
                "an answer", partial(self.store.answer, request.request_id, answer)
            )
            return None
        except ApprovalError as error:
            _logger.warning("the answer could not be taken: %s", type(error).__name__)
            return None
        if not stored.needs_several:
            return answer
        # one of several people: the call waits for the others
        return self.store.stored_call(request.request_id).answer

    def waiting(self, invocation_id: str) -> StoredCall:
        """Return the stored call of a paused invocation."""
        return self.store.stored_call(invocation_id)

    def find_grant(self, wanted: GrantQuery) -> Grant | None:
        """Return the remembered approval that answers everything that is asked about a call, if
        there is one.
        """
        try:
            return self.store.find_grant(wanted)
        except AgentToolError as error:
            _logger.warning("remembered approvals could not be read: %s", type(error).__name__)
            return None

    def use_grant(
        self, grant: Grant, wanted: GrantQuery, *, invocation_id: str, policy_revision: str
    ) -> bool:
        """Record that a call runs because of a remembered approval."""
        try:
            self.store.use_grant(
                grant.grant_id, wanted, invocation_id=invocation_id, policy_revision=policy_revision
            )
        except AgentToolError as error:
            _logger.warning("a remembered approval could not be used: %s", type(error).__name__)
            return False
        return True

    def claim(self, request_id: str, binding: ClaimBinding) -> Claim:
        """Take the one right to run an approved call that was decided again under the
        present policy.
        """
        claim = self.store.claim(request_id, **binding._asdict(), decided_again=True)
        self.hold(claim)
        return claim

    async def aclaim(self, request_id: str, binding: ClaimBinding) -> Claim:
        """The same without blocking the event loop; a claim that commits while its task is canceled
        is given back.
        """
        store = await asyncio.to_thread(lambda: self.store)
        claim = await store.aclaim(request_id, **binding._asdict(), decided_again=True)
        self.hold(claim)
        return claim

    def hold(self, claim: Claim) -> None:
        """Renew the lease of a claim until it ends, so that a long run is not taken for a lost one
        elsewhere.
        """
        self._leases.hold(self.store, claim)

    def stop_renewing(self, claim: Claim) -> None:
        """Leave the lease of a claim alone: its call waits in the store, where any process
        may end it.
        """
        self._leases.drop(claim)

    def finish(self, claim: Claim, outcome: ResultStatus) -> None:
        """Record how a claimed run ended; what can't be stored now is kept until it can, and the
        result left alone.
        """
        try:
            self.store.finish(claim, outcome)
        except ApprovalStoreError:
            record = partial(self.store.finish, claim, outcome)
            self.store.outbox.keep(
                "the outcome of a run", record, partial(self._leases.drop, claim)
            )
            return
        except (ApprovalError, ValueError) as error:
            _logger.warning(
                "the outcome of a claimed run could not be recorded: %s", type(error).__name__
            )
        self._leases.drop(claim)

    def cancel(self, request_id: str, reason: str) -> ApprovalRequest:
        """Cancel an open request; where the store fails, it is canceled as soon as that can be stored.

        Args:
            request_id: the request.
            reason: why.

        Raises:
            ApprovalStoreError: the store failed.
            ApprovalConflict: the request was answered or has ended.
        """
        try:
            return self.store.cancel(request_id, reason)
        except ApprovalStoreError:
            self.store.outbox.keep("a cancellation", partial(self.store.cancel, request_id, reason))
            raise
