"""The process: sockets, and uvicorn until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.govern.governor import Governor
from agenttool_otel.names import INSTRUMENTATION_NAME
from agenttool_otel.serve.limits import Limits
from agenttool_otel.serve.sockets import SocketFile, peer_uid, read_token

try:
    import uvicorn

    from agenttool_otel.approvals.web.connections import BoundedConnection, server_config
    from agenttool_otel.serve.app import DecisionPoint
    from agenttool_otel.values.addresses import is_loopback
except ModuleNotFoundError as error:
    raise ConfigurationError(
        f"the decision point needs the package {error.name}: pip install 'agenttool-otel[web]'"
    ) from error

_LOG = logging.getLogger(f"{INSTRUMENTATION_NAME}.serve")


class _Connection(BoundedConnection):
    """A bounded connection; on the Unix socket one of this user alone."""

    limits: ClassVar[Limits] = Limits()

    @property
    def most_connections(self) -> int:
        """How many connections there may be."""
        return self.limits.connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn
        """Drop the connection of another user before a byte of it is read."""
        super().connection_made(transport)
        connection: socket.socket | None = transport.get_extra_info("socket")
        if connection is None:
            transport.abort()
            return
        if connection.family == socket.AF_UNIX and not _is_ours(connection):
            _LOG.warning("a connection of another user was refused")
            transport.abort()


class _Server(uvicorn.Server):
    """A server that lets go of who waits for a person before it waits for the others."""

    point: DecisionPoint

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what is worked on, and stop."""
        self.point.calls.closing.set()
        await super().shutdown(sockets)


def _is_ours(connection: socket.socket) -> bool:
    try:
        return peer_uid(connection) == os.geteuid()
    except OSError:
        return False


class DecisionServer:
    """A decision point that listens.

    Args:
        governor: who decides; it is not closed with the server.
        tools: the tools that clients may call, from ``declare_tools``; held for the server's time.
        socket_path: where the Unix socket is; ``None`` for none.
        port: the port on loopback, 0 for a free one; ``None`` for none.
        host: the loopback address.
        token_file: the file of the port's token; made where it is missing.
        limits: how much there may be of everything.
        agents: the coding agents whose hooks are answered, of ``AGENTS``.
        public_url: where clients reach it through a proxy, for AuthZEN's discovery: an https URL
          without query and fragment; ``""`` for the address that it listens at.

    Raises:
        ConfigurationError: it would listen nowhere, on an address of others, or without a token; the
          socket can't be made, or the public URL is another.
    """

    def __init__(
        self,
        governor: Governor,
        tools: Sequence[GovernedTool],
        *,
        socket_path: str | Path | None = None,
        port: int | None = None,
        host: str = "127.0.0.1",
        token_file: str | Path | None = None,
        limits: Limits | None = None,
        agents: Sequence[str] = (),
        public_url: str = "",
    ) -> None:
        if public_url and not _is_public(public_url):
            raise ConfigurationError("the public URL is an https URL without query and fragment")
        if socket_path is None and port is None:
            raise ConfigurationError("a decision point needs a socket or a port")
        if not is_loopback(host):
            raise ConfigurationError("the port is for this machine only: use a TLS proxy")
        self._tools = tuple(tools)
        limits = Limits() if limits is None else limits
        token = ""
        if port is not None:
            if token_file is None:
                raise ConfigurationError("a port needs a token file")
            token = read_token(Path(token_file), make=True)
        self._file = None if socket_path is None else SocketFile(Path(socket_path))
        self._port = None if port is None else _listening(host, port)
        self.port: int | None = None if self._port is None else self._port.getsockname()[1]
        self.url = "http://localhost" if self.port is None else _url(host, self.port)
        place = None if self._file is None else self._file.path.absolute()
        self.point = DecisionPoint(governor, limits, public_url or self.url, agents, place)
        self._uvicorn = _Server(
            server_config(
                self.point.application(token=token, port=self.port),
                http=type("_Connection", (_Connection,), {"limits": limits}),
                stop_seconds=limits.stop_seconds,
            )
        )
        self._uvicorn.point = self.point
        self._thread: threading.Thread | None = None

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return self._uvicorn.started

    def serve_forever(self) -> None:
        """Serve until ``close`` or a signal to end; requests that are worked on are answered."""
        sockets: list[Any] = [] if self._port is None else [self._port]
        if self._file is not None:
            sockets.append(self._file.socket)
        try:
            self._uvicorn.run(sockets=sockets)
        finally:
            self._release()

    def start(self) -> DecisionServer:
        """Serve in a background thread; return when it answers."""
        self._thread = threading.Thread(
            target=self.serve_forever, name="agenttool-serve", daemon=True
        )
        self._thread.start()
        while not self.started and self._thread.is_alive():
            self._thread.join(0.02)
        return self

    def close(self) -> None:
        """Stop: nothing new is taken, what is worked on is answered, and the socket is removed."""
        self._uvicorn.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=30)

    def _release(self) -> None:
        if self._port is not None:
            self._port.close()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> DecisionServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(f"port {port} can't be had: {error.strerror}") from None


def _is_public(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return bool(parts.scheme == "https" and parts.hostname and not {"?", "#"} & set(url))


def _url(host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"
