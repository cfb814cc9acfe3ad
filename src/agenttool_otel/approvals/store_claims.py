"""Claiming an approval: the one step after which a call may run, and what becomes of it (notes: security 1.3, 3.2).

Consume, then execute: at most once. A crash in between leaves ``consumed`` without an outcome; nobody can know whether
the call took effect, so ``recover`` marks it interrupted and asks again instead of running it again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import Row, func, select

from agenttool_otel.approvals.clock import from_us
from agenttool_otel.approvals.database import Refused, Transaction
from agenttool_otel.approvals.owner import HELD, is_lost, this_process
from agenttool_otel.approvals.rows import open_call
from agenttool_otel.approvals.schema import log, requests, required
from agenttool_otel.approvals.store_base import StoreBase
from agenttool_otel.approvals.types import ApprovalRequest, Claim, StoredCall
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
from agenttool_otel.names import RequiredStatus, ResultStatus
from agenttool_otel.records.ids import new_id

__all__ = ["ClaimMethods", "Recovered"]

_CLOSED: Final = {
    Status.PENDING: (Reason.NOT_ANSWERED, "nobody has answered the request yet"),
    Status.REJECTED: (Reason.REJECTED, "the request was rejected"),
    Status.CONSUMED: (Reason.CONSUMED, "the approval was used already"),
    Status.CANCELED: (Reason.CANCELED, "the request was canceled"),
    Status.INTERRUPTED: (Reason.INTERRUPTED, "the approved run was interrupted; it is asked again"),
}


class Recovered(NamedTuple):
    """One lost run.

    Attributes:
        request_id: the request whose run was lost, now interrupted.
        asked_again: the new pending request for the same invocation.
    """

    request_id: str
    asked_again: str


class ClaimMethods(StoreBase):
    """The part of ``ApprovalStore`` that hands out, ends and recovers runs."""

    def claim(
        self,
        ref: str,
        *,
        args_digest: str,
        actor_id: str,
        tenant: str | None,
        session_id: str | None,
        declaration_digest: str,
        policy_revision_seen: str,
        tool_id: str | None = None,
        decided_again: bool = False,
    ) -> Claim:
        """Take the one right to run an approved call, atomically.

        Args:
            ref: a request id, or an invocation id for its newest request.
            args_digest: digest of what would run: of the edited arguments when the answer edited them.
            actor_id: for whom it would run.
            tenant: that actor's tenant.
            session_id: in which session.
            declaration_digest: digest of the tool's declaration as it is now.
            policy_revision_seen: the bundle revision as it is now.
            tool_id: the tool, where the caller knows it.
            decided_again: the caller decided the call again under ``policy_revision_seen`` after the answer, and the
                decision was not deny. Without it an approval given under another revision is refused.

        Returns:
            The claim, with exactly the arguments to run. It must be ended with ``finish``.

        Raises:
            ApprovalNotFound: there is none.
            ApprovalExpired: its time is over.
            ApprovalConflict: it is not approved, was used already, or is bound to something else; ``reason`` tells.
            ApprovalStoreError: the store failed or is corrupt; nothing may run.
        """
        claim_id = new_id("claim")
        seen = {
            Reason.ARGUMENTS: args_digest,
            Reason.ACTOR: actor_id,
            Reason.TENANT: tenant,
            Reason.SESSION: session_id,
            Reason.DECLARATION: declaration_digest,
        }
        if tool_id is not None:
            seen[Reason.TOOL] = tool_id
        if not decided_again:
            seen[Reason.POLICY_REVISION] = policy_revision_seen
        with self._db.write() as tx:
            row = self._find(tx.connection, ref)
            if row is None:
                raise ApprovalNotFound("no such approval request")
            row = self._expire_if_due(tx, row)
            call = self._check_claim(tx, row, seen)
            self._advance(
                tx,
                row,
                Status.CONSUMED,
                claim_id=claim_id,
                claim_owner=this_process(),
                claimed_us=tx.now_us,
                lease_us=tx.now_us + self._lease_us,
            )
            tx.log(
                Kind.CLAIMED,
                row.request_id,
                claim=claim_id,
                args_digest=args_digest,
                actor=actor_id,
                policy_revision=policy_revision_seen,
                decided_again=decided_again,
            )
        HELD.add(claim_id)
        if call.answer is None:  # _check_claim refuses this; stated for whoever changes it
            raise ApprovalStoreError("an approval without an answer")
        request = call.request.model_copy(update={"status": Status.CONSUMED})
        return Claim(
            claim_id, request, call.arguments, call.original_arguments, call.context, call.answer, call.args_digest
        )

    def _check_claim(self, tx: Transaction, row: Row[Any], seen: dict[Reason, str | None]) -> StoredCall:
        def refuse(reason: Reason, error: ApprovalError) -> Refused:
            tx.log(Kind.CLAIM_REFUSED, row.request_id, reason=reason.value)
            return Refused(error)

        if row.status == Status.EXPIRED.value:
            raise refuse(Reason.EXPIRED, ApprovalExpired("the request has expired"))
        if row.status != Status.APPROVED.value:
            try:
                reason, message = _CLOSED[Status(row.status)]
            except (ValueError, KeyError):
                reason, message = Reason.CORRUPT, "the request is in no known state"
            raise refuse(reason, ApprovalConflict(message, reason=reason))
        try:
            call = open_call(self._sealer, row)
        except ApprovalStoreError as error:
            raise refuse(Reason.CORRUPT, error) from None
        request = call.request
        if request.expires_at is None or request.expires_at <= from_us(tx.now_us):
            raise refuse(Reason.EXPIRED, ApprovalExpired("the request has expired"))
        if self._was_claimed(tx, row.request_id):
            reason = Reason.CONSUMED  # the evidence says so, whatever the row says
            raise refuse(reason, ApprovalConflict("the approval was used already", reason=reason))
        bound = {
            Reason.ARGUMENTS: call.args_digest,
            Reason.ACTOR: request.actor_id,
            Reason.TENANT: request.tenant,
            Reason.SESSION: request.session_id,
            Reason.DECLARATION: request.declaration_digest,
            Reason.TOOL: request.tool_id,
            Reason.POLICY_REVISION: request.policy_revision,
        }
        for reason, value in seen.items():
            if bound[reason] != value:
                message = f"the approval is for something else: {reason.value} differs"
                raise refuse(reason, ApprovalConflict(message, reason=reason))
        return call

    def _was_claimed(self, tx: Transaction, request_id: str) -> bool:
        rows = tx.connection.execute(
            select(log.c.kind, func.count())
            .where(log.c.request_id == request_id, log.c.kind.in_([Kind.CLAIMED.value, Kind.CLAIM_RELEASED.value]))
            .group_by(log.c.kind)
        ).all()
        found = {str(kind): int(count) for kind, count in rows}
        return found.get(Kind.CLAIMED.value, 0) > found.get(Kind.CLAIM_RELEASED.value, 0)

    def finish(self, claim: Claim, outcome: ResultStatus | str) -> None:
        """Record how a claimed run ended; doing it twice with the same outcome changes nothing.

        Args:
            claim: the claim.
            outcome: the result's status.

        Raises:
            ApprovalConflict: the claim is not the request's, or it ended otherwise before.
            ValueError: the outcome is no status of a result.
        """
        status = ResultStatus(outcome)
        with self._db.write() as tx:
            row = self._by_id(tx.connection, claim.request.request_id)
            if row is None:
                raise ApprovalNotFound("no such approval request")
            if row.claim_id != claim.claim_id or row.status not in {Status.CONSUMED, Status.INTERRUPTED}:
                raise ApprovalConflict("this claim does not hold the request", reason=Reason.WRONG_CLAIM)
            if row.outcome is None:
                tx.connection.execute(
                    requests.update()
                    .where(requests.c.request_id == row.request_id)
                    .values(outcome=status.value, finished_us=tx.now_us)
                )
                late = row.status == Status.INTERRUPTED.value
                tx.log(Kind.FINISHED, row.request_id, claim=claim.claim_id, outcome=status.value, late=late or None)
                if late:
                    self._withdraw_follow_up(tx, row.request_id)
            elif row.outcome != status.value:
                raise ApprovalConflict(f"the run ended as {row.outcome} before", reason=Reason.WRONG_CLAIM)
        HELD.discard(claim.claim_id)

    def _withdraw_follow_up(self, tx: Transaction, request_id: str) -> None:
        row = tx.connection.execute(select(requests).where(requests.c.supersedes == request_id)).first()
        if row is not None and row.status in {Status.PENDING, Status.APPROVED}:
            self._close_row(tx, row, Status.CANCELED, Kind.CANCELED, "earlier_run_finished")

    def extend(self, claim: Claim) -> None:
        """Renew the lease of a long run, so that another machine does not take it for lost.

        Raises:
            ApprovalConflict: the claim does not hold the request any more: stop the run if that is possible.
        """
        with self._db.write() as tx:
            changed = tx.connection.execute(
                requests.update()
                .where(
                    requests.c.request_id == claim.request.request_id,
                    requests.c.claim_id == claim.claim_id,
                    requests.c.status == Status.CONSUMED.value,
                    requests.c.outcome.is_(None),
                )
                .values(lease_us=tx.now_us + self._lease_us)
            ).rowcount
            if changed != 1:
                raise ApprovalConflict("this claim does not hold the request", reason=Reason.WRONG_CLAIM)

    def release(self, claim: Claim) -> None:
        """Give back a claim that was never used: the request is approved again. Only before the tool was called.

        Raises:
            ApprovalConflict: the claim does not hold the request, or its run has ended.
        """
        with self._db.write() as tx:
            row = self._by_id(tx.connection, claim.request.request_id)
            if row is None or row.claim_id != claim.claim_id or row.status != Status.CONSUMED or row.outcome:
                raise ApprovalConflict("this claim does not hold the request", reason=Reason.WRONG_CLAIM)
            self._advance(tx, row, Status.APPROVED, claim_id=None, claim_owner=None, claimed_us=None, lease_us=None)
            tx.log(Kind.CLAIM_RELEASED, row.request_id, claim=claim.claim_id)
        HELD.discard(claim.claim_id)

    def recover(self) -> list[Recovered]:
        """Find runs that were lost in a crash, mark them interrupted and ask again. Nothing runs by itself.

        A run is lost when its process has ended (same machine), or its lease is over (a process that can't be seen from
        here). A custom tool's call whose result is still awaited is not: whoever has the result may be anywhere. The
        new request is about the arguments that were asked about first, because only those have a preview.

        Returns:
            The lost runs.
        """
        found = []
        with self._db.write() as tx:
            awaited = select(required.c.claim_id).where(
                required.c.claim_id == requests.c.claim_id, required.c.status == RequiredStatus.WAITING.value
            )
            rows = tx.connection.execute(
                select(requests).where(
                    requests.c.status == Status.CONSUMED.value, requests.c.outcome.is_(None), ~awaited.exists()
                )
            ).all()
            for row in rows:
                if not is_lost(row, tx.now_us):
                    continue
                self._close_row(tx, row, Status.INTERRUPTED, Kind.INTERRUPTED, "outcome_unknown")
                try:
                    call = open_call(self._sealer, row)
                except ApprovalStoreError:
                    continue  # it can't be asked again either; the list shows it as unreadable
                again = self._ask_again(tx, call)
                found.append(Recovered(row.request_id, again.request_id))
        return found

    def _ask_again(self, tx: Transaction, call: StoredCall) -> ApprovalRequest:
        old = call.request
        edited = " with edited arguments" if call.answer is not None and call.answer.edited_input is not None else ""
        note = f"An approved run{edited} was interrupted; whether it took effect is not known."
        new = ApprovalRequest.model_validate(
            {
                **old.model_dump(
                    exclude={"status", "answered_by", "answer_reason", "answered_at", "edited", "outcome"}
                ),
                "request_id": new_id("appr"),
                "closed_reason": None,
                "supersedes": old.request_id,
                "message": f"{note} {old.message.removeprefix(note).strip()}".strip(),
            }
        )
        lifetime = (old.expires_at - old.created_at) if old.expires_at else timedelta(days=1)
        return self._insert(tx, new, call.original_arguments, call.context, lifetime)
