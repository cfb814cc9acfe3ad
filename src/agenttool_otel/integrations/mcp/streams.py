"""The SDK's streams of messages over a pipe or socket, read and written by the task that uses them.

The SDK's own transports hand each message from task to task, which costs the proxy as much CPU as the
SDK's protocol does.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Self

import anyio
from anyio.abc import AsyncResource
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

_logger = logging.getLogger("agenttool_otel.mcp")

CHUNK: Final = 65_536
"""Bytes that are read at once."""

Item = SessionMessage | Exception
"""A message, or why a line is none."""


def parse_message(line: bytes) -> Item:
    """Return the message of a line, or the error that it is none.

    Args:
        line: The line, without its end.
    """
    try:
        # b"\xff" in a text is one letter that is wrong, and no end of the connection
        text = line.decode("utf-8", "replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        return error


def line_of(item: SessionMessage) -> bytes:
    """Return the line of a message, with its end.

    Args:
        item: The message.
    """
    return item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


class Stream(AsyncResource):
    """What both directions have in common: they are closed by leaving the block."""

    def __init__(self) -> None:
        self._closed = False

    def _check_open(self) -> None:
        if self._closed:
            raise anyio.ClosedResourceError

    async def aclose(self) -> None:
        """Close it; the pipe is its owner's."""
        self._closed = True


class Incoming(Stream):
    """The messages that come in. A ``receive`` that is cancelled loses nothing.

    Args:
        read: Waits for the next bytes; none at the end.
        parse: Makes a message of a line.
        most: Bytes of one line; a longer one ends the stream.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[bytes]],
        parse: Callable[[bytes], Item] = parse_message,
        most: int | None = None,
    ) -> None:
        super().__init__()
        self._read = read
        self._parse = parse
        self._most = most
        self._lines: deque[bytes] = deque()
        self._begun: list[bytes] = []  # pieces of a line whose end has not been read
        self._size = 0
        self._ended = False

    async def receive(self) -> Item:
        """Return the next message, or the error of a line that is none.

        Raises:
            EndOfStream: There is no other, or a line is too long.
            ClosedResourceError: It is closed.
        """
        return self._parse(await self.line())

    async def line(self) -> bytes:
        """Return the next line, without its end; the last may have none."""
        self._check_open()
        while not self._lines:
            if self._ended:
                raise anyio.EndOfStream
            self._take(await self._read())
        return self._lines.popleft()

    def _take(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._begun.append(first)
        self._size += len(first)
        for other in others:
            self._finish_line()
            self._begun, self._size = [other], len(other)
        if not data and self._size:
            self._finish_line()
        self._ended = not data
        if self._most is not None and self._size > self._most:
            _logger.warning("a line of more than %d bytes", self._most)
            self._ended = True

    def _finish_line(self) -> None:
        self._lines.append(b"".join(self._begun))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class Outgoing(Stream):
    """The messages that go out, each written as a whole by its sender where there is room for it.

    What there is no room for is written by ``drain``, which no sender's cancellation interrupts.

    Args:
        write: Writes what can be written without waiting, and returns how many bytes that were.
        wait: Waits until something can be written.
    """

    def __init__(
        self, write: Callable[[memoryview], int], wait: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__()
        self._write = write
        self._wait = wait
        self._broken = False
        self._left: deque[tuple[memoryview, anyio.Event]] = deque()
        self._more = anyio.Event()

    async def send(self, item: SessionMessage) -> None:
        """Write a message, and wait until it is written.

        Args:
            item: The message.

        Raises:
            ClosedResourceError: It is closed.
            BrokenResourceError: The other end is closed.
        """
        await self.send_line(line_of(item))

    async def send_line(self, line: bytes) -> None:
        """Write a line, and wait until it is written.

        Args:
            line: The line, with its end.
        """
        self._check_open()
        remaining = memoryview(line)
        if not self._left:
            remaining = remaining[self._written(remaining) :]
        if not remaining:
            return
        done = anyio.Event()
        self._left.append((remaining, done))
        self._more.set()
        await done.wait()
        if self._broken:
            raise anyio.BrokenResourceError

    def _written(self, data: memoryview) -> int:
        try:
            return self._write(data)
        except OSError:
            return 0  # drain meets it, too, and ends the connection

    async def drain(self) -> None:
        """Write what its senders could not, until it is cancelled.

        Raises:
            OSError: The other end is closed.
        """
        try:
            while True:
                await self._more.wait()
                self._more = anyio.Event()
                while self._left:
                    await self._write_first()
        finally:
            self._broken = True
            for _, done in self._left:
                done.set()

    async def _write_first(self) -> None:
        remaining, done = self._left[0]
        while remaining:
            written = self._write(remaining)
            if not written:
                await self._wait()
            remaining = remaining[written:]
        self._left.popleft()
        done.set()
