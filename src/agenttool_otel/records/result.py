"""tool_result: the portable result of an invocation, run or not (standard, "Result envelope")."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PrivateAttr, SerializeAsAny

from agenttool_otel.names import RedactionState, ResultStatus
from agenttool_otel.records.base import (
    OPEN,
    JsonObject,
    JsonValue,
    Record,
    Timestamp,
    id_field,
    utc_now,
)
from agenttool_otel.records.error import ToolError
from agenttool_otel.records.external_mapping import ExternalMapping


class ToolResult(Record):
    """Structured result envelope; a denied, rejected or failed call has one too.

    Attributes:
        result_id: sortable id.
        invocation_id: the call.
        status: result status of the standard.
        is_error: whether the call failed or was refused.
        content: content blocks of the standard's content classes.
        structured_content: machine-readable result.
        model_facing_content: what a model receives; may be a preview or a reference.
        ui_facing_summary: one line for an interface.
        transcript_search_text: text meant to be found in a transcript.
        resource_refs: fetchable resources.
        artifact_refs: durable deliverables.
        evidence_refs: evidence rows.
        policy_refs: policies and revisions behind the decision.
        telemetry_refs: trace and span ids, durations, sizes.
        persistence_refs: ids of the persistence decisions.
        summary: short text of what happened.
        redaction_state: what redaction did.
        error: structured error, when there is one.
        permission: the decision with its reason, as JSON.
        persistence: the tool_result_persistence record, where a decision was taken.
        schema_errors: where the output does not fit the output schema: places and keywords, never
          values.
        input_mutations: who changed which fields of the input: ``mutation_id``, ``source_type``,
            ``source_ref``, ``changed_fields``.
        trust: whether others may have written what came back (``level``), and why (``reason``).
        additional_context: what hooks add for the model.
        hook_messages: hooks' messages to people.
        stop: the stop that a hook asked for.
        external_mappings: native ids of this very call.
        abort_reason: why the call was stopped.
        context_modifier: whether a change of shared context was made, and why not.
        requires_action: what has to be done before the call ends: to answer, or to give a
          custom tool's result.
        created_at: when.
    """

    result_id: str = id_field("result")
    invocation_id: str
    status: Annotated[ResultStatus, OPEN]
    is_error: bool = False
    content: list[JsonObject] = Field(default_factory=list)
    structured_content: JsonValue = None
    model_facing_content: list[JsonObject] = Field(default_factory=list)
    ui_facing_summary: str | None = None
    transcript_search_text: str | None = None
    resource_refs: list[JsonObject] = Field(default_factory=list)
    artifact_refs: list[JsonObject] = Field(default_factory=list)
    evidence_refs: list[str] = Field(default_factory=list)
    policy_refs: list[str] = Field(default_factory=list)
    telemetry_refs: list[JsonObject] = Field(default_factory=list)
    persistence_refs: list[str] = Field(default_factory=list)
    summary: str | None = None
    redaction_state: Annotated[RedactionState, OPEN] = RedactionState.NONE
    error: ToolError | None = None
    permission: JsonObject | None = None
    persistence: JsonObject | None = None
    schema_errors: list[str] | None = None
    input_mutations: list[JsonObject] | None = None
    trust: JsonObject | None = None
    additional_context: list[JsonObject] | None = None
    hook_messages: list[JsonObject] | None = None
    stop: JsonObject | None = None
    external_mappings: list[SerializeAsAny[ExternalMapping]] | None = None
    abort_reason: str | None = None
    context_modifier: JsonObject | None = None
    requires_action: JsonObject | None = None
    created_at: Timestamp = Field(default_factory=utc_now)

    # private, so that no dump of the record holds what the tool returned
    _value: Any = PrivateAttr(default=None)

    @property
    def value(self) -> Any:
        """The native return value, as the tool gave it; ``None`` when it did not run. Never
        serialised.
        """
        return self._value

    def with_value(self, value: Any) -> ToolResult:
        """Attach the native return value and return self."""
        self._value = value
        return self
