"""Starts the real servers on loopback with the repository's own configuration files, and stops them.

For tests and for looking at the boards' data without Docker: ``python tools/servers_run.py`` runs
Collector, Jaeger and Prometheus until it is interrupted, and prints where they are.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import servers

DASHBOARDS: Final = servers.REPOSITORY / "dashboards"


@dataclass(frozen=True)
class Stack:
    """Addresses of running servers, all on loopback."""

    otlp_http: str
    otlp_grpc: str
    jaeger: str
    prometheus: str
    exposition: str


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; held all at once, so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]


@contextlib.contextmanager
def running(
    command: list[str],
    log: Path,
    ready: str,
    *,
    environment: Mapping[str, str] | None = None,
    seconds: float = 60,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends.

    Args:
        command: program and arguments.
        log: file for its output.
        ready: URL that answers 200 once it is ready.
        environment: variables beside the caller's own.
        seconds: how long it may take to be ready.

    Raises:
        RuntimeError: it ended or was not ready in time; the message has the end of its output.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
    try:
        deadline = time.monotonic() + seconds
        while not _answers(ready):
            if process.poll() is not None or time.monotonic() > deadline:
                end = log.read_text("utf-8", "replace")[-3000:]
                raise RuntimeError(
                    f"{Path(command[0]).name} did not start (exit {process.poll()}):\n{end}"
                )
            time.sleep(0.1)
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                # Jaeger waits for idle connections much longer; it keeps nothing that could be lost
                process.wait(3)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def jaeger(folder: Path) -> Iterator[tuple[str, str]]:
    """Run Jaeger with dashboards/jaeger; gives its HTTP URL and the address of its OTLP
    gRPC receiver.
    """
    http, grpc, otlp, health = (f"127.0.0.1:{port}" for port in free_ports(4))
    environment = {
        "JAEGER_UI_CONFIG": str(DASHBOARDS / "jaeger" / "ui-config.json"),
        "JAEGER_HTTP_ENDPOINT": http,
        "JAEGER_GRPC_ENDPOINT": grpc,
        "JAEGER_OTLP_ENDPOINT": otlp,
        "JAEGER_HEALTH_ENDPOINT": health,
    }
    command = [str(servers.path("jaeger")), "--config", str(DASHBOARDS / "jaeger" / "config.yaml")]
    with running(
        command, folder / "jaeger.log", f"http://{http}/api/services", environment=environment
    ):
        yield f"http://{http}", otlp


@contextlib.contextmanager
def collector(
    folder: Path, jaeger_otlp: str, loki: str = "127.0.0.1:9"
) -> Iterator[tuple[str, str, str]]:
    """Run the Collector with dashboards/collector; gives its OTLP HTTP URL, OTLP gRPC address and
    exposition URL.

    Tempo is taken out of the pipeline, because it can't be built here; everything else is the file
    as it is.

    Args:
        folder: for its log.
        jaeger_otlp: where spans go.
        loki: where log records go, as host and port; by default nobody takes them.
    """
    http, grpc, exposition, health = (f"127.0.0.1:{port}" for port in free_ports(4))
    environment = {
        "OTLP_HTTP_ENDPOINT": http,
        "OTLP_GRPC_ENDPOINT": grpc,
        "PROMETHEUS_ENDPOINT": exposition,
        "HEALTH_ENDPOINT": health,
        "JAEGER_ENDPOINT": jaeger_otlp,
        "LOKI_ENDPOINT": loki,
        "BATCH_TIMEOUT": "200ms",
        "SPAN_METRICS_INTERVAL": "1s",
    }
    without_tempo = "yaml:service::pipelines::traces::exporters: [otlp_grpc/jaeger, span_metrics]"
    command = [
        str(servers.path("otelcol")),
        "--config",
        str(DASHBOARDS / "collector" / "config.yaml"),
    ]
    command += ["--config", without_tempo]
    with running(command, folder / "collector.log", f"http://{health}", environment=environment):
        yield f"http://{http}", grpc, f"http://{exposition}/metrics"


@contextlib.contextmanager
def prometheus(folder: Path, exposition: str) -> Iterator[str]:
    """Run Prometheus with dashboards/prometheus and the alert rules, once a second; gives
    its URL.
    """
    (port,) = free_ports(1)
    text = (DASHBOARDS / "prometheus" / "prometheus.yml").read_text("utf-8")
    for old, new in (
        ("scrape_interval: 15s", "scrape_interval: 1s"),
        ("evaluation_interval: 15s", "evaluation_interval: 1s"),
        ("/etc/prometheus/alerts", str(DASHBOARDS / "alerts")),
        ("collector:8889", exposition.removeprefix("http://").removesuffix("/metrics")),
    ):
        if old not in text:
            raise RuntimeError(f"prometheus.yml has no {old}")
        text = text.replace(old, new)
    written = folder / "prometheus.yml"
    written.write_text(text, "utf-8")
    command = [
        str(servers.path("prometheus")),
        f"--config.file={written}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running(command, folder / "prometheus.log", f"http://127.0.0.1:{port}/-/ready"):
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def phoenix(folder: Path) -> Iterator[str]:
    """Run Phoenix, which shows traces on a web page; gives its URL. Its extras stay off, and it
    stays on loopback.
    """
    http, grpc = free_ports(2)
    environment = {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(http),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_WORKING_DIR": str(folder / "phoenix"),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    (folder / "phoenix").mkdir(exist_ok=True)
    url = f"http://127.0.0.1:{http}"
    command = [str(servers.path("phoenix")), "serve"]
    with running(
        command, folder / "phoenix.log", f"{url}/healthz", environment=environment, seconds=150
    ):
        yield url


@contextlib.contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """Run Collector, Jaeger and Prometheus together.

    Args:
        folder: for logs and data.

    Raises:
        servers.ServerUnavailable: one of them isn't on this machine.
    """
    with contextlib.ExitStack() as exits:
        jaeger_url, jaeger_otlp = exits.enter_context(jaeger(folder))
        http, grpc, exposition = exits.enter_context(collector(folder, jaeger_otlp))
        prometheus_url = exits.enter_context(prometheus(folder, exposition))
        yield Stack(http, grpc, jaeger_url, prometheus_url, exposition)


def main() -> int:
    """Run until interrupted."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with (
        tempfile.TemporaryDirectory(prefix="agenttool-servers-") as scratch,
        stack(Path(scratch)) as addresses,
    ):
        print(f"OTLP over HTTP  {addresses.otlp_http}   (OTEL_EXPORTER_OTLP_ENDPOINT)")
        print(f"Jaeger API      {addresses.jaeger}")
        print(f"Prometheus      {addresses.prometheus}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
