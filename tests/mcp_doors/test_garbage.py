"""Bytes that are no MCP, from either side, end no proxy and let no denied call through."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp.server import Server
from mcp.server.stdio import stdio_server

from agenttool_otel.integrations.mcp import govern_server
from agenttool_otel.integrations.mcp.proxy import proxy_of
from agenttool_otel.integrations.mcp.upstream import Upstream, server_process
from agenttool_otel.testing import StaticEngine, capture, decision

PLAIN = Path(__file__).with_name("plain_server.py")
POLICY = {"read": decision("allow"), "drop": decision("deny")}
FACTS: Any = {"read": {"read_only": True}}
PATIENCE = 120.0
PLACES = ["start", "server/discover", "initialize", "tools/list", "tools/call"]
NEARLY = [
    b'{"jsonrpc":"2.0","id":2,"result":3}',
    b'{"jsonrpc":"2.0","id":2,"result":{"content":3}}',
    b'{"jsonrpc":"2.0","id":3,"error":3}',
    b'{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Connection closed"}}',
    b'{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"read"}]}}',
    b'{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}',
    b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":7}',
    b"[" * 3_000,
    b'"\xed\xa0\x80"',
    b"\xff",
]
LINES = st.lists(st.binary(max_size=30) | st.sampled_from(NEARLY), min_size=1, max_size=4)
SLOW = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
pytestmark = pytest.mark.slow
"""Each example starts a process or more."""


class Behind:
    """A proxy in this process, and behind it the plain server."""

    def __init__(self, folder: Path, place: str, data: bytes) -> None:
        self.bytes = folder / "bytes"
        self.bytes.write_bytes(data)
        self.calls = folder / "calls"
        self.calls.write_text("")
        self.command = [sys.executable, "-S", "-E", str(PLAIN), place]
        self.command += [str(self.bytes), str(self.calls)]

    def run(
        self, use: Callable[[Server[Any]], Awaitable[Any]], timeout: float = 10.0, **bounds: int
    ) -> Any:
        """Use the proxy's server."""

        async def used() -> Any:
            process = server_process(self.command)
            async with Upstream(process, timeout=timeout, **bounds) as upstream:
                proxy = proxy_of(upstream, "plain")
                govern_server(proxy, captured.governor, facts=FACTS, one_client=True)
                with anyio.fail_after(PATIENCE):
                    return await use(proxy)

        with capture(policy=StaticEngine(POLICY)) as captured:
            return asyncio.run(used())


async def called(client: Client, name: str) -> bool:
    """Call a tool; return whether it ran. A failure is a typed error."""
    try:
        result = await client.call_tool(name, {})
    except MCPError:
        return False
    return not result.is_error


@SLOW
@given(place=st.sampled_from(PLACES), lines=LINES)
def test_a_servers_bytes_end_nothing(place: str, lines: list[bytes], tmp_path: Path) -> None:
    async def use(proxy: Server[Any]) -> tuple[bool, bool]:
        async with Client(proxy, mode="legacy") as client:
            await called(client, "read")
            dropped = await called(client, "drop")
            ran = [await called(client, "read") for _ in range(3)]
            return dropped, ran[-1]

    behind = Behind(tmp_path, place, b"\n".join(lines) + b"\n")
    assert behind.run(use) == (False, True)
    assert "drop" not in behind.calls.read_text()


def test_a_server_that_starts_in_vain_ends_nothing(tmp_path: Path) -> None:
    async def use(proxy: Server[Any]) -> tuple[bool, bool]:
        async with Client(proxy, mode="legacy") as client:
            # the client cancels its request while the server is started
            with anyio.move_on_after(1):
                await called(client, "read")
            return await called(client, "read"), await called(client, "read")

    assert Behind(tmp_path, "silent", b"\n").run(use, timeout=4.0)[1]


@pytest.mark.parametrize("place", ["initialize", "tools/call"])
def test_a_line_without_end_ends_its_server(place: str, tmp_path: Path) -> None:
    async def use(proxy: Server[Any]) -> tuple[bool, bool, str]:
        async with Client(proxy, mode="legacy") as client:
            first = await client.call_tool("read", {})
            second = await called(client, "read")
            return bool(first.is_error), second, str(first.content)

    # no newline in it, and the answer behind it never comes
    behind = Behind(tmp_path, place, b"x" * 3_000_000)
    failed, ran, why = behind.run(use, timeout=30.0, max_line_bytes=1_000_000)
    assert (failed, ran) == (True, True)
    assert "the server" in why


def test_a_long_line_within_the_bound_is_read(tmp_path: Path) -> None:
    async def use(proxy: Server[Any]) -> bool:
        async with Client(proxy, mode="legacy") as client:
            return await called(client, "read")

    filler = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"text":"%s"}}\n'
    behind = Behind(tmp_path, "tools/call", filler % (b"x" * 900_000))
    assert behind.run(use, timeout=30.0, max_line_bytes=1_000_000)


# --- the client's side ----------------------------------------------------------------------------


class Wire:
    """The proxy's standard input and output: lines in, and what was written."""

    def __init__(self, lines: list[bytes], last: int) -> None:
        self.lines = lines
        self.last = last
        self.written: list[str] = []
        self._answered = anyio.Event()

    async def __aiter__(self) -> AsyncIterator[str]:
        for line in self.lines:
            yield line.decode("utf-8", "replace")
        await self._answered.wait()

    async def write(self, text: str) -> None:
        self.written.append(text)
        if json.loads(text).get("id") == self.last:
            self._answered.set()

    async def flush(self) -> None:
        pass


def request(number: int, method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode()


START = request(
    1_001,
    "initialize",
    protocolVersion="2025-11-25",
    capabilities={},
    clientInfo={"name": "raw", "version": "1"},
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


@SLOW
@given(before=LINES, between=LINES)
def test_a_clients_bytes_end_nothing(
    before: list[bytes], between: list[bytes], tmp_path: Path
) -> None:
    async def use(proxy: Server[Any]) -> dict[int, Any]:
        drop = request(1_002, "tools/call", name="drop", arguments={})
        read = request(1_003, "tools/call", name="read", arguments={})
        wire: Any = Wire([*before, START, INITIALIZED, drop, *between, read], last=1_003)
        async with stdio_server(wire, wire) as (incoming, outgoing):
            await proxy.run(incoming, outgoing, proxy.create_initialization_options())
        return {each.get("id"): each for each in map(json.loads, wire.written)}

    behind = Behind(tmp_path, "", b"")
    answers = behind.run(use)
    assert answers[1_003]["result"]["content"][0]["text"] == "done"
    assert behind.calls.read_text() == "read\n"
