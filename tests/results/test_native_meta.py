"""The ``_meta`` of an MCP result is kept with the result's native ids, redacted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agenttool_otel import native_call
from agenttool_otel.records import McpMapping
from agenttool_otel.testing import Capture, StaticEngine, capture, decision

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
BLOCKS = [{"type": "text", "text": "3 rows"}]
META = {"example.org/rows": 3, "note": f"token {SECRET}"}
NATIVE = {
    "content": BLOCKS,
    "structuredContent": {"rows": 3},
    "isError": False,
    "_meta": META,
}


class CallToolResult(BaseModel):
    content: list[dict[str, Any]]
    structured_content: dict[str, Any] = Field(alias="structuredContent")
    is_error: bool = Field(alias="isError")
    meta: dict[str, Any] = Field(alias="_meta")


CallToolResult.__module__ = "mcp.types"


def invoked(captured: Capture, value: Any) -> dict[str, Any]:
    return captured.governor.govern(lambda: value, name="remote").tool.invoke().to_json_object()


@pytest.mark.parametrize("value", [NATIVE, CallToolResult(**NATIVE)])
@pytest.mark.covers("mcp-result-meta-is-kept")
def test_the_meta_of_an_mcp_result_is_with_its_native_ids(value: Any) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        result = invoked(captured, value)
    [mapping] = result["external_mappings"]
    assert mapping["source"] == "mcp"
    assert mapping["_meta"]["example.org/rows"] == 3
    assert SECRET not in json.dumps(mapping)
    assert result["structured_content"] == {"rows": 3}
    assert result["is_error"] is False


def test_the_meta_stands_in_the_mapping_that_the_call_has() -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        native_call(None, McpMapping(server_id="crm", jsonrpc_request_id=7)),
    ):
        result = invoked(captured, {**NATIVE, "_meta": {"a": 1}})
    assert result["external_mappings"] == [
        {"source": "mcp", "server_id": "crm", "jsonrpc_request_id": 7, "_meta": {"a": 1}}
    ]


def test_no_sink_gets_the_meta() -> None:
    with (
        capture(policy=StaticEngine("allow")) as captured,
        native_call(None, McpMapping(server_id="crm")),
    ):
        invoked(captured, NATIVE)
        captured.governor.telemetry.flush()
        assert "tool_result" in {line["object"] for line in captured.records}
        assert "example.org/rows" not in json.dumps(captured.records)


@pytest.mark.parametrize(
    "obligations",
    [{"redact_result": ["/_meta/example.org~1rows"]}, {"persistence": "drop_with_reason"}],
)
def test_what_a_policy_takes_out_of_a_result_is_not_in_its_meta(obligations: Any) -> None:
    policy = StaticEngine({"remote": decision("allow", obligations=obligations)})
    with capture(policy=policy) as captured:
        result = invoked(captured, NATIVE)
    mappings = result.get("external_mappings") or [{}]
    assert mappings[0].get("_meta", {}).get("example.org/rows") != 3


@pytest.mark.parametrize(
    "value", [{"_meta": {"a": 1}}, {"content": "text", "_meta": {"a": 1}}, {**NATIVE, "rows": 1}]
)
def test_a_value_that_is_no_mcp_result_has_no_meta(value: Any) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        assert "external_mappings" not in invoked(captured, value)
