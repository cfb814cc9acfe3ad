"""Claiming an approval: the one step after which a call may run, and what becomes of it.

Consume, then execute: at most once. A crash in between leaves ``consumed`` without an outcome;
it can't be known whether the call took effect, so ``recover`` marks it interrupted and asks again
instead of running it again.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import func, select

from agenttool_otel.approvals.people import Agreement, still_needed
from agenttool_otel.approvals.store.clock import from_us
from agenttool_otel.approvals.store.owner import HELD, is_lost
from agenttool_otel.approvals.store.requests import Requests, by_id, find
from agenttool_otel.approvals.store.rows import MUTABLE_FIELDS, claim_of, open_call
from agenttool_otel.approvals.store.schema import log, requests, required
from agenttool_otel.approvals.store.transaction import Refused, Transaction
from agenttool_otel.approvals.types import ApprovalRequest, Claim, Recovered, StoredCall
from agenttool_otel.errors import (
    ApprovalConflict,
    ApprovalError,
    ApprovalExpired,
    ApprovalStoreError,
)
from agenttool_otel.names import ApprovalConflictReason as Reason
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.names import ApprovalStatus as Status
from agenttool_otel.names import RequiredStatus, ResultStatus
from agenttool_otel.values.ids import new_id
from agenttool_otel.values.process_identity import this_process

_UNUSABLE: Final = {
    Status.PENDING: (Reason.NOT_ANSWERED, "nobody has answered the request yet"),
    Status.REJECTED: (Reason.REJECTED, "the request was rejected"),
    Status.CONSUMED: (Reason.CONSUMED, "the approval was used already"),
    Status.CANCELED: (Reason.CANCELED, "the request was canceled"),
    Status.INTERRUPTED: (Reason.INTERRUPTED, "the approved run was interrupted; it is asked again"),
}


class Claims:
    """Hands out, ends and recovers runs."""

    def __init__(self, requests: Requests, lease_us: int) -> None:
        self.requests = requests
        self.lease_us = lease_us
        self._db = requests.db

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
        places: tuple[str, str] | None = None,
        decided_again: bool = False,
    ) -> Claim:
        """Take the one right to run an approved call, atomically."""
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
            tx.check_clock()
            row = self.requests.expire_if_due(tx, find(tx.connection, ref))
            try:
                call = self._approved_call(tx, row)
                _check_binding(call, seen)
                _check_places(call, places)
            except ApprovalError as error:
                tx.log(Kind.CLAIM_REFUSED, row.request_id, reason=_reason_of(error).value)
                raise Refused(error) from None
            claim = claim_of(call, new_id("claim"))
            holder = {
                "status": Status.CONSUMED.value,
                "claim_id": claim.claim_id,
                "claim_owner": this_process(),
                "claimed_us": tx.now_us,
                "lease_us": tx.now_us + self.lease_us,
            }
            tx.update(
                requests,
                row,
                holder,
                Kind.CLAIMED,
                row.request_id,
                claim=claim.claim_id,
                args_digest=args_digest,
                actor=actor_id,
                policy_revision=policy_revision_seen,
                decided_again=decided_again,
            )
        HELD.add(claim.claim_id)
        return claim

    def _approved_call(self, tx: Transaction, row: Any) -> StoredCall:
        if row.status == Status.EXPIRED.value:
            raise ApprovalExpired("the request has expired")
        if row.status != Status.APPROVED.value:
            unknown = (Reason.CORRUPT, "the request is in no known state")
            reason, message = _UNUSABLE.get(row.status, unknown)
            raise ApprovalConflict(message, reason=reason)
        if _was_claimed(tx, row.request_id):  # by the evidence, whatever the row holds
            raise ApprovalConflict("the approval was used already", reason=Reason.CONSUMED)
        tx.check(requests, row)
        call = open_call(self._db.sealer, row)
        if call.request.needs_several and _lacked(tx, call.request):
            raise ApprovalConflict(
                "not all who have to agree have answered", reason=Reason.NOT_ANSWERED
            )
        if call.request.expires_at is None or call.request.expires_at <= from_us(tx.now_us):
            raise ApprovalExpired("the request has expired")
        return call

    def finish(self, claim: Claim, outcome: ResultStatus | str) -> None:
        """Record how a claimed run ended; doing it twice with the same outcome changes nothing."""
        status = ResultStatus(outcome)
        with self._db.write() as tx:
            row = find(tx.connection, claim.request.request_id)
            if row.claim_id != claim.claim_id or row.status not in {
                Status.CONSUMED,
                Status.INTERRUPTED,
            }:
                raise _not_held()
            if row.outcome is None:
                late = row.status == Status.INTERRUPTED.value
                changes = {"outcome": status.value, "finished_us": tx.now_us}
                facts = {"claim": claim.claim_id, "outcome": status.value, "late": late or None}
                tx.update(requests, row, changes, Kind.FINISHED, row.request_id, **facts)
                if late:
                    self._withdraw_follow_up(tx, row.request_id)
            elif row.outcome != status.value:
                raise ApprovalConflict(
                    f"the run ended as {row.outcome} before", reason=Reason.WRONG_CLAIM
                )
        HELD.discard(claim.claim_id)

    def _withdraw_follow_up(self, tx: Transaction, request_id: str) -> None:
        row = tx.connection.execute(
            select(requests).where(requests.c.supersedes == request_id)
        ).first()
        if row is not None and row.status in {Status.PENDING, Status.APPROVED}:
            self.requests.close(tx, row, Status.CANCELED, Kind.CANCELED, "earlier_run_finished")

    def extend(self, claim: Claim) -> None:
        """Renew the lease of a long run, so that another machine does not take it for lost."""
        with self._db.write() as tx:
            row = by_id(tx.connection, claim.request.request_id)
            # where the owner is another process, it has taken the call over
            if row is None or not _runs(row, claim) or row.claim_owner != this_process():
                raise _not_held()
            changes = {"lease_us": tx.now_us + self.lease_us}
            tx.update(
                requests, row, changes, Kind.CLAIM_EXTENDED, row.request_id, claim=claim.claim_id
            )

    def take_over(self, tx: Transaction, request_id: str, claim_id: str) -> Claim | None:
        """Make this process the holder of a claim that waits with a custom tool's call, if it has
        not ended.
        """
        row = by_id(tx.connection, request_id)
        if row is None or row.claim_id != claim_id or row.outcome is not None:
            return None
        call = open_call(self._db.sealer, row)
        changes = {"claim_owner": this_process(), "lease_us": tx.now_us + self.lease_us}
        tx.update(requests, row, changes, Kind.CLAIM_TAKEN_OVER, request_id, claim=claim_id)
        return claim_of(call, claim_id)

    def release(self, claim: Claim) -> None:
        """Give back a claim that was never used: the request is approved again. Only before the
        tool was called.
        """
        with self._db.write() as tx:
            row = by_id(tx.connection, claim.request.request_id)
            if row is None or not _runs(row, claim):
                raise _not_held()
            free = {"claim_id": None, "claim_owner": None, "claimed_us": None, "lease_us": None}
            changes = {"status": Status.APPROVED.value, **free}
            tx.update(
                requests, row, changes, Kind.CLAIM_RELEASED, row.request_id, claim=claim.claim_id
            )
        HELD.discard(claim.claim_id)

    def recover(self) -> list[Recovered]:
        """Find runs that were lost in a crash, mark them interrupted and ask again. Nothing runs by
        itself.

        A run is lost when its process has ended (same machine), or its lease is over (a process
        that can't be seen from here). A custom tool's call whose result is still awaited is not:
        the result may be held anywhere. The new request is about the arguments that were
        asked about first, because only those have a preview.
        """
        awaited = select(required.c.claim_id).where(
            required.c.claim_id == requests.c.claim_id,
            required.c.status == RequiredStatus.WAITING.value,
        )
        running = select(requests).where(
            requests.c.status == Status.CONSUMED.value,
            requests.c.outcome.is_(None),
            ~awaited.exists(),
        )
        found = []
        with self._db.write() as tx:
            for row in tx.connection.execute(running).all():
                if not is_lost(row, tx.now_us):
                    continue
                try:
                    tx.check(requests, row)
                    call = open_call(self._db.sealer, row)
                except ApprovalStoreError:
                    continue  # it can't be asked again; the list shows it as unreadable
                self.requests.close(
                    tx, row, Status.INTERRUPTED, Kind.INTERRUPTED, "outcome_unknown"
                )
                again = self._ask_again(tx, call)
                found.append(Recovered(row.request_id, again.request_id))
        return found

    def _ask_again(self, tx: Transaction, call: StoredCall) -> ApprovalRequest:
        old = call.request
        edited = (
            " with edited arguments"
            if call.answer is not None and call.answer.edited_input is not None
            else ""
        )
        note = f"An approved run{edited} was interrupted; whether it took effect is not known."
        message = f"{note} {old.message.removeprefix(note).strip()}".strip()
        asked = old.model_dump(exclude={*MUTABLE_FIELDS, "request_id", "message"})
        new = ApprovalRequest(**asked, message=message, supersedes=old.request_id)
        lifetime = (old.expires_at - old.created_at) if old.expires_at else timedelta(days=1)
        return self.requests.insert(tx, new, call.original_arguments, call.context, lifetime)


def _check_binding(call: StoredCall, seen: dict[Reason, str | None]) -> None:
    request = call.request
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
            raise ApprovalConflict(
                f"the approval is for something else: {reason.value} differs", reason=reason
            )


def _check_places(call: StoredCall, now: tuple[str, str] | None) -> None:
    """Refuse a call whose paths or commands lead elsewhere than where it was asked about."""
    if now is None:
        return
    places, surroundings = now
    if call.answer is not None and call.answer.edited_input is not None:
        # nobody has worked out where the new arguments lead, only from where they start
        same = not places or surroundings == call.request.surroundings_digest
    else:
        same = places == call.request.places_digest
    if not same:
        message = (
            "the approval is for something else: its paths or commands lead to other places here"
        )
        raise ApprovalConflict(message, reason=Reason.PLACES)


def _reason_of(error: ApprovalError) -> Reason:
    if isinstance(error, ApprovalExpired):
        return Reason.EXPIRED
    return (error.reason if isinstance(error, ApprovalConflict) else None) or Reason.CORRUPT


def _was_claimed(tx: Transaction, request_id: str) -> bool:
    rows = tx.connection.execute(
        select(log.c.kind, func.count())
        .where(
            log.c.request_id == request_id,
            log.c.kind.in_([Kind.CLAIMED.value, Kind.CLAIM_RELEASED.value]),
        )
        .group_by(log.c.kind)
    ).all()
    counts = {str(kind): int(count) for kind, count in rows}
    return counts.get(Kind.CLAIMED.value, 0) > counts.get(Kind.CLAIM_RELEASED.value, 0)


def _lacked(tx: Transaction, request: ApprovalRequest) -> int:
    """Return how many people have not agreed to a request, by the evidence."""
    answers = tx.connection.execute(
        select(log.c.data).where(
            log.c.request_id == request.request_id, log.c.kind == Kind.ANSWERED.value
        )
    )
    agreed = []
    for (data,) in answers:
        facts = json.loads(data)
        if facts["status"] == Status.APPROVED.value:
            agreed.append(Agreement(facts["by"], frozenset(facts["roles"])))
    return still_needed(request.approvals_needed, request.required_roles, agreed).people


def _runs(row: Any, claim: Claim) -> bool:
    return bool(
        row.claim_id == claim.claim_id and row.status == Status.CONSUMED and row.outcome is None
    )


def _not_held() -> ApprovalConflict:
    return ApprovalConflict("this claim does not hold the request", reason=Reason.WRONG_CLAIM)
