"""The proxy reads and writes its standard streams without threads: pipes and sockets alike."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agenttool_otel.integrations.mcp.standard_streams import _Lines, _Output

Ends = tuple[int, int]
BIG = "x" * 300_000
ECHO = """
import sys
import anyio
from agenttool_otel.integrations.mcp.standard_streams import own_stdio

async def main():
    async with own_stdio() as (incoming, outgoing):
        print("stray")
        message = await incoming.receive()
        await outgoing.send(message)
        await outgoing.aclose()
        await incoming.aclose()

anyio.run(main)
"""


def a_pipe() -> Ends:
    return os.pipe()


def a_socket() -> Ends:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


@pytest.mark.parametrize("ends", [a_pipe, a_socket])
def test_what_is_written_is_read(ends: Callable[[], Ends]) -> None:
    async def through(read: int, write: int) -> list[str]:
        output = _Output(write)

        async def send() -> None:
            # more than a pipe or a socket takes at once
            await output.write(f"{BIG}\n")
            await output.write("short\nlast")
            os.close(write)
            output.close()

        sending = asyncio.ensure_future(send())
        found = [line async for line in _Lines(read)]
        await sending
        return found

    read, write = ends()
    try:
        assert asyncio.run(through(read, write)) == [BIG, "short", "last"]
    finally:
        os.close(read)


def test_the_descriptors_stay_blocking() -> None:
    read, write = os.pipe()
    try:
        asyncio.run(_Output(write).write("short\n"))
        assert os.get_blocking(read)
        assert os.get_blocking(write)
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_stray_prints_do_not_reach_the_client(kind: str, tmp_path: Path) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"text": "é"}}
    given = tmp_path / "given"
    given.write_text(json.dumps(message) + "\n", "utf-8")
    with given.open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-c", ECHO],
            stdin=file if kind == "file" else None,
            input=given.read_bytes() if kind == "pipe" else None,
            capture_output=True,
            timeout=120,
            check=True,
        )
    assert json.loads(done.stdout) == message
    assert b"stray" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "socket", "file"])
def test_a_client_that_is_gone_ends_it_without_a_traceback(kind: str, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text('{"jsonrpc": "2.0", "method": "notifications/x"}\n', "utf-8")
    read, write = a_socket() if kind == "socket" else a_pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-c", ECHO],
            # with a file as its input it is the SDK's own transport
            stdin=given.open("rb") if kind == "file" else None,
            input=None if kind == "file" else given.read_bytes(),
            stdout=write,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, b"stray\n")
