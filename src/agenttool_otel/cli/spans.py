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

from agenttool_otel.names import OPERATION_EXECUTE_TOOL, Attr, GenAI

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan


Value: TypeAlias = str | bool | int | float | list["Value"] | dict[str, "Value"] | None
Status: TypeAlias = Literal["unset", "ok", "error"]

_STATUS: Final[tuple[Status, ...]] = ("unset", "ok", "error")
_OTLP_STATUS: Final[dict[object, Status]] = {
    **dict(enumerate(_STATUS)),
    **{f"STATUS_CODE_{status.upper()}": status for status in _STATUS},
}


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
        """Make a view of a span of the OpenTelemetry SDK."""
        if (context := span.context) is None:
            raise TraceFormatError("the span has no context")
        return cls(
            name=span.name,
            trace_id=f"{context.trace_id:032x}",
            span_id=f"{context.span_id:016x}",
            parent_id=f"{span.parent.span_id:016x}" if span.parent is not None else None,
            start_ns=span.start_time or 0,
            end_ns=span.end_time,
            attributes=dict(span.attributes or {}),
            events=_in_order(
                EventView(e.name, e.timestamp, dict(e.attributes or {})) for e in span.events
            ),
            status=_STATUS[span.status.status_code.value],
            resource=dict(span.resource.attributes),
        )

    @property
    def is_tool_call(self) -> bool:
        """Whether this is a governed tool call."""
        return (
            self.attributes.get(GenAI.OPERATION_NAME) == OPERATION_EXECUTE_TOOL
            or Attr.PERMISSION_BEHAVIOR in self.attributes
        )

    @property
    def seconds(self) -> float | None:
        """Duration in seconds, ``None`` while open."""
        return None if self.end_ns is None else max(0, self.end_ns - self.start_ns) / 1e9

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

    def first_event(self, name: str) -> EventView | None:
        """The first event of a name."""
        return next((event for event in self.events if event.name == name), None)


def spans_from_document(document: object) -> list[SpanView]:
    """Read spans from parsed JSON: OTLP (one export or a list of them), Jaeger's query API, or
    Tempo's trace API.
    """
    if isinstance(document, list):
        return [span for part in document for span in spans_from_document(part)]
    if not isinstance(document, dict):
        raise TraceFormatError("a trace document is a JSON object")
    try:
        if "trace" in document and isinstance(document["trace"], dict):  # Tempo, /api/v2/traces
            return spans_from_document(document["trace"])
        if "result" in document and isinstance(document["result"], dict):  # Jaeger, /api/v3/traces
            return spans_from_document(document["result"])
        # OTLP; Tempo's first API says batches
        for key in ("resourceSpans", "resource_spans", "batches"):
            if key in document:
                return list(_otlp(document[key]))
        if "data" in document:
            return [span for trace in document["data"] or [] for span in _jaeger(trace)]
        if "spans" in document and "processes" in document:
            return list(_jaeger(document))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, TraceFormatError):
            raise
        raise TraceFormatError(f"malformed trace document: {type(error).__name__}") from error
    raise TraceFormatError("neither OTLP JSON nor an answer of Jaeger or Tempo")


def _in_order(events: Iterable[EventView]) -> tuple[EventView, ...]:
    return tuple(sorted(events, key=lambda event: event.time_ns))


def _otlp(batches: Sequence[Mapping[str, Any]]) -> Iterator[SpanView]:
    for batch in batches:
        resource = _attributes((batch.get("resource") or {}).get("attributes"))
        scopes = (
            batch.get("scopeSpans")
            or batch.get("scope_spans")
            or batch.get("instrumentationLibrarySpans")
            or []
        )
        for scope in scopes:
            for span in scope.get("spans") or []:
                yield _otlp_span(span, resource)


def _otlp_span(span: Mapping[str, Any], resource: Mapping[str, Any]) -> SpanView:
    end = int(span.get("endTimeUnixNano") or 0)
    return SpanView(
        name=str(span.get("name", "")),
        trace_id=_hex_id(span["traceId"], 32),
        span_id=_hex_id(span["spanId"], 16),
        parent_id=_hex_id(span["parentSpanId"], 16) if span.get("parentSpanId") else None,
        start_ns=int(span["startTimeUnixNano"]),
        end_ns=end or None,
        attributes=_attributes(span.get("attributes")),
        events=_in_order(
            EventView(
                str(e.get("name", "")),
                int(e.get("timeUnixNano") or 0),
                _attributes(e.get("attributes")),
            )
            for e in span.get("events") or []
        ),
        status=_OTLP_STATUS.get((span.get("status") or {}).get("code", 0), "unset"),
        resource=resource,
    )


def _hex_id(text: str, digits: int) -> str:
    """OTLP JSON writes ids in hexadecimal; protobuf's own JSON, which Tempo's API uses, in
    base64.
    """
    if len(text) == digits and all(char in "0123456789abcdefABCDEF" for char in text):
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
    return next((read(value[kind]) for kind, read in _VALUES.items() if kind in value), None)


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
        process = processes.get(span.get("processID"), {})
        tags = _tags(span.get("tags"))
        parent = next(
            (r["spanID"] for r in span.get("references") or [] if r.get("refType") == "CHILD_OF"),
            None,
        )
        start = int(span["startTime"]) * 1_000
        events = []
        for log in span.get("logs") or []:
            fields = _tags(log.get("fields"))
            events.append(
                EventView(
                    str(fields.pop("event", fields.pop("name", ""))),
                    log["timestamp"] * 1_000,
                    fields,
                )
            )
        code = str(
            tags.pop("otel.status_code", "")
            or ("ERROR" if tags.get("error") in (True, "true") else "")
        )
        tags.pop("error", None)
        yield SpanView(
            name=str(span["operationName"]),
            trace_id=str(span["traceID"]).zfill(32),
            span_id=str(span["spanID"]).zfill(16),
            parent_id=str(parent).zfill(16) if parent else None,
            start_ns=start,
            end_ns=start + int(span["duration"]) * 1_000,
            attributes=tags,
            events=_in_order(events),
            status="error" if code == "ERROR" else "ok" if code == "OK" else "unset",
            resource={"service.name": process.get("serviceName", ""), **_tags(process.get("tags"))},
        )


def _tags(tags: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    return {str(tag["key"]): tag.get("value") for tag in tags or []}
