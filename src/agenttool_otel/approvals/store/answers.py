"""The store's answers: who may answer, what counts as one, and that nobody gives two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jsonschema_rs

from agenttool_otel.approvals.grants import grant_from_suggestion
from agenttool_otel.approvals.identity import has_unseen, is_same_identity
from agenttool_otel.approvals.store.clock import from_us
from agenttool_otel.approvals.store.grants import Grants
from agenttool_otel.approvals.store.requests import OPEN_STATES, Requests, by_id, find
from agenttool_otel.approvals.store.rows import (
    answers_with_yes,
    lacks,
    open_answer,
    open_call,
    request_of,
    seal_answer,
)
from agenttool_otel.approvals.store.schema import requests
from agenttool_otel.approvals.store.transaction import Refused, Transaction
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest, Grant, StoredCall
from agenttool_otel.errors import ApprovalConflict, ApprovalError, ApprovalExpired, ApprovalNotFound
from agenttool_otel.names import AnswerWay
from agenttool_otel.names import ApprovalConflictReason as Reason
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.names import ApprovalStatus as Status
from agenttool_otel.values.unicode import escape_surrogates


class Answers:
    """Takes the answers of a request, or cancels it."""

    def __init__(
        self,
        requests: Requests,
        grants: Grants,
        answered: Callable[[StoredCall, ApprovalAnswer], object],
    ) -> None:
        self._requests = requests
        self._answered = answered
        self._grants = grants
        self._db = requests.db

    def answer(
        self, request_id: str, answer: ApprovalAnswer, *, allow_requester: bool = False
    ) -> ApprovalRequest:
        """Answer a pending request, once; where several people have to agree, once each.

        The first no rejects it. It waits until all who have to agree did.
        """
        with self._db.write() as tx:
            tx.check_clock()
            if (row := by_id(tx.connection, request_id)) is None:
                raise ApprovalNotFound("no such approval request")
            request = request_of(self._db.sealer, row)
            row = self._requests.expire_if_due(tx, row)
            given = open_answer(self._db.sealer, row)
            earlier = answers_with_yes(None if given is None else given[0])
            try:
                _check_form(answer)
                _check_state(row)
                _check_answerer(request, answer, allow_requester)
                left = _check_people(request, answer, earlier)
                digest, grant = self._check_content(tx, request, answer)
            except ApprovalError as error:
                reason = (
                    error.reason if isinstance(error, ApprovalConflict) else None
                ) or Reason.EXPIRED
                who: Any = answer.answered_by
                by = escape_surrogates(who[:200]) if isinstance(who, str) else type(who).__name__
                tx.log(Kind.ANSWER_REFUSED, request_id, by=by, reason=reason.value)
                raise Refused(error) from None
            status = Status.APPROVED if answer.approved else Status.REJECTED
            answer = replace(answer, earlier=tuple(replace(each, earlier=()) for each in earlier))
            sealed = seal_answer(self._db.sealer, request_id, answer, digest, tx.now_us)
            changes: dict[str, Any] = {"sealed_answer": sealed}
            if not left:
                changes |= {"status": status.value, "answered_us": tx.now_us}
            tx.update(
                requests,
                row,
                changes,
                Kind.ANSWERED,
                request_id,
                status=status.value,
                still_needed=left or None,
                by=answer.answered_by,
                roles=sorted(answer.roles),
                args_digest=digest,
                edited=answer.edited_input is not None,
                reason_given=bool(answer.reason),
                way=answer.way.value,
            )
            if grant is not None:
                self._grants.insert(tx, grant)
            row = by_id(tx.connection, request_id)
        stored = open_call(self._db.sealer, row)
        self._answered(stored, answer)
        return stored.request

    def _check_content(
        self, tx: Transaction, request: ApprovalRequest, answer: ApprovalAnswer
    ) -> tuple[str, Grant | None]:
        """Return the digest of what the answer approves, and the grant that it accepts."""
        try:
            digest = request.args_digest
            if request.needs_several and answer.edited_input is not None:
                raise _invalid("several people agree to the same arguments: nobody can edit them")
            if request.needs_several and answer.remember is not None:
                raise _invalid("an answer is not remembered where several people have to agree")
            if answer.edited_input is not None:
                digest = self._requests.digest(answer.edited_input)
                _check_schema(request, answer.edited_input)
            if answer.remember is None:
                return digest, None
            if not 0 <= answer.remember < len(request.suggested_updates):
                raise _invalid("there is no such suggested update")
            return digest, grant_from_suggestion(
                request,
                request.suggested_updates[answer.remember],
                granted_by=answer.answered_by,
                granter_roles=answer.roles,
                approved_digest=digest,
                now=from_us(tx.now_us),
            )
        except ApprovalError as error:
            raise _invalid(str(error)) from None

    def cancel(self, ref: str, reason: str) -> ApprovalRequest:
        """Close an open request, for example because the user interrupted the agent; it can't run
        any more.
        """
        with self._db.write() as tx:
            row = self._requests.expire_if_due(tx, find(tx.connection, ref))
            if row.status not in OPEN_STATES:
                raise Refused(
                    ApprovalConflict(
                        f"the request is {row.status} already", reason=Reason.ALREADY_ANSWERED
                    )
                )
            self._requests.close(tx, row, Status.CANCELED, Kind.CANCELED, reason)
            canceled = by_id(tx.connection, row.request_id)
        return request_of(self._db.sealer, canceled)


def _invalid(message: str) -> ApprovalConflict:
    return ApprovalConflict(message, reason=Reason.INVALID_ANSWER)


def _check_form(answer: ApprovalAnswer) -> None:
    """Refuse an answer whose types are wrong: approvers are other people's code."""
    if not isinstance(answer, ApprovalAnswer) or type(answer.approved) is not bool:
        raise _invalid("the answer is neither yes nor no")
    if not isinstance(answer.way, AnswerWay):
        raise _invalid("the answer's way is none of AnswerWay")
    if not isinstance(answer.answered_by, str) or not isinstance(answer.reason, str):
        raise _invalid("the answer's texts are no texts")
    if not isinstance(answer.roles, tuple | list | set | frozenset) or not all(
        isinstance(role, str) for role in answer.roles
    ):
        raise _invalid("the answer's roles are no list of texts")
    if answer.edited_input is not None and (
        type(answer.edited_input) is not dict or not answer.approved
    ):
        raise _invalid("edited arguments are a JSON object and come with a yes")
    if answer.remember is not None and (type(answer.remember) is not int or not answer.approved):
        raise _invalid(
            "what is remembered is the number of a suggested update and comes with a yes"
        )


