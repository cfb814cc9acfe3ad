"""Where a real OPA program is, and how tests run it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]


def find_opa() -> str | None:
    """Path of an OPA program: AGENTTOOL_OPA, the repository's own, PATH, the user's cache."""
    candidates = (
        os.environ.get("AGENTTOOL_OPA"),
        str(_REPOSITORY / ".servers" / "opa"),
        shutil.which("opa"),
        str(Path.home() / ".cache" / "agenttool" / "bin" / "opa"),
    )
    return next((item for item in candidates if item and os.access(item, os.X_OK)), None)


def require_opa() -> str:
    """The same, or skip the test."""
    program = find_opa()
    if program is None:
        pytest.skip("no OPA program found: set AGENTTOOL_OPA or run make servers")
    return program


def free_port() -> int:
    """A TCP port that nobody uses just now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class OpaServer:
    """A running OPA."""

    def __init__(self, *arguments: str, port: int | None = None, scheme: str = "http") -> None:
        self.program = require_opa()
        self.port = port or free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server

    def start(self, *, wait: bool = True) -> None:
        """Start it and wait until it is healthy."""
        self.process = subprocess.Popen(
            [
                self.program,
                "run",
                "--server",
                "--addr",
                f"127.0.0.1:{self.port}",
                "--log-level",
                "error",
                *self.arguments,
            ],
            stdout=self.output,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + 20
        while wait:
            try:
                if self.url.startswith("https"):
                    socket.create_connection(("127.0.0.1", self.port), timeout=0.2).close()
                else:
                    urllib.request.urlopen(f"{self.url}/health", timeout=0.5).read()
                return
            except OSError:
                if self.process.poll() is not None:
                    self.output.seek(0)
                    raise AssertionError(self.output.read().decode()) from None
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def kill(self) -> None:
        """Kill it without warning."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def opa_server(*arguments: str, scheme: str = "http") -> Iterator[OpaServer]:
    """A real OPA server for the time of a test."""
    server = OpaServer(*arguments, scheme=scheme)
    server.start()
    try:
        yield server
    finally:
        server.kill()
        server.output.close()
