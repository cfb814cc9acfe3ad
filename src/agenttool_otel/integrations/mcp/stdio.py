"""A server's process, over its standard input and output, with a bound on the length of a line.

The SDK's own transport keeps a line until it ends, and a server may write one that never does. This
one reads bytes, and a line that is too long ends the connection.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import StdioServerParameters
from mcp.client.stdio import get_default_environment, stdio_client
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from agenttool_otel.integrations.mcp.held import HeldProcess, HeldServer, start_held

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of one message of a server; a result of 48 MiB in base64 fits."""
_CHUNK: Final = 65_536
_GRACE: Final = (
    2.0  # seconds for a server to end by itself, as the protocol asks, and after SIGTERM
)
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)
_ENDS: Final = (*_GONE, anyio.EndOfStream, OSError)

_logger = logging.getLogger("agenttool_otel.mcp")
_Incoming = MemoryObjectSendStream[SessionMessage | Exception]
_Outgoing = MemoryObjectReceiveStream[SessionMessage]


@asynccontextmanager
async def bounded_stdio(
    server: StdioServerParameters, max_line_bytes: int = MAX_LINE_BYTES
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
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, _pipe(process.stdout), received, max_line_bytes)
        tasks.start_soon(_write, _pipe(process.stdin), sent, received)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                await _end(process)
            tasks.cancel_scope.cancel()


async def _start(server: StdioServerParameters) -> Process:
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


async def _read(stdout: ByteReceiveStream, received: _Incoming, most: int) -> None:
    async with received:
        with suppress(*_ENDS):
            await _read_lines(stdout, received, most)
    with suppress(*_ENDS):
        while True:  # a server that is stuck in writing would not see that its input is closed
            await stdout.receive(_CHUNK)


async def _read_lines(stdout: ByteReceiveStream, received: _Incoming, most: int) -> None:
    line = bytearray()
    while len(line) <= most:
        first, *others = (await stdout.receive(_CHUNK)).split(b"\n")
        line += first
        for other in others:
            await received.send(_message(bytes(line)))
            line = bytearray(other)
    _logger.warning("the server wrote a line of more than %d bytes", most)


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        # b"\xff" in a text is one letter that is wrong, and no end of the connection
        text = line.decode("utf-8", "replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        # its text holds the line, which nobody has redacted
        _logger.warning("the server wrote a line that is no message: %s", type(error).__name__)
        return error


async def _write(stdin: ByteSendStream, sent: _Outgoing, received: _Incoming) -> None:
    try:
        async with sent:
            async for each in sent:
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stdin.send(text.encode() + b"\n")
    except (*_GONE, OSError):
        # a server that closed its input may live on: no request waits for it
        await received.aclose()


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
