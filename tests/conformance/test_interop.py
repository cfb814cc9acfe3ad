"""Requirements of "External mappings" and "Interoperability": native ids, protocols, telemetry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from recorded import last_of

from agenttool_otel import BatchCall, agent_context, current_call, native_call
from agenttool_otel.conformance.own import ScenarioPolicy
from agenttool_otel.preflight.tool_lists import fits_strict_mode
from agenttool_otel.records import CliMapping, ExternalMapping
from agenttool_otel.testing import Capture, StaticEngine, capture

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"

MAPPINGS: dict[str, dict[str, Any]] = {
    "mcp": {
        "server_id": "github",
        "mcp_session_id": "session-1",
        "mcp_protocol_version": "2025-06-18",
        "method": "tools/call",
        "tool_name": "search_issues",
        "jsonrpc_request_id": 7,
    },
    "openapi": {
        "operation_id": "getPet",
        "method": "GET",
        "path": "/pets/{id}",
        "server_url": "https://pets.example.com",
        "security_scheme_refs": ["bearer"],
    },
    "function_calling": {
        "tool_call_id": "call_1",
        "function_name": "act",
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "strict": True,
        "defer_loading": False,
    },
    "a2a": {
        "agent_card_url": "https://peer.example.com/agent.json",
        "agent_skill_id": "translate",
        "task_id": "task-1",
        "context_id": "context-1",
        "message_id": "message-1",
        "artifact_id": "artifact-1",
    },
    "cli": {
        "command_id": "ls",
        "argv_ref": "argv:1",
        "cwd_ref": "cwd:1",
        "env_policy_ref": "env:clean",
        "exit_code": 0,
        "signal": "SIGTERM",
        "sandbox_ref": "sandbox:1",
    },
    "browser": {
        "browser_session_id": "browser-1",
        "page_id": "page-1",
        "action_id": "click-1",
        "observation_ref": "observation:1",
        "screenshot_ref": "screenshot:1",
    },
    "telemetry": {
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "span_id": "b7ad6b7169203331",
        "tool_name": "act",
        "tool_call_id": "call_1",
        "request_id": "request-1",
        "duration_ms": 12,
        "result_size_bytes": 34,
    },
}

STREAMS = {"stdout_ref": "out:1", "stderr_ref": "err:1", "timeout_ms": 50, "task_id": "task:1"}


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture(policy=StaticEngine("allow")) as made:
        yield made


def kept(captured: Capture, mapping: dict[str, Any]) -> list[dict[str, Any]]:
    """Call a tool under a native id, and return the native ids of its invocation."""
    act = captured.governor.govern(lambda: 1, name="act")
    captured.governor.batch([BatchCall(act, {}, mappings=[ExternalMapping(**mapping)])])
    found: list[dict[str, Any]] = last_of(captured, "tool_invocation")["external_mappings"]
    assert last_of(captured, "tool_result")["external_mappings"] == found
    return found


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(source, marks=pytest.mark.covers(row), id=source)
        for source, row in [
            ("mcp", "mcp-ids-are-kept"),
            ("openapi", "openapi-ids-are-kept"),
            ("function_calling", "function-call-ids-are-kept"),
            ("a2a", "a2a-ids-are-kept"),
            ("cli", "cli-ids-are-kept"),
            ("browser", "browser-ids-are-kept"),
            ("telemetry", "telemetry-ids-are-kept"),
        ]
    ],
)
def test_native_ids_of_a_protocol_are_kept(source: str, captured: Capture) -> None:
    mapping = {"source": source, **MAPPINGS[source]}
    assert kept(captured, mapping) == [mapping]


@pytest.mark.covers("cli-streams-are-kept")
def test_streams_and_task_of_a_command_are_kept(captured: Capture) -> None:
    mapping = {"source": "cli", "command_id": "ls", **STREAMS}
    assert kept(captured, mapping) == [mapping]


@pytest.mark.covers("native-ids-beside-own-ids", "provider-call-id-is-a-mapping")
def test_a_providers_id_stands_beside_the_own_ones(captured: Capture) -> None:
    act = captured.governor.govern(lambda: 1, name="act", tool_id="own.act")
    with native_call("call_1"):
        result = act.tool.invoke()
    invocation = last_of(captured, "tool_invocation")
    assert (invocation["tool_id"], invocation["native_call_id"]) == ("own.act", "call_1")
    [mapping] = result.to_json_object()["external_mappings"]
    assert mapping == {
        "source": "function_calling",
        "tool_call_id": "call_1",
        "function_name": "act",
    }


@pytest.mark.covers("native-ids-known-while-running")
def test_an_id_that_is_known_late_is_kept(captured: Capture) -> None:
    def act() -> None:
        call = current_call()
        assert call is not None
        call.map(CliMapping(exit_code=3))

    captured.governor.govern(act)()
    assert last_of(captured, "tool_invocation")["external_mappings"] == [
        {"source": "cli", "exit_code": 3}
    ]


# --- MCP ------------------------------------------------------------------------------------------

CONTENT = [
    {"type": "text", "text": "two", "annotations": {"audience": ["user"]}, "_meta": {"n": 1}},
    {"type": "resource_link", "uri": "file:///a", "name": "a"},
    {"type": "resource", "resource": {"uri": "file:///b", "text": "b"}},
]


def mcp_result(captured: Capture, **more: Any) -> dict[str, Any]:
    answer = {"content": CONTENT, "structuredContent": {"n": 2}, "isError": False, **more}
    act = captured.governor.govern(lambda: answer, name="act", tool_kind="mcp_tool")
    return act.tool.invoke().to_json_object()


@pytest.mark.covers("mcp-content-is-kept", "mcp-embedded-resource-is-kept")
def test_content_of_an_mcp_result_is_kept(captured: Capture) -> None:
    content = mcp_result(captured)["content"]
    assert [block["type"] for block in content] == ["text", "resource_link", "embedded_resource"]


@pytest.mark.covers("mcp-content-annotations-are-kept")
def test_annotations_of_mcp_content_are_kept(captured: Capture) -> None:
    block = mcp_result(captured)["content"][0]
    assert (block["annotations"], block["_meta"]) == ({"audience": ["user"]}, {"n": 1})


@pytest.mark.covers("mcp-structured-content-is-kept")
def test_structured_content_of_mcp_is_kept(captured: Capture) -> None:
    assert mcp_result(captured)["structured_content"] == {"n": 2}


@pytest.mark.covers("mcp-resource-link-is-kept")
def test_a_resource_link_of_mcp_is_a_resource(captured: Capture) -> None:
    assert mcp_result(captured)["resource_refs"] == [{"uri": "file:///a", "name": "a"}]


@pytest.mark.covers("mcp-is-error-is-kept")
def test_an_error_of_mcp_is_a_failure(captured: Capture) -> None:
    result = mcp_result(captured, isError=True)
    assert (result["status"], result["is_error"]) == ("failed", True)


SCHEMA = {
    "type": "object",
    "properties": {"pet": {"type": "string", "pattern": "^[a-z]+$"}},
    "required": ["pet"],
    "additionalProperties": False,
}
ANSWER = {"type": "object", "properties": {"age": {"type": "integer"}}}


def pet(captured: Capture, **facts: Any) -> Any:
    return captured.governor.govern(
        lambda pet: {"age": 3},
        name="pet",
        description="Find a pet",
        model_input_schema=SCHEMA,
        output_schema=ANSWER,
        **facts,
    )


@pytest.fixture
def shown() -> Iterator[Capture]:
    with capture(policy=ScenarioPolicy("allow")) as made, agent_context(session_id="s"):
        yield made


@pytest.mark.covers("mcp-list-has-names-and-schemas", "mcp-list-has-output-schema")
def test_a_list_for_mcp_has_what_was_declared(shown: Capture) -> None:
    tool = pet(shown, title="Pets")
    assert tool
    assert shown.governor.surface().mcp_tools() == [
        {
            "name": "pet",
            "title": "Pets",
            "description": "Find a pet",
            "inputSchema": SCHEMA,
            "outputSchema": ANSWER,
        }
    ]


@pytest.mark.covers("openapi-schemas-are-kept")
def test_schemas_of_an_operation_are_kept(captured: Capture) -> None:
    declaration = pet(captured, tool_kind="openapi_operation").tool.declaration
    assert declaration.input_contract.model_input_schema == SCHEMA
    assert declaration.output_contract.structured_schema == ANSWER


@pytest.mark.covers("deferred-loading-flag-for-providers")
def test_a_provider_gets_deferred_tools_with_its_flag(shown: Capture) -> None:
    tool = pet(shown, defer=True)
    assert tool
    listed = shown.governor.surface().openai_tools(defer_loading=True)
    assert [one.get("defer_loading") for one in listed if one["type"] == "function"] == [True]


def listed_by_mcp(captured: Capture, **facts: Any) -> dict[str, Any]:
    tool = pet(captured, **facts)
    assert tool
    [listed] = captured.governor.surface().mcp_tools()
    return listed


@pytest.mark.covers("mcp-list-has-annotations")
def test_a_list_for_mcp_has_the_stated_facts(shown: Capture) -> None:
    facts = {"read_only": True, "destructive": False, "open_world": False}
    stated = {"idempotentHint": True, "readOnlyHint": False}
    assert listed_by_mcp(shown, **facts, annotations=stated)["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "openWorldHint": False,
        "idempotentHint": True,
    }


def test_a_list_for_mcp_has_no_fact_that_nobody_stated(shown: Capture) -> None:
    listed = listed_by_mcp(shown, read_only="classifier:command_read_only", open_world=True)
    assert listed["annotations"] == {"openWorldHint": True}


STRICT = {**SCHEMA, "properties": {"pet": {"type": "string", "enum": ["cat", "dog"]}}}


@pytest.mark.covers("strict-flag-for-providers")
@pytest.mark.parametrize("defer_loading", [False, True])
def test_a_provider_gets_strictness(shown: Capture, defer_loading: bool) -> None:
    tools = [
        shown.governor.govern(lambda **_: 1, name=name, model_input_schema=STRICT, strict=strict)
        for name, strict in (("one", True), ("two", False))
    ]
    assert tools
    listed = shown.governor.surface().openai_tools(defer_loading=defer_loading)
    functions = [one.get("function", one) for one in listed]
    assert [one["strict"] for one in functions] == [True, False]


@pytest.mark.parametrize(
    "pet_schema",
    [
        {},
        {"description": "any"},
        {"type": "string", "default": "cat"},
        {"type": "string", "minLength": 1},
        {"oneOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "object"},
        {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "string"}}},
        {"type": "array", "items": {"type": "object"}},
        {"anyOf": [{"type": "object"}, {"type": "null"}]},
        {"type": ["object", "null"]},
    ],
    ids=repr,
)
def test_a_schema_that_strict_mode_refuses_is_not_strict(pet_schema: dict[str, Any]) -> None:
    assert not fits_strict_mode({**SCHEMA, "properties": {"pet": pet_schema}})


@pytest.mark.parametrize(
    "pet_schema",
    [
        {"type": "string", "pattern": "^[a-z]+$"},
        {"type": ["string", "null"]},
        {"$ref": "#/$defs/Pet"},
        {"type": "array", "items": {"type": "integer", "minimum": 1}},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "object", "properties": {}, "additionalProperties": False},
        SCHEMA,
    ],
    ids=repr,
)
def test_a_schema_that_strict_mode_takes_is_strict(pet_schema: dict[str, Any]) -> None:
    assert fits_strict_mode({**SCHEMA, "properties": {"pet": pet_schema}})


def test_an_optional_argument_makes_a_schema_loose() -> None:
    assert not fits_strict_mode({**SCHEMA, "required": []})
    assert not fits_strict_mode({**SCHEMA, "additionalProperties": True})


# --- telemetry ------------------------------------------------------------------------------------


@pytest.mark.covers("records-refer-to-trace-and-span")
def test_records_refer_to_trace_and_span(captured: Capture) -> None:
    result = captured.governor.govern(lambda: 1, name="act").tool.invoke()
    context = captured.span.context
    ids = (f"{context.trace_id:032x}", f"{context.span_id:016x}")
    references = [
        result.to_json_object()["telemetry_refs"],
        last_of(captured, "tool_invocation")["telemetry_refs"],
        last_of(captured, "tool_event")["trace_refs"],
    ]
    assert {(ref["trace_id"], ref["span_id"]) for [ref] in references} == {ids}


@pytest.mark.covers("span-has-genai-attributes", "span-has-decision-source")
def test_a_span_has_the_attributes_of_a_tool_call(captured: Capture) -> None:
    act = captured.governor.govern(lambda: 1, name="act")
    with native_call("call_1"):
        act()
    attributes = dict(captured.span.attributes or {})
    assert attributes["gen_ai.operation.name"] == "execute_tool"
    assert attributes["gen_ai.tool.name"] == "act"
    assert attributes["gen_ai.tool.type"] == "function"
    assert attributes["gen_ai.tool.call.id"] == "call_1"
    assert attributes["agenttool.permission.source"] == "policy"


@pytest.mark.covers("telemetry-has-duration", "telemetry-has-result-size")
def test_a_result_has_its_duration_and_size(captured: Capture) -> None:
    def act() -> str:
        time.sleep(0.02)
        return "seven!!"

    [reference] = captured.governor.govern(act).tool.invoke().telemetry_refs
    assert reference["duration_ms"] >= 19
    assert reference["result_size_bytes"] == 7


def shown_content(**options: Any) -> str:
    """Call a tool with a word and a secret that it gives back, and return its span as text."""
    with capture(policy=StaticEngine("allow"), **options) as captured:
        captured.governor.govern(lambda text: text, name="act")(f"marigold {SECRET}")
        return str(captured.span.to_json())


@pytest.mark.covers("content-not-in-telemetry-by-default")
def test_no_span_has_content_by_default() -> None:
    assert "marigold" not in shown_content()


@pytest.mark.covers("captured-arguments-are-redacted", "captured-results-are-redacted")
def test_content_that_is_captured_is_redacted() -> None:
    text = shown_content(capture="SPAN_ONLY")
    assert text.count("marigold") == 2
    assert SECRET not in text
