"""The server behind a proxy: it is connected, watched, and connected again after it ended."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import anyio
from anyio.abc import TaskGroup
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from agenttool_otel.call.sandbox import ProcessSandbox
from agenttool_otel.integrations.mcp.calls import McpServerFailed
from agenttool_otel.integrations.mcp.held import HeldServer, ServerProcess
from agenttool_otel.integrations.mcp.stdio import MAX_LINE_BYTES, bounded_stdio

_logger = logging.getLogger("agenttool_otel.mcp")
_OWN_VARIABLES: Final = ("AGENTTOOL_", "OTEL_")
_CLOSED: Final = "Connection closed"
_ENDED: Final = (
    "the server ended during the request, which is not repeated: it may have run."
    " The server is started again at the next request."
)
_T = TypeVar("_T")


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a server gets: those of the proxy, without this package's own, with
    which it could reach the approval store.

    Args:
        environment: The variables of the proxy's process.
    """
    return {
        name: value for name, value in environment.items() if not name.startswith(_OWN_VARIABLES)
    }


def server_process(command: Sequence[str]) -> StdioServerParameters:
    """Return how a server is run as a process, over its standard input and output.

    Args:
        command: The program and its arguments.
    """
    return StdioServerParameters(
        command=command[0],
        args=list(command[1:]),
        env=server_environment(os.environ),
        # read strictly, the byte 0xff ends the reader, and every request waits for its time-out
        encoding_error_handler="replace",
    )


class _Connection:
    """One connection to a server, held by a task of its own.

    No request starts it in its own task: a client that cancels its request then would end a server
    that others wait for, and with it the proxy.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.over = False
        """Whether it could not be made, or has ended."""
        self.failure = ""
        """The name of the error that ended it."""
        self._made = anyio.Event()
        self._ended = anyio.Event()
        self._scope = anyio.CancelScope()

    async def hold(self) -> None:
        """Connect, and hold the connection until ``end`` is called."""
        try:
            with self._scope:
                await self._hold()
        except Exception as error:
            # of a process that ended, or is no server: the proxy goes on
            self.failure = type(error).__name__
            _logger.warning("the server's connection ended: %s", self.failure)
        finally:
            self.over = True
            self._made.set()

    async def _hold(self) -> None:
        async with self.client:
            self._made.set()
            await self._ended.wait()

    async def made(self) -> None:
        """Wait until it is made, or has failed."""
        await self._made.wait()

    def end(self) -> None:
        """End it; where it is not made yet, at once."""
        self._ended.set()
        if not self._made.is_set():
            self._scope.cancel()


class Upstream:
    """A server that is run as a process or reached by its URL.

    Use it as an asynchronous context manager. A server that ended is connected again at the next
    request, never in the middle of one: what it was doing may have happened.

    Args:
        server: How its process is run (``server_process``, and under a profile ``held_server``), or the
            URL at which it serves (streamable HTTP).
        timeout: Seconds that one request may take.
        max_line_bytes: Bytes of one message of a process; a longer one ends it.
    """

    def __init__(
        self,
        server: ServerProcess | str,
        *,
        timeout: float,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        # of its own: a held one has the secrets that the process of this connection can't read
        self._server = replace(server) if isinstance(server, HeldServer) else server
        self._timeout = timeout
        self._max_line_bytes = max_line_bytes
        self._tasks: TaskGroup = anyio.create_task_group()
        self._connection: _Connection | None = None

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if self._connection is not None:
            self._connection.end()
        return await self._tasks.__aexit__(kind, error, trace)

    @property
    def sandbox(self) -> ProcessSandbox | None:
        """What holds its process, and each that takes its place; ``None`` where nothing does."""
        return self._server.sandbox if isinstance(self._server, HeldServer) else None

    async def request(self, ask: Callable[[Client], Awaitable[_T]]) -> _T:
        """Ask the server, which is started where it does not run.

        Args:
            ask: Sends one request.

        Raises:
            McpServerFailed: It can't be started, ended in the meantime, or gave no answer that can
                be read.
            MCPError: It answered with an error.
        """
        connection = await self._connected()
        try:
            return await ask(connection.client)
        except MCPError as error:
            if not _is_closed(error):
                raise
        except (ValidationError, RuntimeError) as error:
            if not connection.over:
                # {"content": 3}; its text would hold the answer, which nobody has redacted
                raise McpServerFailed(
                    f"the server's answer is no result of MCP ({type(error).__name__})"
                ) from None
        except Exception as error:
            _logger.warning("a request to the server failed: %s", type(error).__name__)
        self._forget(connection)
        raise McpServerFailed(_ENDED)

    async def _connected(self) -> _Connection:
        connection = self._connection
        if connection is None or connection.over:
            connection = self._connection = _Connection(self._new_client())
            self._tasks.start_soon(connection.hold)
        await connection.made()
        if connection.over:
            raise McpServerFailed(f"the server can't be started ({connection.failure})")
        return connection

    def _new_client(self) -> Client:
        server: Any = self._server
        if not isinstance(server, str):
            server = bounded_stdio(server, self._max_line_bytes)
        return Client(
            server,
            read_timeout_seconds=self._timeout,
            # a list is filtered by the policy as it is now
            cache=None,
        )

    def _forget(self, connection: _Connection) -> None:
        connection.end()
        if self._connection is connection:
            self._connection = None


def _is_closed(error: MCPError) -> bool:
    # servers of their own answer with -32000, too, and have not ended
    return error.error.code == CONNECTION_CLOSED and error.error.message == _CLOSED
