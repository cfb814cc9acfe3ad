"""input_mutation: who changed which fields between two of the four inputs (standard,
"Mutation rule").
"""

from __future__ import annotations

from pydantic import Field

from agenttool_otel.names import MutationSource
from agenttool_otel.records.base import JsonObject, Record, Timestamp, id_field, utc_now


class InputMutation(Record):
    """One change of an input.

    Attributes:
        mutation_id: sortable id.
        invocation_id: the call.
        source_type: kind of author.
        source_ref: the author: a hook's id, an approval request, a rule.
        from_input_ref: digest reference of the input before.
        to_input_ref: digest reference of the input after.
        changed_fields: JSON pointers that were added, removed or replaced.
        reason: why.
        fields: of changed fields that no model sees, their pointer, visibility and author.
        created_at: when.
    """

    mutation_id: str = id_field("mut")
    invocation_id: str
    source_type: MutationSource
    source_ref: str | None = None
    from_input_ref: str | None = None
    to_input_ref: str | None = None
    changed_fields: list[str] = Field(default_factory=list)
    reason: str | None = None
    fields: list[JsonObject] | None = None
    created_at: Timestamp = Field(default_factory=utc_now)
