"""The command: a real process that is asked, killed in mid-call, started again and stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from decision_points import TOOLS

from agenttool_otel import agent_context
from agenttool_otel.serve import DecisionPointUnavailable, RemoteGovernor

pytestmark = pytest.mark.slow


@contextmanager
def process(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    tools = folder / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    command = [sys.executable, "-c", "from agenttool_otel.cli import main; main()", "serve"]
    options = ["--tools", str(tools), "--socket", str(folder / "serve.sock")]
    environment = {**os.environ, "AGENTTOOL_ROOTS": "/srv/project"}
    running = subprocess.Popen([*command, *options], env=environment)
    try:
        until = time.monotonic() + 200
        while not answers(folder) and running.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
        yield running
    finally:
        running.kill()
        running.wait()


def answers(folder: Path) -> bool:
    try:
        with agent_context(actor="agent:coder"):
            RemoteGovernor(folder / "serve.sock").check("read_file", {"path": "a"})
    except DecisionPointUnavailable:
        return False
    return True


def test_a_killed_process_decides_nothing_and_starts_again(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    remote = RemoteGovernor(tmp_path / "serve.sock")
    with agent_context(actor="agent:coder", cwd="/srv/project"):
        with process(tmp_path) as running:
            call = remote.decide("read_file", {"path": "notes.txt"})
            running.kill()
            running.wait()
            with pytest.raises(DecisionPointUnavailable):
                remote.run("read_file", {"path": "notes.txt"}, pytest.fail)
        with process(tmp_path) as running:
            assert remote.decide("read_file", {"path": "notes.txt"}).state == "permitted"
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == 0
    assert call.state == "permitted"
    assert not (tmp_path / "serve.sock").exists()
