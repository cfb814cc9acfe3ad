"""The standard's records of a call, made of it on demand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from agenttool_otel.call.invocation import NOT_READ, CallRecord, Decided
from agenttool_otel.call.scheduler_facts import scheduler_facts
from agenttool_otel.names import InvocationStatus, Outcome, PolicyMode, TrustLevel
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import (
    ExternalMapping,
    FunctionCallMapping,
    InvocationRecord,
    PermissionDecision,
    StatusTransition,
)
from agenttool_otel.records.base import utc_of
from agenttool_otel.records.permission_decision import (
    DecisionReason,
    Obligations,
    SandboxObligation,
)
from agenttool_otel.redaction.ids import shown_id
from agenttool_otel.telemetry.telemetry import trace_refs
from agenttool_otel.values.canonical import keyed_digest
from agenttool_otel.values.policy_value import decided_form


def decision_record(call: CallRecord) -> PermissionDecision | None:
    """Build the permission_decision record of the decision in force."""
    in_force = call.decision.in_force
    return None if in_force is None else _decision(call, in_force)


def decision_records(call: CallRecord) -> list[PermissionDecision]:
    """Build the permission_decision record of every decision, oldest first."""
    return [_decision(call, decided) for decided in call.decision.decisions]


_UNCHANGING: Final = frozenset({str, int, float, bool, bytes, type(None)})

_PASSED: Final = ("classifier", "pending_classifier_check", "content_blocks", "accept_feedback")
"""Members of a policy's or an approver's answer that only the record of the decision repeats."""


def _decision(call: CallRecord, decided: Decided) -> PermissionDecision:
    enforced, verdict = decided.verdict, decided.verdict
    if verdict.mode is PolicyMode.SHADOW and verdict.shadow is not None:
        verdict = verdict.shadow  # what was decided; that it did not bind is another fact
    shadow = enforced.shadow if verdict is enforced else None
    passed_on = {name: verdict.extra[name] for name in _PASSED if verdict.extra.get(name)}
    origin = verdict.extra.get("source")
    return PermissionDecision(
        decision_id=decided.decision_id,
        invocation_id=call.id,
        behavior=verdict.behavior,
        mode=call.context.mode,
        enforced=enforced.mode is PolicyMode.ENFORCE,
        shadow={"behavior": shadow.behavior.value, "rule_ref": shadow.rule_ref}
        if shadow is not None
        else None,
        source=origin if origin and isinstance(origin, str) else verdict.source.value,
        reason=DecisionReason(
            type=verdict.reason_type, rule_ref=verdict.rule_ref or None, message=verdict.message
        ),
        rule_refs=list(verdict.rule_refs),
        policy_refs=[policy_ref(verdict)] if verdict.engine else [],
        updated_input=verdict.updated_input,
        updated_input_ref=None
        if verdict.updated_input is None
        else keyed_digest(verdict.updated_input),
        user_modified=decided.edited,
        suggested_updates=list(verdict.suggested_updates),
        blocked_path=verdict.blocked_path,
        alternatives=list(verdict.alternatives),
        obligations=Obligations(
            redact_input=list(verdict.redact_input),
            redact_result=list(verdict.redact_result),
            max_inline_chars=verdict.max_inline_chars,
            persistence=verdict.persistence,
            sandbox=_sandbox_of(verdict),
        ),
        decided_at=utc_of(decided.at_ns),
        expires_at=datetime.fromisoformat(verdict.expires_at) if verdict.expires_at else None,
        **passed_on,
    )


def _sandbox_of(verdict: Verdict) -> SandboxObligation | None:
    if verdict.sandbox is None:
        return None
    return SandboxObligation(profile=verdict.sandbox.name, network=verdict.sandbox.network)


def call_input(call: CallRecord) -> dict[str, Any]:
    """Return what the executor gets, or got, as JSON data: without what no model may produce, nor
    plumbing.
    """
    if call.inputs.executed is not None:
        return call.inputs.executed
    parameters = call.spec.parameters
    # what nobody gave, a default, was decided as well; a framework's adapter binds what it injects
    # too
    bound = call.inputs.bound if parameters is None else parameters.flatten(call.inputs.bound)
    given = {name: value for name, value in bound.items() if name in call.inputs.permission_input}
    return {**call.inputs.permission_input, **decided_form(given, call.inputs.permission_input)}


def keep_call_input(call: CallRecord) -> None:
    """Keep what the executor gets as it is before the body, which may sort a list in place."""
    if not _UNCHANGING.issuperset(map(type, call.inputs.bound.values())):
        call.inputs.executed = None
        call.inputs.executed = call_input(call)


def invocation_record(
    call: CallRecord, *, show: Callable[[Any], Any] | None = None
) -> InvocationRecord:
    """Build the tool_invocation record; with the four inputs as what redacts shows them, or with
    their digests.
    """
    inputs = call.inputs
    forms = {
        "model_input": inputs.model_input if inputs.received is None else inputs.received,
        "observable_input": inputs.observable_input,
        "permission_input": inputs.permission_input,
    }
    # a call that did not get so far has no call input: nothing was, or will be, executed
    if (
        call.outcome.execution is Outcome.EXECUTED
        or call.outcome.status is InvocationStatus.NEEDS_INPUT
    ):
        forms["call_input"] = call_input(call)
    shown: dict[str, Any] = {}
    for name, value in forms.items():
        # a call that ended before its arguments were read: an amount of Decimal("1e400")
        if value is NOT_READ:
            continue
        shown[f"{name}_ref"] = keyed_digest(value)
        if show is not None:
            shown[name] = show(value)
    if call.inputs.mutations:
        shown["mutation_refs"] = [mutation.mutation_id for mutation in call.inputs.mutations]
    return InvocationRecord(
        invocation_id=call.id,
        tool_id=call.spec.tool_id,
        surface_id=call.context.surface,
        native_call_id=call.native_call_id,
        status=call.outcome.status,
        actor_ref=shown_id(call.context.actor) or None,
        runtime_refs=[f"session:{shown_id(call.context.session_id)}"]
        if call.context.session_id
        else [],
        permission_decision_refs=[decided.decision_id for decided in call.decision.decisions],
        hook_refs=[record.hook_id for record in call.decision.hook_records],
        artifact_refs=call.outcome.artifact_refs,
        telemetry_refs=trace_refs(call.span),
        scheduler=scheduler_facts(call),
        cancellation=cancellation_record(call),
        external_mappings=mappings_of(call),
        scheduler_policy_ref=call.place.policy if call.place is not None else None,
        approval_request_ref=call.decision.request.request_id if call.decision.request else None,
        status_transitions=[
            StatusTransition(status=s, at=utc_of(at)) for s, at in call.outcome.transitions
        ],
        created_at=utc_of(call.created_ns),
        started_at=utc_of(call.outcome.started_ns) if call.outcome.started_ns else None,
        ended_at=utc_of(call.outcome.ended_ns) if call.outcome.ended_ns else None,
        **references(call),
        **shown,
    )


def mappings_of(call: CallRecord) -> list[ExternalMapping]:
    """Return the native ids of a call; the model's own id of it makes one where nobody gave it."""
    if not call.native_call_id or any(
        mapping.source == "function_calling" for mapping in call.mappings
    ):
        return call.mappings
    own = FunctionCallMapping(tool_call_id=call.native_call_id, function_name=call.spec.name)
    return [own, *call.mappings]


