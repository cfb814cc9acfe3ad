"""Capture what calls leave, and answer what they ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest
from agenttool_otel.govern.governor import Governor
from agenttool_otel.names import SPAN_ANSWER_APPROVAL
from agenttool_otel.records import ToolEvent
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.testing.records import KeptRecords

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.sdk.trace.sampling import Sampler


_DECISION_LIMIT_S: Final = 60.0


@dataclass
class FixedApprover:
    """An approver that always gives the same answer.

    Attributes:
        answer: the answer; ``None`` leaves every request pending.
        asked: the requests it was asked, oldest first.
    """

    answer: ApprovalAnswer | None
    asked: list[ApprovalRequest] = field(default_factory=list)

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Answer.

        Args:
            request: kept in ``asked``.
        """
        self.asked.append(request)
        return self.answer


@dataclass
class Capture:
    """What calls left.

    Attributes:
        governor: the Governor to govern with.
        events: every event as a tool_event record.
        tracer_provider: provider of the captured spans, for spans of the test's own.
    """

    governor: Governor
    events: list[ToolEvent]
    tracer_provider: TracerProvider
    _exporter: InMemorySpanExporter
    _reader: InMemoryMetricReader
    _kept: KeptRecords

    @property
    def records(self) -> list[JsonObject]:
        """The records that a sink gets, oldest first; ``check_records`` takes them."""
        return self._kept.lines

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """The finished spans, in the order in which they ended, without those of answers."""
        spans = self._exporter.get_finished_spans()
        return tuple(span for span in spans if not _is_answer(span))

    @property
    def answers(self) -> Sequence[ReadableSpan]:
        """The spans of people's answers to approval requests, in their order."""
        spans = self._exporter.get_finished_spans()
        return tuple(span for span in spans if _is_answer(span))

    @property
    def span(self) -> ReadableSpan:
        """The one tool span.

        Raises:
            AssertionError: there is none, or more than one.
        """
        spans = [span for span in self.spans if span.name.startswith("execute_tool ")]
        if len(spans) != 1:
            raise AssertionError(f"expected one tool span, found {[span.name for span in spans]}")
        return spans[0]

    def points(self, metric: str) -> list[Any]:
        """Return the data points of a metric.

        Args:
            metric: its name.
        """
        data = self._reader.get_metrics_data()
        found: list[Any] = []
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                found += [
                    point for m in scope.metrics if m.name == metric for point in m.data.data_points
                ]
        return found

    def clear(self) -> None:
        """Forget spans and events; the records stay, as later ones refer to them."""
        self._exporter.clear()
        self.events.clear()


def _is_answer(span: ReadableSpan) -> bool:
    return span.name.startswith(f"{SPAN_ANSWER_APPROVAL} ")


@contextmanager
def capture(*, sampler: Sampler | None = None, **options: Any) -> Iterator[Capture]:
    """Give a Governor whose telemetry stays in memory.

    Args:
        sampler: sampler of the spans; all are sampled where not given.
        options: arguments of Governor, and the fields of TelemetrySettings ``answerers``,
            ``capture``, ``detail``, ``events``, ``guardrail_names``, ``user_ids``, ``verbose`` and
            ``span_mode``. Where neither ``policy_timeout`` nor ``settings`` are given, a decision
            may take a minute.
    """
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    events: list[ToolEvent] = []
    tracer = TracerProvider(sampler=sampler) if sampler is not None else TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(exporter))
    meter = MeterProvider(metric_readers=[reader])
    names = (
        "answerers",
        "capture",
        "detail",
        "events",
        "guardrail_names",
        "user_ids",
        "verbose",
        "span_mode",
    )
    fields = {name: options.pop(name) for name in names if name in options}
    kept = KeptRecords()
    telemetry = TelemetrySettings(
        tracer_provider=tracer,
        meter_provider=meter,
        subscribers=(events.append,),
        sinks=(kept,),
        **fields,
    )
    if "settings" not in options:
        # a test machine may stand still for a second, and the answer of a stated engine come too late
        options.setdefault("policy_timeout", _DECISION_LIMIT_S)
    governor = Governor(telemetry=telemetry, **options)
    try:
        yield Capture(governor, events, tracer, exporter, reader, kept)
    finally:
        governor.close()
        tracer.shutdown()
        meter.shutdown()
