"""The server behind a proxy: its process is started, watched, and started again after it ended."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from agenttool_otel.integrations.mcp.calls import McpServerFailed

_logger = logging.getLogger("agenttool_otel.mcp")
_OWN_VARIABLES: Final = ("AGENTTOOL_", "OTEL_")
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


class Upstream:
    """A server that is run as a process, over its standard input and output.

    Use it as an asynchronous context manager. A process that ended is started again at the next
    request, never in the middle of one: what it was doing may have happened.

    Args:
        command: The program and its arguments.
        timeout: Seconds that one request may take.
    """

    def __init__(self, command: Sequence[str], *, timeout: float) -> None:
        self._parameters = StdioServerParameters(
            command=command[0],
            args=list(command[1:]),
            env=server_environment(os.environ),
        )
        self._timeout = timeout
        self._tasks: TaskGroup = anyio.create_task_group()
        self._starting = anyio.Lock()
        self._client: Client | None = None
        self._ended = anyio.Event()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._ended.set()
        return await self._tasks.__aexit__(kind, error, trace)

    async def request(self, ask: Callable[[Client], Awaitable[_T]]) -> _T:
        """Ask the server, which is started where it does not run.

        Args:
            ask: Sends one request.

        Raises:
            McpServerFailed: It can't be started, ended in the meantime, or gave no answer that can
                be read.
            MCPError: It answered with an error.
        """
        client = await self._connected()
        try:
            return await ask(client)
        except MCPError as error:
            if error.error.code != CONNECTION_CLOSED:
                raise
            self._forget(client)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._forget(client)
        except (ValidationError, RuntimeError) as error:
            # {"content": 3}; its text would hold the answer, which nobody has redacted
            raise McpServerFailed(
                f"the server's answer is no result of MCP ({type(error).__name__})"
            ) from None
        raise McpServerFailed(
            "the server ended during the request, which is not repeated: it may have run."
            " The server is started again at the next request."
        )

    async def _connected(self) -> Client:
        async with self._starting:
            if self._client is None:
                try:
                    self._client = await self._tasks.start(self._hold)
                except Exception as error:
                    _logger.error("the server can't be started: %s", error)
                    raise McpServerFailed(
                        f"the server can't be started ({type(error).__name__})"
                    ) from None
            return self._client

    def _forget(self, client: Client) -> None:
        if self._client is client:
            self._client = None
            self._ended.set()

    async def _hold(self, *, task_status: TaskStatus[Client]) -> None:
        """Hold a connection, in a task of its own, until it ended."""
        ended = self._ended = anyio.Event()
        client = Client(
            self._parameters,
            read_timeout_seconds=self._timeout,
            # a list is filtered by the policy as it is now
            cache=None,
        )
        started = False
        try:
            async with client:
                started = True
                task_status.started(client)
                await ended.wait()
        except Exception as error:
            if not started:
                raise
            # of a process that ended: the proxy goes on
            _logger.warning("the server's connection ended: %s", type(error).__name__)
