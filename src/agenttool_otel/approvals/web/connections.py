"""What one connection to the page may cost: one request, in bounded time, and a bounded number of
connections.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, cast

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS: Final = 100
"""Open connections of all clients together; a new one beyond that takes the place of another."""

REQUEST_SECONDS: Final = 10.0
"""In this time a request has to be there whole, headers and body, however its bytes come."""

CONNECTION_SECONDS: Final = 300.0
"""How long a connection may last once its request is there."""

LINGER_SECONDS: Final = 1.0
"""How long the rest of a request that is answered already is read and dropped."""

LINGER_BYTES: Final = 1_000_000
"""How much of it."""


class LingeringTransport:
    """Reads on where uvicorn closes: to close on unread bytes resets the connection, its answer too
    (RFC 9112, 9.6).
    """

    def __init__(self, transport: asyncio.Transport, limit: Callable[[float], None]) -> None:
        self._transport = transport
        self._limit = limit
        self._answered = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Return whether the answer is over."""
        return self._answered or self._transport.is_closing()

    def close(self) -> None:
        """Note that nothing more is sent; the connection ends with the client's side of it,
        or soon.
        """
        if not self.is_closing():
            self._answered = True
            self._transport.resume_reading()
            with suppress(OSError):  # the client is gone
                self._transport.write_eof()
            # else a slow reader has the time of an answer
            if not self._transport.get_write_buffer_size():
                self._limit(LINGER_SECONDS)


class BoundedConnection(H11Protocol):
    """A connection that is cut when it takes too long or when another client needs its place.

    That only one request is answered on it is the work of the ``Connection: close`` on every
    answer: what a client sends beyond its request is never read as a second one.
    """

    connections: set[Any]

    @property
    def most_connections(self) -> int:
        """How many connections there may be."""
        return MAX_CONNECTIONS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # a host program's uvicorn may log its own requests; ours name approvals
        self.access_log = False
        self.opened_at = self.loop.time()
        self.delivered = False
        self._dropped = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Start the time that the request has, and keep within the number of connections."""
        super().connection_made(
            cast("asyncio.Transport", LingeringTransport(transport, self._limit))
        )
        self._limit(REQUEST_SECONDS)
        if len(self.connections) > self.most_connections:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Read on; a request that is there whole has the time of an answer."""
        if self.transport.is_closing():
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self.transport.abort()
            return
        super().data_received(data)
        if not self.delivered and self.cycle is not None and not self.cycle.more_body:
            self.delivered = True
            self._limit(CONNECTION_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _limit(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _make_room(self) -> None:
        """Drop a connection: answered and unfinished ones first, then whose client holds most, then
        the oldest.
        """
        others = cast("set[BoundedConnection]", self.connections - {self})
        held = Counter(other.address for other in others)

        def order(other: BoundedConnection) -> tuple[bool, int, float]:
            return other.pending, -held[other.address], other.opened_at

        dropped = min(others, key=order)
        self.connections.discard(dropped)
        dropped.transport.abort()

    @property
    def pending(self) -> bool:
        """Whether a request is there whole and not answered yet."""
        return self.delivered and not self.transport.is_closing()

    @property
    def address(self) -> str:
        """The client's address; all programs of this machine share one."""
        return self.client[0] if self.client else ""


def server_config(
    application: Any,
    *,
    http: type[H11Protocol] = BoundedConnection,
    headers: Sequence[tuple[str, str]] = (("Server", "agenttool"),),
    lifespan: Literal["on", "off"] = "on",
    stop_seconds: int = 2,
) -> Config:
    """Return how an application of this package is served: alone, without web sockets and a log of
    requests, believing no header of a proxy.

    Args:
        application: what answers.
        http: what one connection may cost.
        headers: headers of each answer.
        lifespan: whether it has a beginning and an end of its own.
        stop_seconds: how long open connections have once it is stopped.
    """
    return Config(
        application,
        http=http,
        ws="none",
        loop="asyncio",
        lifespan=lifespan,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        headers=list(headers),
        timeout_graceful_shutdown=stop_seconds,
    )
