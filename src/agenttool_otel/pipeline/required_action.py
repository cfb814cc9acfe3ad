"""What a host is told of a call that it has to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agenttool_otel.approvals.store_required import RequiredCall
from agenttool_otel.invocation import Invocation

__all__ = ["RequiredAction", "action_of", "stored_action_of"]


@dataclass(frozen=True, slots=True)
class RequiredAction:
    """A call that the host has to run.

    Attributes:
        invocation_id: what to complete it with.
        tool_id: the tool.
        tool_name: the name that models call.
        arguments: the JSON arguments it was permitted with.
        native_call_id: the model's or framework's id of the call.
        since: since when it waits.
        actor_id: who called.
        tenant: the actor's tenant.
        session_id: in which session.
    """

    invocation_id: str
    tool_id: str
    tool_name: str
    arguments: dict[str, Any] = field(repr=False)
    native_call_id: str | None
    since: datetime
    actor_id: str = ""
    tenant: str | None = None
    session_id: str | None = None


def action_of(call: Invocation) -> RequiredAction:
    """Describe a call that this process permitted.

    Args:
        call: the waiting call.
    """
    return RequiredAction(
        invocation_id=call.id,
        tool_id=call.spec.tool_id,
        tool_name=call.spec.name,
        arguments=call.call_input(),
        native_call_id=call.native_call_id,
        since=datetime.fromtimestamp(call.transitions[-1][1] / 1e9, UTC),
        actor_id=call.context.actor,
        tenant=call.context.tenant,
        session_id=call.context.session_id,
    )


def stored_action_of(call: RequiredCall) -> RequiredAction:
    """Describe a call that another process permitted.

    Args:
        call: what the store has of it.
    """
    context = call.context
    return RequiredAction(
        invocation_id=call.invocation_id,
        tool_id=call.tool_id,
        tool_name=context.get("tool_name") or call.tool_id,
        arguments=call.arguments,
        native_call_id=context.get("native_call_id"),
        since=call.since,
        actor_id=context.get("actor") or "",
        tenant=context.get("tenant"),
        session_id=context.get("session_id"),
    )
