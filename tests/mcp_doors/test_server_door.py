"""A governed server of the SDK 2.x does what each door has to do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import Client
from server_driver import ServerDriver

from agenttool_otel.names import Mcp
from agenttool_otel.testing import capture
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
