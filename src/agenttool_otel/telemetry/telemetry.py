"""Tracer, events and metrics of one Governor, behind methods that never raise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from opentelemetry import _logs as logs
from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry._logs import SeverityNumber
from opentelemetry.trace import (
    INVALID_SPAN,
    INVALID_SPAN_CONTEXT,
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
)

from agenttool_otel.names import (
    INSTRUMENTATION_NAME,
    OPERATION_EXECUTE_TOOL,
    TELEMETRY_SCHEMA,
    Attr,
    Behavior,
    Event,
    GenAI,
    Label,
)
from agenttool_otel.records import ToolEvent
from agenttool_otel.telemetry.instruments import Instruments
from agenttool_otel.telemetry.losses import Losses
from agenttool_otel.telemetry.settings import TelemetrySettings
from agenttool_otel.telemetry.sinks import EVENT_OBJECT, Build, Declaration, event_record
from agenttool_otel.telemetry.words import standard_words
from agenttool_otel.values.ids import new_id
from agenttool_otel.values.unicode import escape_surrogates

_SIGNALS = {"counter": "metrics", "histogram": "metrics", "sink": "records"}
"""What is lost where, if it is no span."""
MEASURES: Final = "opentelemetry.instrumentation.genai."
"""Begins the modules, and the scopes, of instrumentations that measure the calls of tools, too."""
Primitive = str | bool | int | float | list[str]


@cache
def package_version() -> str:
    """Return the version of this package."""
    try:
        return version("agenttool-otel")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0"


def without_surrogates(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return attributes without lone surrogates: exporters drop what has no UTF-8, and no
    receiver learns of it.
    """
    # json.loads('"\ud800"') is such a text; this is on the way of every call, so what is ASCII, as
    # most is, costs no call of a function
    for value in attributes.values():
        items = (value,) if type(value) is str else value
        if type(items) not in (list, tuple):
            continue
        for item in items:
            if type(item) is str and not item.isascii():
                return {name: _escaped(value) for name, value in attributes.items()}
    return attributes


def _escaped(value: Any) -> Any:
    if type(value) is str:
        return escape_surrogates(value)
    if type(value) not in (list, tuple):
        return value
    return [escape_surrogates(item) if type(item) is str else item for item in value]


EVERY_CALL: Final = frozenset(
    {
        Event.INVOCATION_PLANNED,
        Event.INVOCATION_SELECTED,
        Event.INVOCATION_ARGUMENTS_READY,
        Event.INVOCATION_STARTED,
        Event.INVOCATION_PARTIAL_RESULT,
    }
)
"""Event classes that every call or item has; spans have them only where ``verbose`` asks."""


