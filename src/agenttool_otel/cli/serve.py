"""``agenttool serve``: decide calls for programs that are not this one.

agenttool serve --tools tools.json
agenttool serve --tools tools.json --port 8181
agenttool serve --agent claude-code
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from agenttool_otel.cli.common import failure
from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import AgentToolError
from agenttool_otel.serve.sockets import default_folder, default_socket

EXIT_CODES: Final = {"stopped": 0, "failed": 1, "usage": 2}
"""What the exit codes of this command mean."""
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_SERVICE: Final = "agenttool-serve"

app = typer.Typer(pretty_exceptions_show_locals=False)  # local variables hold the token


@app.command()
def serve(
    tools: Annotated[
        Path | None,
        typer.Option("--tools", help="File of the tools (AGENTTOOL_TOOLS where not given)."),
    ] = None,
    socket: Annotated[
        Path | None, typer.Option("--socket", help="Unix socket; of this user where not given.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="Also listen on this port of 127.0.0.1.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="Token of the port; made where it is missing."),
    ] = None,
    public_url: Annotated[
        str,
        typer.Option("--public-url", help="Where clients reach it through a proxy with TLS."),
    ] = "",
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", help="Answer the hooks of this coding agent; may be repeated."),
    ] = None,
) -> None:
    """Decide calls for other programs, over a Unix socket or loopback HTTP."""
    from agenttool_otel.govern.governor import Governor
    from agenttool_otel.serve.server import DecisionServer
    from agenttool_otel.serve.tools import declare_tools

    with exported(_SERVICE):
        try:
            settings = Settings.load()
            governor = Governor(settings=settings)
            file = str(tools or settings.tools_file)
            # an agent's tools are known without a file
            declared = declare_tools(file, governor) if file or not agent else []
            server = DecisionServer(
                governor,
                declared,
                socket_path=socket or default_socket(),
                port=port,
                token_file=token_file or default_folder() / "token",
                agents=agent or (),
                public_url=public_url.rstrip("/"),
            )
        except AgentToolError as error:
            raise failure(EXIT_CODES, str(error), "failed") from None
        governor.warm()
        typer.echo(f"{len(governor.registry)} tools; {socket or default_socket()}", err=True)
        if server.port is not None:
            typer.echo(server.url, err=True)
        # uvicorn stops first and raises the signal again, which would end the process on the spot
        signal.signal(signal.SIGTERM, _end)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
        finally:
            governor.close()


def _end(*_: object) -> None:
    raise SystemExit(EXIT_CODES["stopped"])


@contextlib.contextmanager
def exported(service: str) -> Iterator[None]:
    """Export spans and metrics to ``OTEL_EXPORTER_OTLP_ENDPOINT``, where it is set and no other
    program, such as ``opentelemetry-instrument``, has set up providers.

    Args:
        service: the name of the service, where the environment has none.
    """
    if not any(os.environ.get(name) for name in _ENDPOINTS) or _has_provider():
        yield
        return
    from opentelemetry import metrics, trace
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
    resource = Resource({SERVICE_NAME: service}).merge(OTELResourceDetector().detect())
    spans = TracerProvider(resource=resource)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    points = MeterProvider([reader], resource=resource)
    trace.set_tracer_provider(spans)
    metrics.set_meter_provider(points)
    try:
        yield
    finally:
        spans.shutdown()
        points.shutdown()


def _has_provider() -> bool:
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    return not isinstance(get_tracer_provider(), ProxyTracerProvider)
