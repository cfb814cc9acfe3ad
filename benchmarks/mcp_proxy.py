"""What ``agenttool mcp proxy`` adds to a call, beside a proxy of the same SDK that decides nothing.

``python -m benchmarks.mcp_proxy``: the SDK's own client, a proxy as a process, and a server as a
process, over standard input and output. Two of each live in one run, and are called in turns; half
of the calls have arguments that were not seen before. CPU is that of the proxy's process alone, as the
quieter quarter of the turns has it: what else the machine does makes a call up to twice as dear.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

MOST_ADDED_MS = 1.5
MOST_CPU = 1.5
ROUNDS = 30
CALLS = 10
EACH = 2

SERVER = """\
import json, sys
TOOLS = [{"name": "read", "inputSchema": {
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}]
RESULTS = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "plain", "version": "1"}},
    "tools/list": {"tools": TOOLS},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in RESULTS:
        answer["result"] = RESULTS[message["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"""

BARE = """\
import sys
import anyio
from mcp import Client, StdioServerParameters
from mcp.server import Server
from mcp.server.stdio import stdio_server

async def main():
    behind = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with Client(behind, cache=None) as client:
        async def list_tools(ctx, params):
            return await client.list_tools(cursor=params.cursor if params else None)
        async def call_tool(ctx, params):
            return await client.call_tool(params.name, params.arguments)
        proxy = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (incoming, outgoing):
            await proxy.run(incoming, outgoing, proxy.create_initialization_options())

anyio.run(main)
"""


class Contestant:
    """A proxy as a process, with a client that is connected to it."""

    def __init__(self, client: Client, pid: int) -> None:
        self.client = client
        self.pid = pid
        self.wall: list[float] = []
        self.cpu: list[float] = []

    async def run(self, calls: int) -> None:
        """Make calls, and keep how long each took, and the CPU time of the proxy per call."""
        before = _cpu(self.pid)
        for number in range(calls):
            # every other call has a path that is new
            path = f"notes/{random.getrandbits(48)}.txt" if number % 2 else "notes/same.txt"
            start = time.perf_counter()
            result = await self.client.call_tool("read", {"path": path})
            self.wall.append((time.perf_counter() - start) * 1e3)
            if result.is_error:
                raise RuntimeError(f"the call did not run: {result.content}")
        self.cpu.append((_cpu(self.pid) - before) * 1e3 / calls)


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process, of all its threads."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _children() -> set[int]:
    own = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(pid) for task in own for pid in task.read_text().split()}


async def _started(stack: AsyncExitStack, folder: str, words: list[str]) -> Contestant:
    before = _children()
    command = StdioServerParameters(
        command=sys.executable, args=words, cwd=folder, env=dict(os.environ)
    )
    client = await stack.enter_async_context(Client(command))
    (pid,) = _children() - before
    contestant = Contestant(client, pid)
    await client.list_tools()
    await contestant.run(100)
    contestant.wall.clear()
    contestant.cpu.clear()
    return contestant


async def _measure(folder: str, rounds: int, calls: int) -> dict[str, tuple[float, float]]:
    server = [sys.executable, "-S", "-E", "-c", SERVER]
    proxy = ["-m", "agenttool_otel.cli", "mcp", "proxy", "--facts", "facts.json", "--"]
    words = {"bare": ["-c", BARE, *server], "governed": [*proxy, *server]}
    async with AsyncExitStack() as stack:
        contestants: dict[str, list[Contestant]] = {name: [] for name in words}
        for name in [*words] * EACH:
            contestants[name].append(await _started(stack, folder, words[name]))
        turns = [each for several in contestants.values() for each in several]
        for _ in range(rounds):
            random.shuffle(turns)
            for each in turns:
                await each.run(calls)
    return {name: _summary(several) for name, several in contestants.items()}


def _summary(contestants: list[Contestant]) -> tuple[float, float]:
    wall = statistics.median(took for each in contestants for took in each.wall)
    cpu, *_ = statistics.quantiles(took for each in contestants for took in each.cpu)
    return wall, cpu


def times(rounds: int = ROUNDS, calls: int = CALLS) -> dict[str, tuple[float, float]]:
    """Return milliseconds of a call at the median, and CPU milliseconds of the proxy per call at the
    lower quartile.
    """
    with tempfile.TemporaryDirectory() as folder:
        facts = {"read": {"read_only": True, "concurrency_safe": True, "path_args": ["path"]}}
        Path(folder, "facts.json").write_text(json.dumps(facts))
        return asyncio.run(_measure(folder, rounds, calls))


def bars() -> list[tuple[str, float, float, str]]:
    """Rows of the table of bars."""
    found = times()
    (bare, bare_cpu), (governed, cpu) = found["bare"], found["governed"]
    return [
        ("MCP proxy: added at the median (ms)", governed - bare, MOST_ADDED_MS,
         f"{governed:.2f} ms; {bare:.2f} ms without a decision"),
        ("MCP proxy: CPU", cpu / bare_cpu, MOST_CPU,
         f"{cpu:.2f} ms; {bare_cpu:.2f} ms for a bare proxy"),
    ]  # fmt: skip


def rows() -> list[tuple[str, Any]]:
    """No parts of its own."""
    return []


if __name__ == "__main__":
    for what, measured, bar, both in bars():
        print(f"{what}: {measured:.2f} (<= {bar}); {both}")