def cancellation_record(call: CallRecord) -> dict[str, Any] | None:
    """Return the facts of a request to stop the call, each apart."""
    if (state := call.cancellation) is None:
        return None
    times = {"requested_at": state.requested_at, "acknowledged_at": state.acknowledged_at}
    times_given = {
        name: datetime.fromtimestamp(at, UTC).isoformat()
        for name, at in times.items()
        if at is not None
    }
    return {
        "reason": state.reason,
        "abort_reason": state.abort_reason,
        **times_given,
        "outcome": state.outcome,
    }


def references(call: CallRecord) -> dict[str, list[str]]:
    """Return the policies behind a call, and what of the approval log proves who was asked and what
    they answered.
    """
    policies = (
        [policy_ref(call.decision.verdict)]
        if call.decision.verdict is not None and call.decision.verdict.engine
        else []
    )
    evidence = (
        [f"approval_log:{call.decision.request.request_id}"]
        if call.decision.request is not None
        else []
    )
    return {"policy_refs": policies, "evidence_refs": evidence}


def result_facts(call: CallRecord) -> dict[str, Any]:
    """Return the fields of a call's result that are the same whether content is shown or not."""
    return {
        "result_id": call.outcome.result_id,
        "invocation_id": call.id,
        "status": call.outcome.result_status,
        "is_error": call.outcome.reported_error is not None,
        "input_mutations": input_mutations(call),
        "trust": trust(call),
        "persistence_refs": [call.outcome.persistence.decision_id]
        if call.outcome.persistence is not None
        else [],
        "redaction_state": call.outcome.redaction_state,
        "external_mappings": mappings_of(call) or None,
        "abort_reason": call.outcome.abort_reason,
        "context_modifier": call.outcome.modified,
        # of a call that waits: since it waits
        "created_at": utc_of(call.outcome.ended_ns or call.outcome.transitions[-1][1]),
        **references(call),
    }


def input_mutations(call: CallRecord) -> list[dict[str, Any]] | None:
    """Return who changed which fields of the input: ids and places, never values."""
    fields = {"mutation_id", "source_type", "source_ref", "changed_fields"}
    return [
        change.model_dump(mode="json", exclude_none=True, include=fields)
        for change in call.inputs.mutations
    ] or None


def trust(call: CallRecord) -> dict[str, str] | None:
    """Return whether others may have written what a tool returned, and why."""
    if call.outcome.execution is not Outcome.EXECUTED:
        return None
    closed = call.spec.safety.open_world is False
    level = TrustLevel.TRUSTED if closed else TrustLevel.UNTRUSTED
    return {"level": level.value, "reason": "closed_world" if closed else "open_world"}


def policy_ref(verdict: Verdict) -> str:
    """Return the reference of the policy behind a verdict: engine and bundle revision."""
    return f"policy:{verdict.engine}@{verdict.revision}"
