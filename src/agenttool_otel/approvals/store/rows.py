"""From records to sealed rows and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from pydantic import ValidationError

from agenttool_otel.approvals.people import Agreement, StillNeeded, still_needed
from agenttool_otel.approvals.store.clock import from_us
from agenttool_otel.approvals.store.evidence import check_row
from agenttool_otel.approvals.store.schema import grants, requests, required
from agenttool_otel.approvals.store.sealing import Sealer
from agenttool_otel.approvals.types import (
    ApprovalAnswer,
    ApprovalRequest,
    Claim,
    Grant,
    RequiredCall,
    StoredCall,
)
from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.names import AnswerWay, ApprovalStatus, ResultStatus

MUTABLE_FIELDS: Final = frozenset(
    {
        "status",
        "answered_by",
        "answer_reason",
        "answered_at",
        "edited",
        "agreed",
        "outcome",
        "closed_reason",
        "supersedes",
    }
)
"""Fields of a request that change after it was asked; all others are sealed once and never written
again.
"""


_NEED_APPROVAL: Final = {
    ApprovalStatus.APPROVED,
    ApprovalStatus.CONSUMED,
    ApprovalStatus.INTERRUPTED,
}


def seal_request(sealer: Sealer, request: ApprovalRequest) -> bytes:
    """Seal the unchanging part of a request."""
    body = request.model_dump(mode="json", exclude_none=True, exclude=set(MUTABLE_FIELDS))
    return sealer.seal(body, purpose="request", row=request.request_id)


def seal_answer(
    sealer: Sealer, request_id: str, answer: ApprovalAnswer, digest: str, now_us: int
) -> bytes:
    """Seal an answer, and those before it, with the digest of what it approves; without it no
    ``approved`` is believed.
    """
    body = asdict(answer)
    del body["stored"]
    body["digest"] = digest
    body["at_us"] = now_us
    return sealer.seal(body, purpose="answer", row=request_id)


def required_call_of(sealer: Sealer, row: Any) -> RequiredCall:
    """Return a row's call that waits for its result."""
    check_row(sealer, required, row)
    body = sealer.open(row.sealed_call, purpose="required", row=row.invocation_id)
    since = from_us(row.created_us)
    return RequiredCall(
        invocation_id=row.invocation_id,
        tool_id=row.tool_id,
        declaration_digest=body["declaration_digest"],
        arguments=body["arguments"],
        context=body["context"],
        since=since,
    )


def open_answer(sealer: Sealer, row: Any) -> tuple[ApprovalAnswer, str] | None:
    """Return a row's answer and the digest that it approves, ``None`` when there is none."""
    if row.sealed_answer is None:
        return None
    body = sealer.open(row.sealed_answer, purpose="answer", row=row.request_id)
    try:
        return _answer_of(body), body["digest"]
    except (KeyError, TypeError, ValueError):
        raise ApprovalStoreError("the stored answer is not in a known format") from None


def _answer_of(body: dict[str, Any]) -> ApprovalAnswer:
    return ApprovalAnswer(
        approved=body["approved"] is True,
        answered_by=body["answered_by"],
        reason=body["reason"],
        edited_input=body["edited_input"],
        roles=tuple(body["roles"]),
        remember=body["remember"],
        # an older version stored neither
        way=AnswerWay(body.get("way", AnswerWay.PROGRAM)),
        earlier=tuple(map(_answer_of, body.get("earlier", ()))),
    )


def answers_with_yes(answer: ApprovalAnswer | None) -> list[ApprovalAnswer]:
    """Return an answer and those before it, as far as they agree."""
    if answer is None:
        return []
    return [each for each in (*answer.earlier, answer) if each.approved]


def agreements(answers: Iterable[ApprovalAnswer]) -> list[Agreement]:
    """Return who gave answers, in which roles."""
    return [Agreement(each.answered_by, frozenset(each.roles)) for each in answers]


