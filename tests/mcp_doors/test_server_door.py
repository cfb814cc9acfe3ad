"""A governed server of the SDK 2.x does what each door has to do."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from server_checks import SERVER_CHECKS
from server_driver import ServerDriver

from agenttool_otel.integrations.mcp import govern_server
from agenttool_otel.names import Attr
from agenttool_otel.testing import StaticEngine, capture
from agenttool_otel.testing.doors import SCHEMA


@pytest.mark.parametrize("check", SERVER_CHECKS, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(ServerDriver())


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
