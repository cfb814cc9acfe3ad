"""The reference of all ratios: OpenTelemetry code written by hand. What it costs stands here whole.

``Lookup`` is what a careful author writes around one function whose calls are allowed. It records:

- a span ``execute_tool lookup`` with 33 attributes: ``START`` when it starts, ``FINAL`` before it ends;
- three events, ``DECIDED``, ``CREATED`` and ``SUCCEEDED``;
- two points of histograms, ``gen_ai.execute_tool.duration`` and ``agenttool.result.size``.

These are all records that a governed call makes while it runs (tests/core/test_benchmarks.py compares
them with a captured one). What a governed call only counts, and a reader of metrics asks for later
(decisions, look-ups in the cache), the reference does not record: it would flatter what is measured.
The time of a decision is not recorded either, as a cached call has none.

``Same`` is for the other kinds of calls: denied, asked about, of files or commands. Its span and events are
those of one captured call, its metrics the same two histograms. ``bare`` is a span without anything.

The reference decides nothing, keeps nothing, redacts nothing and makes no ids. It measures a time and a length.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Status, StatusCode, TracerProvider

__all__ = ["HISTOGRAMS", "Lookup", "Same", "bare"]

START: Final[dict[str, Any]] = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "lookup",
    "gen_ai.tool.type": "datastore",
    "gen_ai.tool.description": "Look something up.",
    "gen_ai.agent.name": "bench",
    "gen_ai.conversation.id": "s-1",
    "agenttool.schema_version": "0.2.0",
    "agenttool.tool.id": "bench.lookup",
    "agenttool.tool.namespace": "bench",
    "agenttool.tool.kind": "retrieval",
    "agenttool.tool.risk_level": "low",
    "agenttool.session.id": "s-1",
    "agenttool.actor.id": "agent:bench",
    "agenttool.tenant.id": "t",
    "agenttool.invocation.id": "inv_01a221e8e93c749089ce953d7757695e",
}
FINAL: Final[dict[str, Any]] = {
    "agenttool.invocation.status": "succeeded",
    "agenttool.permission.outcome": "executed",
    "agenttool.result.status": "succeeded",
    "agenttool.redaction.state": "none",
    "agenttool.redaction.count": 0,
    "agenttool.result.persistence": "inline",
    "agenttool.permission.behavior": "allow",
    "agenttool.permission.mode": "enforce",
    "agenttool.permission.source": "policy",
    "agenttool.permission.reason.type": "rule",
    "agenttool.permission.rule": "agenttool.rules.declared.read_only",
    "agenttool.permission.duration_s": 0.000004,
    "agenttool.permission.decision_id": "perm_01a221e8f9397072a49b9fdea28c3097",
    "agenttool.policy.engine": "embedded",
    "agenttool.policy.revision": "agenttool-stock-0.1.0",
    "agenttool.policy.cached": True,
}
DECIDED: Final[dict[str, Any]] = {
    "agenttool.permission.behavior": "allow",
    "agenttool.permission.rule": "agenttool.rules.declared.read_only",
    "agenttool.permission.reason.message": "the tool only reads",
}
SUCCEEDED: Final[dict[str, Any]] = {"agenttool.invocation.status": "succeeded"}
DURATION_LABELS: Final[dict[str, Any]] = {
    "gen_ai.tool.name": "lookup",
    "gen_ai.tool.type": "datastore",
    "gen_ai.agent.name": "bench",
}
SIZE_LABELS: Final[dict[str, Any]] = {
    "gen_ai.tool.name": "lookup",
    "agenttool.result.status": "succeeded",
}
HISTOGRAMS: Final = ("gen_ai.execute_tool.duration", "agenttool.result.size")
"""The metrics of which a governed call records a point itself."""


class Lookup:
    """A function with hand-written instrumentation of its allowed calls."""

    def __init__(
        self, function: Callable[[str], str], tracers: TracerProvider, meters: MeterProvider
    ) -> None:
        meter = meters.get_meter("hand")
        self._function = function
        self._tracer = tracers.get_tracer("hand")
        self._duration = meter.create_histogram("gen_ai.execute_tool.duration", unit="s")
        self._size = meter.create_histogram("agenttool.result.size", unit="By")

    def __call__(self, query: str) -> str:
        """Call the function, and record the call."""
        started = time.perf_counter()
        with self._tracer.start_as_current_span("execute_tool lookup", attributes=START) as span:
            recording = span.is_recording()
            if recording:
                span.add_event("tool.permission.decided", DECIDED)
            running = time.perf_counter()
            result = self._function(query)
            size = len(result)
            if recording:
                created = {
                    "agenttool.result.status": "succeeded",
                    "agenttool.result.size_bytes": size,
                }
                ran = time.perf_counter() - running
                span.add_event("tool.result.created", created)
                span.add_event("tool.invocation.succeeded", SUCCEEDED)
                span.set_attributes(
                    {
                        **FINAL,
                        "agenttool.result.size_bytes": size,
                        "agenttool.invocation.run_s": ran,
                    }
                )
            self._duration.record(time.perf_counter() - started, DURATION_LABELS)
            self._size.record(size, SIZE_LABELS)
        return result


class Same:
    """Code that runs a function and records the span and events of a captured call, and its points of ``HISTOGRAMS``.

    Args:
        captured: what :func:`agenttool_otel.testing.capture` gave, with one call.
        tracers: where spans go.
        meters: where metrics go.
    """

    def __init__(self, captured: Any, tracers: TracerProvider, meters: MeterProvider) -> None:
        span: ReadableSpan = captured.span
        self._name = span.name
        self._attributes = dict(span.attributes or {})
        self._events = [(event.name, dict(event.attributes or {})) for event in span.events]
        self._status = Status(span.status.status_code, span.status.description)
        self._tracer = tracers.get_tracer("hand")
        meter = meters.get_meter("hand")
        self._points = [
            (meter.create_histogram(name).record, point.sum, dict(point.attributes))
            for name in HISTOGRAMS
            for point in captured.points(name)
        ]

    def __call__(self, function: Callable[[], Any]) -> Any:
        """Run a function, and record its call."""
        with self._tracer.start_as_current_span(
            self._name, attributes=self._attributes, record_exception=False
        ) as span:
            result = function()
            if span.is_recording():
                for name, attributes in self._events:
                    span.add_event(name, attributes)
                if self._status.status_code is StatusCode.ERROR:
                    span.set_status(self._status)
            for record, value, labels in self._points:
                record(value, labels)
        return result


def bare(tracers: TracerProvider, function: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function whose call is one span, with nothing in it: the unit of budgets."""
    tracer = tracers.get_tracer("bare")

    def call() -> Any:
        with tracer.start_as_current_span("execute_tool lookup"):
            return function()

    return call
