"""A call that is rejected from the command line or the page leaves its terminal span there."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typer.testing import CliRunner

from agenttool_otel import ApprovalRequired
from agenttool_otel.approvals.store import ApprovalStore
from agenttool_otel.cli import endings as endings_module
from agenttool_otel.cli.approvals import app
from agenttool_otel.testing import StaticEngine, capture


def test_a_rejection_on_the_command_line_leaves_the_end_of_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    with capture(policy=StaticEngine("ask"), approvals=url) as captured:
        with pytest.raises(ApprovalRequired) as asked:
            captured.governor.govern(lambda: 1, name="act")()
        first = captured.span.get_span_context()
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    real = endings_module.TelemetrySettings
    monkeypatch.setattr(endings_module, "TelemetrySettings", lambda tracer_provider: real(tracer_provider=provider))
    done = CliRunner().invoke(app, ["reject", asked.value.request_id, "--url", url, "--yes", "--reason", "no"])
    assert done.exit_code == 0, done.output
    (span,) = exporter.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["agenttool.invocation.id"] == asked.value.invocation_id
    assert span.attributes["error.type"] == "approval_rejected"
    assert span.links[0].context.span_id == first.span_id
    store = ApprovalStore(url)
    assert store.get(asked.value.request_id).status == "rejected"
    store.close()
