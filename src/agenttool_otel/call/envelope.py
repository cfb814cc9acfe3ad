"""From a finished call to its ToolResult envelope, and to the typed outcome that a plain
caller sees.
"""

from __future__ import annotations

from typing import Any

from agenttool_otel.call.invocation import NOT_RUN, CallRecord, Invocation
from agenttool_otel.call.records import call_input, decision_record, references, result_facts
from agenttool_otel.errors import (
    ApprovalRejected,
    ApprovalRequired,
    GovernedOutcome,
    ResultRequired,
    ToolBlocked,
    ToolCanceled,
    ToolDenied,
    ToolInputInvalid,
    ToolTimeout,
    ToolUnavailable,
    UnknownTool,
)
from agenttool_otel.names import ErrorClass, InvocationStatus, Outcome, RedactionState, ResultStatus
from agenttool_otel.records import ExternalMapping, McpMapping, ToolResult
from agenttool_otel.telemetry.telemetry import trace_refs
from agenttool_otel.values.conversion import to_json_value
from agenttool_otel.values.inspection import short_name

_MAX_CHECKED_BYTES = 4 << 20
_SCALARS = frozenset({str, bytes, int, float, bool, type(None)})

_OUTCOMES: dict[ErrorClass | None, type[GovernedOutcome]] = {
    ErrorClass.SCHEMA_VALIDATION_FAILED: ToolInputInvalid,
    ErrorClass.INVALID_ARGUMENTS: ToolInputInvalid,
    ErrorClass.INPUT_MUTATION_FAILED: ToolInputInvalid,
    ErrorClass.APPROVAL_REJECTED: ApprovalRejected,
    ErrorClass.UNKNOWN_TOOL: UnknownTool,
    ErrorClass.BLOCKED_TOOL: ToolBlocked,
    ErrorClass.SCHEMA_NOT_LOADED: ToolBlocked,
    ErrorClass.SETUP_REQUIRED: ToolBlocked,
    ErrorClass.TIMEOUT: ToolTimeout,
    ErrorClass.DEPENDENCY_UNAVAILABLE: ToolUnavailable,
    ErrorClass.CANCELED: ToolCanceled,
    ErrorClass.SIBLING_CANCELED: ToolCanceled,
    ErrorClass.STREAMING_FALLBACK_DISCARDED: ToolCanceled,
}


def to_result(call: CallRecord) -> ToolResult:
    """Build the envelope of a call that ended, or that waits for an answer."""
    if isinstance(call, Invocation) and call.ran:
        examine(call)
    decision = decision_record(call)
    error = call.outcome.error or call.outcome.result_error
    if error is not None:
        error = error.model_copy(update=references(call))
    result = ToolResult(
        **result_facts(call),
        error=error,
        telemetry_refs=_telemetry_refs(call),
        permission=decision.to_json_object() if decision is not None else None,
        summary=_summary(call),
    )
    _add_hook_outputs(call, result)
    if action := _required_action(call):
        result.requires_action = action
    if isinstance(call, Invocation) and call.ran:
        return _with_value(call, result)
    text = result.summary or ""
    result.content = [{"type": "text", "text": text}]
    result.model_facing_content = [*result.content, *_notes(call)]
    result.ui_facing_summary = text
    return result


def _telemetry_refs(call: CallRecord) -> list[dict[str, Any]]:
    duration = None
    if call.outcome.ended_ns:
        duration = (call.outcome.ended_ns - call.created_ns) // 1_000_000
    measured = {
        "tool_name": call.spec.name,
        "tool_call_id": call.native_call_id,
        "duration_ms": duration,
        "result_size_bytes": call.outcome.size,
    }
    return [{**ref, **measured} for ref in trace_refs(call.span)]


def _add_hook_outputs(call: CallRecord, result: ToolResult) -> None:
    if call.decision.hook_context:
        result.additional_context = call.decision.hook_context
    state = call.decision.hook_state
    if state is None:
        return
    if state.messages:
        result.hook_messages = state.messages
    if state.stop is not None:
        result.stop = state.stop


def _notes(call: CallRecord) -> list[dict[str, Any]]:
    """Return what a model gets beside the result."""
    return (
        [] if call.inputs.edit_note is None else [{"type": "text", "text": call.inputs.edit_note}]
    )


def _required_action(call: CallRecord) -> dict[str, Any] | None:
    if call.outcome.execution is not Outcome.PENDING:
        return None
    about = {"invocation_id": call.id, "tool_id": call.spec.tool_id, "tool_name": call.spec.name}
    if call.decision.host_duty is not None:
        about["sandbox"] = call.decision.host_duty.name
    if call.outcome.status is InvocationStatus.NEEDS_INPUT:
        return {"type": "tool_result", **about, "arguments": call_input(call)}
    if call.decision.request is not None:
        return {
            "type": "tool_confirmation",
            **about,
            "request_id": call.decision.request.request_id,
        }
    return None


