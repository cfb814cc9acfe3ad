"""What every part of the approval store stands on: opening it, its key, its rows, and expiry."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from agenttool_otel.approvals import evidence_log
from agenttool_otel.approvals.clock import StoreClock, from_us, to_us
from agenttool_otel.approvals.database import Database, Transaction, parse_url
from agenttool_otel.approvals.digests import args_digest as canonical_digest
from agenttool_otel.approvals.rows import seal_call, seal_request
from agenttool_otel.approvals.schema import requests
from agenttool_otel.approvals.sealing import Sealer, load_or_create_key_file, parse_key
from agenttool_otel.approvals.types import ApprovalRequest, AskLimit
from agenttool_otel.errors import ApprovalConflict, ApprovalError, ApprovalStoreError, ConfigurationError
from agenttool_otel.names import ApprovalConflictReason as Reason
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.names import ApprovalStatus as Status
from agenttool_otel.names import Env

__all__ = ["DEFAULT_TTL", "OPEN_STATES", "StoreBase", "is_due"]

DEFAULT_TTL: Final = timedelta(days=7)
"""How long a request without an expiry of its own may be answered and used."""

OPEN_STATES: Final = (Status.PENDING, Status.APPROVED)
"""States from which a call may still come to run."""


class StoreBase:
    """What ``ApprovalStore`` is made of; its arguments are documented there."""

    def __init__(
        self,
        url: str | Path,
        *,
        key: str | bytes | None = None,
        clock: Callable[[], datetime] | None = None,
        ticks: Callable[[], float] | None = None,
        timeout: float = 5.0,
        default_ttl: timedelta | float = DEFAULT_TTL,
        lease: timedelta | float = timedelta(hours=1),
        ask_limit: AskLimit | None = None,
        digest: Callable[[Any], str] = canonical_digest,
    ) -> None:
        self._db = Database(parse_url(url), StoreClock(clock, ticks), timeout)
        self._default_ttl = _as_timedelta(default_ttl)
        self._lease_us = _as_timedelta(lease) // timedelta(microseconds=1)
        self._ask_limit = ask_limit
        self._digest = digest
        try:
            self._sealer = Sealer(self._find_key(key))
            self._bind_key()
        except BaseException:
            self._db.close()
            raise

    @property
    def url(self) -> str:
        """Where the store is, without a password."""
        return self._db.url.render_as_string(hide_password=True)

    @property
    def lease(self) -> timedelta:
        """How long a claim lasts unless it is renewed, for those who can't see whether its process lives."""
        return timedelta(microseconds=self._lease_us)

    def expire_due(self, now: datetime | None = None) -> list[str]:
        """Mark open requests whose time is over as expired.

        Args:
            now: a later time than the store's to expire by; an earlier one has no effect.

        Returns:
            Their ids.
        """
        with self._db.write() as tx:
            until = max(tx.now_us, to_us(now)) if now is not None else tx.now_us
            rows = tx.connection.execute(_due_query(until)).all()
            for row in rows:
                self._close_row(tx, row, Status.EXPIRED, Kind.EXPIRED)
        return [row.request_id for row in rows]

    def untold(self) -> list[str]:
        """Return the ids of expired requests whose calls' end nobody has told, whoever marked them as expired.

        Raises:
            ApprovalStoreError: the store can't be read, or what is due can't be marked.
        """
        with self._db.read() as (connection, now_us):
            due = connection.execute(_due_query(now_us).limit(1)).first()
        if due is not None:
            self.expire_due()
        query = (
            select(requests.c.request_id)
            .where(requests.c.status == Status.EXPIRED.value, requests.c.told_us.is_(None))
            .order_by(requests.c.expires_us)
        )
        with self._db.read() as (connection, _):
            return [str(request_id) for (request_id,) in connection.execute(query)]

    def tell(self, request_id: str) -> bool:
        """Take it upon oneself to tell the end of an expired request's call; of any number of processes one does.

        Args:
            request_id: the request.

        Returns:
            Whether it is the caller's to tell.

        Raises:
            ApprovalStoreError: the store can't be written.
        """
        with self._db.write() as tx:
            return bool(
                tx.connection.execute(
                    requests.update()
                    .where(
                        requests.c.request_id == request_id,
                        requests.c.status == Status.EXPIRED.value,
                        requests.c.told_us.is_(None),
                    )
                    .values(told_us=tx.now_us)
                ).rowcount
            )

    def _settle(self) -> None:
        """Make what is due expired, if anything is; a store that can't be written still shows it so."""
        with self._db.read() as (connection, now_us):
            due = connection.execute(_due_query(now_us).limit(1)).first()
        if due is not None:
            try:
                self.expire_due()
            except ApprovalStoreError:
                return

    def close(self) -> None:
        """Close every connection; a later operation opens one again."""
        self._db.close()

    # --- rows -------------------------------------------------------------------------------------------------------

    def _by_id(self, connection: Connection, request_id: str) -> Row[Any] | None:
        return connection.execute(select(requests).where(requests.c.request_id == request_id)).first()

    def _newest(self, connection: Connection, invocation_id: str) -> Row[Any] | None:
        return connection.execute(
            select(requests)
            .where(requests.c.invocation_id == invocation_id)
            .order_by(requests.c.created_us.desc())
            .limit(1)
        ).first()

    def _find(self, connection: Connection, ref: str) -> Row[Any] | None:
        return self._by_id(connection, ref) or self._newest(connection, ref)

    def _expire_if_due(self, tx: Transaction, row: Row[Any]) -> Row[Any]:
        if not is_due(row, tx.now_us):
            return row
        self._close_row(tx, row, Status.EXPIRED, Kind.EXPIRED)
        return self._by_id(tx.connection, row.request_id) or row

    def _close_row(self, tx: Transaction, row: Row[Any], status: Status, kind: Kind, reason: str | None = None) -> None:
        text = None if reason is None else reason[:200]
        self._advance(tx, row, status, **({} if text is None else {"closed_reason": text}))
        tx.log(kind, row.request_id, was=row.status, reason=text)

    def _advance(self, tx: Transaction, row: Row[Any], status: Status, **values: Any) -> None:
        """Compare and set: only if the row is still in the state that was read."""
        changed = tx.connection.execute(
            requests.update()
            .where(requests.c.request_id == row.request_id, requests.c.status == row.status)
            .values(status=status.value, **values)
        ).rowcount
        if changed != 1:
            raise ApprovalConflict("the request changed meanwhile", reason=Reason.ALREADY_ANSWERED)

    def _insert(
        self,
        tx: Transaction,
        request: ApprovalRequest,
        arguments: dict[str, Any],
        context: dict[str, Any],
        ttl: timedelta,
    ) -> ApprovalRequest:
        created = from_us(tx.now_us)
        stored = request.model_copy(update={"created_at": created, "expires_at": created + ttl})
        try:
            sealed_request = seal_request(self._sealer, stored)
            sealed_call = seal_call(self._sealer, stored.request_id, arguments, context)
        except (ValueError, TypeError, RecursionError) as error:
            raise ApprovalError(f"the call can't be stored as JSON: {type(error).__name__}") from None
        tx.connection.execute(
            requests.insert().values(
                request_id=stored.request_id,
                invocation_id=stored.invocation_id,
                tool_id=stored.tool_id,
                actor_id=stored.actor_id,
                status=Status.PENDING.value,
                created_us=tx.now_us,
                expires_us=to_us(created + ttl),
                sealed_request=sealed_request,
                sealed_call=sealed_call,
                supersedes=stored.supersedes,
            )
        )
        tx.log(
            Kind.CREATED,
            stored.request_id,
            invocation=stored.invocation_id,
            tool=stored.tool_id,
            actor=stored.actor_id,
            tenant=stored.tenant,
            session=stored.session_id,
            args_digest=stored.args_digest,
            declaration_digest=stored.declaration_digest,
            policy_revision=stored.policy_revision,
            rule=stored.rule_ref,
            expires_us=to_us(created + ttl),
            supersedes=stored.supersedes,
        )
        return stored

    # --- key --------------------------------------------------------------------------------------------------------

    def _find_key(self, key: str | bytes | None) -> bytes:
        if key is None:
            key = os.environ.get(Env.APPROVALS_KEY) or None
        if key is not None:
            return parse_key(key)
        if self._db.memory:
            return os.urandom(32)
        if not self._db.sqlite:
            raise ConfigurationError(f"a shared approval store needs a key: set {Env.APPROVALS_KEY}")
        with self._db.read() as (connection, _):
            fresh = not evidence_log.key_id(connection)
        return load_or_create_key_file(Path(f"{self._db.url.database}.key"), create=fresh)

    def _bind_key(self) -> None:
        with self._db.read() as (connection, _):
            bound = evidence_log.key_id(connection)
        if not bound:
            with self._db.write() as tx:
                tx.key_id = tx.key_id or self._sealer.key_id
                bound = tx.key_id
        if bound != self._sealer.key_id:
            raise ApprovalStoreError("the approval store was sealed with another key")


def is_due(row: Row[Any], now_us: int) -> bool:
    """Tell whether an open request's time is over."""
    return row.status in OPEN_STATES and row.expires_us <= now_us


def _due_query(now_us: int) -> Any:
    states = [status.value for status in OPEN_STATES]
    return select(requests).where(requests.c.status.in_(states), requests.c.expires_us <= now_us)


def _as_timedelta(value: timedelta | float) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(seconds=value)
