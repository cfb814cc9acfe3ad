"""Real governed calls of every outcome, with every setting of events and capture, are in
the registry.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import seeded
import semconv_check
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import semconv
from agenttool_otel import Governor, TelemetrySettings, ToolDenied, agent_context
from agenttool_otel.names import Attr, Event, Exc


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> seeded.Run:
    made = seeded.Run(tmp_path_factory.mktemp("run"))
    made.make(seed=7, rounds=1)
    made.close()
    return made


def test_a_run_of_every_outcome_is_registered(run: seeded.Run) -> None:
    spans = run.spans.get_finished_spans()
    assert (
        len([span for span in spans if span.name.startswith("execute_tool ")]) == seeded.PER_ROUND
    )
    assert semconv_check.check_spans(spans) == []
    assert semconv_check.check_metrics(run.reader.get_metrics_data()) == []


def test_the_run_shows_what_the_boards_count(run: seeded.Run) -> None:
    by_id = {
        (span.attributes or {})[Attr.INVOCATION_ID]: span
        for span in run.spans.get_finished_spans()
        if span.name.startswith("execute_tool ")
    }
    for call in run.planned:
        attributes = by_id[call.invocation_id].attributes or {}
        assert attributes.get(Attr.PERMISSION_BEHAVIOR, "") == call.behavior, call
        assert attributes[Attr.SESSION_ID] == call.session
        if call.rule:
            assert attributes[Attr.PERMISSION_RULE] == call.rule, call
        if call.size:
            assert attributes[Attr.RESULT_SIZE_BYTES] == call.size, call
    events = Counter(event.name for span in by_id.values() for event in span.events)
    decided = sum(bool(call.behavior) for call in run.planned)
    assert events[Event.PERMISSION_DECIDED] >= decided
    assert {
        Event.INVOCATION_PLANNED, Event.RESULT_CREATED, Event.RESULT_PERSISTED, Event.RESULT_REDACTED,
        Event.APPROVAL_REQUESTED, Event.APPROVAL_ANSWERED, Event.REDACTION_FAILED, Event.PERSISTENCE_FAILED, Exc.EVENT,
    } <= set(events)  # fmt: skip


def test_metrics_of_the_run_have_no_id_as_a_label(run: seeded.Run) -> None:
    ids = {call.invocation_id for call in run.planned} | {call.session for call in run.planned}
    data = run.reader.get_metrics_data()
    assert data is not None
    text = data.to_json()
    assert not [item for item in ids if f'"{item}"' in text]


@pytest.mark.parametrize("capture", ["NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT"])
@pytest.mark.parametrize("events", ["span", "log", "both"])
def test_every_combination_of_events_and_capture_is_registered(
    events: str, capture: str, tmp_path: Path
) -> None:
    spans, logs, reader = (
        InMemorySpanExporter(),
        InMemoryLogRecordExporter(),
        InMemoryMetricReader(),
    )
    tracers, loggers = TracerProvider(), LoggerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    governor = Governor(
        telemetry=TelemetrySettings(
            tracer_provider=tracers,
            meter_provider=MeterProvider([reader]),
            logger_provider=loggers,
            events=events,  # type: ignore[arg-type]
            capture=capture,  # type: ignore[arg-type]
            verbose=True,
        )
    )
    secret = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA2bC5"

    @governor.govern(
        namespace="local.files",
        tool_kind="file_operation",
        access_kinds=["file_read"],
        read_only=True,
        path_args=["path"],
    )
    def read_file(path: str) -> str:
        if path.endswith("broken"):
            raise ValueError(secret)
        return f"found {secret}"

    with agent_context(actor="agent:a", session_id="s", roots=[str(tmp_path)]):
        read_file(str(tmp_path / "a"))
        with pytest.raises(ToolDenied):
            read_file("/etc/shadow")
        with pytest.raises(ValueError):
            read_file(str(tmp_path / "broken"))
    governor.close()
    registry = semconv.load()
    finished, records = spans.get_finished_spans(), logs.get_finished_logs()
    assert len(finished) == 3
    assert semconv_check.check_spans(finished, registry) == []
    assert semconv_check.check_logs(records, registry) == []
    assert semconv_check.check_metrics(reader.get_metrics_data(), registry) == []
    assert bool(records) == (events != "span")
    assert any(span.events for span in finished) == (events != "log")
    exported = "".join(span.to_json() for span in finished) + "".join(
        str(item.to_json()) for item in records
    )
    assert secret not in exported
    captured = "gen_ai.tool.call.result" in exported
    assert captured == (capture != "NO_CONTENT")
