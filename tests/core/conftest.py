"""Where sessions are shared in tests."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from approval_helpers import postgres_binaries, running_postgres

from agenttool_otel.approvals.store.sealing import generate_key


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/s.db"


@pytest.fixture
def redis_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("needs Redis: apt-get install redis-server")
    monkeypatch.setenv("AGENTTOOL_APPROVALS_KEY", generate_key())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture
def postgres_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if postgres_binaries() is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    monkeypatch.setenv("AGENTTOOL_APPROVALS_KEY", generate_key())
    with running_postgres() as url:
        yield f"{url}/postgres"
