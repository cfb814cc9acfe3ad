"""A neutral view of spans, and readers for what the world hands out: SDK spans, OTLP JSON, Jaeger's
and Tempo's API.

Traces come from files and servers, so nothing in them is trusted: unknown shapes are refused with
``TraceFormatError``, and the renderer (not this module) makes text safe for a terminal.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from agenttool_otel.names import OPERATION_EXECUTE_TOOL, Attr, Event, GenAI

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


Value: TypeAlias = str | bool | int | float | list["Value"] | dict[str, "Value"] | None
Status: TypeAlias = Literal["unset", "ok", "error"]

# by number as the SDK and binary OTLP have it, by name as protobuf's JSON writes it
_STATUSES: Final[dict[object, Status]] = {
    0: "unset",
    1: "ok",
    2: "error",
    "STATUS_CODE_UNSET": "unset",
    "STATUS_CODE_OK": "ok",
    "STATUS_CODE_ERROR": "error",
}
# Tempo's first API calls the same list "batches"
_OTLP_KEYS: Final = ("resourceSpans", "resource_spans", "batches")
_SCOPE_KEYS: Final = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_HEX: Final = frozenset("0123456789abcdefABCDEF")


class TraceFormatError(ValueError):
    """A document is not a trace in a format that is understood."""


class EventView(NamedTuple):
    """One event of a span."""

    name: str  # event name
    time_ns: int  # nanoseconds since the epoch
    attributes: Mapping[str, Any]  # its attributes


@dataclass(frozen=True, slots=True)
class SpanView:
    """One span, whatever it came from."""

    name: str  # span name
    trace_id: str  # 32 hexadecimal digits
    span_id: str  # 16 hexadecimal digits
    parent_id: str | None  # the parent's span id, or ``None`` for a root
    start_ns: int  # start in nanoseconds since the epoch
    end_ns: int | None  # end, or ``None`` while the span is open
    attributes: Mapping[str, Any] = field(default_factory=dict)  # span attributes
    events: tuple[EventView, ...] = ()  # events in the order of time
    status: Status = "unset"  # unset, ok or error
    # resource attributes, such as ``service.name``
    resource: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_sdk(cls, span: ReadableSpan) -> SpanView:
        """Make a view of a span of the OpenTelemetry SDK.

        Raises:
            TraceFormatError: The span has no context.
        """
        context = span.context
        if context is None:
            raise TraceFormatError("the span has no context")
        events = []
        for event in span.events:
            attributes = dict(event.attributes or {})
            events.append(EventView(event.name, event.timestamp, attributes))
        return cls(
            name=span.name,
            trace_id=f"{context.trace_id:032x}",
            span_id=f"{context.span_id:016x}",
            parent_id=None if span.parent is None else f"{span.parent.span_id:016x}",
            start_ns=span.start_time or 0,
            end_ns=span.end_time,
            attributes=dict(span.attributes or {}),
            events=_in_order(events),
            status=_STATUSES[span.status.status_code.value],
            resource=dict(span.resource.attributes),
        )

    @property
    def is_tool_call(self) -> bool:
        """Whether this is a governed tool call."""
        if Attr.PERMISSION_BEHAVIOR in self.attributes:
            return True
        return self.attributes.get(GenAI.OPERATION_NAME) == OPERATION_EXECUTE_TOOL

    @property
    def seconds(self) -> float | None:
        """Duration in seconds, ``None`` while open."""
        if self.end_ns is None:
            return None
        return max(0, self.end_ns - self.start_ns) / 1e9

    @property
    def approval_wait(self) -> float | None:
        """Seconds between the question and its answer, ``None`` without an answer in this span."""
        stated = self.number(Attr.APPROVAL_WAIT)
        if stated is not None:
            return stated
        asked = self.first_event(Event.APPROVAL_REQUESTED)
        answered = self.first_event(Event.APPROVAL_ANSWERED)
        if asked is None or answered is None:
            return None
        return max(0, answered.time_ns - asked.time_ns) / 1e9

    def get(self, name: str) -> Any:
        """Value of an attribute: the span's own, else that of the newest event that has it, else
        ``None``.
        """
        if name in self.attributes:
            return self.attributes[name]
        for event in reversed(self.events):
            if name in event.attributes:
                return event.attributes[name]
        return None

    def text(self, name: str) -> str:
        """Value of an attribute as text, empty where there is none; not yet safe to print."""
        value = self.get(name)
        if not value:
            return ""
        if isinstance(value, (list, tuple)):
            return ", ".join(str(item) for item in value)
        return str(value)

    def number(self, name: str) -> float | None:
        """Value of an attribute that is a number, else ``None``."""
        value = self.get(name)
        # True is an int for Python, and no duration
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        return None

    def first_event(self, name: str) -> EventView | None:
        """The first event of a name."""
        for event in self.events:
            if event.name == name:
                return event
        return None


def spans_from_document(document: object) -> list[SpanView]:
    """Read spans from parsed JSON: OTLP (one export or a list of them), Jaeger's query API, or
    Tempo's trace API.

    Raises:
        TraceFormatError: The document is in none of these formats, or malformed.
    """
    if isinstance(document, list):
        spans = []
        for part in document:
            spans.extend(spans_from_document(part))
        return spans
    if not isinstance(document, dict):
        raise TraceFormatError("a trace document is a JSON object")
    try:
        return _spans_of_object(document)
    except TraceFormatError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise TraceFormatError(f"malformed trace document: {type(error).__name__}") from error


def _spans_of_object(document: dict[str, Any]) -> list[SpanView]:
    # {"trace": {...}} from Tempo's /api/v2/traces, {"result": {...}} from Jaeger's /api/v3/traces
    for wrapper in ("trace", "result"):
        if isinstance(document.get(wrapper), dict):
            return spans_from_document(document[wrapper])
    for key in _OTLP_KEYS:
        if key in document:
            return list(_otlp(document[key]))
    # {"data": [trace, ...]} from Jaeger's query API, or one of these traces saved by itself
    if "data" in document:
        spans: list[SpanView] = []
        for trace in document["data"] or []:
            spans.extend(_jaeger(trace))
        return spans
    if "spans" in document and "processes" in document:
        return list(_jaeger(document))
    raise TraceFormatError("neither OTLP JSON nor an answer of Jaeger or Tempo")


def _in_order(events: Iterable[EventView]) -> tuple[EventView, ...]:
    return tuple(sorted(events, key=lambda event: event.time_ns))


def _otlp(batches: Sequence[Mapping[str, Any]]) -> Iterator[SpanView]:
    for batch in batches:
        resource = _attributes((batch.get("resource") or {}).get("attributes"))
        for scope in _scopes(batch):
            for span in scope.get("spans") or []:
                yield _otlp_span(span, resource)


def _scopes(batch: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    for key in _SCOPE_KEYS:
        scopes: Sequence[Mapping[str, Any]] | None = batch.get(key)
        if scopes:
            return scopes
    return []


def _otlp_span(span: Mapping[str, Any], resource: Mapping[str, Any]) -> SpanView:
    events = []
    for event in span.get("events") or []:
        name = str(event.get("name", ""))
        time_ns = int(event.get("timeUnixNano") or 0)
        events.append(EventView(name, time_ns, _attributes(event.get("attributes"))))
    parent = span.get("parentSpanId")
    status = span.get("status") or {}
    return SpanView(
        name=str(span.get("name", "")),
        trace_id=_hex_id(span["traceId"], 32),
        span_id=_hex_id(span["spanId"], 16),
        parent_id=_hex_id(parent, 16) if parent else None,
        start_ns=int(span["startTimeUnixNano"]),
        # an open span has no end, or "0"
        end_ns=int(span.get("endTimeUnixNano") or 0) or None,
        attributes=_attributes(span.get("attributes")),
        events=_in_order(events),
        status=_STATUSES.get(status.get("code", 0), "unset"),
        resource=resource,
    )


def _hex_id(text: str, digits: int) -> str:
    """OTLP JSON writes ids in hexadecimal; protobuf's own JSON, which Tempo's API uses, in
    base64.
    """
    if len(text) == digits and _HEX.issuperset(text):
        return text.lower()
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise TraceFormatError("an id is neither hexadecimal nor base64") from error
    if len(raw) * 2 != digits:
        raise TraceFormatError("an id has the wrong length")
    return raw.hex()


def _attributes(pairs: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    return {str(pair["key"]): _value(pair.get("value") or {}) for pair in pairs or []}


def _value(value: Mapping[str, Any]) -> Value:
    # OTLP's AnyValue holds one of these: {"intValue": "5"}, as JSON numbers can't hold 64 bits
    for kind, read in _VALUES.items():
        if kind in value:
            return read(value[kind])
    return None


_VALUES: Final[dict[str, Callable[[Any], Value]]] = {
    "stringValue": str,
    "boolValue": bool,
    "intValue": int,
    "doubleValue": float,
    "bytesValue": str,
    "arrayValue": lambda array: [_value(item) for item in array.get("values") or []],
    "kvlistValue": lambda pairs: _attributes(pairs.get("values")),
}


def _jaeger(trace: Mapping[str, Any]) -> Iterator[SpanView]:
    processes = trace.get("processes") or {}
    for span in trace["spans"]:
        yield _jaeger_span(span, processes.get(span.get("processID"), {}))


def _jaeger_span(span: Mapping[str, Any], process: Mapping[str, Any]) -> SpanView:
    tags = _tags(span.get("tags"))
    # Jaeger has no status of its own: OpenTelemetry's is the tag otel.status_code, and OpenTracing's
    # the tag error
    code = str(tags.pop("otel.status_code", ""))
    failed = tags.pop("error", None) in (True, "true")
    status: Status = "unset"
    if code == "ERROR" or (not code and failed):
        status = "error"
    elif code == "OK":
        status = "ok"
    parent = _jaeger_parent(span)
    # microseconds
    start = int(span["startTime"]) * 1_000
    return SpanView(
        name=str(span["operationName"]),
        trace_id=str(span["traceID"]).zfill(32),
        span_id=str(span["spanID"]).zfill(16),
        parent_id=str(parent).zfill(16) if parent else None,
        start_ns=start,
        end_ns=start + int(span["duration"]) * 1_000,
        attributes=tags,
        events=_in_order(_jaeger_event(log) for log in span.get("logs") or []),
        status=status,
        resource={
            "service.name": process.get("serviceName", ""),
            **_tags(process.get("tags")),
        },
    )


def _jaeger_parent(span: Mapping[str, Any]) -> Any:
    # links to other spans are references too, of type FOLLOWS_FROM
    for reference in span.get("references") or []:
        if reference.get("refType") == "CHILD_OF":
            return reference["spanID"]
    return None


def _jaeger_event(log: Mapping[str, Any]) -> EventView:
    fields = _tags(log.get("fields"))
    # OpenTelemetry's exporter names the event in "event", others in "name"
    name = fields.pop("name", "")
    name = fields.pop("event", name)
    return EventView(str(name), log["timestamp"] * 1_000, fields)


def _tags(tags: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    return {str(tag["key"]): tag.get("value") for tag in tags or []}
