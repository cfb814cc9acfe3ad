"""Public helpers for the tests of programs that use this package: capture what calls leave, and
state decisions.

``capture()`` gives a Governor that records into memory; it alone needs opentelemetry-sdk (the
``cli`` extra has it). ``StaticEngine`` answers with the decisions that a test wants, without Rego.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest
from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.govern.governor import Governor
from agenttool_otel.names import Behavior, EntryPoint, FailClosedCause
from agenttool_otel.policy.types import EngineAnswer, EngineCapabilities, PolicyInput
from agenttool_otel.records import ToolEvent
from agenttool_otel.telemetry import TelemetrySettings

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.sdk.trace.sampling import Sampler


def decision(behavior: str | Behavior, **fields: Any) -> dict[str, Any]:
    """Make a decision document.

    Args:
        behavior: allow, ask, deny or passthrough.
        fields: further members of the document, for example ``obligations={"redact_result":
          ["*"]}``.
    """
    reason = {
        "type": "rule",
        "rule_ref": f"test.{behavior}",
        "message": f"the test says {behavior}",
    }
    return {
        "behavior": str(behavior),
        "reason": reason,
        "rule_refs": [f"test.{behavior}"],
        **fields,
    }


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


class StaticEngine:
    """A policy engine that answers with stated documents.

    Args:
        answers: decision document for every call, or documents by tool name; a tool that is not
            named is undefined, and so denied.
        revision: revision that it reports.

    Attributes:
        documents: the inputs it was asked about, oldest first.
    """

    def __init__(self, answers: Mapping[str, Any] | str, *, revision: str = "test-1") -> None:
        self._answers: Mapping[str, Any] = (
            decision(answers) if isinstance(answers, str) else answers
        )
        self._revision = revision
        self.documents: list[PolicyInput] = []

    @property
    def fixed_texts(self) -> frozenset[str]:
        """The texts of the stated answers, which hold no argument of a call."""
        return frozenset(_texts(self._answers))

    @property
    def name(self) -> str:
        """``static``."""
        return "static"

    @property
    def revision(self) -> str:
        """The revision it was given."""
        return self._revision

    @property
    def capabilities(self) -> EngineCapabilities:
        """Nothing but answering, and never too late: a busy machine is no reason to deny."""
        return EngineCapabilities(counts_cpu_time=True)

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Answer.

        Args:
            entry_point: the rule that is asked for; only the decision is known.
            document: the input; kept in ``documents``.
            timeout: not used.

        Raises:
            PolicyEvaluationError: nothing is stated for this tool.
        """
        self.documents.append(document)
        answer = (
            self._answers
            if "behavior" in self._answers
            else self._answers.get(document["tool"]["name"])
        )
        if answer is None or entry_point != EntryPoint.DECISION:
            raise PolicyEvaluationError("undefined", cause=FailClosedCause.UNDEFINED)
        return EngineAnswer(answer, self._revision)

    async def aevaluate(
        self, entry_point: str, document: PolicyInput, *, timeout: float
    ) -> EngineAnswer:
        """Answer; as ``evaluate``."""
        return self.evaluate(entry_point, document, timeout=timeout)

    def close(self) -> None:
        """Nothing to close."""


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

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """The finished spans, in the order in which they ended."""
        return self._exporter.get_finished_spans()

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
        """Forget spans and events."""
        self._exporter.clear()
        self.events.clear()


@contextmanager
def capture(*, sampler: Sampler | None = None, **options: Any) -> Iterator[Capture]:
    """Give a Governor whose telemetry stays in memory.

    Args:
        sampler: sampler of the spans; all are sampled where not given.
        options: arguments of Governor, and the fields of TelemetrySettings ``capture``, ``detail``,
            ``events``, ``verbose`` and ``span_mode``.
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
    names = ("capture", "detail", "events", "verbose", "span_mode")
    fields = {name: options.pop(name) for name in names if name in options}
    telemetry = TelemetrySettings(
        tracer_provider=tracer, meter_provider=meter, subscribers=(events.append,), **fields
    )
    governor = Governor(telemetry=telemetry, **options)
    try:
        yield Capture(governor, events, tracer, exporter, reader)
    finally:
        governor.close()
        tracer.shutdown()
        meter.shutdown()
