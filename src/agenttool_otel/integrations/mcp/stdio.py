"""A server's process, over its standard input and output, with a bound on the length of a line.

The SDK's own transport keeps a line until it ends, and a server may write one that never does. This
one reads bytes, and a line that is too long ends the connection.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process, TaskGroup
from mcp.client.stdio import get_default_environment, stdio_client
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage

from agenttool_otel.integrations.mcp.held import HeldProcess, HeldServer, ServerProcess, start_held
from agenttool_otel.integrations.mcp.streams import (
    CHUNK,
    Incoming,
    Item,
    Outgoing,
    Stream,
    line_of,
    parse_message,
)

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of one message of a server; a result of 48 MiB in base64 fits."""
_GRACE: Final = (
    2.0  # seconds for a server to end by itself, as the protocol asks, and after SIGTERM
)
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)
_ENDS: Final = (*_GONE, anyio.EndOfStream, OSError)

_logger = logging.getLogger("agenttool_otel.mcp")


@asynccontextmanager
async def bounded_stdio(
    server: ServerProcess, max_line_bytes: int = MAX_LINE_BYTES
) -> AsyncIterator[tuple[Any, Any]]:
    """Run a server as a process; a transport of the SDK's ``Client``.

    On Windows it is the SDK's own, without a bound.

    Args:
        server: How its process is run.
        max_line_bytes: Bytes of one message; a longer one ends the connection.

    Raises:
        OSError: The process can't be started.
        SandboxUnavailable: It has to run under a profile that can't be held; nothing was started.
    """
    if sys.platform == "win32" and not isinstance(server, HeldServer):
        async with stdio_client(server) as streams:
            yield streams
        return
    process = await _start(server)
    stdout = _pipe(process.stdout)
    incoming = Incoming(partial(_received, stdout), _message, max_line_bytes)
    async with anyio.create_task_group() as tasks:
        outgoing = _outgoing(process, tasks)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                await incoming.aclose()
                await outgoing.aclose()
                # a server that is stuck in writing would not see that its input is closed
                tasks.start_soon(_discard, stdout)
                await _end(process)
            tasks.cancel_scope.cancel()


async def _start(server: ServerProcess) -> Process:
    if isinstance(server, HeldServer):
        return await start_held(server)
    return await anyio.open_process(
        [server.command, *server.args],
        env=get_default_environment() | (server.env or {}),
        stderr=sys.stderr,
        cwd=server.cwd,
        # its own group, so that what it starts ends with it
        start_new_session=True,
    )


def _pipe(stream: Any) -> Any:
    assert stream is not None, "the process is started with pipes"  # noqa: S101 - for the type
    return stream


async def _received(stdout: ByteReceiveStream) -> bytes:
    try:
        return await stdout.receive(CHUNK)
    except _ENDS:
        return b""


async def _discard(stdout: ByteReceiveStream) -> None:
    while await _received(stdout):
        pass


def _message(line: bytes) -> Item:
    item = parse_message(line)
    if isinstance(item, Exception):
        # its text holds the line, which nobody has redacted
        _logger.warning("the server wrote a line that is no message: %s", type(item).__name__)
    return item


def _outgoing(process: Process, tasks: TaskGroup) -> _ToProcess | Outgoing:
    if not isinstance(process, HeldProcess):
        return _ToProcess(_pipe(process.stdin))
    outgoing = Outgoing(process.stdin.write_now, process.stdin.wait)
    tasks.start_soon(_drain, outgoing)
    return outgoing


async def _drain(outgoing: Outgoing) -> None:
    with suppress(*_ENDS):  # its senders get an error of their own
        await outgoing.drain()


class _ToProcess(Stream):
    """The messages to a process of anyio's, whose input keeps what there is no room for."""

    def __init__(self, stdin: ByteSendStream) -> None:
        super().__init__()
        self._stdin = stdin

    async def send(self, item: SessionMessage) -> None:
        """Write a message, and wait until its process has taken most of what is written.

        Args:
            item: The message.

        Raises:
            ClosedResourceError: It is closed.
            BrokenResourceError: The process has closed its input.
        """
        self._check_open()
        try:
            await self._stdin.send(line_of(item))
        except OSError as error:
            # a server that closed its input may live on: no request waits for it
            raise anyio.BrokenResourceError from error


async def _end(process: Process) -> None:
    """End a process as the protocol asks: its input is closed, and it has a while to end."""
    with suppress(*_ENDS):
        await _pipe(process.stdin).aclose()
    with anyio.move_on_after(_GRACE):
        await _exited(process)
    if process.returncode is None:
        await terminate_posix_process_tree(process, _GRACE)
        with anyio.move_on_after(_GRACE):
            await _exited(process)
    with suppress(*_ENDS):
        await _pipe(process.stdout).aclose()
    if isinstance(process, HeldProcess):
        # what it has started ends with it, and its temporary directory goes
        with anyio.move_on_after(_GRACE):
            await process.wait()


async def _exited(process: Process) -> None:
    # not process.wait(), which waits for a child that has inherited the pipes, too
    while process.returncode is None:  # noqa: ASYNC110 - there is no event of it
        await anyio.sleep(0.01)