def open_call(sealer: Sealer, row: Any) -> StoredCall:
    """Return everything that a row holds."""
    request = request_of(sealer, row)
    body = sealer.open(row.sealed_call, purpose="call", row=row.request_id)
    try:
        original = body["arguments"]
        context = body["context"]
    except (KeyError, TypeError):
        raise ApprovalStoreError("the stored call is not in a known format") from None
    opened = open_answer(sealer, row)
    # of a request that still waits, some have answered, and not all who have to
    if opened is None or request.status is ApprovalStatus.PENDING:
        return StoredCall(request, original, original, context, None, request.args_digest)
    answer, digest = opened
    arguments = original if answer.edited_input is None else answer.edited_input
    return StoredCall(request, arguments, original, context, answer, digest)


def claim_of(call: StoredCall, claim_id: str) -> Claim:
    """Return the right to run an approved call, as its taker holds it."""
    # no row that is approved opens without one; stated for changes to that
    if call.answer is None:
        raise ApprovalStoreError("an approval without an answer")
    request = call.request.model_copy(update={"status": ApprovalStatus.CONSUMED})
    return Claim(
        claim_id=claim_id,
        request=request,
        arguments=call.arguments,
        original_arguments=call.original_arguments,
        context=call.context,
        answer=call.answer,
        args_digest=call.args_digest,
    )


def request_of(sealer: Sealer, row: Any) -> ApprovalRequest:
    """Return a row's request with its current state."""
    check_row(sealer, requests, row)
    body = sealer.open(row.sealed_request, purpose="request", row=row.request_id)
    opened = open_answer(sealer, row)
    try:
        status = ApprovalStatus(row.status)
        outcome = None if row.outcome is None else ResultStatus(row.outcome)
        request = ApprovalRequest.model_validate(body)
    except (ValidationError, ValueError):
        raise ApprovalStoreError("the stored request is not in a known format") from None
    answer = None if opened is None else opened[0]
    if status in _NEED_APPROVAL and (answer is None or not answer.approved):
        raise ApprovalStoreError(
            "the request is marked approved, but its answer does not approve it"
        )
    agreed = answers_with_yes(answer)
    if status in _NEED_APPROVAL and lacks(request, agreed).people:
        raise ApprovalStoreError(
            "the request is marked approved, but not all who have to agree did"
        )
    state: dict[str, Any] = {
        "status": status,
        "outcome": outcome,
        "closed_reason": row.closed_reason,
        "supersedes": row.supersedes,
        "answered_at": None if row.answered_us is None else from_us(row.answered_us),
    }
    if request.needs_several:
        state["agreed"] = [
            {"answered_by": each.answered_by, "roles": list(each.roles)} for each in agreed
        ]
    if answer is not None and status is not ApprovalStatus.PENDING:
        state["answered_by"] = answer.answered_by
        state["answer_reason"] = answer.reason or None
        state["edited"] = answer.edited_input is not None
    return request.model_copy(update=state)


def lacks(request: ApprovalRequest, agreed: Iterable[ApprovalAnswer]) -> StillNeeded:
    """Return who has to agree to a request beside those who did."""
    return still_needed(request.approvals_needed, request.required_roles, agreements(agreed))


def unreadable(row: Any, why: str) -> ApprovalRequest:
    """Return a stand-in for a row that can't be opened, so that a list still shows that it
    is there.
    """
    known = {status.value for status in ApprovalStatus}
    return ApprovalRequest(
        request_id=row.request_id,
        invocation_id=row.invocation_id,
        tool_id=row.tool_id,
        tool_name=row.tool_id,
        args_digest="",
        message=f"This request can't be opened and can't be answered: {why}.",
        status=ApprovalStatus(row.status) if row.status in known else ApprovalStatus.CANCELED,
        created_at=from_us(row.created_us),
        expires_at=from_us(row.expires_us),
    )


def grant_of(sealer: Sealer, row: Any) -> Grant:
    """Return a row's grant."""
    check_row(sealer, grants, row)
    try:
        grant = Grant.model_validate(
            sealer.open(row.sealed_grant, purpose="grant", row=row.grant_id)
        )
    except ValidationError:
        raise ApprovalStoreError("the stored grant is not in a known format") from None
    return grant.model_copy(
        update={"revoked_at": None if row.revoked_us is None else from_us(row.revoked_us)}
    )
