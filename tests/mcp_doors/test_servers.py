"""Governed servers of the SDK: calls are decided before the tool runs, and a person is asked by the
client.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ElicitResult, ListToolsResult, TextContent, Tool

from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.integrations.mcp import govern_server
from agenttool_otel.names import AnswerWay
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

FACTS: Any = {"read": {"read_only": True}}
ERAS = ["legacy", "2026-07-28"]


def files(ran: list[str]) -> MCPServer:
    server = MCPServer("files")

    @server.tool()
    def read(path: str) -> str:
        """Read a file."""
        ran.append(path)
        return f"the text of {path}"

    return server


def client_of(server: Any, era: str = "legacy", answer: ElicitResult | None = None) -> Client:
    async def elicit(context: Any, params: Any) -> ElicitResult:
        assert answer is not None
        asked.append(params.message)
        return answer

    asked: list[str] = []
    client = Client(server, mode=era, elicitation_callback=None if answer is None else elicit)
    client.asked = asked  # type: ignore[attr-defined]
    return client


def called(captured: Capture, client: Client, times: int = 1, **options: Any) -> Any:
    async def call() -> Any:
        async with client:
            for _ in range(times):
                result = await client.call_tool("read", {"path": "a.txt"})
        return result

    return asyncio.run(call())


@pytest.mark.parametrize("era", ERAS)
def test_an_allowed_call_runs(era: str) -> None:
    ran: list[str] = []
    with capture(policy=StaticEngine("allow")) as captured:
        server = govern_server(files(ran), captured.governor, facts=FACTS)
        result = called(captured, client_of(server, era))
    assert result.content[0].text == "the text of a.txt"
    assert result.structured_content == {"result": "the text of a.txt"}
    assert ran == ["a.txt"]


@pytest.mark.parametrize("era", ERAS)
def test_a_denied_call_does_not_run(era: str) -> None:
    ran: list[str] = []
    with capture(policy=StaticEngine("deny")) as captured:
        server = govern_server(files(ran), captured.governor, facts=FACTS)
        result = called(captured, client_of(server, era))
    assert result.is_error
    assert ran == []


def test_the_requests_ids_are_on_the_span() -> None:
    with capture(policy=StaticEngine("deny")) as captured:
        server = govern_server(files([]), captured.governor, facts=FACTS)
        called(captured, client_of(server))
        attributes = captured.span.attributes
    assert attributes["mcp.method.name"] == "tools/call"
    assert attributes["jsonrpc.request.id"]


def test_a_low_level_server_is_governed() -> None:
    ran: list[Any] = []

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="read", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: Any) -> Any:
        ran.append(params)
        raise AssertionError

    with capture(policy=StaticEngine("deny")) as captured:
        server = Server("low", on_list_tools=list_tools, on_call_tool=call_tool)
        govern_server(server, captured.governor)
        assert called(captured, client_of(server)).is_error
    assert ran == []


def test_a_redacted_result_reaches_the_client() -> None:
    policy = decision("allow", obligations={"redact_result": ["*"]})
    with capture(policy=StaticEngine({"read": policy})) as captured:
        server = govern_server(files([]), captured.governor, facts=FACTS)

        async def call() -> Any:
            async with client_of(server) as client:
                await client.list_tools()
                return await client.call_tool("read", {"path": "a.txt"})

        result = asyncio.run(call())
    assert "a.txt" not in repr(result)


def test_a_protocol_error_is_redacted() -> None:
    secret = "ghp_" + "k3Jd9Qw2ZxV7bNm4Lp8" + "Rt6Yh1Gf5Cs0Ae9Uo"

    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="read", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: Any) -> Any:
        raise RuntimeError(f"refused with {secret}")

    with capture(policy=StaticEngine("allow")) as captured:
        server = Server("low", on_list_tools=list_tools, on_call_tool=call_tool)
        govern_server(server, captured.governor)

        async def call() -> None:
            async with client_of(server) as client:
                with pytest.raises(MCPError) as raised:
                    await client.call_tool("read", {})
                assert secret not in str(raised.value)

        asyncio.run(call())


# --- questions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        (ElicitResult(action="accept", content={"approve": True}), True),
        (ElicitResult(action="accept", content={"approve": False}), False),
        (ElicitResult(action="accept", content={"approve": "true"}), False),
        (ElicitResult(action="decline"), False),
        (ElicitResult(action="cancel"), False),
    ],
)
def test_the_clients_person_decides(answer: ElicitResult, runs: bool, era: str) -> None:
    ran: list[str] = []
    with capture(policy=StaticEngine("ask")) as captured:
        server = govern_server(files(ran), captured.governor, facts=FACTS)
        client = client_of(server, era, answer)
        result = called(captured, client)
    assert ran == (["a.txt"] if runs else [])
    assert result.is_error is not runs
    assert "a.txt" in client.asked[0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("answer", "approved"),
    [
        (ElicitResult(action="accept", content={"approve": True}), True),
        (ElicitResult(action="decline"), False),
        (ElicitResult(action="cancel"), None),
    ],
)
def test_the_persons_answer_is_kept(answer: ElicitResult, approved: bool | None, era: str) -> None:
    with capture(policy=StaticEngine("ask")) as captured:
        server = govern_server(files([]), captured.governor, facts=FACTS)
        called(captured, client_of(server, era, answer))
        store = captured.governor.approvals.store
        (invocation_id,) = {
            span.attributes["agenttool.invocation.id"]
            for span in captured.spans
            if "agenttool.invocation.id" in span.attributes
        }
        kept = store.stored_call(invocation_id).answer
    if approved is None:
        assert kept is None
        return
    assert kept.approved is approved
    assert kept.way is AnswerWay.ELICITATION
    assert kept.answered_by == "mcp:mcp"


@pytest.mark.parametrize("era", ERAS)
def test_an_invented_state_answers_nothing(era: str) -> None:
    ran: list[str] = []
    with capture(policy=StaticEngine("ask")) as captured:
        server = govern_server(files(ran), captured.governor, facts=FACTS)

        async def call() -> None:
            async with client_of(server, era) as client:
                with pytest.raises(MCPError):
                    await client.call_tool("read", {"path": "a"}, request_state="agenttool:x")

        asyncio.run(call())
    assert ran == []


def test_a_client_without_questions_gets_a_pending_call() -> None:
    ran: list[str] = []
    with capture(policy=StaticEngine("ask")) as captured:
        server = govern_server(files(ran), captured.governor, facts=FACTS)
        result = called(captured, client_of(server))
    assert result.meta["agenttool/result"]["status"] == "pending"
    assert result.meta["agenttool/result"]["request_id"] in result.content[0].text
    assert ran == []


@pytest.mark.parametrize("approved", [True, False])
def test_the_same_call_goes_on_after_the_answer(approved: bool) -> None:
    ran: list[str] = []
    with capture(policy=StaticEngine("ask")) as captured:
        server = govern_server(files(ran), captured.governor, facts=FACTS, one_client=True)

        async def call() -> Any:
            async with client_of(server) as client:
                first = await client.call_tool("read", {"path": "a.txt"})
                request_id = first.meta["agenttool/result"]["request_id"]
                answer = ApprovalAnswer(approved=approved, answered_by="user:kit")
                captured.governor.approvals.store.answer(request_id, answer)
                other = await client.call_tool("read", {"path": "b.txt"})
                assert other.is_error
                return await client.call_tool("read", {"path": "a.txt"})

        result = asyncio.run(call())
    assert ran == (["a.txt"] if approved else [])
    assert result.is_error is not approved


def test_an_approval_is_for_one_run() -> None:
    ran: list[str] = []
    answer = ElicitResult(action="accept", content={"approve": True})
    with capture(policy=StaticEngine("ask")) as captured:
        server = govern_server(files(ran), captured.governor, facts=FACTS, one_client=True)
        client = client_of(server, "legacy", answer)
        called(captured, client, times=2)
    assert len(client.asked) == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("decided", ["allow", "deny"])
def test_the_servers_own_name_is_no_part_of_a_result(decided: str) -> None:
    async def list_tools(ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="read", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(text="a")], _meta={"own": "kept"})

    with capture(policy=StaticEngine(decided)) as captured:
        server = Server("low", on_list_tools=list_tools, on_call_tool=call_tool)
        govern_server(server, captured.governor)
        result = called(captured, client_of(server, "2026-07-28"))
        attributes = captured.span.attributes
    # the client gets it, as from any server of the SDK
    assert result.meta["io.modelcontextprotocol/serverInfo"]["name"] == "low"
    if decided == "allow":
        assert result.meta["own"] == "kept"
        given = {
            "content": [{"type": "text", "text": "a"}],
            "isError": False,
            "_meta": {"own": "kept"},
        }
        assert attributes["agenttool.result.size_bytes"] == len(
            json.dumps(given, separators=(",", ":"))
        )
