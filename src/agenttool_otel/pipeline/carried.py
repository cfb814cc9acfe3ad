"""A permitted call as JSON data and back: what the process needs that settles it, if another one permitted it.

Its arguments and context, and the decisions that bind whatever becomes of it: their ids, their facts, their obligations
towards the result. Left out is what has no JSON form: internal-only arguments, which no executor elsewhere gets either.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context import AgentContext
from agenttool_otel.errors import ApprovalStoreError
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import InvocationStatus, RedactionState
from agenttool_otel.pipeline.document import stored_context
from agenttool_otel.pipeline.hooking import HookState
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import HookRecord, InputMutation

__all__ = ["pack", "unpack"]


@lru_cache(maxsize=1)
def _verdicts() -> TypeAdapter[Verdict]:
    return TypeAdapter(Verdict)


def pack(call: Invocation) -> dict[str, Any]:
    """Return what is stored of a call beside its arguments, as JSON data; it holds content and has to be sealed.

    Args:
        call: the call, permitted.
    """
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
            "mutations": [record.to_json_object() for record in call.__dict__.get("mutations", ())],
            "hook_records": [record.to_json_object() for record in call.__dict__.get("hook_records", ())],
            "hook_context": list(call.__dict__.get("hook_context", ())),
            "hook_messages": list(state.messages) if state is not None else [],
            "redaction_state": str(call.redaction_state),
            "redactions": [list(entry) for entry in call.__dict__.get("redactions", ())],
        },
    }


def unpack(invocation_id: str, stored: dict[str, Any], spec: ToolSpec, context: AgentContext) -> Invocation:
    """Rebuild a call that another process permitted, for its second part.

    Args:
        invocation_id: the call.
        stored: what ``pack`` returned there.
        spec: the tool.
        context: whose call it is.

    Raises:
        ApprovalStoreError: it was stored in a form that this version does not know.
    """
    call = Invocation(
        spec, context, native_call_id=stored.get("native_call_id"), invocation_id=invocation_id, resumed=True
    )
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
    call.verdicts = [(adapter.validate_python(verdict), int(at)) for _, verdict, at in data["decisions"]]
    call.verdict = call.verdicts[-1][0] if call.verdicts else None
    call.adopt_decision_ids([str(ref) for ref, _, _ in data["decisions"]])
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
    call.redactions = [(str(t), str(k), str(p), str(r), int(n)) for t, k, p, r, n in data["redactions"]]
