"""The approval store: asked once, answered once, run once, in whatever process (design sections 1 and 3).

A request goes ``pending -> approved -> consumed``, or ends as rejected, expired, canceled or interrupted. Each step is
one compare-and-set in one transaction with its evidence (``evidence_log``), so of any number of processes exactly one
makes it. Nothing here runs a tool: a ``Claim`` is the right to run one call once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, func, select

from agenttool_otel.approvals import evidence_log
from agenttool_otel.approvals.clock import from_us
from agenttool_otel.approvals.database import Refused, Transaction
from agenttool_otel.approvals.rows import open_call, request_of, unreadable
from agenttool_otel.approvals.schema import requests
from agenttool_otel.approvals.store_answers import AnswerMethods
from agenttool_otel.approvals.store_base import DEFAULT_TTL, OPEN_STATES, is_due
from agenttool_otel.approvals.store_claims import Recovered
from agenttool_otel.approvals.store_required import RequiredMethods
from agenttool_otel.approvals.types import ApprovalRequest, ChainReport, LogEntry, StoredCall
from agenttool_otel.errors import (
    ApprovalConflict,
    ApprovalError,
    ApprovalExpired,
    ApprovalNotFound,
)
from agenttool_otel.names import ApprovalConflictReason as Reason
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.names import ApprovalStatus as Status

__all__ = ["DEFAULT_TTL", "Recovered", "SyncApprovalStore"]


class SyncApprovalStore(RequiredMethods, AnswerMethods):
    """``ApprovalStore`` without its asynchronous methods."""

    # --- asking -----------------------------------------------------------------------------------------------------

    def create(
        self, request: ApprovalRequest, arguments: dict[str, Any], *, context: dict[str, Any] | None = None
    ) -> ApprovalRequest:
        """Store a request with what is needed to run it later; only then may anybody be asked.

        Args:
            request: the request, pending; its arguments preview must be redacted already.
            arguments: the permission input, exactly; sealed. Its digest has to be the request's.
            context: further JSON data that the resuming process needs; sealed.

        Returns:
            The request with the times that the store keeps: its lifetime counts on the store's clock.

        Raises:
            ApprovalConflict: the invocation has an open request already, was rejected or has run, the id is taken, or
                the actor asks too often.
            ApprovalExpired: its time is over before it starts.
            ApprovalError: the arguments have no canonical form, or not the request's digest.
            ApprovalStoreError: it could not be stored, so nothing may run.
        """
        if request.status is not Status.PENDING:
            raise ApprovalConflict("a new request is pending", reason=Reason.ALREADY_ANSWERED)
        if self._digest(arguments) != request.args_digest:
            raise ApprovalConflict("the arguments are not those of the request", reason=Reason.ARGUMENTS)
        ttl = self._default_ttl if request.expires_at is None else request.expires_at - request.created_at
        if ttl <= timedelta(0):
            raise ApprovalExpired("the request's time is over before it was asked")
        with self._db.write() as tx:
            self._check_new(tx, request)
            return self._insert(tx, request, arguments, context or {}, ttl)

    def _check_new(self, tx: Transaction, request: ApprovalRequest) -> None:
        def refuse(reason: Reason, message: str) -> Refused:
            tx.log(Kind.CREATE_REFUSED, request.request_id, invocation=request.invocation_id, reason=reason.value)
            return Refused(ApprovalConflict(message, reason=reason))

        if tx.connection.execute(
            select(requests.c.request_id).where(requests.c.request_id == request.request_id)
        ).first():
            raise refuse(Reason.DUPLICATE, "a request with this id exists already")
        last = self._newest(tx.connection, request.invocation_id)
        if last is not None:
            last = self._expire_if_due(tx, last)
            status = Status(last.status)
            if status in OPEN_STATES:
                raise refuse(Reason.STILL_OPEN, f"the invocation has an open request: {last.request_id}")
            if status is Status.CONSUMED:
                raise refuse(Reason.CONSUMED, "the invocation has been approved and run")
            if status is Status.REJECTED:
                raise refuse(Reason.REJECTED, "the invocation was rejected")
        if self._ask_limit is not None:
            since = tx.now_us - int(self._ask_limit.seconds * 1_000_000)
            asked = tx.connection.execute(
                select(func.count())
                .select_from(requests)
                .where(requests.c.actor_id == request.actor_id, requests.c.created_us > since)
            ).scalar_one()
            if asked >= self._ask_limit.asks:
                raise refuse(Reason.RATE_LIMITED, "this actor asks too often")

    # --- reading ----------------------------------------------------------------------------------------------------

    def get(self, request_id: str) -> ApprovalRequest:
        """Return a request with its current state; what is due counts as expired, and stays so.

        Raises:
            ApprovalNotFound: there is none of that id.
            ApprovalStoreError: it can't be read or opened.
        """
        return self._show(lambda connection: self._by_id(connection, request_id), request_id)

    def by_invocation(self, invocation_id: str) -> ApprovalRequest | None:
        """Return the newest request of an invocation, ``None`` when it never asked."""
        try:
            return self._show(lambda connection: self._newest(connection, invocation_id), invocation_id)
        except ApprovalNotFound:
            return None

    def stored_call(self, ref: str) -> StoredCall:
        """Return what is needed to decide a call again before it is claimed; it gives no right to run it.

        Args:
            ref: a request id, or an invocation id for its newest request.

        Raises:
            ApprovalNotFound: there is none.
            ApprovalStoreError: it can't be read or opened.
        """
        self._settle()
        with self._db.read() as (connection, _):
            row = self._find(connection, ref)
            if row is None:
                raise ApprovalNotFound("no such approval request")
            return open_call(self._sealer, row)

    def counts(self) -> dict[Status, int]:
        """Return how many requests are in each state."""
        self._settle()
        with self._db.read() as (connection, _):
            rows = connection.execute(select(requests.c.status, func.count()).group_by(requests.c.status)).all()
        found = {str(status): int(count) for status, count in rows}
        return {status: found.get(status.value, 0) for status in Status}

    def now(self) -> datetime:
        """Return the store's time, by which everything expires."""
        with self._db.read() as (_, now_us):
            return from_us(now_us)

    def _show(self, find: Callable[[Connection], Row[Any] | None], what: str) -> ApprovalRequest:
        with self._db.read() as (connection, now_us):
            row = find(connection)
        if row is None:
            raise ApprovalNotFound(f"no such approval request: {what[:80]}")
        if is_due(row, now_us):
            self._settle()
            with self._db.read() as (connection, now_us):
                row = find(connection) or row
        return self._shown(row, now_us)

    def _shown(self, row: Row[Any], now_us: int) -> ApprovalRequest:
        request = request_of(self._sealer, row)
        return request.model_copy(update={"status": Status.EXPIRED}) if is_due(row, now_us) else request

    def _tolerant(self, row: Row[Any], now_us: int) -> ApprovalRequest:
        try:
            return self._shown(row, now_us)
        except ApprovalError as error:
            return unreadable(row, str(error))

    # --- evidence ---------------------------------------------------------------------------------------------------

    def verify_chain(self) -> ChainReport:
        """Check the whole evidence log."""
        with self._db.read() as (connection, _):
            return evidence_log.verify(connection)

    def log_entries(self, after: int = 0, *, limit: int = 1000) -> list[LogEntry]:
        """Return entries of the evidence log in order.

        Args:
            after: only those with a greater number.
            limit: at most so many.
        """
        with self._db.read() as (connection, _):
            entries = evidence_log.read_entries(connection, after)
            return [entry for _, entry in zip(range(limit), entries, strict=False)]

    def position(self) -> int:
        """Return the number of the last log entry: it changes whenever anything in the store does."""
        with self._db.read() as (connection, _):
            return evidence_log.position(connection)

    def list(
        self,
        status: Status | str | None = None,
        *,
        invocation_id: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[ApprovalRequest]:
        """Return requests, those that expire first in front when pending, otherwise the newest.

        Args:
            status: only those in this state.
            invocation_id: only those of this invocation.
            limit: at most so many, 1 to 1000.
            offset: leave out so many.

        Raises:
            ValueError: unknown status.
        """
        wanted = None if status is None else Status(status)
        self._settle()
        query = select(requests)
        if wanted is not None:
            query = query.where(requests.c.status == wanted.value)
        if invocation_id is not None:
            query = query.where(requests.c.invocation_id == invocation_id)
        if wanted is Status.PENDING:
            query = query.order_by(requests.c.expires_us, requests.c.created_us)
        else:
            query = query.order_by(requests.c.created_us.desc())
        with self._db.read() as (connection, now_us):
            rows = connection.execute(query.limit(max(1, min(limit, 1000))).offset(max(0, offset))).all()
        return [self._tolerant(row, now_us) for row in rows]