def _with_value(call: Invocation, result: ToolResult) -> ToolResult:
    """Fill an envelope with what the tool returned."""
    # only an envelope needs it, and it is large
    from agenttool_otel.results.content.map_content import map_content

    mapped = map_content(call.model_value)
    kept = call.kept
    if kept is not None and kept.model_facing:
        mapped.content, mapped.model_facing = kept.content, kept.model_facing
    result.content = mapped.content
    result.structured_content = mapped.structured_content
    result.model_facing_content = [*mapped.model_facing, *_notes(call)]
    result.ui_facing_summary = mapped.ui_summary
    result.transcript_search_text = mapped.transcript_text
    result.resource_refs = mapped.resource_refs
    result.artifact_refs = mapped.artifact_refs
    if call.preview is not NOT_RUN:
        # a text stands in place of the blocks that referred to them
        result.resource_refs = call.outcome.resource_refs
        result.artifact_refs = call.outcome.artifact_refs
    result.is_error = result.is_error or mapped.is_error
    result.schema_errors = call.outcome.schema_errors or None
    if call.native_meta:
        result.external_mappings = _with_meta(result.external_mappings or [], call.native_meta)
    if call.outcome.persistence is not None:
        result.persistence = call.outcome.persistence.to_json_object()
        if call.outcome.persistence.persisted_ref is not None:
            result.resource_refs = [call.outcome.persistence.persisted_ref, *result.resource_refs]
    return result.with_value(call.delivered)


def _with_meta(mappings: list[ExternalMapping], meta: dict[str, Any]) -> list[ExternalMapping]:
    """Return a result's native ids with the ``_meta`` that its MCP server gave; the call's own
    mapping is the same for other records, which hold no content.
    """
    found = list(mappings)
    for place, mapping in enumerate(found):
        if mapping.source == "mcp":
            found[place] = mapping.model_copy(update={"_meta": meta})
            return found
    return [*found, McpMapping(_meta=meta)]


def examine(call: Invocation) -> None:
    """Look whether what a tool returned fits its schema, and which deliverables it names."""
    from agenttool_otel.results.content.map_content import map_content

    check = call.spec.output_check
    if call.outcome.schema_errors is not None or (check is None and type(call.value) in _SCALARS):
        return
    mapped = map_content(call.model_value)
    if call.preview is NOT_RUN:
        call.outcome.artifact_refs = mapped.artifact_refs
    structured = mapped.structured_content
    if call.outcome.redaction_state is RedactionState.REDACTED:
        # {"degrees": "[redacted:secret]"} is no integer, which the tool returned
        structured = map_content(call.value).structured_content
    call.outcome.schema_errors = problems = [
        *mapped.schema_errors,
        *_output_problems(call, structured),
    ]
    if problems and call.outcome.error is None and call.outcome.result_error is None:
        # "map_result ... Terminal failures: result_mapping_failed" (standard, "Phases"): the tool
        # ran, and its caller gets the value
        call.reopen()
        call.fail(
            ErrorClass.RESULT_MAPPING_FAILED,
            f"the output does not fit the output schema: {', '.join(problems)}",
            InvocationStatus.FAILED,
        )


def _output_problems(call: Invocation, structured: Any) -> list[str]:
    """Check the native output against the output schema: places and what belongs there,
    never values.
    """
    from agenttool_otel.results.content.shown import shown_json

    check = call.spec.output_check
    if (
        check is None
        or call.outcome.error is not None
        or (call.outcome.size or 0) > _MAX_CHECKED_BYTES
    ):
        return []
    try:
        if structured is None:
            return check.messages(to_json_value(call.value))
        problems = check.messages(structured)
        if problems and structured == shown_json(call.value):
            # a named tuple is shown with the names of its fields, where its schema has a list
            return check.messages(to_json_value(call.value))
        return problems
    except Exception as error:
        return [f"/ {short_name(error)}"]


def _summary(call: CallRecord) -> str:
    name = call.spec.name
    if (
        call.outcome.execution is Outcome.PENDING
        and call.outcome.status is InvocationStatus.NEEDS_INPUT
    ):
        return f"{name} was permitted and waits for its result"
    if call.outcome.execution is Outcome.PENDING:
        rule = call.decision.verdict.message if call.decision.verdict is not None else ""
        return f"{name} waits for an approval: {rule}" if rule else f"{name} waits for an approval"
    if call.outcome.error is not None:
        return f"{name}: {call.outcome.error.error_class.value}: {call.outcome.error.message}"
    return f"{name}: {call.outcome.result_status.value}"


def outcome_of(call: Invocation) -> GovernedOutcome:
    """Make the exception for a caller of the plain function, for a call that did not run or had no
    time to end.
    """
    then = call.as_record()
    error_class = call.outcome.error.error_class if call.outcome.error is not None else None
    common: dict[str, Any] = {
        "records": lambda: (to_result(then), decision_record(then)),
        "error_class": error_class,
        "invocation_id": call.id,
    }
    message = _summary(call)
    if (
        call.outcome.execution is Outcome.PENDING
        and call.outcome.status is InvocationStatus.NEEDS_INPUT
    ):
        return ResultRequired(message, arguments=call_input(call), **common)
    if call.outcome.result_status is ResultStatus.PENDING:
        request_id = call.decision.request.request_id if call.decision.request is not None else ""
        if request_id:
            message = f"{message} (request {request_id}; when it is answered, resume({call.id!r}) runs the call)"
        return ApprovalRequired(message, request_id=request_id, **common)
    return _OUTCOMES.get(error_class, ToolDenied)(message, **common)
