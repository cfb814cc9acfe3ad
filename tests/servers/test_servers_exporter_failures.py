"""An exporter that can't deliver never touches the tools; what is lost is counted exactly and told once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import semconv_check
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from otlp_receiver import receiver, wait_for
from servers_run import free_ports

from agenttool_otel import Governor, TelemetrySettings, agent_context
from agenttool_otel.names import INSTRUMENTATION_NAME, Label, Metric
from agenttool_otel.telemetry.export_watch import (
    ExportLosses,
    WatchedSpanProcessor,
    batch_processor,
    partial_success_session,
)


class Program:
    """A program whose tool calls make spans, with the watched exporter."""

    def __init__(self, url: str, *, timeout: float = 1.0, **options: object) -> None:
        self.reader = InMemoryMetricReader()
        self.losses = ExportLosses(MeterProvider([self.reader]))
        exporter = OTLPSpanExporter(url, timeout=timeout, session=partial_success_session(self.losses))
        self.processor = WatchedSpanProcessor(exporter, self.losses, schedule_delay_millis=50, **options)  # type: ignore[arg-type]
        self.provider = TracerProvider()
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer(INSTRUMENTATION_NAME)

    def calls(self, count: int) -> float:
        """Make calls; gives the seconds that they took."""
        start = time.perf_counter()
        for number in range(count):
            self.tracer.start_span(f"execute_tool t{number}").end()
        return time.perf_counter() - start

    def dropped(self) -> dict[str, int]:
        """The counter's value by reason."""
        data = self.reader.get_metrics_data()
        found: dict[str, int] = {}
        if data is None:
            return found
        assert semconv_check.check_metrics(data) == []
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            assert metric.name == Metric.TELEMETRY_DROPPED
            for point in metric.data.data_points:
                found[str(point.attributes[Label.DROP_REASON])] = int(point.value)  # type: ignore[union-attr, index]
        return found


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, logger="agenttool_otel.telemetry")
    return lambda: [r.getMessage() for r in caplog.records if r.name == "agenttool_otel.telemetry"]


def test_a_healthy_receiver_gets_every_span_and_nothing_is_lost(warnings: Callable[[], list[str]]) -> None:
    with receiver() as state:
        program = Program(state.url)
        program.calls(300)
        program.provider.shutdown()
        assert len(state.names) == 300
    assert program.losses.total == 0
    assert program.dropped() == {}
    assert warnings() == []


@pytest.mark.parametrize("status", [400, 429, 503])
def test_a_refusing_receiver_loses_spans_that_are_counted_and_told_once(
    status: int, warnings: Callable[[], list[str]]
) -> None:
    with receiver(status=status) as state:
        program = Program(state.url, timeout=0.4, max_export_batch_size=50)
        seconds = program.calls(100)
        program.processor.force_flush()
        program.calls(20)
        program.provider.shutdown()
    assert state.requests > 0
    assert state.names == []
    assert program.losses.by_kind() == {("spans", "export_failed"): 120}
    assert program.dropped() == {"export_failed": 120}
    assert len(warnings()) == 1
    assert "(export_failed)" in warnings()[0]
    assert seconds < 0.4


def test_a_receiver_that_is_down_loses_spans_that_are_counted_and_told_once(warnings: Callable[[], list[str]]) -> None:
    (port,) = free_ports(1)
    program = Program(f"http://127.0.0.1:{port}/v1/traces", timeout=0.4)
    seconds = program.calls(100)
    program.provider.shutdown()
    assert program.dropped() == {"export_failed": 100}
    assert len(warnings()) == 1
    assert seconds < 0.4


def test_a_receiver_that_asks_to_wait_gets_the_spans_when_it_is_well_again() -> None:
    with receiver(status=503, retry_after="1") as state:
        program = Program(state.url, timeout=5)
        program.calls(10)
        wait_for(lambda: state.requests > 0)
        state.status, state.retry_after = 200, ""
        program.provider.shutdown()
        assert len(state.names) == 10
    assert program.losses.total == 0


def test_a_slow_receiver_never_slows_a_call_and_what_its_queue_dropped_is_counted(
    warnings: Callable[[], list[str]],
) -> None:
    with receiver(delay=30) as state:
        program = Program(state.url, timeout=20, max_queue_size=64, max_export_batch_size=16)
        program.calls(16)
        wait_for(lambda: state.requests == 1)  # the exporter now waits, and the queue fills
        seconds = program.calls(400)
        assert seconds < 2
        assert program.losses.by_kind().get(("spans", "queue_full"), 0) > 0, "a full queue is told while it is full"
        state.delay = 0
        state.released.set()
        program.provider.shutdown()
        delivered = len(state.names)
    assert delivered == 16 + 64
    assert program.losses.by_kind() == {("spans", "queue_full"): 416 - delivered}
    assert program.dropped() == {"queue_full": 416 - delivered}
    assert len(warnings()) == 1


