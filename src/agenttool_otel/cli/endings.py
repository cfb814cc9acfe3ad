"""The ends of calls that this command causes or finds: a rejected or expired call gets its span here.

The process that asked may be gone. Spans go to ``OTEL_EXPORTER_OTLP_ENDPOINT``; without it,
to the tracer provider of the process, if it has one. What fails here never undoes an answer.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.call.expire import close_call, close_expired
from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import AgentToolError, PolicyUnavailable
from agenttool_otel.govern.governor import Governor
from agenttool_otel.policy.engines.refusing import RefusingEngine
from agenttool_otel.telemetry import TelemetrySettings

_logger = logging.getLogger("agenttool_otel.cli")


def _problem(error: Exception) -> str:
    # another error's text may hold what must not be logged
    return str(error) if isinstance(error, AgentToolError) else type(error).__name__


class Endings:
    """Records the ends of calls whose own process may be gone."""

    def __init__(self, governor: Governor) -> None:
        self._governor = governor

    def rejected(self, request_id: str) -> None:
        """Record the end of a call that was just rejected; a failure is logged, never raised."""
        try:
            close_call(self._governor, request_id)
        except Exception as error:
            _logger.warning("the end of the call has no span: %s", _problem(error))

    def expired(self) -> None:
        """Record the end of each call whose request has expired; a failure is logged, never raised."""
        try:
            close_expired(self._governor)
        except Exception as error:
            _logger.warning("expired calls have no spans: %s", _problem(error))

    @contextmanager
    def watching(self, interval: float = 15.0) -> Iterator[None]:
        """Look for expired requests while the block runs, every ``interval`` seconds."""
        stop = threading.Event()

        def look() -> None:
            while not stop.wait(interval):
                self.expired()

        thread = threading.Thread(target=look, name="agenttool-expiry", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(interval)


@contextmanager
def open_endings(store: ApprovalStore) -> Iterator[Endings]:
    """Open the recorder of ends of a store's calls, and flush its spans at the end."""
    spans, logs = _providers()
    settings = Settings.load()
    engine = RefusingEngine(PolicyUnavailable("this command decides nothing"))
    telemetry = TelemetrySettings(
        tracer_provider=spans,
        logger_provider=logs,
        events=settings.events,
        answerers=settings.answerers,
    )
    governor = Governor(engine, approvals=store, telemetry=telemetry)
    governor.approvals.watch()
    try:
        yield Endings(governor)
    finally:
        governor.decider.close()
        for provider in (spans, logs):
            if provider is not None:
                provider.shutdown()


def _providers() -> tuple[TracerProvider | None, LoggerProvider | None]:
    """Return providers that export to ``OTEL_EXPORTER_OTLP_ENDPOINT``, where it is set."""
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return None, None
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # a service name of its own: the spans of this command are not the agent's
    resource = Resource.create({"service.name": "agenttool-approvals"})
    spans = TracerProvider(resource=resource)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    # a provider without records sends nothing, so that a Jaeger without logs gets none
    logs = LoggerProvider(resource=resource)
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
    return spans, logs
