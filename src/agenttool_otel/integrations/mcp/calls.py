"""One call of an MCP tool, governed: results and refusals in MCP's own form.

A result is read as the JSON that MCP sends: ``{"content": [...], "structuredContent": ..., "isError":
...}``. A policy redacts it by the places in that form, and what it redacts is put back into it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from agenttool_otel.call.sandbox import ProcessSandbox
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.errors import AgentToolError
from agenttool_otel.integrations.foreign import ForeignCall
from agenttool_otel.integrations.mcp.sdk import CallToolResult
from agenttool_otel.names import Mcp, Outcome, ResultStatus
from agenttool_otel.names.mcp import McpMeta
from agenttool_otel.records import McpMapping, ToolResult

_WAITS: Final = (
    "It has not run and waits for approval request {request}. When a person has answered it, make"
    " the same call again."
)
_MAY_HAVE_RUN: Final = "It may have run: do not simply repeat it."


class McpServerFailed(AgentToolError, ConnectionError):
    """A server ended in the middle of a call, can't be started, or gave no result that can be read.

    The call is not repeated: it may have run.
    """


def wire_form(value: Any) -> dict[str, Any]:
    """Return a result as MCP writes it in JSON, without the member that names its form.

    Args:
        value: A ``CallToolResult``, or what came over the wire.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    if not isinstance(value, Mapping):
        # a body of another making: its text is all there is
        return text_result(str(value))
    return {name: member for name, member in value.items() if name != "resultType"}


def text_result(text: str, *, is_error: bool = False) -> dict[str, Any]:
    """Return a result of one text.

    Args:
        text: The text.
        is_error: Whether the call failed.
    """
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def put_back(value: Any, shown: Any) -> dict[str, Any]:
    """Return a result with another content: what was redacted, or a preview of what is too large.

    Args:
        value: The result.
        shown: What takes the place of its ``wire_form``.
    """
    whole = wire_form(value)
    failed = whole.get("isError") is True
    if isinstance(shown, Mapping) and isinstance(shown.get("content"), list):
        changed = {**shown, "isError": failed}
        try:
            CallToolResult.model_validate(changed, by_name=False)
        except ValidationError:
            # {"type": "[redacted]", ...} is no block of MCP's any more
            return text_result(_as_text(shown), is_error=failed)
        return changed
    return text_result(_as_text(shown), is_error=failed)


def _as_text(shown: Any) -> str:
    if isinstance(shown, str):
        return shown
    return json.dumps(shown, ensure_ascii=False, default=str)


class McpCall(ForeignCall):
    """One call of a tool of an MCP server; its results are dictionaries, as they go over the wire.

    Args:
        tool: The tool.
        arguments: What the model sent; ``None`` for a call that is resumed.
        native_call_id: The model's id of the call.
        attributes: Span attributes of the connection.
        mapping: The native ids of the request.
        request_number: The id of the request where it is a number, which counts requests: no secret.
        process: What holds the process that runs the tool, where the host has started it held.
    """

    def __init__(
        self,
        tool: GovernedTool,
        arguments: Mapping[str, Any] | None,
        native_call_id: str | None = None,
        *,
        attributes: Mapping[str, Any] | None = None,
        mapping: McpMapping | None = None,
        request_number: int | None = None,
        process: ProcessSandbox | None = None,
    ) -> None:
        super().__init__(tool, arguments, native_call_id, attributes=attributes)
        if mapping is not None:
            self.mappings = [*self.mappings, mapping]
        if request_number is not None:
            # it is not looked at as a text
            self._attributes = {**(self._attributes or {}), Mcp.REQUEST_ID: str(request_number)}
        if process is not None:
            self.call.process = process

    @property
    def waits(self) -> bool:
        """Whether the call has not run, and waits for a person's answer."""
        if self.went_straight:
            return False
        return self.call.outcome.result_status is ResultStatus.PENDING and not self.call.ran

    @property
    def request_id(self) -> str:
        """The id of the approval request that the call waits for; empty without one."""
        request = self.call.decision.request
        return request.request_id if request is not None else ""

    def unwrap(self, value: Any) -> Any:
        """Return the result as JSON, by whose places a policy redacts."""
        return wire_form(value)

    def put(self, value: Any, shown: Any) -> Any:
        """Return the result with another content."""
        return put_back(value, shown)

    def deliver(self, response: str | None) -> Any:
        """Return the result, with a note for the model where a person changed the arguments."""
        delivered = super().deliver(response)
        if self.went_straight:
            return delivered
        note = self.call.inputs.edit_note
        if note is None or not self.call.ran:
            return delivered
        whole = wire_form(delivered)
        content = [*whole.get("content", []), {"type": "text", "text": note}]
        return self.put(delivered, {**whole, "content": content})

    def refusal(self) -> Any:
        """Return the failed result that a model gets of a call that has not run."""
        result = self.result
        lines = [result.summary or f"{self.call.spec.name} did not run"]
        if self.waits:
            lines.append(_WAITS.format(request=self.request_id))
        elif self.call.outcome.execution is Outcome.EXECUTED:
            # canceled, or out of time, while its server worked
            lines.append(_MAY_HAVE_RUN)
        verdict = self.call.decision.verdict
        for alternative in () if verdict is None else verdict.alternatives:
            lines.append(f"Call {alternative.get('tool')} with {alternative.get('arguments')}.")
        refused = text_result("\n".join(lines), is_error=True)
        refused["_meta"] = {McpMeta.RESULT.value: self._meta(result)}
        return refused

    def _meta(self, result: ToolResult) -> dict[str, Any]:
        meta = {"status": str(result.status), "invocation_id": self.call.id}
        error = self.call.outcome.error
        if error is not None:
            meta["error_class"] = error.error_class.value
        if self.request_id:
            meta["request_id"] = self.request_id
        return meta


class ModelCall(McpCall):
    """The same for callers that take ``CallToolResult`` objects."""

    def put(self, value: Any, shown: Any) -> Any:
        """Return the result with another content."""
        return CallToolResult.model_validate(put_back(value, shown), by_name=False)

    def refusal(self) -> Any:
        """Return the failed result that a model gets of a call that has not run."""
        return CallToolResult.model_validate(super().refusal(), by_name=False)
