"""The standard's records of a call, made of it on demand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agenttool_otel.call.invocation import Decided, Invocation
from agenttool_otel.names import InvocationStatus, Outcome
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import InvocationRecord, PermissionDecision, StatusTransition
from agenttool_otel.records.permission_decision import DecisionReason, Obligations
from agenttool_otel.telemetry.spans import context_of
from agenttool_otel.values.canonical import digest
from agenttool_otel.values.policy_value import decided_form


def decision_record(call: Invocation) -> PermissionDecision | None:
    """Build the permission_decision record of the decision in force."""
    return _decision(call, call.decisions[-1]) if call.decisions else None


def decision_records(call: Invocation) -> list[PermissionDecision]:
    """Build the permission_decision record of every decision, oldest first."""
    return [_decision(call, decided) for decided in call.decisions]


def _decision(call: Invocation, decided: Decided) -> PermissionDecision:
    verdict = decided.verdict
    return PermissionDecision(
        decision_id=decided.decision_id,
        invocation_id=call.id,
        behavior=verdict.behavior,
        mode=verdict.mode.value,
        source=verdict.source.value,
        reason=DecisionReason(type=verdict.reason_type, rule_ref=verdict.rule_ref or None, message=verdict.message),
        rule_refs=list(verdict.rule_refs),
        policy_refs=[policy_ref(verdict)] if verdict.engine else [],
        updated_input=verdict.updated_input,
        user_modified=any(m.source_type == "permission_prompt" for m in call.mutations),
        suggested_updates=list(verdict.suggested_updates),
        blocked_path=verdict.blocked_path,
        alternatives=list(verdict.alternatives),
        obligations=Obligations(
            redact_input=list(verdict.redact_input),
            redact_result=list(verdict.redact_result),
            max_inline_chars=verdict.max_inline_chars,
            persistence=verdict.persistence,
        ),
        decided_at=_time(decided.at_ns),
        expires_at=datetime.fromisoformat(verdict.expires_at) if verdict.expires_at else None,
    )


def call_input(call: Invocation) -> dict[str, Any]:
    """Return what the executor gets, or got, as JSON data: without what no model may produce, nor plumbing."""
    parameters = call.spec.parameters
    # what nobody gave, a default, was decided as well; a framework's adapter binds what it injects too
    bound = call.bound if parameters is None else parameters.flatten(call.bound)
    given = {name: value for name, value in bound.items() if name in call.permission_input}
    return {**call.permission_input, **decided_form(given, call.permission_input)}


def invocation_record(call: Invocation, *, inputs: bool = False) -> InvocationRecord:
    """Build the tool_invocation record; with the four inputs themselves, or with digests that stand for them."""
    shown: dict[str, Any] = {}
    for name in ("model_input", "observable_input", "permission_input"):
        value = getattr(call, name)
        if name == "model_input" and call.received is not None:
            value = call.received
        shown[name if inputs else f"{name}_ref"] = value if inputs else digest(value)
    # a call that did not get so far has no call input: nothing was, or will be, executed
    if call.outcome is Outcome.EXECUTED or call.status is InvocationStatus.NEEDS_INPUT:
        given = call_input(call)
        shown["call_input" if inputs else "call_input_ref"] = given if inputs else digest(given)
    if call.mutations:
        shown["mutation_refs"] = [mutation.mutation_id for mutation in call.mutations]
    context = context_of(call.span)
    trace = {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
    return InvocationRecord(
        invocation_id=call.id,
        tool_id=call.spec.tool_id,
        surface_id=call.context.surface,
        native_call_id=call.native_call_id,
        status=call.status,
        actor_ref=call.context.actor or None,
        runtime_refs=[f"session:{call.context.session_id}"] if call.context.session_id else [],
        policy_refs=[policy_ref(call.verdict)] if call.verdict and call.verdict.engine else [],
        permission_decision_refs=[decided.decision_id for decided in call.decisions],
        hook_refs=[record.hook_id for record in call.hook_records],
        telemetry_refs=[trace] if context.is_valid else [],
        approval_request_ref=call.request.request_id if call.request else None,
        status_transitions=[StatusTransition(status=s, at=_time(at)) for s, at in call.transitions],
        created_at=_time(call.created_ns),
        started_at=_time(call.started_ns) if call.started_ns else None,
        ended_at=_time(call.ended_ns) if call.ended_ns else None,
        **shown,
    )


def policy_ref(verdict: Verdict) -> str:
    """Return the reference of the policy behind a verdict: engine and bundle revision."""
    return f"policy:{verdict.engine}@{verdict.revision}"


def _time(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
