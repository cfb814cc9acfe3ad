"""What a receiver of telemetry can rely on: the schema of each signal, levels of logs, and whose call it was."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agenttool_otel import Governor, ToolDenied, agent_context
from agenttool_otel.telemetry import TelemetrySettings
from agenttool_otel.testing import StaticEngine, capture
from agenttool_otel.values.canonical import keyed_digest

MANIFEST = Path(__file__).parents[2] / "semconv" / "manifest.yaml"


@pytest.fixture(scope="module")
def signals() -> dict[str, Any]:
    """What one allowed and one denied call leave in each signal."""
    spans, logs, reader = (
        InMemorySpanExporter(),
        InMemoryLogRecordExporter(),
        InMemoryMetricReader(),
    )
    tracer, logger = TracerProvider(), LoggerProvider()
    meter = MeterProvider(metric_readers=[reader])
    tracer.add_span_processor(SimpleSpanProcessor(spans))
    logger.add_log_record_processor(SimpleLogRecordProcessor(logs))
    for behavior in ("allow", "deny"):
        settings = TelemetrySettings(tracer, meter, logger, events="log")
        governor = Governor(StaticEngine(behavior), telemetry=settings)
        tool = governor.govern(lambda: 1, name="one", read_only=True)
        with suppress(ToolDenied):
            tool()
        governor.close()
    [metrics] = reader.get_metrics_data().resource_metrics
    return {
        "spans": spans.get_finished_spans(),
        "logs": logs.get_finished_logs(),
        "metrics": metrics.scope_metrics,
    }


def test_every_signal_has_the_schema_of_the_registry(signals: dict[str, Any]) -> None:
    schema = yaml.safe_load(MANIFEST.read_text("utf-8"))["schema_url"]
    scopes = [span.instrumentation_scope for span in signals["spans"]]
    scopes += [log.instrumentation_scope for log in signals["logs"]]
    scopes += [each.scope for each in signals["metrics"]]
    assert len(scopes) > 4
    assert {scope.schema_url for scope in scopes} == {schema}


def test_a_denial_is_logged_as_a_warning(signals: dict[str, Any]) -> None:
    levels = {
        str(record.attributes.get("agenttool.permission.behavior")): record.severity_number
        for each in signals["logs"]
        if (record := each.log_record).event_name == "tool.permission.decided"
    }
    assert levels == {"allow": SeverityNumber.INFO, "deny": SeverityNumber.WARN}


def user_of(actor: str, parent: str = "", **options: Any) -> Any:
    with capture(policy=StaticEngine("allow"), **options) as captured:
        tool = captured.governor.govern(lambda: 1, name="one", read_only=True)
        with agent_context(actor=parent or actor) as outer:
            if not parent:
                tool()
            else:
                with agent_context(actor=actor, parent=outer):
                    tool()
    return captured.span.attributes.get("user.id")


def test_a_span_has_the_users_keyed_digest_where_wanted() -> None:
    assert user_of("user:ada", user_ids="digest") == keyed_digest("user:ada")
    assert user_of("agent:desk", "user:ada", user_ids="digest") == keyed_digest("user:ada")
    assert user_of("agent:desk", user_ids="digest") is None


def test_a_span_has_no_user_otherwise() -> None:
    assert user_of("user:ada") is None
