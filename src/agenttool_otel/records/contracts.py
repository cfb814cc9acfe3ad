"""tool_input_contract and tool_output_contract (standard, "Input Output Contracts")."""

from __future__ import annotations

from pydantic import Field

from agenttool_otel.names import ArgumentMode
from agenttool_otel.records.base import JsonObject, JsonValue, Part


class InputContract(Part):
    """What a tool takes.

    Attributes:
        model_input_schema: JSON Schema of what the model may produce; no internal field is in it.
        runtime_input_schema: JSON Schema with the internal fields, when there are any.
        strict: whether arguments outside the schema are refused.
        defaults: default values by argument name, where safe to show.
        examples: argument objects that ground a model.
        sensitive_fields: JSON pointers (or bare argument names) whose values are redacted wherever
          they are shown.
        internal_only_fields: argument names that a model must never produce.
        argument_mode: how the arguments travel.
        mutation_policy: who may replace the input: ``allow``, ``hooks_only``, ``approval_only`` or
          ``forbid``.
    """

    # the standard's example always has a schema; a tool without arguments takes {}
    model_input_schema: JsonObject = Field(default_factory=lambda: {"type": "object"})
    runtime_input_schema: JsonObject | None = None
    strict: bool = True
    defaults: JsonObject | None = None
    examples: list[JsonValue] | None = None
    sensitive_fields: list[str] = Field(default_factory=list)
    internal_only_fields: list[str] = Field(default_factory=list)
    # "argument_mode: json, text, file, multipart, stream, or custom"
    argument_mode: ArgumentMode = ArgumentMode.JSON
    mutation_policy: str = "allow"


class OutputContract(Part):
    """What a tool gives back.

    Attributes:
        structured_schema: JSON Schema of structured content.
        content_types: content classes that may occur (standard, "Content classes").
        artifact_expectations: what durable deliverable the tool should produce, if any.
        max_inline_chars: characters that may enter a prompt before the result is previewed and
          persisted.
        max_inline_bytes: the same in bytes, for binary content.
        persistence_policy_ref: rule for preview, persist, redact and never-persist.
        rendering_boundary: which representation is for the model, the interface and the transcript.
        redaction_rules: JSON pointers or names in the result that are redacted.
        fallback_summary: text for where the payload can't be shown.
    """

    structured_schema: JsonObject | None = None
    content_types: list[str] = Field(default_factory=list)
    artifact_expectations: JsonObject | None = None
    max_inline_chars: int | None = None
    max_inline_bytes: int | None = None
    persistence_policy_ref: str | None = None
    rendering_boundary: JsonObject | None = None
    redaction_rules: list[str] = Field(default_factory=list)
    fallback_summary: str | None = None