class EventEmitter:
    """Emits events as span events, log records and envelopes for subscribers.

    OpenTelemetry is retiring the span event API for log records; callers of ``emit`` are the
    same for both.
    """

    __slots__ = (
        "_as_log",
        "_as_span",
        "_logger",
        "_losses",
        "_subscribers",
        "elsewhere",
        "every_class",
        "lean",
        "on_every_span",
        "sinks",
    )

    def __init__(self, settings: TelemetrySettings, losses: Losses) -> None:
        self._as_span = settings.events in ("span", "both")
        self._as_log = settings.events in ("log", "both")
        self._subscribers = settings.subscribers
        self.sinks = settings.sinks
        for sink in self.sinks:
            sink.watched_by(losses)
        self._losses = losses
        # whether the classes that every call has go to spans, logs and subscribers, too
        self.on_every_span = settings.verbose
        # a file of records costs no span: it gets all classes of the standard
        self.every_class = settings.verbose or bool(settings.sinks)
        self.lean = settings.detail == "lean"
        # whether events go somewhere without their span, and so have to repeat what it has
        self.elsewhere = bool(self._as_log or self._subscribers or self.sinks)
        self._logger = None
        if self._as_log:
            try:
                self._logger = logs.get_logger(
                    INSTRUMENTATION_NAME,
                    logger_provider=settings.logger_provider,
                    schema_url=TELEMETRY_SCHEMA,
                )
            except Exception as error:
                losses.note("get_logger", error)

    def wanted(self, span: Span) -> bool:
        """Return whether building an event's attributes is worth the work."""
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
        event_id: str | None = None,
        to_sinks: bool = True,
        to_log: bool = True,
        put: Callable[[Build], object] | None = None,
    ) -> None:
        """Emit one event, on its span with other attributes if so given; nothing that goes wrong
        here is raised. What makes its record is given to ``put`` where that is given, and to the
        sinks otherwise.
        """
        attributes, on_span = (
            without_surrogates(attributes),
            None if on_span is None else without_surrogates(on_span),
        )
        everywhere = (
            self.on_every_span
            or name not in EVERY_CALL
            # captured arguments go where their capture was asked for
            or GenAI.TOOL_CALL_ARGUMENTS in attributes
        )
        try:
            if everywhere and self._as_span and span.is_recording():
                span.add_event(name, attributes if on_span is None else on_span)
            # asked here, so that a call without logs makes no call more
            if everywhere and to_log and self._logger is not None:
                ids = {Attr.INVOCATION_ID: invocation_id, Attr.TOOL_ID: tool_id}
                self._log(span, name, {**ids, **attributes})
        except BaseException as error:
            self._losses.note(name, error)
        if self.sinks and to_sinks:
            (put or self.put)(
                partial(
                    _event,
                    name,
                    dict(attributes),
                    invocation_id,
                    tool_id,
                    time.time_ns(),
                    span,
                    event_id,
                )
            )
        for subscriber in self._subscribers if everywhere else ():
            self._give(subscriber, span, name, attributes, invocation_id, tool_id, event_id)

    def add(self, span: Span, name: str, attributes: Mapping[str, Primitive]) -> None:
        """Add an event to a span that is recorded, where events go nowhere else; its attributes
        have no lone surrogates. Nothing that goes wrong here is raised.
        """
        try:
            span.add_event(name, attributes)
        except BaseException as error:
            self._losses.note(name, error)

    def log(self, span: Span, name: str, attributes: Mapping[str, Primitive]) -> None:
        """Emit one event on a span and as a log record, where they are asked for; sinks and
        subscribers get nothing. Nothing that goes wrong here is raised.

        Args:
            span: the span that the event belongs to.
            name: the event.
            attributes: all of its attributes.
        """
        attributes = without_surrogates(attributes)
        try:
            if self._as_span and span.is_recording():
                span.add_event(name, attributes)
            self._log(span, name, attributes)
        except BaseException as error:
            self._losses.note(name, error)

    def _log(self, span: Span, name: str, attributes: Mapping[str, Primitive]) -> None:
        if self._logger is None:
            return
        self._logger.emit(
            timestamp=time.time_ns(),
            context=trace.set_span_in_context(span),
            severity_number=_severity(name, attributes),
            event_name=name,
            attributes=attributes,
        )

    def _give(self, subscriber: Callable[[ToolEvent], object], *event: Any) -> None:
        try:
            subscriber(_envelope(*event))
        except BaseException as error:  # other people's code, which may raise anything
            self._losses.note("subscriber", error)

    def declare(self, tool_id: str, declaration: Declaration) -> None:
        """Let every sink write a tool's own records before the first one that names it.

        Args:
            tool_id: the tool.
            declaration: what makes its records.
        """
        for sink in self.sinks:
            try:
                sink.declare(tool_id, declaration)
            except BaseException as error:  # a sink of the user's own
                self._losses.note("sink", error)

    def put(self, build: Build) -> None:
        """Give records to every sink, which builds them in its own time."""
        for sink in self.sinks:
            try:
                sink.put(build)
            except BaseException as error:  # a sink of the user's own
                self._losses.note("sink", error)


def _severity(name: str, attributes: Mapping[str, Primitive]) -> SeverityNumber:
    if name != Event.PERMISSION_DECIDED:
        return SeverityNumber.INFO
    denied = attributes.get(Attr.PERMISSION_BEHAVIOR) == Behavior.DENY.value
    return SeverityNumber.WARN if denied else SeverityNumber.INFO


