"""What a policy is told of a call, and what a process that resumes it has to know."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agenttool_otel.invocation import Invocation
from agenttool_otel.names import SCHEMA_VERSION
from agenttool_otel.policy.types import PolicyInput
from agenttool_otel.sessions import Session
from agenttool_otel.telemetry.spans import context_of

__all__ = ["policy_input", "stored_context"]


def policy_input(call: Invocation, session: Session, counters: Mapping[str, int] | None = None) -> PolicyInput:
    """Build the policy input of a call.

    Args:
        call: the call, with its facts.
        session: its session.
        counters: what the session had used before this call; what it has used by now where not given.
    """
    spec, context = call.spec, call.context
    tool = spec.policy_tool
    if not spec.safety.static:
        tool = {**tool, **spec.safety_facts(call.permission_input, call.facts)}
    return {
        "schema_version": SCHEMA_VERSION,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "invocation": {
            "id": call.id,
            "native_call_id": call.native_call_id,
            "attempt": len(call.verdicts) + 1,
            "resumed": call.resumed,
            "preflight": call.preflight,
        },
        "tool": tool,  # type: ignore[typeddict-item]
        "permission_profile": spec.policy_profile,  # type: ignore[typeddict-item]
        "input": call.permission_input,
        "facts": call.facts,
        "actor": context.policy_actor,  # type: ignore[typeddict-item]
        "session": {
            "id": context.session_id,
            "mode": context.mode,
            "interactive": context.interactive,
            "roots": list(context.roots),
            "counters": counters or session.counters(spec.declaration.tool_id),  # type: ignore[typeddict-item]
            "labels": dict(context.labels),
        },
        "approval": call.approval,
        "hooks": call.__dict__.get("hints", []),
        "evaluation": context.policy_evaluation,  # type: ignore[typeddict-item]
    }


def stored_context(call: Invocation) -> dict[str, Any]:
    """Return the facts of a call beside its arguments that a resuming process needs, as JSON data.

    Args:
        call: the call that asks.
    """
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
    }
