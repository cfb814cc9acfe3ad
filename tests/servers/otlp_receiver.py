"""An OTLP/HTTP receiver that misbehaves on request: for what exporters do when the other side is
unwell.
"""

from __future__ import annotations

import contextlib
import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord


@dataclass
class Receiver:
    """What the receiver does, and what it got.

    Attributes:
        status: HTTP status of its answers.
        delay: seconds before each answer.
        rejects: spans of each batch that it says it refused.
        retry_after: value of the header, if any.
        names: names of the spans that it took.
        requests: how many requests came in.
    """

    url: str = ""
    status: int = 200
    delay: float = 0.0
    rejects: int = 0
    retry_after: str = ""
    names: list[str] = field(default_factory=list)
    requests: int = 0
    released: threading.Event = field(default_factory=threading.Event)

    def answer(self, body: bytes) -> bytes:
        """Read a batch and make the answer."""
        self.requests += 1
        if self.delay:
            self.released.wait(self.delay)
        if self.status != 200:
            return b""
        request = ExportTraceServiceRequest.FromString(body)
        spans = [
            s.name for r in request.resource_spans for scope in r.scope_spans for s in scope.spans
        ]
        self.names += spans[self.rejects :]
        response = ExportTraceServiceResponse()
        if self.rejects:
            response.partial_success.rejected_spans = min(self.rejects, len(spans))
            response.partial_success.error_message = "too many"
        return response.SerializeToString()


@dataclass
class LogReceiver(Receiver):
    """Takes log records, as Loki does.

    Attributes:
        records: the attributes of the records that it took, with ``severity_number`` and
          ``trace_id``.
    """

    records: list[dict[str, object]] = field(default_factory=list)

    def answer(self, body: bytes) -> bytes:
        """Read a batch and make the answer."""
        request = ExportLogsServiceRequest.FromString(body)
        for resource in request.resource_logs:
            for scope in resource.scope_logs:
                self.records += map(_record, scope.log_records)
        return ExportLogsServiceResponse().SerializeToString()


def _record(record: LogRecord) -> dict[str, object]:
    found: dict[str, object] = {item.key: item.value.string_value for item in record.attributes}
    return found | {
        "severity_number": record.severity_number,
        "trace_id": record.trace_id.hex(),
    }


@contextmanager
def receiver(kind: type[Receiver] = Receiver, **behaviour: object) -> Iterator[Receiver]:
    """Run a receiver on loopback."""
    state = kind(**behaviour)  # type: ignore[arg-type]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            answer = state.answer(body)
            self.send_response(state.status)
            if state.retry_after:
                self.send_header("Retry-After", state.retry_after)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            # the client may have given up
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    try:
        yield state
    finally:
        state.released.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


def wait_for(condition: object, seconds: float = 10) -> None:
    """Wait until a callable is true."""
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)
