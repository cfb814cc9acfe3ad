"""The proxy's own standard input and output, for the SDK's server, without threads.

The SDK reads and writes them in threads: three hops a call, which cost as much as a decision. Pipes and
sockets can be waited for by the event loop.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

import anyio
from mcp.server.stdio import stdio_server

from agenttool_otel.integrations.mcp.streams import CHUNK, Incoming, Outgoing

_PIPE_BYTES: Final = 4_096
"""Bytes that a pipe takes without blocking once it can be written (PIPE_BUF of Linux)."""


@asynccontextmanager
async def own_stdio() -> AsyncIterator[tuple[Any, Any]]:
    """Serve over standard input and output; a transport of the SDK's ``Server``.

    Where one of them is a file or a terminal, and on Windows, it is the SDK's own. While it serves,
    standard input is empty, and what else is printed goes to standard error. A client that closes its end
    ends it: the block is cancelled, and nothing is raised.
    """
    try:
        async with _transport() as streams:
            yield streams
    except* (ConnectionError, anyio.BrokenResourceError):
        # BrokenPipeError: the client has closed its end, so there is nothing to serve any more
        pass


@asynccontextmanager
async def _transport() -> AsyncIterator[tuple[Any, Any]]:
    if sys.platform == "win32" or not (_is_waitable(0) and _is_waitable(1)):
        async with stdio_server() as streams:
            yield streams
        return
    with _claimed() as (read, write):
        output = _Output(write)
        incoming = Incoming(partial(_read, read))
        outgoing = Outgoing(output.write, partial(anyio.wait_writable, write))
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(outgoing.drain)
                yield incoming, outgoing
                tasks.cancel_scope.cancel()
        finally:
            output.close()


async def _read(descriptor: int) -> bytes:
    await anyio.wait_readable(descriptor)
    # it can be read, and nothing else reads it: this does not block
    return os.read(descriptor, CHUNK)


def _is_waitable(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def _claimed() -> Iterator[tuple[int, int]]:
    """Take standard input and output away from everything else in the process."""
    read, write, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR)
    sys.stdout.flush()
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # a client that has closed it
        os.dup2(nothing, 1)
    try:
        yield read, write
    finally:
        sys.stdout.flush()
        os.dup2(read, 0)
        os.dup2(write, 1)
        for descriptor in (read, write, nothing):
            os.close(descriptor)


class _Output:
    """An output that is written to without waiting.

    The descriptor stays a blocking one: its other holders share that.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._socket: socket.socket | None = None
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            self._socket = socket.socket(fileno=os.dup(descriptor))

    def close(self) -> None:
        """Give back what was opened for it; the descriptor is its owner's."""
        if self._socket is not None:
            self._socket.close()

    def write(self, data: memoryview) -> int:
        """Write what can be written at once; return how many bytes that were.

        Args:
            data: What is to be written.
        """
        if self._socket is not None:
            try:
                return self._socket.send(data, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return 0
        _, writable, _ = select.select([], [self._descriptor], [], 0)
        return os.write(self._descriptor, data[:_PIPE_BYTES]) if writable else 0
