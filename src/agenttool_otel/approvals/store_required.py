"""Permitted calls of custom tools, kept until a result or an interrupt arrives in whatever process (docs/hooks.md).

A row goes ``waiting -> completed`` or ``waiting -> interrupted``: one compare-and-set in one transaction with its
evidence, so of any number of processes exactly one ends the call. Where the call had been approved, whoever takes it
takes over the approval's claim in the same transaction, and has to end it with ``finish``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from agenttool_otel.approvals.clock import from_us
from agenttool_otel.approvals.database import Transaction
from agenttool_otel.approvals.owner import HELD, this_process
from agenttool_otel.approvals.rows import open_call, open_required, seal_required
from agenttool_otel.approvals.schema import log, requests, required
from agenttool_otel.approvals.store_claims import ClaimMethods
from agenttool_otel.approvals.types import Claim
from agenttool_otel.errors import ApprovalError, ApprovalStoreError, InvocationConflict, InvocationNotFound
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.names import RequiredStatus as Status

__all__ = ["RequiredCall", "RequiredMethods"]

_logger = logging.getLogger("agenttool_otel.approvals")

_ENDS = {Status.COMPLETED: Kind.RESULT_COMPLETED, Status.INTERRUPTED: Kind.RESULT_INTERRUPTED}


@dataclass(frozen=True, slots=True)
class RequiredCall:
    """A call that waits for its result, as the store keeps it.

    Attributes:
        invocation_id: the call.
        tool_id: the tool.
        declaration_digest: digest of the tool's declaration as it was permitted.
        arguments: the JSON arguments that it was permitted with.
        context: what the permitting process stored beside them.
        since: since when it waits.
        claim: the approval's claim, for whoever took the call; ``None`` where nobody had to approve it.
    """

    invocation_id: str
    tool_id: str
    declaration_digest: str
    arguments: dict[str, Any] = field(repr=False)
    context: dict[str, Any] = field(repr=False)
    since: datetime
    claim: Claim | None = None


class RequiredMethods(ClaimMethods):
    """The part of ``ApprovalStore`` that keeps calls until their results arrive."""

    @property
    def lasting(self) -> bool:
        """Whether the store outlives this process, so that another one can find what it keeps."""
        return not self._db.memory

    def keep_required(
        self,
        invocation_id: str,
        tool_id: str,
        arguments: dict[str, Any],
        context: dict[str, Any],
        *,
        declaration_digest: str,
        claim: Claim | None = None,
    ) -> None:
        """Let a permitted call wait for its result; one of the same id that a framework hands over again replaces it.

        Args:
            invocation_id: the call.
            tool_id: the tool.
            arguments: the JSON arguments it was permitted with; sealed.
            context: further JSON data that the completing process needs; sealed.
            declaration_digest: digest of the tool's declaration.
            claim: the approval's claim, if it had to be approved. It counts as held for as long as the call waits.

        Raises:
            ApprovalError: the call can't be kept as JSON.
            ApprovalStoreError: it could not be stored.
        """
        args_digest = self._digest(arguments)
        request_id, claim_id = (claim.request.request_id, claim.claim_id) if claim is not None else (None, None)
        body = {
            "tool_id": tool_id,
            "declaration_digest": declaration_digest,
            "request_id": request_id,
            "claim_id": claim_id,
            "arguments": arguments,
            "context": context,
        }
        try:
            sealed = seal_required(self._sealer, invocation_id, body)
        except (ValueError, TypeError, RecursionError) as error:
            raise ApprovalError(f"the call can't be stored as JSON: {type(error).__name__}") from None
        with self._db.write() as tx:
            values = {
                "tool_id": tool_id,
                "status": Status.WAITING.value,
                "created_us": tx.now_us,
                "ended_us": None,
                "request_id": request_id,
                "claim_id": claim_id,
                "sealed_call": sealed,
            }
            replace = required.update().where(required.c.invocation_id == invocation_id).values(**values)
            if not tx.connection.execute(replace).rowcount:
                tx.connection.execute(required.insert().values(invocation_id=invocation_id, **values))
            tx.log(
                Kind.RESULT_REQUIRED,
                invocation_id,
                tool=tool_id,
                args_digest=args_digest,
                declaration_digest=declaration_digest,
                request=request_id,
                claim=claim_id,
            )
        if claim_id is not None:
            HELD.discard(claim_id)  # from here on the waiting row says that the run is not lost

    def required(self, invocation_id: str) -> RequiredCall:
        """Return a waiting call and let it wait on.

        Args:
            invocation_id: the call.

        Raises:
            InvocationNotFound: the store keeps no such call.
            InvocationConflict: it was completed or interrupted already.
            ApprovalStoreError: it can't be read or opened.
        """
        with self._db.read() as (connection, _):
            row = _waiting(connection, invocation_id)
        return self._open(row)

    def take_required(self, invocation_id: str, status: Status | str) -> RequiredCall:
        """End the waiting of a call and return it, with the claim to finish; of several takers one gets it.

        Its arguments are not kept any longer; the row only tells that it has ended.

        Args:
            invocation_id: the call.
            status: completed or interrupted.

        Raises:
            InvocationNotFound: the store keeps no such call.
            InvocationConflict: it was completed or interrupted already.
            ApprovalStoreError: the store failed or is corrupt; the call waits on.
            ValueError: the status is no end.
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
                # the evidence counts, whatever the row says
                if _last_entry(tx.connection, invocation_id) != Kind.RESULT_REQUIRED.value:
                    raise InvocationConflict("the call has ended already")
                call = self._open(row)
                claim = self._take_over(tx, row)
                changed = tx.connection.execute(
                    required.update()
                    .where(required.c.invocation_id == invocation_id, required.c.status == Status.WAITING.value)
                    .values(status=end.value, ended_us=tx.now_us, sealed_call=b"")
                ).rowcount
                if changed != 1:
                    raise InvocationConflict("the call ended meanwhile")
                tx.log(_ENDS[end], invocation_id, tool=row.tool_id, request=row.request_id, claim=row.claim_id)
                if claim is not None:
                    HELD.add(claim.claim_id)  # before the commit: then recover never sees it held by nobody
        except BaseException:
            if claim is not None:
                HELD.discard(claim.claim_id)
            raise
        return RequiredCall(
            call.invocation_id, call.tool_id, call.declaration_digest, call.arguments, call.context, call.since, claim
        )

    def _take_over(self, tx: Transaction, row: Row[Any]) -> Claim | None:
        """Make this process the holder of the claim that a call waits with, if the claim has not ended."""
        if row.request_id is None:
            return None
        request = self._by_id(tx.connection, row.request_id)
        if request is None or request.claim_id != row.claim_id or request.outcome is not None:
            return None
        call = open_call(self._sealer, request)
        if call.answer is None:
            raise ApprovalStoreError("an approval without an answer")
        tx.connection.execute(
            requests.update()
            .where(requests.c.request_id == row.request_id)
            .values(claim_owner=this_process(), lease_us=tx.now_us + self._lease_us)
        )
        return Claim(
            row.claim_id,
            call.request,
            call.arguments,
            call.original_arguments,
            call.context,
            call.answer,
            call.args_digest,
        )

    def required_ids(self) -> set[str]:
        """Return the ids of all calls that wait for their results."""
        query = select(required.c.invocation_id).where(required.c.status == Status.WAITING.value)
        with self._db.read() as (connection, _):
            return {str(invocation_id) for (invocation_id,) in connection.execute(query)}

    def list_required(self) -> list[RequiredCall]:
        """Return the calls that wait for their results, oldest first; one that can't be opened is left out and logged.

        Raises:
            ApprovalStoreError: the store can't be read.
        """
        query = select(required).where(required.c.status == Status.WAITING.value).order_by(required.c.created_us)
        with self._db.read() as (connection, _):
            rows = connection.execute(query).all()
        found = []
        for row in rows:
            try:
                found.append(self._open(row))
            except ApprovalStoreError as error:
                _logger.warning("a call that waits for its result can't be opened: %s", error)
        return found

    def _open(self, row: Row[Any]) -> RequiredCall:
        body = open_required(self._sealer, row)
        return RequiredCall(
            row.invocation_id,
            row.tool_id,
            body["declaration_digest"],
            body["arguments"],
            body["context"],
            from_us(row.created_us),
        )


def _waiting(connection: Connection, invocation_id: str) -> Row[Any]:
    row = connection.execute(select(required).where(required.c.invocation_id == invocation_id)).first()
    if row is None:
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
