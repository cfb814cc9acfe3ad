"""A permitted call as JSON data and back: what the process needs that settles it, if another one
permitted it.

Its arguments and context, and the decisions that bind whatever becomes of it: their ids, their
facts, their obligations towards the result. Left out is what has no JSON form: internal-only
arguments, which no executor elsewhere gets either.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from opentelemetry.trace import INVALID_SPAN_CONTEXT
from pydantic import TypeAdapter

from agenttool_otel.call.invocation import Decided, Invocation, RedactionEntry, seconds_since
from agenttool_otel.call.reported_effects import ReportedEffects, ReportState
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.sessions import SandboxRefusal, Session
from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.hooks.context import HookState
from agenttool_otel.names import InvocationStatus, RedactionState
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import HookRecord, InputMutation
from agenttool_otel.telemetry.telemetry import context_of


@lru_cache(maxsize=1)
def _verdicts() -> TypeAdapter[Verdict]:
    return TypeAdapter(Verdict)


def stored_context(call: Invocation) -> dict[str, Any]:
    """Return the facts of a call beside its arguments that a resuming process needs, as
    JSON data.
    """
    context, span = call.context, context_of(call.span)
    return {
        "native_call_id": call.native_call_id,
        "trace_id": f"{span.trace_id:032x}" if span.is_valid else None,
        "span_id": f"{span.span_id:016x}" if span.is_valid else None,
        "actor": context.actor,
        "tenant": context.tenant,
        "roles": list(context.roles),
        "chain": [delegator.document() for delegator in context.chain],
        "session_id": context.session_id,
        "agent_name": context.agent_name,
        "mode": context.mode,
        "roots": list(context.roots),
        "cwd": context.cwd,
        "labels": dict(context.labels),
        "surface": context.surface,
        "surface_in_force": context.surface_in_force is not None,
        "progress": call.reported,
    }


def asked_context(call: Invocation) -> dict[str, Any]:
    """Return what is stored of a call that waits for an approval; it holds content and has to be
    sealed.
    """
    stored = {**stored_context(call), "call": _past(call)}
    if call.effects is not None:
        stored["layer"] = call.effects.layer.id
    if call.reported_effects is not None:
        stored["effects"] = call.reported_effects.fact
    if call.refused_earlier:
        stored["refused"] = list(call.refused_earlier)
    return stored


def rehearsed_layer(call: Invocation) -> str:
    """Return the layer with what a call would change that was asked about; empty where its body has
    not run.
    """
    return str(call.ticket.context.get("layer", "")) if call.ticket is not None else ""


def recall_effects(call: Invocation) -> None:
    """Give a call that goes on the effects that its body reported, and a person was asked about.

    Args:
        call: the call; its body runs again.
    """
    fact = call.ticket.context.get("effects") if call.ticket is not None else None
    if fact is not None and call.reported_effects is None:
        call.reported_effects = ReportedEffects(fact, state=ReportState.ANSWERED)


def recall_refusal(call: Invocation, session: Session) -> None:
    """Give the session of a call that goes on what a sandbox refused, so that the same is decided.

    Args:
        call: the call, which a person was asked about.
        session: its session, maybe in another process than the one that held the call.
    """
    kinds = call.ticket.context.get("refused") if call.ticket is not None else None
    if kinds and session.refusal_of(call.spec.tool_id, call.inputs.permission_input) is None:
        refusal = SandboxRefusal(tuple(kinds), INVALID_SPAN_CONTEXT)
        session.remember_refusal(call.spec.tool_id, call.inputs.permission_input, refusal)


def recall(call: Invocation, stored: dict[str, Any]) -> Invocation:
    """Give a call that goes on its past: what it received, when it went through which state, and
    its decisions.
    """
    past = stored.get("call")
    if isinstance(past, dict):
        _recall(call, past)
    return call


def replay(call: Invocation, stored: dict[str, Any]) -> None:
    """Give a call whose body paused itself, and that is made again from its beginning, its past."""
    recall(call, stored)
    call.reported = int(stored["progress"])
    ran = any(status is InvocationStatus.NEEDS_INPUT for status, _ in call.outcome.transitions)
    # a call that only was asked about is not asked again, and goes on from there
    call.replayed = ran or call.ticket is None


def _past(call: Invocation) -> dict[str, Any]:
    dump = _verdicts().dump_python
    return {
        "model_input": call.inputs.model_input,
        "decisions": [
            [each.decision_id, dump(each.verdict, mode="json"), each.at_ns, each.edited]
            for each in call.decision.decisions
        ],
        # where a person's answer lets a call run, it is the last decision, and the policy's ask
        # stays the verdict
        "verdict": next(
            (
                at
                for at, decided in enumerate(call.decision.decisions)
                if decided.verdict is call.decision.verdict
            ),
            -1,
        ),
        "created_ns": call.created_ns,
        "result_id": call.outcome.result_id,
        "transitions": [[str(status), at] for status, at in call.outcome.transitions],
        "mutations": [record.to_json_object() for record in call.inputs.mutations],
        "hook_records": [record.to_json_object() for record in call.decision.hook_records],
    }


def _recall(call: Invocation, past: dict[str, Any]) -> None:
    read = _verdicts().validate_python
    call.inputs.received = past["model_input"]
    call.decision.decisions = [
        # an older version stored no fourth member
        Decided(str(ref), read(verdict), int(at), bool(edited and edited[0]))
        for ref, verdict, at, *edited in past["decisions"]
    ]
    if call.decision.decisions:
        call.decision.in_force = call.decision.decisions[-1]
    call.created_ns = int(past["created_ns"])
    call.earlier_s = seconds_since(call.created_ns)
    # absent in what an older version stored
    call.outcome.made_result_id = str(past.get("result_id", ""))
    call.outcome.transitions = [
        (InvocationStatus(status), int(at)) for status, at in past["transitions"]
    ]
    call.inputs.mutations = [InputMutation.from_json_object(record) for record in past["mutations"]]
    call.decision.hook_records = [
        HookRecord.from_json_object(record) for record in past["hook_records"]
    ]


def pack(call: Invocation) -> dict[str, Any]:
    """Return what is stored of a call beside its arguments, as JSON data; it holds content and has
    to be sealed.
    """
    state = call.decision.hook_state
    return {
        **stored_context(call),
        "tool_name": call.spec.name,
        "event_id": call.waiting_event,
        "call": {
            **_past(call),
            "observable_input": call.inputs.observable_input,
            "permission_input": call.inputs.permission_input,
            "approval": call.decision.approval,
            "by_answer": call.decision.by_answer,
            "approval_status": call.decision.approval_status,
            "approval_wait": call.decision.approval_wait,
            "hook_context": list(call.decision.hook_context),
            "hook_messages": list(state.messages) if state is not None else [],
            "redaction_state": str(call.outcome.redaction_state),
            "edit_note": call.inputs.edit_note,
            "redactions": [list(entry) for entry in call.outcome.redactions],
        },
    }


def unpack(
    invocation_id: str, stored: dict[str, Any], spec: ToolSpec, context: AgentContext
) -> Invocation:
    """Rebuild a call that another process permitted, for its second part."""
    call = Invocation(spec, context, stored.get("native_call_id"), invocation_id, resumed=True)
    call.reported = int(stored.get("progress") or 0)
    try:
        _restore(call, stored["call"])
    except (KeyError, TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        raise ApprovalStoreError("the stored call is not in a known format") from None
    return call


def _restore(call: Invocation, data: dict[str, Any]) -> None:
    _recall(call, data)
    call.inputs.model_input = data["model_input"]
    call.inputs.observable_input = data["observable_input"]
    call.inputs.permission_input = data["permission_input"]
    call.decision.approval = data["approval"]
    call.decision.approval_status = data["approval_status"]
    call.decision.approval_wait = data["approval_wait"]
    call.decision.verdict = (
        call.decision.decisions[data["verdict"]].verdict if call.decision.decisions else None
    )
    if data.get("by_answer"):
        call.decision.let_in()
    call.inputs.edit_note = data.get("edit_note")
    call.decision.hook_context = list(data["hook_context"])
    if data["hook_messages"]:
        call.decision.hook_state = HookState(messages=list(data["hook_messages"]))
    call.outcome.redaction_state = RedactionState(data["redaction_state"])
    call.outcome.redactions = [
        RedactionEntry(str(t), str(k), str(p), str(r), int(n))
        for t, k, p, r, n in data["redactions"]
    ]
