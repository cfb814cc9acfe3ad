"""tool_result_persistence: the decision to inline, redact, persist or drop (standard, "Persistence
decision").
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agenttool_otel.names import PersistenceStrategy, RedactionState
from agenttool_otel.records.base import OPEN, JsonObject, Record, Timestamp, id_field, utc_now


class ResultPersistence(Record):
    """One persistence decision.

    Attributes:
        decision_id: sortable id, the one in ``tool_result.persistence_refs``.
        invocation_id: the call.
        result_id: the result.
        strategy: what was done.
        threshold: the limits that were applied, for example ``{"max_inline_chars": 50000}``.
        original_size_bytes: size of the full output, in bytes.
        preview_size_bytes: size of what the model got, in bytes.
        persisted_ref: ``uri``, ``media_type``, ``digest``, ``size_bytes``, ``expires_at``.
        redaction_state: what redaction did to the persisted bytes.
        reason: ``result_exceeded_inline_limit``, ``policy_obligation``, ``store_failed`` ...
        created_at: when.
    """

    decision_id: str = id_field("persist")
    invocation_id: str
    result_id: str | None = None
    strategy: PersistenceStrategy
    threshold: JsonObject | None = None
    original_size_bytes: int | None = None
    preview_size_bytes: int | None = None
    persisted_ref: JsonObject | None = None
    redaction_state: Annotated[RedactionState, OPEN] = RedactionState.NONE
    reason: str | None = None
    created_at: Timestamp = Field(default_factory=utc_now)
