"""A proxy for several clients over streamable HTTP: ``agenttool mcp proxy --listen PORT --clients FILE``.

A client is known by its token. Each has a server of its own in this process, with its own sessions,
open questions and connection to the server behind, so that no client can name what is another's.
"""

from __future__ import annotations

import hashlib
import socket
import stat
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.context.context import agent_context
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.integrations.mcp.held import ServerProcess
from agenttool_otel.integrations.mcp.listing import ServerTools
from agenttool_otel.integrations.mcp.pins import Pins
from agenttool_otel.integrations.mcp.proxy import DEFAULT_TIMEOUT, governed_proxy
from agenttool_otel.integrations.mcp.upstream import Upstream
from agenttool_otel.values.conversion import loads_unique
from agenttool_otel.values.ids import new_id

PATH: Final = "/mcp"
"""Where it serves."""
MIN_TOKEN_CHARS: Final = 20
"""Characters that a client's token has at least."""
_OWN_NAMES: Final = ["127.0.0.1:*", "localhost:*", "[::1]:*"]


def read_clients(path: str | Path) -> Mapping[str, str]:
    """Read a JSON file of clients: ``{"agent:coder": "its token"}``.

    Args:
        path: The file, which this user alone can read.

    Returns:
        The tokens by actor.

    Raises:
        ConfigurationError: It can't be read, others can read it, or two clients have one token, or a
            token is too short.
    """
    path = Path(path)
    try:
        mode = path.stat().st_mode
        clients = loads_unique(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"the clients in {path} can't be read: {type(error).__name__}"
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigurationError(f"others can read the tokens in {path}: chmod 600")
    if not isinstance(clients, dict) or not clients:
        raise ConfigurationError(f'{path} has to be an object of tokens: {{"agent:coder": "..."}}')
    _check_tokens(clients, path)
    return clients


def _check_tokens(clients: Mapping[str, Any], path: Path) -> None:
    for actor, token in clients.items():
        if not actor or not isinstance(token, str) or len(token) < MIN_TOKEN_CHARS:
            raise ConfigurationError(
                f"the token of {actor!r} in {path} needs {MIN_TOKEN_CHARS} characters"
            )
    if len(set(clients.values())) < len(clients):
        raise ConfigurationError(f"two clients have one token in {path}")


@dataclass(frozen=True)
class _Client:
    """One client: who it is, and the server that is its own."""

    actor: str
    session_id: str
    sessions: StreamableHTTPSessionManager


class HttpProxy:
    """An ASGI application in which each client reaches its own server, and no other.

    Use it as an asynchronous context manager while it serves.

    Args:
        upstream: How the server's process is run (``server_process``), or the URL at which it serves.
            Each client has a process, or a connection, of its own.
        clients: Tokens by actor.
        governor: The Governor; ``None`` for the default one.
        server: Your name for the server: a part of its tools' namespace.
        facts: Facts of its tools, by name or glob.
        pins: What was accepted of its tools; without it any description is taken.
        timeout: Seconds that one request to it may take.
    """

    def __init__(
        self,
        upstream: ServerProcess | str,
        clients: Mapping[str, str],
        governor: Runtime | None = None,
        *,
        server: str,
        facts: Mapping[str, GovernOptions] | None = None,
        pins: Pins | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self._upstream = upstream
        self._tokens = clients
        self._governor = governor
        self._server = server
        self._facts = facts
        self._pins = pins
        self._timeout = timeout
        self._clients: dict[bytes, _Client] = {}
        self._open = AsyncExitStack()

    async def __aenter__(self) -> HttpProxy:
        for actor, token in self._tokens.items():
            client = await self._open.enter_async_context(self._serving(actor))
            self._clients[_hashed(token)] = client
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._clients.clear()
        await self._open.__aexit__(*error)

    @asynccontextmanager
    async def _serving(self, actor: str) -> AsyncIterator[_Client]:
        async with Upstream(self._upstream, timeout=self._timeout) as behind:
            tools = ServerTools(self._governor, self._server, facts=self._facts, pins=self._pins)
            proxy = governed_proxy(behind, tools)
            # a page of a browser that has found the port (DNS rebinding) sends an Origin
            security = TransportSecuritySettings(allowed_hosts=_OWN_NAMES)
            sessions = StreamableHTTPSessionManager(proxy, security_settings=security)
            async with sessions.run():
                yield _Client(actor, new_id("mcp"), sessions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by the server of the client whose token it has."""
        if scope["type"] != "http":
            return
        if scope["path"] != PATH:
            await PlainTextResponse("Not Found", 404)(scope, receive, send)
            return
        client = self._client_of(Headers(scope=scope))
        if client is None:
            refused = PlainTextResponse("Unauthorized", 401, {"WWW-Authenticate": "Bearer"})
            await refused(scope, receive, send)
            return
        with agent_context(actor=client.actor, session_id=client.session_id):
            await client.sessions.handle_request(scope, receive, send)

    def _client_of(self, headers: Headers) -> _Client | None:
        given = headers.getlist("authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() != "bearer":
            return None
        # found by its digest, so that the time it takes says nothing of the token
        return self._clients.get(_hashed(token))


async def serve_http(proxy: HttpProxy, listening: socket.socket) -> None:
    """Serve a proxy's clients until the process is stopped.

    Args:
        proxy: The proxy.
        listening: A bound socket of a loopback address.
    """
    config = uvicorn.Config(
        proxy, lifespan="off", log_config=None, access_log=False, server_header=False
    )
    async with proxy:
        await uvicorn.Server(config).serve(sockets=[listening])


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
