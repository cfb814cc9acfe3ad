"""tool_external_mapping: native protocol ids are preserved, never replaced (standard, "External
mappings").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenttool_otel.records.base import Part


class ExternalMapping(Part):
    """Reference to the native operation behind a tool or an invocation.

    Attributes:
        source: kind of native system: ``mcp``, ``openapi``, ``function_calling``, ``a2a``, ``cli``,
            ``browser``, ``telemetry`` or a framework's name. The mapping fields of the standard's
            table (``server_id``, ``operation_id``, ``tool_call_id`` ...) are given as further
            fields and kept as they are.
    """

    source: str = ""


class McpMapping(ExternalMapping):
    """A request to an MCP server; ``_meta`` and ``structuredContent`` are given as they are."""

    source: str = "mcp"
    server_id: str | None = None
    mcp_session_id: str | None = None
    mcp_protocol_version: str | None = None
    method: str | None = None
    tool_name: str | None = None
    # JSON-RPC 2.0: a text or a number
    jsonrpc_request_id: str | int | None = None


class OpenApiMapping(ExternalMapping):
    """An operation of an HTTP interface."""

    source: str = "openapi"
    operation_id: str | None = None
    method: str | None = None
    path: str | None = None
    server_url: str | None = None
    security_scheme_refs: list[str] | None = None


class FunctionCallMapping(ExternalMapping):
    """A function call of a model."""

    source: str = "function_calling"
    tool_call_id: str | None = None
    function_name: str | None = None
    # "auto", or {"type": "function", "name": "read_file"}
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    strict: bool | None = None
    defer_loading: bool | None = None


class A2aMapping(ExternalMapping):
    """A task of another agent."""

    source: str = "a2a"
    agent_card_url: str | None = None
    agent_skill_id: str | None = None
    task_id: str | None = None
    context_id: str | None = None
    message_id: str | None = None
    artifact_id: str | None = None


class CliMapping(ExternalMapping):
    """A command's process."""

    source: str = "cli"
    command_id: str | None = None
    argv_ref: str | None = None
    cwd_ref: str | None = None
    env_policy_ref: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    sandbox_ref: str | None = None
    timeout_ms: int | None = None
    stdout_ref: str | None = None
    stderr_ref: str | None = None
    background_task_id: str | None = None


class BrowserMapping(ExternalMapping):
    """An action in a browser."""

    source: str = "browser"
    browser_session_id: str | None = None
    page_id: str | None = None
    action_id: str | None = None
    observation_ref: str | None = None
    screenshot_ref: str | None = None


class TelemetryMapping(ExternalMapping):
    """A request in another instrumentation's telemetry."""

    source: str = "telemetry"
    trace_id: str | None = None
    span_id: str | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    request_id: str | None = None
    duration_ms: int | None = None
    result_size_bytes: int | None = None
    decision_source: str | None = None


def mapped(mappings: Sequence[ExternalMapping]) -> dict[str, Any]:
    """Return native ids as a member of a document; none where there are none.

    Args:
        mappings: of a tool, or of one call.
    """
    if not mappings:
        return {}
    return {"external_mappings": [mapping.model_dump(mode="json") for mapping in mappings]}
