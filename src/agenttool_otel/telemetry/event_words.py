"""What an event says, in the fields of the standard's records instead of a span's attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agenttool_otel.names import Attr, GenAI
from agenttool_otel.records.base import JsonObject

_WORDS: Final = {
    Attr.PERMISSION_BEHAVIOR: "behavior",
    Attr.PERMISSION_SOURCE: "source",
    Attr.PERMISSION_DECISION_ID: "decision_id",
    Attr.PERMISSION_RULES: "rule_refs",
    Attr.PERMISSION_REASON_TYPE: "reason.type",
    Attr.PERMISSION_RULE: "reason.rule_ref",
    Attr.PERMISSION_REASON_MESSAGE: "reason.message",
    Attr.INVOCATION_STATUS: "status",
    Attr.RESULT_STATUS: "status",
    Attr.PROGRESS_STATUS: "status",
    Attr.PROGRESS_SEQUENCE: "sequence",
    Attr.PROGRESS_PERCENT: "percent",
    GenAI.ERROR_TYPE: "error_class",
    Attr.ERROR_CODE: "error_code",
    Attr.ERROR_RECOVERABILITY: "recoverability",
    Attr.ERROR_NATIVE_TYPE: "native_error_ref",
    Attr.ABORT_REASON: "abort_reason",
    Attr.HOOK_ID: "hook_id",
    Attr.HOOK_EVENT: "hook_event",
    Attr.MUTATION_ID: "mutation_id",
    Attr.MUTATION_SOURCE: "source_type",
    Attr.MUTATION_SOURCE_REF: "source_ref",
    Attr.MUTATION_CHANGED_FIELDS: "changed_fields",
    Attr.MUTATION_DIGEST_FROM: "from_input_ref",
    Attr.MUTATION_DIGEST_TO: "to_input_ref",
    Attr.RESULT_PERSISTENCE: "strategy",
    Attr.RESULT_SIZE_BYTES: "original_size_bytes",
    Attr.RESULT_PREVIEW_SIZE_BYTES: "preview_size_bytes",
    Attr.REDACTION_STATE: "redaction_state",
    Attr.SURFACE_ID: "surface_id",
}
"""The standard's field for what an event's attribute says."""


def standard_words(attributes: Mapping[str, Any]) -> JsonObject:
    """Return what an event says in the fields of the standard's records."""
    said: JsonObject = {}
    for name, value in attributes.items():
        if (path := _WORDS.get(name)) is not None:
            first, _, rest = path.partition(".")
            if rest:
                said.setdefault(first, {})[rest] = value
            else:
                said[first] = value
    return said
