"""What telemetry records and where it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from agenttool_otel.records import ToolEvent, ToolProgress
from agenttool_otel.telemetry.sinks import Sink

CaptureMode = Literal["NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT"]
"""The words of ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``."""

EventsMode = Literal["span", "log", "both"]
"""Whether events are span events, OpenTelemetry log records, or both."""

Detail = Literal["lean", "full"]
"""Whether a span's events leave out what the span itself has, or repeat it."""

SpanMode = Literal["auto", "child", "enrich"]
"""Whether a call makes a span of its own or enriches the current tool span; ``auto``: that of this
very tool.
"""

Answerers = Literal["digest", "plain"]
"""Whether telemetry has the ids of people who answer approval requests as keyed digests, or as they
are.
"""

UserIds = Literal["none", "digest"]
"""Whether spans have ``user.id``, a keyed digest of the user for whom a call is made."""

ProgressListener = Callable[[ToolProgress], object]
"""Receives the progress of every call as the standard's record; what it raises is swallowed."""

DecisionSubscriber = Callable[[str], object]
"""Receives the line of each decision record, in a thread of its own; what it raises costs that line.
"""

Subscriber = Callable[[ToolEvent], None]
"""Receives every event as the standard's envelope; what it raises is swallowed."""


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Telemetry of one Governor.

    Attributes:
        tracer_provider: provider of spans; the global one where not given.
        meter_provider: provider of metrics; the global one where not given.
        logger_provider: provider of log events; the global one where not given.
        capture: whether redacted arguments and results are recorded, and where.
        events: kind of events.
        detail: whether the events of a span leave out what the span has (``lean``), or repeat it
            (``full``); log records, sinks and subscribers, which have no span beside them, always
            get all of it.
        verbose: also record the standard's event classes that every call has (planned, selected,
          queued ...).
        span_mode: own span, the framework's, or (``auto``) the framework's where it is current and
          of this very tool.
        answerers: whether the ids of people who answer approval requests are recorded as keyed
          digests or as they are.
        guardrail_names: whether spans also have the decision in the words of OpenTelemetry's open
            proposal for guardrails, which may change.
        user_ids: whether spans have ``user.id``, a keyed digest of the user for whom a call is made.
        subscribers: who gets each event as a tool_event record.
        progress: who gets the progress of every call, beside its own reports the steps that every
          call has.
        sinks: where every event and the records of a call that ended go, outside the call's own
          time.
        decision_subscribers: who gets the line of each decision record, as a file of them holds it;
            they need ``AGENTTOOL_DIGEST_KEY``.
        max_attribute_chars: upper limit of one captured value.
    """

    tracer_provider: TracerProvider | None = None
    meter_provider: MeterProvider | None = None
    logger_provider: LoggerProvider | None = None
    capture: CaptureMode = "NO_CONTENT"
    events: EventsMode = "span"
    detail: Detail = "lean"
    verbose: bool = False
    span_mode: SpanMode = "auto"
    answerers: Answerers = "digest"
    guardrail_names: bool = False
    user_ids: UserIds = "none"
    subscribers: tuple[Subscriber, ...] = ()
    progress: tuple[ProgressListener, ...] = ()
    sinks: tuple[Sink, ...] = ()
    decision_subscribers: tuple[DecisionSubscriber, ...] = ()
    max_attribute_chars: int = 16_384

    @property
    def captures(self) -> bool:
        """Whether any content is recorded at all."""
        return self.capture != "NO_CONTENT"
