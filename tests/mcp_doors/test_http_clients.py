"""Two clients of a proxy that serves over HTTP share nothing: who they are, their sessions, questions and
server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult
from proxy_program import FACTS, SERVER, meta

from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.integrations.mcp.http import HttpProxy, read_clients
from agenttool_otel.integrations.mcp.upstream import server_process
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

TOKENS = {f"agent:{name}": f"{name}-" + "t" * 30 for name in ("ann", "bob")}
POLICY = {name: decision("allow") for name in ("read", "process")} | {"write": decision("ask")}
Use = Callable[[str, Capture], Awaitable[Any]]


def served(use: Use) -> tuple[Any, Capture]:
    """Use the URL of a proxy; return what came of it, and what was recorded."""

    async def serving() -> Any:
        process = server_process([sys.executable, str(SERVER)])
        facts: Any = FACTS
        proxy = HttpProxy(process, TOKENS, captured.governor, server="files", facts=facts)
        with anyio.fail_after(200):
            async with proxy, listening(proxy) as url:
                return await use(url, captured)

    with capture(policy=StaticEngine(POLICY)) as captured:
        return asyncio.run(serving()), captured


@contextlib.asynccontextmanager
async def listening(app: HttpProxy) -> AsyncIterator[str]:
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
    task = asyncio.create_task(server.serve(sockets=[bound]))
    yield f"http://127.0.0.1:{bound.getsockname()[1]}/mcp"
    server.should_exit = True
    server.force_exit = True
    await task


@contextlib.asynccontextmanager
async def connected(url: str, name: str, **options: Any) -> AsyncIterator[Client]:
    """Connect the SDK's own client, with a client's token."""
    headers = {"Authorization": f"Bearer {TOKENS[f'agent:{name}']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=120) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, read_timeout_seconds=120, **options) as client:
            yield client


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_calls_are_of_their_own_client(mode: str) -> None:
    async def use(url: str, captured: Capture) -> list[Any]:
        async with (
            connected(url, "ann", mode=mode) as ann,
            connected(url, "bob", mode=mode) as bob,
            anyio.create_task_group() as tasks,
        ):
            found: list[Any] = []

            async def call(client: Client) -> None:
                found.append(await client.call_tool("process"))

            tasks.start_soon(call, ann)
            tasks.start_soon(call, bob)
        return found

    found, captured = served(use)
    # each has a process of the server
    assert len({result.structured_content["result"] for result in found}) == 2
    spans = [span.attributes for span in captured.spans if "agenttool.actor.id" in span.attributes]
    actors = {span["agenttool.actor.id"] for span in spans}
    assert actors == set(TOKENS)
    assert len({span["agenttool.session.id"] for span in spans}) == 2


@pytest.mark.slow
def test_an_approval_is_of_its_own_client() -> None:
    async def use(url: str, captured: Capture) -> tuple[Any, Any, Any]:
        async with connected(url, "ann") as ann, connected(url, "bob") as bob:
            asked = meta(await ann.call_tool("write", {"path": "a"}))
            answer = ApprovalAnswer(approved=True, answered_by="user:eve")
            captured.governor.approvals.store.answer(asked["request_id"], answer)
            others = await bob.call_tool("write", {"path": "a"})
            return asked, others, await ann.call_tool("write", {"path": "a"})

    (asked, others, own), _ = served(use)
    assert meta(others)["status"] == "pending"
    assert meta(others)["request_id"] != asked["request_id"]
    assert own.content[0].text == "wrote a"


@pytest.mark.slow
def test_a_questions_state_is_of_its_own_client() -> None:
    async def later(context: Any, params: Any) -> ElicitResult:
        raise AssertionError("this client does not ask by itself")

    async def use(url: str, captured: Capture) -> str:
        async with (
            connected(url, "ann", mode="2026-07-28", elicitation_callback=later) as ann,
            connected(url, "bob", mode="2026-07-28", elicitation_callback=later) as bob,
        ):
            asked: Any = await ann.session.call_tool(
                "write", {"path": "a"}, allow_input_required=True
            )
            answer = ElicitResult(action="accept", content={"approve": True})
            with pytest.raises(MCPError) as refused:
                await bob.session.call_tool(
                    "write",
                    {"path": "a"},
                    request_state=asked.request_state,
                    input_responses={"approval": answer},
                    allow_input_required=True,
                )
            return refused.value.error.message

    assert served(use)[0] == "unknown requestState"


@pytest.mark.slow
def test_a_session_is_of_its_own_client() -> None:
    async def post(url: str, name: str, session: str, **message: Any) -> httpx2.Response:
        headers = {
            "Authorization": f"Bearer {TOKENS.get(f'agent:{name}', 'of nobody')}",
            "Accept": "application/json, text/event-stream",
        }
        if session:
            headers["mcp-session-id"] = session
        async with httpx2.AsyncClient(timeout=120) as http:
            return await http.post(url, headers=headers, json={"jsonrpc": "2.0", **message})

    async def use(url: str, captured: Capture) -> list[int]:
        start = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        begun = await post(url, "ann", "", id=1, method="initialize", params=start)
        session = begun.headers["mcp-session-id"]
        statuses = [begun.status_code]
        for name in ("ann", "bob", "carl"):
            pinged = await post(url, name, session, id=2, method="ping")
            statuses.append(pinged.status_code)
        return statuses

    assert served(use)[0] == [200, 200, 404, 401]


@pytest.mark.parametrize(
    ("clients", "mode"),
    [
        (TOKENS, 0o644),
        ({}, 0o600),
        ({"agent:ann": "short"}, 0o600),
        ({"agent:ann": "t" * 30, "agent:bob": "t" * 30}, 0o600),
    ],
)
def test_tokens_that_prove_nothing_are_refused(clients: Any, mode: int, tmp_path: Path) -> None:
    path = tmp_path / "clients.json"
    path.write_text(json.dumps(clients))
    path.chmod(mode)
    with pytest.raises(ConfigurationError):
        read_clients(path)
