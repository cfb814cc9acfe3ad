"""The records of a call that ended, for sinks: the standard's own objects, without content of
arguments and results.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from typing import Final

from agenttool_otel.call.invocation import NOT_RUN, Invocation
from agenttool_otel.call.records import (
    decision_records,
    invocation_record,
    references,
    result_facts,
)
from agenttool_otel.records import ToolResult
from agenttool_otel.records.base import JsonObject, Record
from agenttool_otel.telemetry.sinks import Build
from agenttool_otel.values.tables import load_table

_FIELDS: Final[dict[str, set[str]]] = {
    kind: set(names) for kind, names in load_table(__package__, "record_fields.toml").items()
}
"""What of a record holds no content; records that are not named here are made without any."""


_NEEDED: Final = (
    *(
        "spec",
        "context",
        "id",
        "native_call_id",
        "status",
        "outcome",
        "transitions",
        "created_ns",
        "started_ns",
    ),
    *(
        "ended_ns",
        "span",
        "model_input",
        "received",
        "observable_input",
        "permission_input",
        "bound",
        "mutations",
    ),
    *(
        "decisions",
        "request",
        "hook_records",
        "error",
        "_result_id",
        "result_status",
        "persistence",
        "verdict",
    ),
    *("redaction_state", "flaw", "artifact_refs", "place", "facts", "cancellation", "mappings"),
    *("abort_reason", "modified", "size", "hook_context", "hook_state", "edit_note"),
)
_needed_of = attrgetter(*_NEEDED)


def as_it_is(call: Invocation) -> Invocation:
    """Return a call that ended or waits as it is now: what its records need of it, and no
    result.
    """
    _ = call.result_id  # made when first asked for, and the same in every record
    now = Invocation.__new__(Invocation)  # nothing else is asked of it
    for name, value in zip(_NEEDED, _needed_of(call), strict=True):
        setattr(now, name, value)
    now.transitions = list(call.transitions)  # a batch enters further ones when it hands results on
    now.value = NOT_RUN
    return now


def finished_records(call: Invocation) -> Build:
    """Return what makes the records of a call that ended or waits."""
    return partial(_records, as_it_is(call))


def _records(call: Invocation) -> Iterator[tuple[str, JsonObject]]:
    invocation = invocation_record(call)
    yield "tool_invocation", invocation.to_json_object()
    for kind, records in (
        ("tool_permission_decision", decision_records(call)),
        ("input_mutation", call.mutations),
        ("tool_hook", call.hook_records),
    ):
        for record in records:
            yield kind, _without_content(kind, record)
    if call.persistence is not None:
        yield "tool_result_persistence", call.persistence.to_json_object()
    error = call.error or call.flaw
    result = ToolResult(
        **result_facts(call),
        artifact_refs=call.artifact_refs,
        telemetry_refs=invocation.telemetry_refs,
        error=error.model_copy(update={"message": "", **references(call)})
        if error is not None
        else None,
    )
    yield "tool_result", result.to_json_object()


def _without_content(kind: str, record: Record) -> JsonObject:
    return record.model_dump(mode="json", exclude_none=True, include=_FIELDS[kind])
