"""A governed server of the SDK 2.x does what each door has to do."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from server_driver import ServerDriver

from agenttool_otel.integrations.mcp import govern_server
from agenttool_otel.names import Attr, Mcp
from agenttool_otel.testing import StaticEngine, capture
from agenttool_otel.testing.doors import DOOR_CHECKS, SCHEMA

# a question is kept by the server that asked it, MCP has ids of requests in place of a model's, and a
# list is filtered by a policy that knows surfaces: below
ELSEWHERE = {
    "approved_call_resumes_in_another_process",
    "native_id_is_recorded",
    "parallel_calls_are_apart",
    "schema_is_unchanged",
}


@pytest.mark.parametrize(
    "check",
    [check for check in DOOR_CHECKS if check.__name__ not in ELSEWHERE],
    ids=lambda check: check.__name__,
)
def test_the_door_passes(check: Any) -> None:
    check(ServerDriver())


async def look_up(arguments: dict[str, Any]) -> str:
    await asyncio.sleep(0)
    return f"found {arguments['word']}"


def test_a_client_is_shown_the_tools_own_schema() -> None:
    async def listed(server: Any) -> list[Any]:
        async with Client(server) as client:
            return (await client.list_tools()).tools

    driver = ServerDriver()
    with capture() as captured:
        tool = driver.make("look_up", "Look a word up.", SCHEMA, look_up)
        (shown,) = asyncio.run(listed(driver.govern(captured.governor, tool)))
    assert shown.input_schema == SCHEMA


def test_parallel_calls_have_their_own_results_and_ids() -> None:
    async def call_all(server: Any) -> list[str]:
        async with Client(server) as client:
            calls = [client.call_tool("look_up", {"word": str(number)}) for number in range(8)]
            return [result.content[0].text for result in await asyncio.gather(*calls)]

    driver = ServerDriver()
    with capture() as captured:
        tool = driver.make("look_up", "Look a word up.", SCHEMA, look_up)
        texts = asyncio.run(call_all(driver.govern(captured.governor, tool)))
        ids = {span.attributes[Mcp.REQUEST_ID] for span in captured.spans if span.attributes}
    assert texts == [f"found {number}" for number in range(8)]
    assert len(ids) == 8


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_call_that_the_client_cancels_ends_as_canceled(era: Any) -> None:
    started = asyncio.Event()

    async def wait(arguments: dict[str, Any]) -> str:
        started.set()
        await asyncio.sleep(60)
        return "was not canceled"

    async def cancel(server: Any) -> None:
        async with Client(server, mode=era) as client:
            call = asyncio.create_task(client.call_tool("look_up", {"word": "tree"}))
            await started.wait()
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call

    driver = ServerDriver()
    with capture(policy=StaticEngine("allow")) as captured:
        tool = driver.make("look_up", "Look a word up.", SCHEMA, wait)
        asyncio.run(cancel(driver.govern(captured.governor, tool)))
        attributes: Any = captured.span.attributes
    assert attributes[Attr.INVOCATION_STATUS] == "canceled"


@pytest.mark.parametrize("governed_first", [True, False])
def test_the_order_of_decorators_opens_no_way(governed_first: bool) -> None:
    ran: list[str] = []

    def look_up(word: str) -> str:
        ran.append(word)
        return word

    async def call(server: Any) -> Any:
        async with Client(server) as client:
            return await client.call_tool("look_up", {"word": "tree"})

    server = MCPServer("words")
    with capture(policy=StaticEngine("deny")) as captured:
        if governed_first:
            server.tool()(captured.governor.govern(look_up))
        else:
            # the server's own table has the plain function
            captured.governor.govern(server.tool()(look_up))
            govern_server(server, captured.governor)
        result = asyncio.run(call(server))
    assert result.is_error
    assert not ran