def _check_state(row: Any) -> None:
    if row.status == Status.EXPIRED.value:
        raise ApprovalExpired("the request has expired")
    if row.status != Status.PENDING.value:
        raise ApprovalConflict(
            f"the request is {row.status} already", reason=Reason.ALREADY_ANSWERED
        )


def _check_answerer(
    request: ApprovalRequest, answer: ApprovalAnswer, allow_requester: bool
) -> None:
    if not answer.answered_by.strip():
        raise ApprovalConflict("an answer has to name who gives it", reason=Reason.UNIDENTIFIED)
    if has_unseen(answer.answered_by):
        message = "who answers is written with characters that nobody can see"
        raise ApprovalConflict(message, reason=Reason.UNIDENTIFIED)
    same = bool(request.actor_id) and is_same_identity(request.actor_id, answer.answered_by)
    if same and not (allow_requester or request.requester_may_answer):
        raise ApprovalConflict(
            "the requesting actor may not answer its own request", reason=Reason.REQUESTER
        )
    if request.approver_roles and not set(request.approver_roles) & set(answer.roles):
        message = f"an answer needs one of the roles: {', '.join(request.approver_roles)}"
        raise ApprovalConflict(message, reason=Reason.ROLE)


def _check_people(
    request: ApprovalRequest, answer: ApprovalAnswer, earlier: Sequence[ApprovalAnswer]
) -> int:
    """Return how many more people have to agree after an answer; 0 after a no, which ends it."""
    if not answer.approved or not request.needs_several:
        return 0
    if any(is_same_identity(each.answered_by, answer.answered_by) for each in earlier):
        raise ApprovalConflict(
            "this person has agreed already, and another one has to", reason=Reason.SAME_PERSON
        )
    before, after = lacks(request, earlier), lacks(request, [*earlier, answer])
    if after.people >= before.people:
        message = f"an answer needs one of the roles: {', '.join(before.roles)}"
        raise ApprovalConflict(message, reason=Reason.ROLE)
    return after.people


def _check_schema(request: ApprovalRequest, edited: dict[str, Any]) -> None:
    if request.input_schema is None:
        return
    try:
        validator = jsonschema_rs.validator_for(request.input_schema, retriever=_refuse_remote)
        problem = next(iter(validator.iter_errors(edited)), None)
    except (ValueError, TypeError, jsonschema_rs.ReferencingError):
        raise _invalid("the tool's schema can't be read") from None
    if problem is not None:
        place = "/".join(map(str, problem.instance_path)) or "the top"
        raise _invalid(f"the edited arguments don't fit the tool's schema at {place[:120]}")


def _refuse_remote(uri: str) -> Any:
    raise ValueError("a tool's schema is complete in itself; nothing is fetched")
