"""Counts what exporters could not deliver, and tells it once: nothing else in OpenTelemetry does both.

The SDK's batch processor drops spans when its queue is full and tells the program nothing, an exporter's failure is a
log line per batch, and a partial success (OTLP, "Partial Success") is not looked at. ``batch_processor`` wraps the
SDK's own parts so that every lost span ends in ``agenttool.telemetry.dropped`` and each kind of loss is logged once.
It needs the SDK, so it is imported by those who configure the SDK, never on the call path.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from opentelemetry import metrics
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from agenttool_otel.names import INSTRUMENTATION_NAME, Label, Metric

__all__ = ["ExportLosses", "WatchedSpanExporter", "WatchedSpanProcessor", "batch_processor", "partial_success_session"]

EXPORT_FAILED: Final = "export_failed"
QUEUE_FULL: Final = "queue_full"
REJECTED: Final = "rejected"

_logger = logging.getLogger("agenttool_otel.telemetry")


class ExportLosses:
    """Counts lost items by signal and reason.

    Args:
        meter_provider: provider of the counter; the global one where not given.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        meter = metrics.get_meter(INSTRUMENTATION_NAME, meter_provider=meter_provider)
        self._counter = meter.create_counter(Metric.TELEMETRY_DROPPED, "{item}", "Telemetry that was lost.")
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def lost(self, signal: str, reason: str, count: int) -> None:
        """Record a loss; the first of each signal and reason is logged.

        Args:
            signal: spans, metrics or logs.
            reason: value of ``agenttool.telemetry.drop_reason``.
            count: how many items.
        """
        if count <= 0:
            return
        with self._lock:
            first = (signal, reason) not in self._counts
            self._counts[signal, reason] += count
        if first:
            _logger.warning(
                "telemetry lost: %d %s (%s); told once, counted on in %s",
                count, signal, reason, Metric.TELEMETRY_DROPPED,
            )  # fmt: skip
        try:
            self._counter.add(count, {Label.SIGNAL: signal, Label.DROP_REASON: reason})
        except Exception as error:
            _logger.debug("the loss could not be counted: %s", type(error).__name__)

    @property
    def total(self) -> int:
        """How many items were lost."""
        with self._lock:
            return sum(self._counts.values())

    def by_kind(self) -> dict[tuple[str, str], int]:
        """Return the counts by signal and reason."""
        with self._lock:
            return dict(self._counts)


class WatchedSpanExporter(SpanExporter):
    """Counts the spans of batches that another exporter fails on.

    Args:
        exporter: the exporter that does the work.
        losses: where losses are counted.
    """

    def __init__(self, exporter: SpanExporter, losses: ExportLosses) -> None:
        self._exporter = exporter
        self._losses = losses
        self.handed_over = 0
        """Spans that a processor has given to this exporter, delivered or not."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export a batch; what the exporter raises counts as its failure."""
        self.handed_over += len(spans)
        try:
            result = self._exporter.export(spans)
        except Exception as error:
            _logger.debug("the exporter raised %s", type(error).__name__)
            result = SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self._losses.lost("spans", EXPORT_FAILED, len(spans))
        return result

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the exporter."""
        return self._exporter.force_flush(timeout_millis)


class WatchedSpanProcessor(SpanProcessor):
    """A batch processor that also counts what its full queue dropped.

    What was dropped is exact after ``force_flush`` and ``shutdown``; while spans are under way it is a lower bound.

    Args:
        exporter: the exporter that does the work.
        losses: where losses are counted.
        max_queue_size: spans that may wait.
        options: further options of ``BatchSpanProcessor``.
    """

    def __init__(
        self, exporter: SpanExporter, losses: ExportLosses, *, max_queue_size: int = 2048, **options: Any
    ) -> None:
        self._losses = losses
        self._exporter = WatchedSpanExporter(exporter, losses)
        self._inner = BatchSpanProcessor(self._exporter, max_queue_size=max_queue_size, **options)
        self._queue = max_queue_size
        self._lock = threading.Lock()
        self._ended = 0
        self._overflowed = 0
        self._closed = False

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Pass the span on."""
        self._inner.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Queue the span."""
        context = span.context
        if context is None or not context.trace_flags.sampled:
            return
        with self._lock:
            self._ended += 1
            closed = self._closed
        if closed:
            self._account(0)
            return
        self._inner.on_end(span)
        self._account(self._queue + 1)

    def force_flush(self, timeout_millis: int | None = None) -> bool:
        """Export what waits."""
        with self._lock:
            before = self._ended
        flushed = self._inner.force_flush(timeout_millis)
        with self._lock:
            quiet = self._ended == before
        self._account(0 if flushed and quiet else self._queue + 1)
        return flushed

    def shutdown(self) -> None:
        """Export what waits, and end."""
        with self._lock:
            self._closed = True
        self._inner.shutdown()  # type: ignore[no-untyped-call]
        self._account(0)

    def _account(self, under_way: int) -> None:
        """Count what is certainly lost: neither handed to the exporter nor possibly waiting."""
        with self._lock:
            missing = self._ended - self._exporter.handed_over - under_way
            new = missing - self._overflowed
            self._overflowed = max(self._overflowed, missing)
        self._losses.lost("spans", QUEUE_FULL, new)


def batch_processor(
    exporter: SpanExporter | None = None, *, meter_provider: MeterProvider | None = None, **options: Any
) -> tuple[WatchedSpanProcessor, ExportLosses]:
    """Make a span processor whose losses are counted; give it to ``TracerProvider.add_span_processor``.

    Args:
        exporter: the exporter; by default OTLP over HTTP as the ``OTEL_EXPORTER_OTLP_*`` variables say, with partial
            successes looked at.
        meter_provider: provider of the loss counter; the global one where not given.
        options: options of ``BatchSpanProcessor``.

    Returns:
        The processor, and the losses to look at.
    """
    losses = ExportLosses(meter_provider)
    if exporter is None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter(session=partial_success_session(losses))
    return WatchedSpanProcessor(exporter, losses, **options), losses


def partial_success_session(losses: ExportLosses) -> Any:
    """Make a ``requests`` session for OTLP exporters that counts the spans a receiver refused of a batch it took.

    Args:
        losses: where refused spans are counted.
    """
    import requests
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    def look(response: Any, *_: Any, **__: Any) -> None:
        if not response.ok or not response.content:
            return
        try:
            answer = ExportTraceServiceResponse.FromString(response.content)
        except Exception as error:  # a receiver that answers JSON or text has refused nothing that we can read
            _logger.debug("the receiver's answer is no OTLP: %s", type(error).__name__)
            return
        losses.lost("spans", REJECTED, answer.partial_success.rejected_spans)

    session = requests.Session()
    session.hooks["response"].append(look)
    return session
