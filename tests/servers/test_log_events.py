"""Events as log records, from a governed call through the Collector to where Loki would be."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
import servers_run
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from otlp_receiver import LogReceiver, receiver, wait_for

import servers
from agenttool_otel import Governor, TelemetrySettings, ToolDenied
from agenttool_otel.names import Attr, Event
from agenttool_otel.policy.engines.static import StaticEngine

pytestmark = [pytest.mark.slow, pytest.mark.servers]


def test_a_denial_is_found_by_what_the_board_asks_for(tmp_path: Path) -> None:
    try:
        servers.path("otelcol")
    except servers.ServerUnavailable as reason:
        pytest.skip(str(reason))
    with receiver(LogReceiver) as taken:
        loki = taken.url.split("/")[2]
        with servers_run.collector(tmp_path, "127.0.0.1:9", loki) as (http, _, _):
            deny_a_call(f"{http}/v1/logs")
            records = cast("LogReceiver", taken).records
            wait_for(lambda: any("event.name" in record for record in records), 30)
            decided = [r for r in records if r.get("event.name") == Event.PERMISSION_DECIDED]
    (record,) = decided
    assert record[Attr.PERMISSION_BEHAVIOR] == "deny"
    assert record[Attr.PERMISSION_RULE] == "test.deny"
    assert record["trace_id"] != "0" * 32


def deny_a_call(address: str) -> None:
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(address)))
    settings = TelemetrySettings(
        tracer_provider=TracerProvider(), logger_provider=provider, events="log"
    )
    governor = Governor(policy=StaticEngine("deny"), telemetry=settings)
    with pytest.raises(ToolDenied):
        governor.govern(print)("a")
    governor.close()
    provider.shutdown()
