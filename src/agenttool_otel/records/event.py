"""tool_event: the lifecycle event envelope (standard, event schema)."""

from __future__ import annotations

from pydantic import Field

from agenttool_otel.names import EVENT_SOURCE
from agenttool_otel.records.base import JsonObject, Record, Timestamp, id_field, utc_now


class ToolEvent(Record):
    """One lifecycle event.

    Attributes:
        event_id: sortable id.
        event_type: event class of the standard.
        source: who emits it.
        subject: what it is about, normally the tool id.
        time: when.
        invocation_id: the call.
        tool_id: the tool.
        data: the event's facts; never content unless capture asked for it.
        trace_refs: trace and span ids.
    """

    event_id: str = id_field("evt")
    event_type: str
    source: str = EVENT_SOURCE
    subject: str | None = None
    time: Timestamp = Field(default_factory=utc_now)
    invocation_id: str | None = None
    tool_id: str | None = None
    data: JsonObject | None = None
    trace_refs: list[JsonObject] = Field(default_factory=list)
