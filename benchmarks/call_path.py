"""The call path against hand-written OpenTelemetry code that records the very same attributes,
events and metrics.

What the governed call records is read from one captured call, so the comparison can't drift apart:
the hand-written code sets the same names with values of the same kinds, around the same function.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from opentelemetry.metrics import MeterProvider as ApiMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

from agenttool_otel import Governor, TelemetrySettings, agent_context
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import capture
from benchmarks.timing import interleaved

__all__ = ["measure"]

FACTS: dict[str, Any] = {
    "namespace": "bench",
    "name": "lookup",
    "read_only": True,
    "destructive": False,
    "open_world": False,
    "concurrency_safe": True,
    "risk_level": "low",
    "access_kinds": ["file_read"],
    "write_effects": ["none"],
    "tool_kind": "retrieval",
}
CONTEXT: dict[str, Any] = {
    "actor": "agent:bench",
    "tenant": "t",
    "roles": ["reader"],
    "session_id": "s-1",
}
SMALL, LARGE = "x" * 200, "x" * 20_000
START = ("gen_ai.", "agenttool.schema_version", "agenttool.tool.", "agenttool.session.", "agenttool.actor.",
         "agenttool.tenant.", "agenttool.invocation.id")  # fmt: skip


class _Discard(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None: ...


def _providers(*, sampled: bool) -> tuple[TracerProvider, MeterProvider]:
    tracer = TracerProvider(sampler=ALWAYS_ON if sampled else ALWAYS_OFF)
    tracer.add_span_processor(BatchSpanProcessor(_Discard()))
    return tracer, MeterProvider(metric_readers=[InMemoryMetricReader()])


def small(query: str, limit: int = 5) -> str:
    """Look something up."""
    return SMALL


def large(query: str, limit: int = 5) -> str:
    """Look something up."""
    return LARGE


def _recorded() -> tuple[
    dict[str, Any], dict[str, Any], list[tuple[str, dict[str, Any]]], list[Any]
]:
    """Capture one governed call and take apart what it recorded."""
    with capture() as captured, agent_context(**CONTEXT):
        captured.governor.govern(small, **FACTS)("q")
        span = captured.span
        attributes = dict(span.attributes or {})
        start = {name: value for name, value in attributes.items() if name.startswith(START)}
        final = {name: value for name, value in attributes.items() if name not in start}
        events = [(event.name, dict(event.attributes or {})) for event in span.events]
        metrics = [
            ("histogram", name, dict(point.attributes), point.sum)
            for name in ("gen_ai.execute_tool.duration", "agenttool.result.size")
            for point in captured.points(name)
        ]
        metrics += [
            ("counter", "agenttool.permission.decisions", dict(point.attributes), 1)
            for point in captured.points("agenttool.permission.decisions")
        ]
    return start, final, events, metrics


def hand_written(
    function: Callable[..., Any], tracer_provider: Any, meter_provider: ApiMeterProvider
) -> Callable[[], Any]:
    """Return the same function with hand-written instrumentation."""
    start, final, events, metrics = _recorded()
    tracer, meter = tracer_provider.get_tracer("hand"), meter_provider.get_meter("hand")
    instruments = [
        (
            meter.create_histogram(name).record
            if kind == "histogram"
            else meter.create_counter(name).add,
            labels,
            value,
        )
        for kind, name, labels, value in metrics
    ]

    def call() -> Any:
        with tracer.start_as_current_span(
            "execute_tool lookup",
            attributes=start,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            recording = span.is_recording()
            if recording:
                span.add_event(*events[0])
            result = function("q")
            if recording:
                for event in events[1:]:
                    span.add_event(*event)
                span.set_attributes(final)
            for record, labels, value in instruments:  # inside, so that exemplars point to the span
                record(value, labels)
        return result

    return call


def governed(
    function: Callable[..., Any], *, sampled: bool, cache: bool, sinks: tuple[Any, ...] = ()
) -> Any:
    """Return the same function governed, its records sent to these sinks, too."""
    tracer, meter = _providers(sampled=sampled)
    telemetry = TelemetrySettings(tracer_provider=tracer, meter_provider=meter, sinks=sinks)
    governor = Governor(policy_cache=4096 if cache else 0, telemetry=telemetry)
    call = governor.govern(function, **FACTS)
    return lambda: call("q")


def measure(rounds: int = 40) -> list[tuple[str, float, float, str]]:
    """Measure the rows of design section 7 that concern the call path.

    Returns:
        Rows of name, ratio, bar, and the two times in microseconds as text.
    """
    on, off = _providers(sampled=True), _providers(sampled=False)
    contestants = {
        "hand": hand_written(small, *on),
        "hand unsampled": hand_written(small, *off),
        "cached": governed(small, sampled=True, cache=True),
        "fresh": governed(small, sampled=True, cache=False),
        "cached 20 KB": governed(large, sampled=True, cache=True),
        "unsampled": governed(small, sampled=False, cache=True),
        "slow sink": governed(
            small, sampled=True, cache=True, sinks=(CallbackSink(lambda line: time.sleep(0.1)),)
        ),
    }
    with agent_context(**CONTEXT):
        times = interleaved(contestants, rounds=rounds)

    def row(name: str, above: str, below: str, bar: float) -> tuple[str, float, float, str]:
        return name, times[above] / times[below], bar, f"{times[above]:.0f} / {times[below]:.0f} µs"

    return [
        row("sampled governed call, decision cached, 200 B, against hand-written code", "cached", "hand", 1.25),
        row("the same with a fresh embedded decision on the stock bundle", "fresh", "hand", 2.0),
        row("unsampled governed call, decision cached, against hand-written unsampled", "unsampled",
            "hand unsampled", 2.0),
        row("growth from a 200 B to a 20 KB result, content not captured", "cached 20 KB", "cached", 1.05),
        row("a sink that takes 0.1 s for each record, against none", "slow sink", "cached", 1.25),
    ]  # fmt: skip
