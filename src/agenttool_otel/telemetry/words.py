"""What an event holds, in the fields of the standard's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agenttool_otel.names import Attr, GenAI
from agenttool_otel.records.base import JsonObject

_RECORD_FIELDS: Final[Mapping[str, str]] = {
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
    GenAI.ERROR_TYPE: "error_class",
}
"""The field of a record that an attribute repeats; ``reason.type`` is the member ``type`` of the
object ``reason``.
"""


def standard_words(attributes: Mapping[str, Any]) -> JsonObject:
    """Return an event's attributes as fields of the standard's records.

    Args:
        attributes: by name; those that no record has are left out.
    """
    found: JsonObject = {}
    for name, value in attributes.items():
        if name not in _RECORD_FIELDS:
            continue
        parent, _, member = _RECORD_FIELDS[name].partition(".")
        if member:
            found.setdefault(parent, {})[member] = value
        else:
            found[parent] = value
    return found