def test_a_partial_success_counts_exactly_what_was_refused(warnings: Callable[[], list[str]]) -> None:
    with receiver(rejects=3) as state:
        program = Program(state.url, max_export_batch_size=50)
        program.calls(100)
        program.provider.shutdown()
        assert state.requests == 2
        assert len(state.names) == 94
    assert program.dropped() == {"rejected": 6}
    assert len(warnings()) == 1
    assert "too many" not in warnings()[0], "a receiver's own words may hold content"


def test_an_answer_that_is_no_otlp_refuses_nothing() -> None:
    with receiver() as state:
        state.answer = lambda body: b"<html>fine</html>"  # type: ignore[method-assign]
        program = Program(state.url)
        program.calls(5)
        program.provider.shutdown()
    assert program.losses.total == 0


class Raising(SpanExporter):
    def export(self, spans: object) -> SpanExportResult:
        raise RuntimeError("a message that may hold content")


def test_an_exporter_that_raises_is_a_loss_like_any_other(
    warnings: Callable[[], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    reader = InMemoryMetricReader()
    processor, losses = batch_processor(Raising(), meter_provider=MeterProvider([reader]), schedule_delay_millis=50)
    provider = TracerProvider()
    provider.add_span_processor(processor)
    for _ in range(7):
        provider.get_tracer("t").start_span("s").end()
    provider.shutdown()
    assert losses.by_kind() == {("spans", "export_failed"): 7}
    assert len(warnings()) == 1
    assert "may hold content" not in caplog.text


def test_spans_that_end_after_shutdown_are_counted() -> None:
    class Fine(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    processor, losses = batch_processor(Fine())
    provider = TracerProvider()
    provider.add_span_processor(processor)
    late = provider.get_tracer("t").start_span("s")
    provider.shutdown()
    late.end()
    assert losses.total == 1


def test_unsampled_spans_are_no_loss() -> None:
    class Fine(SpanExporter):
        def export(self, spans: list[ReadableSpan]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    processor, losses = batch_processor(Fine())
    provider = TracerProvider(sampler=ALWAYS_OFF)
    provider.add_span_processor(processor)
    provider.get_tracer("t").start_span("s").end()
    provider.shutdown()
    assert losses.total == 0


# --- governed tools ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", ["down", "503", "429", "slow", "partial"])
def test_governed_tools_give_the_same_results_whatever_the_receiver_does(
    behaviour: str, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    options: dict[str, dict[str, object]] = {
        "down": {},
        "503": {"status": 503},
        "429": {"status": 429, "retry_after": "1"},
        "slow": {"delay": 30},
        "partial": {"rejects": 1},
    }
    with receiver(**options[behaviour]) as state:
        url = f"http://127.0.0.1:{free_ports(1)[0]}/v1/traces" if behaviour == "down" else state.url
        program = Program(url, timeout=0.5, max_queue_size=32, max_export_batch_size=8)
        governor = Governor(telemetry=TelemetrySettings(tracer_provider=program.provider))

        @governor.govern(
            namespace="local.files",
            tool_kind="file_operation",
            access_kinds=["file_read"],
            read_only=True,
            path_args=["path"],
        )
        def read_file(path: str) -> str:
            return path

        inside = str(tmp_path / "a")
        slowest = 0.0
        with agent_context(actor="agent:a", session_id="s", roots=[str(tmp_path)]):
            read_file(inside)  # loads the policy
            for _ in range(60):
                start = time.perf_counter()
                assert read_file(inside) == inside
                assert read_file.tool.invoke(path="/etc/shadow").status == "denied"
                slowest = max(slowest, time.perf_counter() - start)
        state.released.set()
        state.delay = 0
        program.provider.shutdown()
        governor.close()
        accounted = len(state.names) + program.losses.total
        # a batch whose answer came too late is lost to the exporter, though the receiver has it
        assert accounted >= 121 if behaviour == "slow" else accounted == 121
        assert program.losses.total > 0
    assert slowest < 0.4, "no call waited for the receiver, which takes at least half a second"
    assert len(warnings()) == len(program.losses.by_kind())