class Telemetry:
    """Everything that a Governor records with."""

    __slots__ = ("_mode", "_tracer", "events", "instruments", "losses", "settings")

    def __init__(self, settings: TelemetrySettings) -> None:
        self.settings = settings
        self.losses = Losses()
        self.events = EventEmitter(settings, self.losses)
        self._mode = settings.span_mode
        try:
            self._tracer = trace.get_tracer(
                INSTRUMENTATION_NAME,
                package_version(),
                settings.tracer_provider,
                TELEMETRY_SCHEMA,
            )
        except Exception as error:  # a provider that is broken costs its telemetry, not the tools
            self.losses.note("get_tracer", error)
            self._tracer = trace.NoOpTracer()
        try:
            meter = metrics.get_meter(
                INSTRUMENTATION_NAME,
                package_version(),
                settings.meter_provider,
                TELEMETRY_SCHEMA,
            )
            self.instruments = Instruments(meter, settings.meter_provider)
        except Exception as error:
            self.losses.note("get_meter", error)
            self.instruments = Instruments(metrics.NoOpMeter(INSTRUMENTATION_NAME))
        self.losses.on_loss = self._lost

    def _lost(self, operation: str, count: int) -> None:
        self.instruments.dropped.add(count, {Label.SIGNAL: _SIGNALS.get(operation, "spans")})

    def start(
        self, name: str, attributes: Mapping[str, Any], *, links: tuple[Link, ...] = ()
    ) -> tuple[Span, bool]:
        """Start the span of a call under the current one; it is not made current."""
        attributes = without_surrogates(attributes)
        try:
            current = self.enriched_span(attributes)
            if current is not None:
                current.set_attributes(attributes)
                return current, False
        except BaseException as error:
            self.losses.note("start_span", error)
            return INVALID_SPAN, False
        return self.start_own(name, attributes, links=links)

    def enriched_span(self, attributes: Mapping[str, Any]) -> Span | None:
        """Return the current span where the call's attributes go on it; ``None`` where the call has a
        span of its own. Raises what the span raises.
        """
        if self._mode == "child":
            return None
        current = trace.get_current_span()
        if _is_tool_span(current) and (self._mode == "enrich" or _is_of(current, attributes)):
            return current
        return None

    def start_own(
        self,
        name: str,
        attributes: Mapping[str, Any],
        *,
        links: tuple[Link, ...] = (),
        start_time: int | None = None,
    ) -> tuple[Span, bool]:
        """Start a span of a call's own; its attributes have no lone surrogates."""
        try:
            span = self._tracer.start_span(
                name,
                kind=SpanKind.INTERNAL,
                attributes=attributes,
                links=links,
                start_time=start_time,
                # the message of an exception may quote arguments; ``CallSpan.record_exception``
                # records it redacted
                record_exception=False,
                set_status_on_exception=False,
            )
        except BaseException as error:
            self.losses.note("start_span", error)
            return INVALID_SPAN, False
        return span, True

    @contextmanager
    def current(self, span: Span) -> Iterator[None]:
        """Make a span current for the block, whatever the block raises; the span is neither ended
        nor marked.
        """
        if span is INVALID_SPAN:
            yield
            return
        token = otel_context.attach(trace.set_span_in_context(span))
        try:
            yield
        finally:
            otel_context.detach(token)

    def recording(self, span: Span) -> bool:
        """Return whether a span keeps what is set on it."""
        try:
            return span.is_recording()
        except BaseException as error:
            self.losses.note("is_recording", error)
            return False

    def attribute(self, span: Span, name: str, value: Any) -> None:
        """Set one attribute of a span."""
        try:
            span.set_attribute(name, escape_surrogates(value) if type(value) is str else value)
        except BaseException as error:
            self.losses.note("set_attributes", error)

    def link(self, span: Span, other: SpanContext) -> None:
        """Link a span that has begun to another one."""
        if not other.is_valid:
            return
        try:
            span.add_link(other)
        except BaseException as error:
            self.losses.note("link", error)

    @contextmanager
    def moment(
        self, name: str, attributes: Mapping[str, Any], *, links: tuple[Link, ...] = ()
    ) -> Iterator[Span]:
        """Open a span of something that is no tool call, and end it after the block."""
        try:
            span = self._tracer.start_span(
                name, kind=SpanKind.INTERNAL, attributes=without_surrogates(attributes), links=links
            )
        except BaseException as error:
            self.losses.note("start_span", error)
            span = INVALID_SPAN
        try:
            yield span
        finally:
            self.end(span, owned=True, attributes={})

    def end(self, span: Span, *, owned: bool, attributes: Mapping[str, Any]) -> None:
        """Write the final facts and end the span."""
        self.end_plain(span, owned=owned, attributes=without_surrogates(attributes))

    def end_plain(self, span: Span, *, owned: bool, attributes: Mapping[str, Any]) -> None:
        """The same for attributes without lone surrogates."""
        try:
            if attributes:
                span.set_attributes(attributes)
                if (error_type := attributes.get(GenAI.ERROR_TYPE)) is not None:
                    span.set_status(Status(StatusCode.ERROR, error_type))
        except BaseException as error:
            self.losses.note("set_attributes", error)
        if owned:
            try:
                span.end()
            except BaseException as error:
                self.losses.note("end_span", error)

    def flush(self) -> None:
        """Let the sinks write what waits, for a limited time; they stay open, as others may use
        them, too.
        """
        for sink in self.settings.sinks:
            try:
                sink.flush()
            except Exception as error:
                self.losses.note("sink", error)

    def count(self, instrument: Any, amount: int, labels: Mapping[str, Any]) -> None:
        """Add to a counter."""
        try:
            instrument.add(amount, labels)
        except BaseException as error:
            self.losses.note("counter", error)

    def measure(self, instrument: Any, value: float, labels: Mapping[str, Any]) -> None:
        """Record a measurement in a histogram."""
        try:
            instrument.record(value, labels)
        except BaseException as error:
            self.losses.note("histogram", error)


