"""The way of a question: stored first, then asked in place if somebody can be asked, else left pending.

There is one path to a run, in place or resumed: one stored request, one answer, one claim. Whatever fails on that path
leaves the call without an approval.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from agenttool_otel.approvals.store import ApprovalStore
from agenttool_otel.approvals.types import (
    ApprovalAnswer,
    ApprovalRequest,
    Approver,
    AsyncApprover,
    Claim,
    ClaimBinding,
    Grant,
    StoredCall,
)
from agenttool_otel.errors import ApprovalError
from agenttool_otel.names import ResultStatus

__all__ = ["Approvals"]

_logger = logging.getLogger("agenttool_otel.approvals")


class Approvals:
    """Stores questions, asks approvers, claims answers.

    Args:
        approver: who is asked in place; ``None`` leaves every ask pending.
        open_store: makes the store, at first use.
    """

    def __init__(self, approver: Approver | AsyncApprover | None, open_store: Callable[[], ApprovalStore]) -> None:
        self.approver = approver
        self._open_store = open_store
        self._store: ApprovalStore | None = None
        self._lock = threading.Lock()

    @property
    def store(self) -> ApprovalStore:
        """The approval store, opened at first use."""
        store = self._store
        if store is None:
            with self._lock:  # of two stores in memory, one would lose its requests
                store = self._store
                if store is None:
                    store = self._store = self._open_store()
        return store

    def close(self) -> None:
        """Close the store, if it was opened."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def ask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """Store the request and ask in place.

        Args:
            request: the question.
            arguments: the JSON arguments that would run; stored sealed.
            context: what a resuming process needs; stored sealed.

        Returns:
            The stored answer, or ``None`` while nobody has answered.

        Raises:
            ApprovalError: the question could not be stored, so nobody may be asked.
        """
        request = self.store.create(request, arguments, context=context)
        if not isinstance(self.approver, Approver):
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
        """The same without blocking the event loop.

        Args:
            request: the question.
            arguments: the JSON arguments that would run.
            context: what a resuming process needs.

        Returns:
            The stored answer, or ``None`` while nobody has answered.

        Raises:
            ApprovalError: the question could not be stored.
        """
        if not isinstance(self.approver, AsyncApprover):
            return await asyncio.to_thread(self.ask, request, arguments, context)
        request = await self.store.acreate(request, arguments, context=context)
        try:
            answer = await self.approver.aask(request)
        except Exception as error:
            _logger.warning("the approver failed: %s", type(error).__name__)
            return None
        return await asyncio.to_thread(self._take, request, answer)

    def _take(self, request: ApprovalRequest, answer: ApprovalAnswer | None) -> ApprovalAnswer | None:
        if answer is None:
            return None
        if not isinstance(answer, ApprovalAnswer) or not isinstance(answer.approved, bool):
            _logger.warning("the approver gave no answer that can be understood")
            return None
        if answer.stored:
            return answer
        try:
            self.store.answer(request.request_id, answer)
        except ApprovalError as error:
            _logger.warning("the answer could not be taken: %s", type(error).__name__)
            return None
        return answer

    def granted(self, suggestions: Sequence[Any], *, invocation_id: str, **call: Any) -> Grant | None:
        """Return a remembered approval that answers a question; without one that is sure, a person is asked.

        Args:
            suggestions: what the decision that asks offers to remember.
            invocation_id: the call.
            call: the call, as for ``ApprovalStore.grants_for``.
        """
        try:
            return self.store.use_grant(suggestions, invocation_id=invocation_id, **call)
        except ApprovalError as error:
            _logger.warning("remembered approvals could not be used: %s", type(error).__name__)
            return None

    def waiting(self, invocation_id: str) -> StoredCall:
        """Return the stored call of a paused invocation.

        Args:
            invocation_id: the invocation.

        Raises:
            ApprovalNotFound: there is none.
        """
        return self.store.stored_call(invocation_id)

    def claim(
        self, request_id: str, binding: ClaimBinding, *, args_digest: str, revision: str, declaration_digest: str
    ) -> Claim:
        """Take the one right to run an approved call that was decided again under the present policy.

        Args:
            request_id: the approved request.
            binding: for whom it would run, as it is now.
            args_digest: digest of what would run.
            revision: the bundle revision of the second decision.
            declaration_digest: digest of the tool as it is now.

        Raises:
            ApprovalError: it is not approved, used already, expired, or bound to something else.
        """
        return self.store.claim(
            request_id,
            args_digest=args_digest,
            actor_id=binding.actor_id,
            tenant=binding.tenant,
            session_id=binding.session_id,
            declaration_digest=declaration_digest,
            policy_revision_seen=revision,
            tool_id=binding.tool_id,
            decided_again=True,
        )

    def finish(self, claim: Claim, outcome: ResultStatus) -> None:
        """Record how a claimed run ended; a failure to do so is logged and leaves the run's result alone.

        Args:
            claim: the claim.
            outcome: the result's status.
        """
        try:
            self.store.finish(claim, outcome)
        except (ApprovalError, ValueError) as error:
            _logger.warning("the outcome of a claimed run could not be recorded: %s", type(error).__name__)
