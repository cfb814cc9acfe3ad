"""From an ask to the request that a person answers: bound to the bytes that will run, and shown redacted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.context import AgentContext
from agenttool_otel.echoes import echoes_of
from agenttool_otel.invocation import Invocation
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import utc_now
from agenttool_otel.records.values import digest
from agenttool_otel.redaction import Redactor

__all__ = ["Questions"]


class Questions:
    """Makes approval requests.

    Args:
        redactor: cleans what the approver sees.
        ttl: seconds that a request stays open.
    """

    def __init__(self, redactor: Redactor, ttl: float) -> None:
        self._redactor = redactor
        self._ttl = ttl

    def make(self, call: Invocation, verdict: Verdict) -> ApprovalRequest:
        """Build the request of one ask.

        Args:
            call: the call, with its permission input.
            verdict: the verdict that asks.
        """
        spec, context = call.spec, call.context
        now = utc_now()
        pointers = (*spec.sensitive, *verdict.redact_input)
        preview = self._redactor.redact(call.permission_input, pointers=pointers)
        echoes = echoes_of(call, self._redactor)

        def shown(offers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
            # safer calls and changes repeat the arguments, and the request is kept
            masked = [dict(offer) for offer in offers] if echoes is None else echoes.value([dict(o) for o in offers])
            value = self._redactor.redact(masked, pointers=pointers).value
            return value if isinstance(value, list) else []

        return ApprovalRequest(
            invocation_id=call.id,
            tool_id=spec.tool_id,
            tool_name=spec.name,
            declaration_digest=spec.digest,
            args_digest=digest(call.permission_input),
            actor_id=context.actor,
            tenant=context.tenant,
            session_id=context.session_id,
            policy_revision=verdict.revision,
            rule_ref=verdict.rule_ref,
            rule_refs=list(verdict.rule_refs),
            message=verdict.message or spec.permission.approval_reason or "",
            arguments_preview=preview.value if isinstance(preview.value, dict) else {"arguments": "[redacted]"},
            input_schema=spec.check.schema,
            alternatives=shown(verdict.alternatives),
            suggested_updates=shown([one for one in verdict.suggested_updates if _acceptable(one, context)]),
            approver_roles=list(verdict.approver_roles),
            created_at=now,
            expires_at=now + timedelta(seconds=self._ttl),
        )


def _acceptable(suggestion: Mapping[str, Any], context: AgentContext) -> bool:
    """Tell whether a call has the scope of a grant: without a session, nothing can be remembered for it."""
    if suggestion.get("type") != "grant":
        return True
    scope = suggestion.get("scope", "session")
    named = {"session": context.session_id, "actor": context.actor, "tenant": context.tenant}
    return scope not in named or bool(named[scope])
