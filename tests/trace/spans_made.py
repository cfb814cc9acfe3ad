"""Spans of governed calls made with the SDK, for the renderer's tests."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode, set_span_in_context

from agenttool_otel.names import Attr, Event, GenAI

DENIED: dict[str, Any] = {
    GenAI.OPERATION_NAME: "execute_tool",
    GenAI.TOOL_NAME: "read_file",
    Attr.TOOL_NAMESPACE: "local.files",
    Attr.TOOL_RISK_LEVEL: "low",
    Attr.INVOCATION_ID: "inv_1",
    Attr.SESSION_ID: "s-1",
    Attr.ACTOR_ID: "agent:support",
    Attr.PERMISSION_BEHAVIOR: "deny",
    Attr.PERMISSION_OUTCOME: "not_executed",
    Attr.PERMISSION_SOURCE: "policy",
    Attr.PERMISSION_RULE: "paths.outside_roots",
    Attr.POLICY_ENGINE: "embedded",
    Attr.POLICY_REVISION: "abc",
    Attr.PERMISSION_DURATION: 0.0004,
    Attr.RESULT_SIZE_BYTES: 210,
    Attr.RESULT_STATUS: "denied",
    Attr.ERROR_RECOVERABILITY: "change_arguments_or_policy",
    Attr.ERROR_CODE: "AT-106",
    GenAI.ERROR_TYPE: "permission_denied",
}
ASKED: dict[str, Any] = {
    GenAI.OPERATION_NAME: "execute_tool",
    GenAI.TOOL_NAME: "send_mail",
    Attr.INVOCATION_ID: "inv_2",
    Attr.SESSION_ID: "s-1",
    Attr.PERMISSION_BEHAVIOR: "ask",
    Attr.PERMISSION_OUTCOME: "executed",
    Attr.PERMISSION_RULE: "approval.external_send",
    Attr.APPROVAL_STATUS: "consumed",
    Attr.APPROVAL_ID: "appr_1",
    Attr.REDACTION_STATE: "redacted",
    Attr.REDACTION_COUNT: 2,
    Attr.RESULT_SIZE_BYTES: 1_234_567,
    Attr.RESULT_PERSISTENCE: "preview_and_persist",
    Attr.INVOCATION_STATUS: "succeeded",
}
ALLOWED: dict[str, Any] = {
    GenAI.OPERATION_NAME: "execute_tool",
    GenAI.TOOL_NAME: "search",
    Attr.INVOCATION_ID: "inv_3",
    Attr.PERMISSION_BEHAVIOR: "allow",
    Attr.PERMISSION_OUTCOME: "executed",
    Attr.POLICY_CACHED: True,
    Attr.RESULT_SIZE_BYTES: 12,
}
MESSAGE = "The path lies outside the session's roots."


def make() -> list[ReadableSpan]:
    """An agent's turn with a denied, an asked and an allowed call."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("t")
    turn = tracer.start_span("invoke_agent support", start_time=1_000_000_000)
    context = set_span_in_context(turn)
    denied = tracer.start_span(
        "execute_tool read_file", context, attributes=DENIED, start_time=1_001_000_000
    )
    denied.add_event(
        Event.PERMISSION_DECIDED,
        {
            Attr.PERMISSION_REASON_MESSAGE: MESSAGE,
            Attr.PERMISSION_RULES: ["paths.outside_roots", "roles.reader"],
        },
        timestamp=1_001_400_000,
    )
    denied.set_status(Status(StatusCode.ERROR))
    denied.end(1_002_000_000)
    asked = tracer.start_span(
        "execute_tool send_mail", context, attributes=ASKED, start_time=1_003_000_000
    )
    asked.add_event(Event.APPROVAL_REQUESTED, {Attr.APPROVAL_ID: "appr_1"}, timestamp=1_004_000_000)
    asked.add_event(
        Event.INPUT_MUTATED,
        {Attr.MUTATION_SOURCE: "hook", Attr.MUTATION_CHANGED_FIELDS: ["/to"]},
        timestamp=1_003_500_000,
    )
    asked.add_event(
        Event.APPROVAL_ANSWERED, {Attr.APPROVAL_STATUS: "approved"}, timestamp=201_004_000_000
    )
    asked.end(201_010_000_000)
    tracer.start_span(
        "execute_tool search", context, attributes=ALLOWED, start_time=202_000_000_000
    ).end(202_050_000_000)
    turn.end(203_000_000_000)
    return list(exporter.get_finished_spans())
