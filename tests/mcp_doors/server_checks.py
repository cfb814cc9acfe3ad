"""The test of doors for a governed MCP server, of whatever release of the SDK.

A call that waits goes on when the client makes it again; the model's id of a call does not reach a
server.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.mcp import govern_server
from agenttool_otel.names import Mcp
from agenttool_otel.testing import capture
from agenttool_otel.testing.doors import DOOR_CHECKS, SCHEMA, DoorDriver

_ARGUMENTS: Final = {"word": "tree"}  # of the checks' calls that wait
_CALLS: Final = 8

# a question is kept by the server that asked it, MCP has ids of requests in place of a model's, and a
# list is filtered by a policy that knows surfaces: the checks below
_OTHERWISE: Final = {
    "approved_call_resumes_in_another_process",
    "native_id_is_recorded",
    "parallel_calls_are_apart",
    "schema_is_unchanged",
}


class ServersDriver(DoorDriver):
    """Connects anew for each call; the server stays, and what it has asked about."""

    is_async = True

    @abstractmethod
    def serve(self, tool: Any) -> Any:
        """Return a server with a tool."""

    @abstractmethod
    def connected(self, server: Any) -> AbstractAsyncContextManager[Any]:
        """Return a client's connection to a server."""

    def govern(self, governor: Governor, tool: Any) -> Any:
        facts: Any = {tool.tool.name: {"read_only": True, "concurrency_safe": True}}
        return govern_server(self.serve(tool), governor, facts=facts, one_client=True)

    async def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> Any:
        async with self.connected(tool) as client:
            return await client.call_tool("look_up", dict(arguments))

    async def resume(self, tool: Any, ref: str) -> Any:
        return await self.call(tool, _ARGUMENTS, "")


def a_client_is_shown_the_tools_own_schema(driver: ServersDriver) -> None:
    async def listed(client: Any) -> Any:
        return (await client.list_tools()).tools

    (shown,), _ = _served(driver, listed)
    assert shown.model_dump(by_alias=True)["inputSchema"] == SCHEMA


def parallel_calls_have_their_own_results_and_ids(driver: ServersDriver) -> None:
    words = [f"word{number}" for number in range(_CALLS)]

    async def call_all(client: Any) -> list[Any]:
        return await asyncio.gather(*(client.call_tool("look_up", {"word": w}) for w in words))

    given, spans = _served(driver, call_all)
    assert [driver.text(each) for each in given] == [f"found {word}" for word in words]
    assert len({span.attributes[Mcp.REQUEST_ID] for span in spans}) == _CALLS


SERVER_CHECKS: Final[tuple[Callable[[ServersDriver], None], ...]] = (
    *(check for check in DOOR_CHECKS if check.__name__ not in _OTHERWISE),
    a_client_is_shown_the_tools_own_schema,
    parallel_calls_have_their_own_results_and_ids,
)


def _served(driver: ServersDriver, talk: Callable[[Any], Awaitable[Any]]) -> tuple[Any, Any]:
    """Return what a client of a governed server gets, and the spans."""

    async def look_up(arguments: dict[str, Any]) -> str:
        await asyncio.sleep(0)
        return f"found {arguments['word']}"

    async def run(server: Any) -> Any:
        async with driver.connected(server) as client:
            return await talk(client)

    with capture() as captured:
        tool = driver.make("look_up", "Look a word up.", SCHEMA, look_up)
        given = asyncio.run(run(driver.govern(captured.governor, tool)))
        return given, captured.spans
