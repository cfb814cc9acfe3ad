"""Approvals that somebody asked to be remembered, where a decision offers them again."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from agenttool_otel.approvals.types import Grant
from agenttool_otel.effects import FindGrant
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import ApprovalStatus, Behavior, DecisionSource
from agenttool_otel.policy.types import Verdict

__all__ = ["remembered"]


def remembered(call: Invocation, verdict: Verdict) -> Generator[Any, Any, Verdict | None]:
    """Let an approval that somebody asked to be remembered answer a question that offers it; it lifts no denial.

    A question for certain roles is for a person: a grant does not prove who accepted it. So is one that a hook has.

    Args:
        call: the call.
        verdict: the decision, which asks.

    Returns:
        The decision with the question answered, or ``None``.
    """
    offered = [one for one in verdict.suggested_updates if one.get("type") == "grant"]
    if not offered or verdict.behavior is not Behavior.ASK or verdict.approver_roles or call.resumed:
        return None
    if any(hint["behavior"] == Behavior.ASK for hint in call.__dict__.get("hints", ())):
        return None
    context = call.context
    grant: Grant | None = yield FindGrant(
        offered,
        {
            "invocation_id": call.id,
            "tool_id": call.spec.tool_id,
            "arguments": call.permission_input,
            "declaration_digest": call.spec.digest,
            "actor_id": context.actor,
            "tenant": context.tenant,
            "session_id": context.session_id,
        },
    )
    if grant is None:
        return None
    call.approval = {
        "request_id": grant.request_id,
        "status": ApprovalStatus.APPROVED.value,
        "answered_by": grant.granted_by,
        "roles": [],
        "granted": True,
    }
    answered = replace(
        verdict, behavior=Behavior.ALLOW, source=DecisionSource.USER, message="a person approved such calls"
    )
    return answered
