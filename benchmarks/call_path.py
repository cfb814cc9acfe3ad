"""The call path against ``benchmarks.reference``, hand-written code that records the same, and
against a bare span.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

from agenttool_otel import Governor, TelemetrySettings, agent_context
from agenttool_otel.telemetry.sinks import CallbackSink
from benchmarks.reference import Lookup, bare
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
    by_hand, by_hand_unsampled = Lookup(small, *on), Lookup(small, *off)
    contestants = {
        "bare": bare(on[0], lambda: small("q")),
        "hand": lambda: by_hand("q"),
        "hand unsampled": lambda: by_hand_unsampled("q"),
        "cached": governed(small, sampled=True, cache=True),
        "fresh": governed(small, sampled=True, cache=False),
        "cached 20 KB": governed(large, sampled=True, cache=True),
        "unsampled": governed(small, sampled=False, cache=True),
        # with room for every record: else the row would be about records that are lost
        "slow sink": governed(
            small,
            sampled=True,
            cache=True,
            sinks=(CallbackSink(lambda line: time.sleep(0.1), queue=100_000),),
        ),
    }
    with agent_context(**CONTEXT):
        times = interleaved(contestants, rounds=rounds)

    def row(name: str, above: str, below: str, bar: float) -> tuple[str, float, float, str]:
        return name, times[above] / times[below], bar, f"{times[above]:.0f} / {times[below]:.0f} µs"

    def added(name: str, above: str, below: str, bar: float) -> tuple[str, float, float, str]:
        spans = (times[above] - times[below]) / times["bare"]
        return name, spans, bar, f"a bare span: {times['bare']:.0f} µs"

    return [
        row("sampled governed call, decision cached, 200 B, against hand-written code", "cached", "hand", 1.75),
        row("the same with a fresh embedded decision on the stock bundle", "fresh", "hand", 2.0),
        row("unsampled governed call, decision cached, against hand-written unsampled", "unsampled",
            "hand unsampled", 3.0),
        added("added by a cached call to the hand-written code, in bare spans", "cached", "hand", 4.0),
        row("growth from a 200 B to a 20 KB result, content not captured", "cached 20 KB", "cached", 1.05),
        row("a sink that takes 0.1 s for each record, against none", "slow sink", "cached", 1.25),
    ]  # fmt: skip