def records_duration(span: Span) -> bool:
    """Return whether the instrumentation that made a span measures the call, too: OpenTelemetry's own
    for GenAI.
    """
    return getattr(getattr(span, "instrumentation_scope", None), "name", "").startswith(MEASURES)


def _is_of(span: Span, attributes: Mapping[str, Any]) -> bool:
    """Return whether a span is another's of this very tool, and no governed call is on it yet."""
    known = getattr(span, "attributes", None) or {}
    name = known.get(GenAI.TOOL_NAME) or getattr(span, "name", "").removeprefix(
        f"{OPERATION_EXECUTE_TOOL} "
    )
    return name == attributes.get(GenAI.TOOL_NAME) and Attr.INVOCATION_ID not in known


def _is_tool_span(span: Span) -> bool:
    if not span.is_recording():
        return False
    attributes = getattr(span, "attributes", None) or {}
    if attributes.get(GenAI.OPERATION_NAME) == OPERATION_EXECUTE_TOOL:
        return True
    # "execute_tool read_file" of an instrumentation that sets its attributes only at the end
    return getattr(span, "name", "").startswith(f"{OPERATION_EXECUTE_TOOL} ")


def context_of(span: Span) -> SpanContext:
    """Return a span's context, an invalid one where the span, which may be of any class, raises."""
    try:
        return span.get_span_context()
    except Exception:
        return INVALID_SPAN_CONTEXT


def asking_span(stored: Mapping[str, Any]) -> tuple[Link, ...]:
    """Return the link to the span of a call that asked; none where its ids can't be read.

    Args:
        stored: the context that the asking process stored, with ``trace_id`` and ``span_id`` in
            hexadecimal.
    """
    try:
        trace_id, span_id = int(stored["trace_id"], 16), int(stored["span_id"], 16)
    except (KeyError, TypeError, ValueError):
        return ()
    flags = TraceFlags(TraceFlags.SAMPLED)
    return (Link(SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)),)


def _event(
    name: str,
    attributes: dict[str, Any],
    invocation_id: str,
    tool_id: str,
    at_ns: int,
    span: Span,
    event_id: str | None,
) -> list[tuple[str, dict[str, Any]]]:
    return [
        (
            EVENT_OBJECT,
            event_record(
                name, attributes, invocation_id, tool_id, at_ns, trace_refs(span), event_id
            ),
        )
    ]


def trace_refs(span: Span) -> list[dict[str, Any]]:
    """Return the ids of a span's trace and of the span, for records; nothing where it has none."""
    context = context_of(span)
    if not context.is_valid:
        return []
    return [
        {
            "trace_id": trace.format_trace_id(context.trace_id),
            "span_id": trace.format_span_id(context.span_id),
        }
    ]


def _envelope(
    span: Span,
    name: str,
    attributes: Mapping[str, Primitive],
    invocation_id: str,
    tool_id: str,
    event_id: str | None,
) -> ToolEvent:
    return ToolEvent(
        event_id=event_id or new_id("evt"),
        event_type=name,
        subject=tool_id or None,
        invocation_id=invocation_id or None,
        tool_id=tool_id or None,
        data={**standard_words(attributes), **attributes},
        trace_refs=trace_refs(span),
    )
