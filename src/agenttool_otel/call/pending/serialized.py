"""A permitted call as JSON data and back: what the process needs that settles it, if another one permitted it.

Its arguments and context, and the decisions that bind whatever becomes of it: their ids, their facts, their obligations
towards the result. Left out is what has no JSON form: internal-only arguments, which no executor elsewhere gets either.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from agenttool_otel.call.invocation import Decided, Invocation, RedactionEntry
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import AgentContext
from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.hooks.context import HookState
from agenttool_otel.names import InvocationStatus, RedactionState
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import HookRecord, InputMutation
from agenttool_otel.telemetry.spans import context_of


@lru_cache(maxsize=1)
def _verdicts() -> TypeAdapter[Verdict]:
    return TypeAdapter(Verdict)


def stored_context(call: Invocation) -> dict[str, Any]:
    """Return the facts of a call beside its arguments that a resuming process needs, as JSON data."""
    context, span = call.context, context_of(call.span)
    return {
        "native_call_id": call.native_call_id,
        "trace_id": f"{span.trace_id:032x}" if span.is_valid else None,
        "span_id": f"{span.span_id:016x}" if span.is_valid else None,
        "actor": context.actor,
        "tenant": context.tenant,
        "roles": list(context.roles),
        "session_id": context.session_id,
        "agent_name": context.agent_name,
        "mode": context.mode,
        "roots": list(context.roots),
        "cwd": context.cwd,
        "labels": dict(context.labels),
        "surface": context.surface,
        "progress": call.reported,
    }


def pack(call: Invocation) -> dict[str, Any]:
    """Return what is stored of a call beside its arguments, as JSON data; it holds content and has to be sealed."""
    adapter = _verdicts()
    state = call.hook_state
    return {
        **stored_context(call),
        "surface": call.context.surface,
        "tool_name": call.spec.name,
        "call": {
            "model_input": call.model_input,
            "observable_input": call.observable_input,
            "permission_input": call.permission_input,
            "decisions": [[ref, adapter.dump_python(v, mode="json"), at] for ref, v, at in call.decisions],
            "approval": call.approval,
            "approval_status": call.approval_status,
            "approval_wait": call.approval_wait,
            "created_ns": call.created_ns,
            "transitions": [[str(status), at] for status, at in call.transitions],
            "mutations": [record.to_json_object() for record in call.mutations],
            "hook_records": [record.to_json_object() for record in call.hook_records],
            "hook_context": list(call.hook_context),
            "hook_messages": list(state.messages) if state is not None else [],
            "redaction_state": str(call.redaction_state),
            "redactions": [list(entry) for entry in call.redactions],
        },
    }


def unpack(invocation_id: str, stored: dict[str, Any], spec: ToolSpec, context: AgentContext) -> Invocation:
    """Rebuild a call that another process permitted, for its second part."""
    call = Invocation(spec, context, stored.get("native_call_id"), invocation_id, resumed=True)
    call.reported = int(stored.get("progress") or 0)
    try:
        _restore(call, stored["call"])
    except (KeyError, TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        raise ApprovalStoreError("the stored call is not in a known format") from None
    return call


def _restore(call: Invocation, data: dict[str, Any]) -> None:
    adapter = _verdicts()
    call.model_input = data["model_input"]
    call.observable_input = data["observable_input"]
    call.permission_input = data["permission_input"]
    call.decisions = [Decided(str(ref), adapter.validate_python(v), int(at)) for ref, v, at in data["decisions"]]
    call.verdict = call.decisions[-1].verdict if call.decisions else None
    call.approval = data["approval"]
    call.approval_status = data["approval_status"]
    call.approval_wait = data["approval_wait"]
    call.created_ns = int(data["created_ns"])
    call.transitions = [(InvocationStatus(status), int(at)) for status, at in data["transitions"]]
    call.mutations = [InputMutation.from_json_object(record) for record in data["mutations"]]
    call.hook_records = [HookRecord.from_json_object(record) for record in data["hook_records"]]
    call.hook_context = list(data["hook_context"])
    if data["hook_messages"]:
        call.hook_state = HookState(messages=list(data["hook_messages"]))
    call.redaction_state = RedactionState(data["redaction_state"])
    call.redactions = [RedactionEntry(str(t), str(k), str(p), str(r), int(n)) for t, k, p, r, n in data["redactions"]]
