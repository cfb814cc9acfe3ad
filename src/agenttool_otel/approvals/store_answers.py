"""The store's answers: who may answer, what counts as one, and that there is only one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema_rs

from agenttool_otel.approvals.database import Refused
from agenttool_otel.approvals.names_of_people import has_unseen, same_name
from agenttool_otel.approvals.rows import request_of, seal_answer
from agenttool_otel.approvals.store_base import OPEN_STATES
from agenttool_otel.approvals.store_grants import GrantMethods
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest
from agenttool_otel.errors import ApprovalConflict, ApprovalError, ApprovalExpired, ApprovalNotFound
from agenttool_otel.facts.lettering import escape_surrogates_in
from agenttool_otel.names import ApprovalConflictReason as Reason
from agenttool_otel.names import ApprovalLogKind as Kind
from agenttool_otel.names import ApprovalStatus as Status

__all__ = ["AnswerMethods"]


class AnswerMethods(GrantMethods):
    """The part of ``ApprovalStore`` that takes answers."""

    def answer(self, request_id: str, answer: ApprovalAnswer, *, allow_requester: bool = False) -> ApprovalRequest:
        """Answer a pending request, once.

        Args:
            request_id: which.
            answer: the answer; its ``answered_by`` and ``roles`` must have been authenticated by the caller.
            allow_requester: the requesting actor may answer even if the request does not say so.

        Returns:
            The request, approved or rejected.

        Raises:
            ApprovalNotFound: there is none of that id.
            ApprovalExpired: its time is over.
            ApprovalConflict: it is answered or closed already, or the answer or answerer does not fit.
            ApprovalStoreError: it could not be stored, so it is not answered.
        """
        problem = _malformed(answer)
        with self._db.write() as tx:
            row = self._by_id(tx.connection, request_id)
            if row is None:
                raise ApprovalNotFound("no such approval request")
            request = request_of(self._sealer, row)
            row = self._expire_if_due(tx, row)

            def refuse(reason: Reason, message: str) -> Refused:
                tx.log(Kind.ANSWER_REFUSED, request_id, by=_short_id(answer.answered_by), reason=reason.value)
                if reason is Reason.EXPIRED:
                    return Refused(ApprovalExpired(message))
                return Refused(ApprovalConflict(message, reason=reason))

            if problem is not None:
                raise refuse(Reason.INVALID_ANSWER, problem)
            if row.status == Status.EXPIRED.value:
                raise refuse(Reason.EXPIRED, "the request has expired")
            if row.status != Status.PENDING.value:
                raise refuse(Reason.ALREADY_ANSWERED, f"the request is {row.status} already")
            self._check_answerer(request, answer, allow_requester, refuse)
            try:
                digest = request.args_digest
                if answer.edited_input is not None:
                    digest = self._digest(answer.edited_input)
                    _check_schema(request, answer.edited_input)
                grant = self._accepted_grant(tx, request, answer, digest)
            except ApprovalError as error:
                raise refuse(Reason.INVALID_ANSWER, str(error)) from None
            status = Status.APPROVED if answer.approved else Status.REJECTED
            self._advance(
                tx,
                row,
                status,
                answered_us=tx.now_us,
                sealed_answer=seal_answer(self._sealer, request_id, answer, digest, tx.now_us),
            )
            tx.log(
                Kind.ANSWERED,
                request_id,
                status=status.value,
                by=answer.answered_by,
                roles=sorted(answer.roles),
                args_digest=digest,
                edited=answer.edited_input is not None,
                reason_given=bool(answer.reason),
            )
            if grant is not None:
                self._insert_grant(tx, grant)
            row = self._by_id(tx.connection, request_id)
        return request_of(self._sealer, row)

    def _check_answerer(
        self,
        request: ApprovalRequest,
        answer: ApprovalAnswer,
        allow_requester: bool,
        refuse: Callable[[Reason, str], Refused],
    ) -> None:
        if not answer.answered_by.strip():
            raise refuse(Reason.UNIDENTIFIED, "an answer has to say who gives it")
        if has_unseen(answer.answered_by):
            raise refuse(Reason.UNIDENTIFIED, "who answers is written with characters that nobody can see")
        same = bool(request.actor_id) and same_name(request.actor_id, answer.answered_by)
        if same and not (allow_requester or request.requester_may_answer):
            raise refuse(Reason.REQUESTER, "the requesting actor may not answer its own request")
        if request.approver_roles and not set(request.approver_roles) & set(answer.roles):
            raise refuse(Reason.ROLE, f"an answer needs one of the roles: {', '.join(request.approver_roles)}")

    def cancel(self, ref: str, reason: str) -> ApprovalRequest:
        """Close an open request, for example because the user interrupted the agent; it can't run any more.

        Args:
            ref: a request id, or an invocation id for its newest request.
            reason: why, as a short machine text; it is stored readable, so it must hold no content.

        Raises:
            ApprovalNotFound: there is none.
            ApprovalConflict: it is not open any more; a consumed one is ended with ``finish``.
        """
        with self._db.write() as tx:
            row = self._find(tx.connection, ref)
            if row is None:
                raise ApprovalNotFound("no such approval request")
            row = self._expire_if_due(tx, row)
            if row.status not in OPEN_STATES:
                raise Refused(ApprovalConflict(f"the request is {row.status} already", reason=Reason.ALREADY_ANSWERED))
            self._close_row(tx, row, Status.CANCELED, Kind.CANCELED, reason)
            row = self._by_id(tx.connection, row.request_id)
        return request_of(self._sealer, row)


def _malformed(answer: ApprovalAnswer) -> str | None:
    """Return what is wrong with the types of an answer: approvers are other people's code."""
    if not isinstance(answer, ApprovalAnswer) or type(answer.approved) is not bool:
        return "the answer is neither yes nor no"
    if not isinstance(answer.answered_by, str) or not isinstance(answer.reason, str):
        return "the answer's texts are no texts"
    if not isinstance(answer.roles, tuple | list | set | frozenset) or not all(
        isinstance(role, str) for role in answer.roles
    ):
        return "the answer's roles are no list of texts"
    if answer.edited_input is not None and (type(answer.edited_input) is not dict or not answer.approved):
        return "edited arguments are a JSON object and come with a yes"
    if answer.remember is not None and (type(answer.remember) is not int or not answer.approved):
        return "what is remembered is the number of a suggested update and comes with a yes"
    return None


def _check_schema(request: ApprovalRequest, edited: dict[str, Any]) -> None:
    if request.input_schema is None:
        return
    try:
        validator = jsonschema_rs.validator_for(request.input_schema, retriever=_no_remote)
        problem = next(iter(validator.iter_errors(edited)), None)
    except (ValueError, TypeError, jsonschema_rs.ReferencingError):
        raise ApprovalConflict("the tool's schema can't be read", reason=Reason.INVALID_ANSWER) from None
    if problem is not None:
        where = "/".join(str(part) for part in problem.instance_path) or "the top"
        raise ApprovalConflict(
            f"the edited arguments don't fit the tool's schema at {where[:120]}", reason=Reason.INVALID_ANSWER
        )


def _no_remote(uri: str) -> Any:
    raise ValueError("a tool's schema is complete in itself; nothing is fetched")


def _short_id(value: Any) -> str:
    return escape_surrogates_in(value[:200]) if isinstance(value, str) else type(value).__name__
