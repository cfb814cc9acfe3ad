"""Client sessions and servers of MCP's Python SDK 1.x."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

import pytest

if not version("mcp").startswith("1."):
    pytest.skip("mcp 2 is installed: tools/frameworks.py", allow_module_level=True)

import mcp
import mcp.types as types
from mcp.server.fastmcp import FastMCP
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_connected_server_and_client_session as connected
from mcp_1_driver import FirstMcpDriver, FirstServerDriver
from server_checks import SERVER_CHECKS

from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.integrations.mcp import govern_server, govern_session
from agenttool_otel.names import Attr, Mcp
from agenttool_otel.testing import Capture, StaticEngine, capture
from agenttool_otel.testing.doors import DOOR_CHECKS

FACTS: Any = {"read": {"read_only": True}}
Talk = Callable[[Any], Awaitable[Any]]


def files(ran: list[str]) -> Any:
    server = FastMCP("files")

    @server.tool()
    def read(path: str) -> str:
        """Read a file."""
        ran.append(path)
        return f"the text of {path}"

    return server


def talk(server: Any, say: Talk, **options: Any) -> Any:
    """Return what is said by a client that is connected to a server."""

    async def run() -> Any:
        async with connected(server, **options) as session:
            return await say(session)

    return asyncio.run(run())


async def read_a(session: Any) -> Any:
    return await session.call_tool("read", {"path": "a"})


def served(ran: list[str], captured: Capture, **options: Any) -> Any:
    return govern_server(files(ran), captured.governor, facts=FACTS, **options)


@pytest.mark.parametrize("check", DOOR_CHECKS, ids=lambda check: check.__name__)
def test_the_door_of_sessions_passes(check: Any) -> None:
    check(FirstMcpDriver())


@pytest.mark.parametrize("check", SERVER_CHECKS, ids=lambda check: check.__name__)
def test_the_door_of_servers_passes(check: Any) -> None:
    check(FirstServerDriver())


def test_a_call_by_send_request_is_refused() -> None:
    async def go_round(session: Any) -> None:
        governed = govern_session(session, captured.governor, server="files")
        params = types.CallToolRequestParams(name="read", arguments={"path": "a"})
        request = types.CallToolRequest(method="tools/call", params=params)
        with pytest.raises(ConfigurationError):
            await governed.send_request(types.ClientRequest(request), types.CallToolResult)
        with pytest.raises(AttributeError):
            _ = governed.experimental

    ran: list[str] = []
    with capture(policy=StaticEngine("allow")) as captured:
        talk(files(ran), go_round)
    assert not ran


def test_a_server_gets_the_trace_of_a_session() -> None:
    seen: list[Any] = []
    server: Any = FastMCP("files")

    @server.tool()
    def read(path: str) -> str:
        seen.append(server.get_context().request_context.meta)
        return path

    async def call(session: Any) -> None:
        await govern_session(session, captured.governor, server="files", facts=FACTS).call_tool(
            "read", {"path": "a"}
        )

    with capture(policy=StaticEngine("allow")) as captured:
        talk(server, call)
        trace_id = f"{captured.span.context.trace_id:032x}"
    assert trace_id in seen[0].traceparent


def test_a_sessions_span_has_the_protocols_version() -> None:
    async def call(session: Any) -> None:
        governed = govern_session(session, captured.governor, server="files", facts=FACTS)
        await governed.initialize()
        await governed.call_tool("read", {"path": "a"})
        # it is the session's, and not that of who governs it
        again = govern_session(session, captured.governor, server="files", facts=FACTS)
        await again.call_tool("read", {"path": "b"})

    with capture(policy=StaticEngine("allow")) as captured:
        talk(files([]), call)
        versions = [span.attributes.get(Mcp.PROTOCOL_VERSION) for span in captured.spans]
    assert versions == [types.LATEST_PROTOCOL_VERSION] * 2


def test_an_allowed_call_of_a_server_runs() -> None:
    ran: list[str] = []
    with capture(policy=StaticEngine("allow")) as captured:
        result = talk(served(ran, captured), read_a)
        attributes = captured.span.attributes
    assert result.content[0].text == "the text of a"
    assert result.structuredContent == {"result": "the text of a"}
    assert ran == ["a"]
    assert attributes[Attr.TOOL_ID] == "mcp.files.read"
    assert attributes[Mcp.PROTOCOL_VERSION] == types.LATEST_PROTOCOL_VERSION


def test_a_denied_call_of_a_server_does_not_run() -> None:
    ran: list[str] = []
    with capture(policy=StaticEngine("deny")) as captured:
        result = talk(served(ran, captured), read_a)
    assert result.isError
    assert result.meta["agenttool/result"]["status"] == "denied"
    assert not ran


def test_a_call_that_the_client_cancels_ends_as_canceled() -> None:
    server: Any = FastMCP("files")

    async def cancel(session: Any) -> None:
        started: asyncio.Queue[Any] = asyncio.Queue()

        @server.tool()
        async def read(path: str) -> None:
            started.put_nowait(server.get_context().request_context.request_id)
            await asyncio.sleep(60)

        call = asyncio.create_task(read_a(session))
        params = types.CancelledNotificationParams(requestId=await started.get())
        notification = types.CancelledNotification(params=params)
        await session.send_notification(types.ClientNotification(notification))
        with pytest.raises(mcp.McpError, match="cancelled"):
            await call

    with capture(policy=StaticEngine("allow")) as captured:
        talk(govern_server(server, captured.governor, facts=FACTS), cancel)
        assert captured.span.attributes[Attr.INVOCATION_STATUS] == "canceled"
    assert captured.governor.running() == []


def test_a_server_runs_no_task() -> None:
    async def call(session: Any) -> None:
        task = types.TaskMetadata(ttl=1000)
        params = types.CallToolRequestParams(name="read", arguments={"path": "a"}, task=task)
        request = types.CallToolRequest(method="tools/call", params=params)
        with pytest.raises(mcp.McpError, match="runs no tasks"):
            await session.send_request(types.ClientRequest(request), types.CreateTaskResult)

    ran: list[str] = []
    with capture(policy=StaticEngine("allow")) as captured:
        talk(served(ran, captured), call)
    assert not ran


def test_a_tool_that_a_server_gets_later_is_governed() -> None:
    ran: list[str] = []
    server: Any = Server("files")
    with capture(policy=StaticEngine("deny")) as captured:
        govern_server(server, captured.governor)

        @server.list_tools()
        async def list_tools() -> list[Any]:
            schema: Any = {"type": "object"}
            return [types.Tool(name="read", inputSchema=schema)]  # type: ignore[call-arg]

        @server.call_tool()
        async def call_tool(name: str, arguments: Any) -> list[Any]:
            ran.append(name)
            return []

        result = talk(server, read_a)
    assert result.isError
    assert not ran


def test_a_servers_list_has_no_output_schema() -> None:
    async def listed(session: Any) -> Any:
        return (await session.list_tools()).tools

    with capture() as captured:
        (tool,) = talk(served([], captured), listed)
    assert tool.name == "read"
    assert tool.outputSchema is None


@pytest.mark.parametrize(("approve", "runs"), [(True, True), (False, False)])
def test_the_clients_person_decides(approve: bool, runs: bool) -> None:
    async def answer(context: Any, params: Any) -> Any:
        assert "read" in params.message
        return types.ElicitResult(action="accept", content={"approve": approve})

    ran: list[str] = []
    with capture(policy=StaticEngine("ask")) as captured:
        result = talk(served(ran, captured), read_a, elicitation_callback=answer)
    assert bool(ran) is runs
    assert result.isError is not runs


def test_a_client_without_questions_gets_a_pending_call() -> None:
    ran: list[str] = []
    with capture(policy=StaticEngine("ask")) as captured:
        server = served(ran, captured, one_client=True)
        pending = talk(server, read_a)
        found = pending.meta["agenttool/result"]
        yes = ApprovalAnswer(approved=True, answered_by="user:kit")
        captured.governor.approvals.store.answer(found["request_id"], yes)
        result = talk(server, read_a)
    assert found["status"] == "pending"
    assert result.content[0].text == "the text of a"
    assert ran == ["a"]


def test_a_clients_trace_goes_on_in_a_server() -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    meta = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}

    async def call(session: Any) -> None:
        await session.call_tool("read", {"path": "a"}, meta=meta)

    with capture(policy=StaticEngine("allow")) as captured:
        talk(served([], captured), call)
        assert f"{captured.span.context.trace_id:032x}" == trace_id
