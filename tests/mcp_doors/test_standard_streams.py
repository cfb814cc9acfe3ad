"""The proxy reads and writes its standard streams without threads: pipes and sockets alike."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from agenttool_otel.integrations.mcp.standard_streams import _Output, _read
from agenttool_otel.integrations.mcp.streams import Incoming, Outgoing

Ends = tuple[int, int]
BIG = b"x" * 300_000
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


@asynccontextmanager
async def writing(write: int) -> AsyncIterator[Outgoing]:
    output = _Output(write)
    outgoing = Outgoing(output.write, partial(anyio.wait_writable, write))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outgoing.drain)
        yield outgoing
        tasks.cancel_scope.cancel()
    output.close()


async def lines_of(read: int) -> list[bytes]:
    incoming = Incoming(partial(_read, read))
    found = []
    while True:
        try:
            found.append(await incoming.line())
        except anyio.EndOfStream:
            return found


@pytest.mark.parametrize("ends", [a_pipe, a_socket])
def test_what_is_written_is_read(ends: Callable[[], Ends]) -> None:
    async def through(read: int, write: int) -> list[bytes]:
        reading = asyncio.ensure_future(lines_of(read))
        async with writing(write) as outgoing:
            # more than a pipe or a socket takes at once
            await outgoing.send_line(BIG + b"\n")
            await outgoing.send_line(b"short\nlast")
        os.close(write)
        return await reading

    read, write = ends()
    try:
        assert asyncio.run(through(read, write)) == [BIG, b"short", b"last"]
    finally:
        os.close(read)


@pytest.mark.parametrize("ends", [a_pipe, a_socket])
def test_a_cancelled_sender_tears_no_line(ends: Callable[[], Ends]) -> None:
    async def through(read: int, write: int) -> list[bytes]:
        async with writing(write) as outgoing:
            sender = asyncio.ensure_future(outgoing.send_line(BIG + b"\n"))
            other = asyncio.ensure_future(outgoing.send_line(b"other\n"))
            await asyncio.sleep(0.01)
            sender.cancel()
            reading = asyncio.ensure_future(lines_of(read))
            await other
        os.close(write)
        return await reading

    read, write = ends()
    try:
        assert asyncio.run(through(read, write)) == [BIG, b"other"]
    finally:
        os.close(read)


def test_a_cancelled_receive_loses_nothing() -> None:
    async def run(read: int, write: int) -> bytes:
        incoming = Incoming(partial(_read, read))
        os.write(write, b"be")
        with anyio.move_on_after(0.01):
            await incoming.line()
        os.write(write, b"gun\n")
        return await incoming.line()

    read, write = os.pipe()
    try:
        assert asyncio.run(run(read, write)) == b"begun"
    finally:
        os.close(read)
        os.close(write)


def test_the_descriptors_stay_blocking() -> None:
    async def run(write: int) -> None:
        async with writing(write) as outgoing:
            await outgoing.send_line(b"short\n")

    read, write = os.pipe()
    try:
        asyncio.run(run(write))
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
