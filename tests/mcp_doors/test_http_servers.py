"""``agenttool mcp proxy --http`` in front of a server that is reached by its URL."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from proxy_program import PATIENCE, Proxy

SERVER = Path(__file__).with_name("file_server.py")
pytestmark = pytest.mark.slow


@pytest.fixture
def url() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(SERVER), "Read a file.", str(port)]
    with subprocess.Popen(command) as process:
        wait_for(port, process)
        yield f"http://127.0.0.1:{port}/mcp"
        process.kill()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError("the server does not serve")


def test_calls_of_a_url_pass_or_wait(tmp_path: Path, url: str) -> None:
    async def use(client: Client) -> tuple[Any, Any]:
        passed = await client.call_tool("read", {"path": "a.txt"})
        return passed, await client.call_tool("write", {"path": "a.txt"})

    passed, waits = Proxy(tmp_path).run(use, "--http", url, command=())
    assert passed.content[0].text == "the text of a.txt"
    assert waits.meta["agenttool/result"]["status"] == "pending"


def test_a_url_at_which_nothing_serves_runs_nothing(tmp_path: Path) -> None:
    async def use(client: Client) -> Any:
        return await client.call_tool("read", {"path": "a.txt"})

    failed = Proxy(tmp_path).run(use, "--http", "http://127.0.0.1:9/mcp", command=())
    assert failed.is_error
    assert "can't be started" in failed.content[0].text
