"""The one seam through which every event passes: span event, log record, envelope for subscribers.

OpenTelemetry is retiring the span event API in favour of log records; callers of ``emit`` don't know which it is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from opentelemetry import _logs as logs
from opentelemetry import trace
from opentelemetry._logs import SeverityNumber
from opentelemetry.trace import Span

from agenttool_otel.names import INSTRUMENTATION_NAME, Attr
from agenttool_otel.records import ToolEvent
from agenttool_otel.telemetry.losses import Losses
from agenttool_otel.telemetry.settings import TelemetrySettings
from agenttool_otel.telemetry.sinks import EVENT_OBJECT, Build, event_record
from agenttool_otel.telemetry.spans import context_of
from agenttool_otel.telemetry.words import standard_words

Primitive = str | bool | int | float | list[str]


class EventSeam:
    """Emits events."""

    __slots__ = ("_as_log", "_as_span", "_logger", "_losses", "_subscribers", "elsewhere", "lean", "sinks", "verbose")

    def __init__(self, settings: TelemetrySettings, losses: Losses) -> None:
        self._as_span = settings.events in ("span", "both")
        self._as_log = settings.events in ("log", "both")
        self._subscribers = settings.subscribers
        self.sinks = settings.sinks
        for sink in self.sinks:
            sink.watched_by(losses)
        self._losses = losses
        self.verbose = settings.verbose
        self.lean = settings.detail == "lean"
        # whether anybody gets events without their span, who has to be told everything
        self.elsewhere = bool(self._as_log or self._subscribers or self.sinks)
        self._logger = None
        if self._as_log:
            try:
                self._logger = logs.get_logger(INSTRUMENTATION_NAME, logger_provider=settings.logger_provider)
            except Exception as error:
                losses.note("get_logger", error)

    def wanted(self, span: Span) -> bool:
        """Tell whether building an event's attributes is worth the work."""
        if self.elsewhere:
            return True
        try:
            return span.is_recording()
        except BaseException as error:
            self._losses.note("is_recording", error)
            return False

    def emit(
        self,
        span: Span,
        name: str,
        attributes: Mapping[str, Primitive],
        *,
        on_span: Mapping[str, Primitive] | None = None,
        invocation_id: str = "",
        tool_id: str = "",
    ) -> None:
        """Emit one event, on its span with other attributes if so given; nothing that goes wrong here is raised."""
        try:
            if self._as_span and span.is_recording():
                span.add_event(name, attributes if on_span is None else on_span)
            if self._logger is not None:
                self._logger.emit(
                    timestamp=time.time_ns(),
                    context=trace.set_span_in_context(span),
                    severity_number=SeverityNumber.INFO,
                    event_name=name,
                    attributes={Attr.INVOCATION_ID: invocation_id, Attr.TOOL_ID: tool_id, **attributes},
                )
        except BaseException as error:
            self._losses.note(name, error)
        if self.sinks:
            self.put(partial(_event, name, dict(attributes), invocation_id, tool_id, time.time_ns(), span))
        for subscriber in self._subscribers:
            try:
                subscriber(_envelope(span, name, attributes, invocation_id, tool_id))
            except BaseException as error:  # other people's code, which may raise anything
                self._losses.note("subscriber", error)

    def put(self, build: Build) -> None:
        """Give records to every sink, which builds them in its own time."""
        for sink in self.sinks:
            try:
                sink.put(build)
            except BaseException as error:  # a sink of the user's own
                self._losses.note("sink", error)


def _event(
    name: str, attributes: dict[str, Any], invocation_id: str, tool_id: str, at_ns: int, span: Span
) -> list[tuple[str, dict[str, Any]]]:
    return [(EVENT_OBJECT, event_record(name, attributes, invocation_id, tool_id, at_ns, _trace_ref(span)))]


def _trace_ref(span: Span) -> dict[str, Any] | None:
    context = context_of(span)
    if not context.is_valid:
        return None
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}


def _envelope(
    span: Span, name: str, attributes: Mapping[str, Primitive], invocation_id: str, tool_id: str
) -> ToolEvent:
    trace_ref = _trace_ref(span)
    return ToolEvent(
        event_type=name,
        subject=tool_id or None,
        invocation_id=invocation_id or None,
        tool_id=tool_id or None,
        data={**standard_words(attributes), **attributes},
        trace_refs=[trace_ref] if trace_ref is not None else [],
    )
