"""The records of a tool itself, for sinks: what the records of its calls refer to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.names import Attr, Event
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.sinks import EVENT_OBJECT, Declaration, event_record


def declaration_of(spec: ToolSpec) -> Declaration:
    """Return what declares a tool.

    Args:
        spec: what is known of the tool.
    """
    return Declaration(spec.digest, partial(_records, spec))


def declared_attributes(spec: ToolSpec) -> dict[str, Any]:
    """Return the attributes of the event that a tool was declared.

    Args:
        spec: what is known of the tool.
    """
    return {
        Attr.TOOL_ID: spec.tool_id,
        Attr.TOOL_NAMESPACE: spec.declaration.namespace,
        Attr.TOOL_KIND: spec.declaration.tool_kind,
        Attr.TOOL_RISK_LEVEL: spec.permission.risk_level.value,
    }


def _records(spec: ToolSpec) -> Iterator[tuple[str, JsonObject]]:
    yield "tool_declaration", spec.declaration.to_json_object()
    yield "tool_interface", spec.interface.to_json_object()
    yield "tool_execution_profile", spec.execution.to_json_object()
    yield "tool_permission_profile", spec.permission.to_json_object()
    attributes = declared_attributes(spec)
    event = event_record(Event.DECLARED, attributes, "", spec.tool_id, time.time_ns(), [])
    yield EVENT_OBJECT, event
