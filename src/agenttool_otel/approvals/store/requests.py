"""The store's requests: asked once, shown with their present state, expired when their time is over.

A request goes ``pending -> approved -> consumed``, or ends as rejected, expired, canceled or
interrupted. Each step is one compare-and-set in one transaction with its evidence, so of any number
of processes exactly one makes it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, func, select

from agenttool_otel.approvals.store.clock import from_us, to_us
from agenttool_otel.approvals.store.database import Database
from agenttool_otel.approvals.store.rows import open_call, request_of, seal_request, unreadable
from agenttool_otel.approvals.store.schema import requests
from agenttool_otel.approvals.store.statements import Statement
from agenttool_otel.approvals.store.transaction import Refused, Transaction
from agenttool_otel.approvals.types import ApprovalRequest, AskLimit, StoredCall
from agenttool_otel.errors import (
    ApprovalConflict,
    ApprovalError,
    ApprovalExpired,
    ApprovalNotFound,
    ApprovalStoreError,
)
from agenttool_otel.names import ApprovalConflictReason as Reason
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.names import ApprovalStatus as Status
from agenttool_otel.names import ResultStatus

OPEN_STATES: Final = (Status.PENDING, Status.APPROVED)
"""States from which a call may still come to run."""

_SAME: Final = ("request_id", "invocation_id", "tool_id", "actor_id", "supersedes")
_EVIDENCE_FIELDS: Final = {
    "invocation": "invocation_id",
    "tool": "tool_id",
    "actor": "actor_id",
    "tenant": "tenant",
    "session": "session_id",
    "args_digest": "args_digest",
    "declaration_digest": "declaration_digest",
    "policy_revision": "policy_revision",
    "rule": "rule_ref",
    "supersedes": "supersedes",
}
_MAX_CLOSED_REASON_CHARS: Final = 200
_MAX_SESSION_ID_CHARS: Final = 400
_MAX_LISTED: Final = 1000


class Limits(NamedTuple):
    """How much may be asked."""

    asks: AskLimit | None  # how often one actor may ask
    pending: int  # how many requests may wait for an answer at once, 0: no limit
    pending_per_session: int  # how many of one session


class Requests:
    """Requests and the calls that they are about."""

    def __init__(
        self, db: Database, digest: Callable[[Any], str], default_ttl: timedelta, limits: Limits
    ) -> None:
        self.db = db
        self.digest = digest
        self._default_ttl = default_ttl
        self._limits = limits

    # --- asking -----------------------------------------------------------------------------------

    def create(
        self,
        request: ApprovalRequest,
        arguments: dict[str, Any],
        *,
        context: dict[str, Any] | None = None,
    ) -> ApprovalRequest:
        """Store a request with what is needed to run it later; only then may anybody be asked."""
        if request.status is not Status.PENDING:
            raise ApprovalConflict("a new request is pending", reason=Reason.ALREADY_ANSWERED)
        if self.digest(arguments) != request.args_digest:
            raise ApprovalConflict(
                "the arguments are not those of the request", reason=Reason.ARGUMENTS
            )
        ttl = (
            self._default_ttl
            if request.expires_at is None
            else request.expires_at - request.created_at
        )
        if ttl <= timedelta(0):
            raise ApprovalExpired("the request's time is over before it was asked")
        with self.db.write() as tx:
            self._check_new(tx, request)
            return self.insert(tx, request, arguments, context or {}, ttl)

    def _check_new(self, tx: Transaction, request: ApprovalRequest) -> None:
        def refuse(reason: Reason, message: str) -> Refused:
            tx.log(
                Kind.CREATE_REFUSED,
                request.request_id,
                invocation=request.invocation_id,
                reason=reason.value,
            )
            return Refused(ApprovalConflict(message, reason=reason))

        if by_id(tx.connection, request.request_id) is not None:
            raise refuse(Reason.DUPLICATE, "a request with this id exists already")
        if (last := newest(tx.connection, request.invocation_id)) is not None:
            last = self.expire_if_due(tx, last)
            status = Status(last.status)
            if status in OPEN_STATES:
                raise refuse(
                    Reason.STILL_OPEN, f"the invocation has an open request: {last.request_id}"
                )
            # its run waits, and asks another question: about the effects that it reports
            waits = last.outcome == ResultStatus.PENDING.value
            if status is Status.CONSUMED and not waits:
                raise refuse(Reason.CONSUMED, "the invocation has been approved and run")
            if status is Status.REJECTED:
                raise refuse(Reason.REJECTED, "the invocation was rejected")
        if (limit := self._limits.asks) is not None:
            since = tx.now_us - int(limit.seconds * 1_000_000)
            if _count(tx, _ASKED, actor=request.actor_id, since=since) >= limit.asks:
                raise refuse(Reason.RATE_LIMITED, "this actor asks too often")
        self._check_room(tx, request)

    def _check_room(self, tx: Transaction, request: ApprovalRequest) -> None:
        """Refuse a request where too many wait; without an entry, or a model that asks in a loop
        would fill the log.
        """
        most, most_of_session = self._limits.pending, self._limits.pending_per_session
        if most and _count(tx, _PENDING) >= most:
            raise ApprovalConflict(
                "too many requests wait for an answer", reason=Reason.RATE_LIMITED
            )
        if (
            request.session_id
            and most_of_session
            and _count(tx, _OWN, session=_session_of(request)) >= most_of_session
        ):
            raise ApprovalConflict(
                "too many requests of this session wait for an answer", reason=Reason.RATE_LIMITED
            )

    def insert(
        self,
        tx: Transaction,
        request: ApprovalRequest,
        arguments: dict[str, Any],
        context: dict[str, Any],
        ttl: timedelta,
    ) -> ApprovalRequest:
        """Store a new request; its lifetime counts from the store's own time."""
        created = from_us(tx.now_us)
        stored = request.model_copy(update={"created_at": created, "expires_at": created + ttl})
        try:
            sealed_request = seal_request(self.db.sealer, stored)
            call = {"arguments": arguments, "context": context}
            sealed_call = self.db.sealer.seal(call, purpose="call", row=stored.request_id)
        except (ValueError, TypeError, RecursionError) as error:
            raise ApprovalError(
                f"the call can't be stored as JSON: {type(error).__name__}"
            ) from None
        values = {
            **{name: getattr(stored, name) for name in _SAME},
            "session_id": _session_of(stored),
            "status": Status.PENDING.value,
            "created_us": tx.now_us,
            "expires_us": to_us(created + ttl),
            "sealed_request": sealed_request,
            "sealed_call": sealed_call,
        }
        tx.insert(
            requests,
            values,
            Kind.CREATED,
            stored.request_id,
            expires_us=values["expires_us"],
            **{name: getattr(stored, field) for name, field in _EVIDENCE_FIELDS.items()},
        )
        return stored

    # --- expiry and other ends --------------------------------------------------------------------

    def expire_due(self, now: datetime | None = None) -> list[str]:
        """Mark open requests whose time is over as expired."""
        with self.db.write() as tx:
            until = max(tx.now_us, to_us(now)) if now is not None else tx.now_us
            expired = []
            for row in tx.connection.execute(_due_query(until)).all():
                try:
                    self.close(tx, row, Status.EXPIRED, Kind.EXPIRED)
                except ApprovalStoreError:
                    # the row was edited: it is neither answered nor run, and does not keep others
                    # from ending
                    continue
                expired.append(row.request_id)
        return expired

    def expire_if_due(self, tx: Transaction, row: Any) -> Any:
        """Mark one request as expired if its time is over; gives its row as it is then."""
        if not _is_due(row, tx.now_us):
            return row
        self.close(tx, row, Status.EXPIRED, Kind.EXPIRED)
        return by_id(tx.connection, row.request_id) or row

    def close(
        self, tx: Transaction, row: Any, status: Status, kind: Kind, reason: str | None = None
    ) -> None:
        """End a request without a run, or a run without its result."""
        text = None if reason is None else reason[:_MAX_CLOSED_REASON_CHARS]
        changes = {"status": status.value, **({} if text is None else {"closed_reason": text})}
        tx.update(requests, row, changes, kind, row.request_id, was=row.status, reason=text)

    def unreported_expiries(self) -> list[str]:
        """Return the ids of expired requests whose calls' end nobody has reported, no matter which process marked
        them as expired.
        """
        self.expire_if_any_due(must=True)
        query = (
            select(requests.c.request_id)
            .where(
                requests.c.status == Status.EXPIRED.value, requests.c.expiry_reported_us.is_(None)
            )
            .order_by(requests.c.expires_us)
        )
        with self.db.read() as (connection, _):
            return [str(request_id) for (request_id,) in connection.execute(query)]

    def report_expiry(self, request_id: str) -> bool:
        """Undertake to report the end of an expired request's call; of any number of processes one
        does.
        """
        with self.db.write() as tx:
            row = by_id(tx.connection, request_id)
            if (
                row is None
                or row.status != Status.EXPIRED.value
                or row.expiry_reported_us is not None
            ):
                return False
            tx.update(
                requests, row, {"expiry_reported_us": tx.now_us}, Kind.EXPIRY_REPORTED, request_id
            )
            return True

    def expire_if_any_due(self, *, must: bool = False) -> None:
        """Mark what is due as expired; a store that can't be written still shows it so, unless it
        must.
        """
        with self.db.read() as (connection, now_us):
            due = connection.execute(_due_query(now_us).limit(1)).first()
        if due is None:
            return
        try:
            self.expire_due()
        except ApprovalStoreError:
            if must:
                raise

    # --- reading ----------------------------------------------------------------------------------

    def get(self, request_id: str) -> ApprovalRequest:
        """Return a request with its current state; what is due counts as expired, and stays so."""
        return self._show(by_id, request_id)

    def by_invocation(self, invocation_id: str) -> ApprovalRequest | None:
        """Return the newest request of an invocation, ``None`` when it never asked."""
        try:
            return self._show(newest, invocation_id)
        except ApprovalNotFound:
            return None

    def stored_call(self, ref: str) -> StoredCall:
        """Return what is needed to decide a call again before it is claimed; it gives no right to
        run it.
        """
        self.expire_if_any_due()
        with self.db.read() as (connection, _):
            return open_call(self.db.sealer, find(connection, ref))

    def counts(self) -> dict[Status, int]:
        """Return how many requests are in each state."""
        self.expire_if_any_due()
        with self.db.read() as (connection, _):
            rows = connection.execute(
                select(requests.c.status, func.count()).group_by(requests.c.status)
            ).all()
        found = {str(status): int(count) for status, count in rows}
        return {status: found.get(status.value, 0) for status in Status}

    def _show(self, find_row: Callable[[Connection, str], Any | None], ref: str) -> ApprovalRequest:
        with self.db.read() as (connection, now_us):
            row = find_row(connection, ref)
        if row is None:
            raise ApprovalNotFound(f"no such approval request: {ref[:80]}")
        if _is_due(row, now_us):
            self.expire_if_any_due()
            with self.db.read() as (connection, now_us):
                row = find_row(connection, ref) or row
        return self._shown(row, now_us)

    def _shown(self, row: Any, now_us: int) -> ApprovalRequest:
        request = request_of(self.db.sealer, row)
        return (
            request.model_copy(update={"status": Status.EXPIRED})
            if _is_due(row, now_us)
            else request
        )

    def shown(self, row: Any, now_us: int) -> ApprovalRequest:
        """Return a row's request as a list shows it: with a stand-in for one that can't be opened.

        Args:
            row: the row.
            now_us: the store's time, microseconds since 1970.
        """
        try:
            return self._shown(row, now_us)
        except ApprovalError as error:
            return unreadable(row, str(error))

    def list(
        self,
        status: Status | str | None = None,
        *,
        invocation_id: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[ApprovalRequest]:
        """Return requests, those that expire first in front when pending, otherwise the newest."""
        wanted = None if status is None else Status(status)
        self.expire_if_any_due()
        query = select(requests)
        if wanted is not None:
            query = query.where(requests.c.status == wanted.value)
        if invocation_id is not None:
            query = query.where(requests.c.invocation_id == invocation_id)
        if wanted is Status.PENDING:
            query = query.order_by(requests.c.expires_us, requests.c.created_us)
        else:
            query = query.order_by(requests.c.created_us.desc())
        query = query.limit(max(1, min(limit, _MAX_LISTED))).offset(max(0, offset))
        with self.db.read() as (connection, now_us):
            rows = connection.execute(query).all()
        return [self.shown(row, now_us) for row in rows]


_THIS: Final[Any] = bindparam("this")
_BY_ID: Final = Statement(select(requests).where(requests.c.request_id == _THIS))
_NEWEST: Final = Statement(
    select(requests)
    .where(requests.c.invocation_id == _THIS)
    .order_by(requests.c.created_us.desc())
    .limit(1)
)
_COUNT: Final = select(func.count()).select_from(requests)
_COUNT_PENDING: Final = _COUNT.where(requests.c.status == Status.PENDING.value)
_ASKED: Final = Statement(
    _COUNT.where(
        requests.c.actor_id == bindparam("actor"), requests.c.created_us > bindparam("since")
    )
)
_PENDING: Final = Statement(_COUNT_PENDING)
_OWN: Final = Statement(_COUNT_PENDING.where(requests.c.session_id == bindparam("session")))


def by_id(connection: Connection, request_id: str) -> Any | None:
    """Return a request's row."""
    return _BY_ID.first(connection, this=request_id)


def newest(connection: Connection, invocation_id: str) -> Any | None:
    """Return the row of an invocation's last request."""
    return _NEWEST.first(connection, this=invocation_id)


def find(connection: Connection, ref: str) -> Any:
    """Return the row of a request, by its id or its invocation's."""
    if (row := by_id(connection, ref) or newest(connection, ref)) is None:
        raise ApprovalNotFound("no such approval request")
    return row


def _session_of(request: ApprovalRequest) -> str | None:
    return None if request.session_id is None else request.session_id[:_MAX_SESSION_ID_CHARS]


def _count(tx: Transaction, query: Statement, **values: Any) -> int:
    return int(query.first(tx.connection, **values)[0])


def _is_due(row: Any, now_us: int) -> bool:
    if type(row.expires_us) is not int:
        raise ApprovalStoreError(
            "the approval store was changed: a request has no time that can be read"
        )
    return row.status in OPEN_STATES and row.expires_us <= now_us


def _due_query(now_us: int) -> Any:
    states = [status.value for status in OPEN_STATES]
    return select(requests).where(requests.c.status.in_(states), requests.c.expires_us <= now_us)
