"""Spans, events and metrics; nothing in here can raise into a tool."""

from agenttool_otel.telemetry.settings import (
    Answerers,
    CaptureMode,
    DecisionSubscriber,
    Detail,
    EventsMode,
    SpanMode,
    Subscriber,
    TelemetrySettings,
)
from agenttool_otel.telemetry.sinks import CallbackSink, CloudEventsSink, JsonlSink, Sink
from agenttool_otel.telemetry.telemetry import Telemetry

__all__ = [
    "Answerers",
    "CallbackSink",
    "CaptureMode",
    "CloudEventsSink",
    "DecisionSubscriber",
    "Detail",
    "EventsMode",
    "JsonlSink",
    "Sink",
    "SpanMode",
    "Subscriber",
    "Telemetry",
    "TelemetrySettings",
]
