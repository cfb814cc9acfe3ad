"""The description of a call that a host has to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agenttool_otel.approvals.types import RequiredCall
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.records import call_input
from agenttool_otel.records.base import utc_of


@dataclass(frozen=True, slots=True)
class RequiredAction:
    """A call that the host has to run."""

    invocation_id: str  # what to complete it with
    tool_id: str  # the tool
    tool_name: str  # the name that models call
    arguments: dict[str, Any] = field(repr=False)  # the JSON arguments it was permitted with
    native_call_id: str | None  # the model's or framework's id of the call
    since: datetime  # since when it waits
    actor_id: str = ""  # who called
    tenant: str | None = None  # the actor's tenant
    session_id: str | None = None  # in which session
    # the ``tool.result.requested`` event that announced it; ``None`` where an older version stored it
    event_id: str | None = None


def action_of(call: Invocation) -> RequiredAction:
    """Describe a call that this process permitted."""
    return RequiredAction(
        invocation_id=call.id,
        tool_id=call.spec.tool_id,
        tool_name=call.spec.name,
        arguments=call_input(call),
        native_call_id=call.native_call_id,
        since=utc_of(call.outcome.transitions[-1][1]),
        actor_id=call.context.actor,
        tenant=call.context.tenant,
        session_id=call.context.session_id,
        event_id=call.waiting_event,
    )


def stored_action_of(call: RequiredCall) -> RequiredAction:
    """Describe a call that another process permitted."""
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
        event_id=context.get("event_id"),
    )
