"""Governed client sessions: what a model is shown, what is sent, and what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.server import Server
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from agenttool_otel import ConfigurationError, agent_context
from agenttool_otel.integrations.mcp import GovernedSession, govern_session
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

OBJECT = {"type": "object", "properties": {"path": {"type": "string"}}}


def tool(name: str, **members: Any) -> Tool:
    return Tool(name=name, input_schema=OBJECT, **members)


class Sent:
    """A server with some tools, which keeps the requests that reach it."""

    def __init__(self, *tools: Tool, result: CallToolResult | None = None) -> None:
        self.tools = list(tools) or [tool("read"), tool("write")]
        self.calls: list[Any] = []
        self.result = result or CallToolResult(content=[TextContent(text="done")])
        self.server: Server[Any] = Server("s", on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, ctx: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=self.tools)

    async def _call(self, ctx: Any, params: Any) -> CallToolResult:
        self.calls.append(params)
        return self.result


@asynccontextmanager
async def session_of(
    sent: Sent, captured: Capture, **options: Any
) -> AsyncIterator[GovernedSession]:
    # in the protocol's JSON, as between two processes
    async with Client(sent.server, mode="legacy") as client:
        yield govern_session(client, captured.governor, server="files", **options)


def called(sent: Sent, name: str, policy: Any = "allow", **options: Any) -> tuple[Any, Capture]:
    """Call a tool once, and return its result and what was recorded."""

    async def call() -> Any:
        async with session_of(sent, captured, **options) as session:
            return await session.call_tool(name, {"path": "a"})

    engine = StaticEngine(policy if isinstance(policy, str) else {name: policy})
    with capture(policy=engine) as captured:
        return asyncio.run(call()), captured


def test_a_denied_call_is_not_sent() -> None:
    sent = Sent()
    result, _ = called(sent, "write", "deny")
    assert result.is_error
    assert result.meta["agenttool/result"]["status"] == "denied"
    assert sent.calls == []


def test_a_tool_that_is_not_listed_is_not_called() -> None:
    sent = Sent()
    result, captured = called(sent, "drop")
    assert result.is_error
    assert sent.calls == []
    assert captured.span.attributes["agenttool.tool.id"] == "drop"


def test_the_native_ids_are_recorded() -> None:
    _, captured = called(Sent(), "read")
    attributes = captured.span.attributes
    assert attributes["mcp.method.name"] == "tools/call"
    assert attributes["mcp.protocol.version"]
    assert attributes["agenttool.tool.id"] == "mcp.files.read"


def test_the_server_gets_the_trace_in_meta() -> None:
    sent = Sent()
    _, captured = called(sent, "read")
    trace_id = captured.span.get_span_context().trace_id
    assert f"{trace_id:032x}" in sent.calls[0].meta["traceparent"]


def test_only_tools_on_the_surface_are_listed() -> None:
    async def listed() -> list[str]:
        async with session_of(Sent(), captured) as session:
            await session.list_tools()
            surface = captured.governor.surface(tools=["mcp.files.read"])
            with agent_context(session_id="s", surface=surface):
                return [each.name for each in (await session.list_tools()).tools]

    with capture() as captured:
        assert asyncio.run(listed()) == ["read"]


def test_a_call_by_send_request_is_refused() -> None:
    async def send() -> None:
        async with session_of(sent, captured) as session:
            params = CallToolRequestParams(name="read", arguments={})
            with pytest.raises(ConfigurationError):
                await session.session.send_request(CallToolRequest(params=params), CallToolResult)

    sent = Sent()
    with capture(policy=StaticEngine("allow")) as captured:
        asyncio.run(send())
    assert sent.calls == []


def test_a_call_by_the_clients_own_session_is_decided() -> None:
    async def call() -> Any:
        async with session_of(sent, captured) as session:
            return await session.session.call_tool("read", {"path": "a"})

    sent = Sent()
    with capture(policy=StaticEngine("deny")) as captured:
        assert asyncio.run(call()).is_error
    assert sent.calls == []


# --- facts ----------------------------------------------------------------------------------------


def facts_of(listed: Tool, **options: Any) -> dict[str, Any]:
    """Return what a policy would read of a tool's interface."""

    async def interface() -> Any:
        async with session_of(Sent(listed), captured, **options) as session:
            await session.list_tools()
            found = session.tool(listed.name)
            assert found is not None
            return found.spec

    with capture(policy=StaticEngine("allow")) as captured:
        spec = asyncio.run(interface())
    return {**spec.interface.model_dump(), "annotations": spec.declaration.annotations}


def test_a_servers_read_only_hint_loosens_nothing() -> None:
    hinted = facts_of(tool("read", annotations=ToolAnnotations(read_only_hint=True)))
    assert not hinted["is_read_only"]
    assert hinted["annotations"]["readOnlyHint"] is True


def test_a_servers_destructive_hint_counts() -> None:
    hinted = facts_of(tool("wipe", annotations=ToolAnnotations(destructive_hint=True)))
    assert hinted["is_destructive"] is True


def test_the_hosts_facts_go_before_hints() -> None:
    listed = tool("read", annotations=ToolAnnotations(destructive_hint=True))
    assert facts_of(listed, facts={"read": {"read_only": True}})["is_read_only"] is True


def test_wrong_facts_refuse_their_own_tool_alone() -> None:
    facts: Any = {"write": {"path_args": ["nowhere"]}, "read": {"path_args": ["path"]}}
    sent = Sent()
    refused, _ = called(sent, "write", facts=facts)
    passed, _ = called(sent, "read", facts=facts)
    assert refused.is_error
    assert not passed.is_error


def test_a_tool_that_is_listed_twice_is_refused() -> None:
    sent = Sent(tool("read"), tool("read", description="another"))
    result, _ = called(sent, "read")
    assert result.is_error
    assert sent.calls == []


# --- results --------------------------------------------------------------------------------------

WEATHER = CallToolResult(
    content=[TextContent(text="it is 20 degrees in Rome")],
    structured_content={"degrees": 20, "place": "Rome"},
)


def test_a_result_that_nobody_redacts_is_the_servers_own() -> None:
    result, _ = called(Sent(result=WEATHER), "read")
    assert result.structured_content == {"degrees": 20, "place": "Rome"}
    assert result.content[0].text == "it is 20 degrees in Rome"


def test_a_place_of_structured_content_is_redacted() -> None:
    policy = decision("allow", obligations={"redact_result": ["/structuredContent/place"]})
    result, _ = called(Sent(result=WEATHER), "read", policy)
    assert result.structured_content["degrees"] == 20
    assert "Rome" not in str(result.structured_content)


def test_a_result_with_no_form_left_is_a_text() -> None:
    policy = decision("allow", obligations={"redact_result": ["/content/0/type"]})
    result, _ = called(Sent(result=WEATHER), "read", policy)
    assert [block.type for block in result.content] == ["text"]


def test_the_error_of_a_server_is_redacted() -> None:
    failed = CallToolResult(content=[TextContent(text="no such file: plans.txt")], is_error=True)
    policy = decision("allow", obligations={"redact_result": ["/content/0/text"]})
    result, captured = called(Sent(result=failed), "read", policy)
    assert result.is_error
    assert "plans.txt" not in result.content[0].text
    assert captured.span.attributes["agenttool.invocation.status"] == "failed"


def test_a_result_that_is_too_large_is_a_preview() -> None:
    large = CallToolResult(content=[TextContent(text="word " * 40_000)])
    policy = decision("allow", obligations={"max_inline_chars": 500})
    result, _ = called(Sent(result=large), "read", policy)
    assert not result.is_error
    assert len(result.content[0].text) < 2_000
