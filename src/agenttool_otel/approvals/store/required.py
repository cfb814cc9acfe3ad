"""Permitted calls of custom tools, kept until a result or an interrupt arrives in whatever process
(docs/hooks.md).

A row goes ``waiting -> completed`` or ``waiting -> interrupted``: one compare-and-set in one
transaction with its evidence, so of any number of processes exactly one ends the call. Where the
call had been approved, its taker takes over the approval's claim in the same transaction,
and has to end it with ``finish``.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from agenttool_otel.approvals.store.claims import Claims
from agenttool_otel.approvals.store.owner import HELD
from agenttool_otel.approvals.store.rows import required_call_of
from agenttool_otel.approvals.store.schema import log, required
from agenttool_otel.approvals.store.transaction import Transaction
from agenttool_otel.approvals.types import Claim, RequiredCall
from agenttool_otel.errors import (
    ApprovalError,
    ApprovalStoreError,
    InvocationConflict,
    InvocationNotFound,
)
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.names import RequiredStatus as Status

_logger = logging.getLogger("agenttool_otel.approvals")

_ENDS = {Status.COMPLETED: Kind.RESULT_COMPLETED, Status.INTERRUPTED: Kind.RESULT_INTERRUPTED}


class RequiredCalls:
    """Keeps calls until their results arrive."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._db = claims.requests.db

    def keep(
        self,
        invocation_id: str,
        tool_id: str,
        arguments: dict[str, Any],
        context: dict[str, Any],
        *,
        declaration_digest: str,
        claim: Claim | None = None,
    ) -> None:
        """Let a permitted call wait for its result; one of the same id, handed over again, replaces
        it.
        """
        args_digest = self._claims.requests.digest(arguments)
        own = {
            "tool_id": tool_id,
            "request_id": None if claim is None else claim.request.request_id,
            "claim_id": None if claim is None else claim.claim_id,
        }
        body = {
            **own,
            "declaration_digest": declaration_digest,
            "arguments": arguments,
            "context": context,
        }
        try:
            sealed = self._db.sealer.seal(body, purpose="required", row=invocation_id)
        except (ValueError, TypeError, RecursionError) as error:
            raise ApprovalError(
                f"the call can't be stored as JSON: {type(error).__name__}"
            ) from None
        facts = {
            "tool": tool_id,
            "args_digest": args_digest,
            "declaration_digest": declaration_digest,
            "request": own["request_id"],
            "claim": own["claim_id"],
        }
        with self._db.write() as tx:
            values = {
                **own,
                "status": Status.WAITING.value,
                "created_us": tx.now_us,
                "ended_us": None,
                "sealed_call": sealed,
            }
            if (row := _row(tx.connection, invocation_id)) is None:
                new = {"invocation_id": invocation_id, **values}
                tx.insert(required, new, Kind.RESULT_REQUIRED, invocation_id, **facts)
            else:
                tx.update(required, row, values, Kind.RESULT_REQUIRED, invocation_id, **facts)
        if claim is not None:
            # from here on the waiting row proves that the run is not lost
            HELD.discard(claim.claim_id)

    def get(self, invocation_id: str) -> RequiredCall:
        """Return a waiting call and let it wait on."""
        with self._db.read() as (connection, _):
            row = _waiting(connection, invocation_id)
        return required_call_of(self._db.sealer, row)

    def take(self, invocation_id: str, status: Status | str) -> RequiredCall:
        """End the waiting of a call and return it, with the claim to finish; of several takers one
        gets it.

        Its arguments are not kept any longer; the row only shows that it has ended.
        """
        end = Status(status)
        if end is Status.WAITING:
            raise ValueError("a call that is taken does not wait on")
        with self._db.read() as (connection, _):
            _waiting(connection, invocation_id)  # what can't be had takes no lock
        claim: Claim | None = None
        try:
            with self._db.write() as tx:
                row = _waiting(tx.connection, invocation_id)
                tx.check(required, row)
                call = required_call_of(self._db.sealer, row)
                if (claim := self._end(tx, row, end)) is not None:
                    # before the commit: then recover never sees it held by nobody
                    HELD.add(claim.claim_id)
        except BaseException:
            if claim is not None:
                HELD.discard(claim.claim_id)
            raise
        return replace(call, claim=claim)

    def _end(self, tx: Transaction, row: Any, end: Status) -> Claim | None:
        # the evidence counts, whatever the row holds
        if _last_entry(tx.connection, row.invocation_id) != Kind.RESULT_REQUIRED.value:
            raise InvocationConflict("the call has ended already")
        claim = None
        if row.request_id is not None:
            claim = self._claims.take_over(tx, row.request_id, row.claim_id)
        changes = {"status": end.value, "ended_us": tx.now_us, "sealed_call": b""}
        facts = {"tool": row.tool_id, "request": row.request_id, "claim": row.claim_id}
        tx.update(required, row, changes, _ENDS[end], row.invocation_id, **facts)
        return claim

    def ids(self) -> set[str]:
        """Return the ids of all calls that wait for their results."""
        query = select(required.c.invocation_id).where(required.c.status == Status.WAITING.value)
        with self._db.read() as (connection, _):
            return {str(invocation_id) for (invocation_id,) in connection.execute(query)}

    def list(self) -> list[RequiredCall]:
        """Return the calls that wait for their results, oldest first; what can't be opened is left
        out and logged.
        """
        query = (
            select(required)
            .where(required.c.status == Status.WAITING.value)
            .order_by(required.c.created_us)
        )
        with self._db.read() as (connection, _):
            rows = connection.execute(query).all()
        found = []
        for row in rows:
            try:
                found.append(required_call_of(self._db.sealer, row))
            except ApprovalStoreError as error:
                _logger.warning("a call that waits for its result can't be opened: %s", error)
        return found


def _row(connection: Connection, invocation_id: str) -> Any | None:
    return connection.execute(
        select(required).where(required.c.invocation_id == invocation_id)
    ).first()


def _waiting(connection: Connection, invocation_id: str) -> Any:
    if (row := _row(connection, invocation_id)) is None:
        raise InvocationNotFound("no call of that id waits for a result")
    if row.status != Status.WAITING.value:
        raise InvocationConflict(f"the call was {row.status} already")
    return row


def _last_entry(connection: Connection, invocation_id: str) -> str | None:
    kinds = [Kind.RESULT_REQUIRED.value, *(kind.value for kind in _ENDS.values())]
    found = connection.execute(
        select(log.c.kind)
        .where(log.c.request_id == invocation_id, log.c.kind.in_(kinds))
        .order_by(log.c.seq.desc())
        .limit(1)
    ).scalar()
    return None if found is None else str(found)
