"""An approval request, the answer to it, and who can be asked (design sections 1 and 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pydantic import Field

from agenttool_otel.names import ApprovalStatus
from agenttool_otel.records.base import JsonObject, Record, Timestamp, utc_now
from agenttool_otel.records.ids import new_id

__all__ = ["ApprovalAnswer", "ApprovalRequest", "Approver", "AsyncApprover"]


class ApprovalRequest(Record):
    """A question about one call, bound to the bytes that will run.

    Attributes:
        request_id: sortable id; knowing it is not a permission to answer.
        invocation_id: the call, the same before and after the pause.
        tool_id: the tool.
        tool_name: its name, for people.
        declaration_digest: digest of the tool's declaration and interface; a changed tool voids the request.
        args_digest: ``sha256:`` and the SHA-256 of the RFC 8785 form of the permission input.
        actor_id: who asked for the call.
        tenant: the actor's tenant.
        session_id: the session.
        policy_revision: revision of the bundle that asked; a changed revision means deciding again.
        rule_ref: the rule that asked.
        message: why it asked.
        arguments_preview: the arguments, redacted, for the person who answers.
        alternatives: safer calls.
        suggested_updates: grants that the answerer may accept with the approval.
        approver_roles: roles of which an answerer needs one; empty: any authenticated answerer.
        requester_may_answer: whether the requesting actor may answer too.
        status: state of the request.
        answered_by: who answered.
        answer_reason: what they said.
        created_at: when it was asked.
        expires_at: until when it may be answered and used.
        answered_at: when it was answered.
    """

    request_id: str = Field(default_factory=lambda: new_id("appr"))
    invocation_id: str
    tool_id: str
    tool_name: str
    declaration_digest: str = ""
    args_digest: str
    actor_id: str = ""
    tenant: str | None = None
    session_id: str | None = None
    policy_revision: str = ""
    rule_ref: str = ""
    message: str = ""
    arguments_preview: JsonObject = Field(default_factory=dict)
    alternatives: list[JsonObject] = Field(default_factory=list)
    suggested_updates: list[JsonObject] = Field(default_factory=list)
    approver_roles: list[str] = Field(default_factory=list)
    requester_may_answer: bool = False
    status: ApprovalStatus = ApprovalStatus.PENDING
    answered_by: str | None = None
    answer_reason: str | None = None
    created_at: Timestamp = Field(default_factory=utc_now)
    expires_at: Timestamp | None = None
    answered_at: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """An answer.

    Attributes:
        approved: yes or no.
        answered_by: id of the person or coordinator; empty when the approver can't say.
        roles: that person's roles.
        reason: what they said; redacted before it is shown elsewhere.
        edited_input: replacement arguments; a mutation that is validated and decided again.
        remember: index into ``suggested_updates`` of the grant that they accept with it, if any.
    """

    approved: bool
    answered_by: str = ""
    roles: tuple[str, ...] = ()
    reason: str = ""
    edited_input: dict[str, Any] | None = None
    remember: int | None = None


@runtime_checkable
class Approver(Protocol):
    """Somebody who can be asked in place. ``None`` means: not now, keep the request pending."""

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Ask and wait for the answer."""


@runtime_checkable
class AsyncApprover(Protocol):
    """The same for asynchronous code; used in preference to ``ask`` there."""

    async def aask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Ask without blocking the event loop."""
