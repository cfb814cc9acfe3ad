"""An id stands for one thing, and what has one keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agenttool_otel.conformance.rules.journal import (
    CallRecords,
    Entry,
    Journal,
    Violation,
    of_each_call,
)

_RECORDED_ONCE: Final = ("tool_event", "tool_progress")
"""Objects of which each record is another one."""

_RECORDED_AGAIN: Final = ("tool_permission_decision", "input_mutation", "tool_result_persistence")
"""Objects that a call which paused has again when it ends: the same ones."""

_KEPT: Final = ("tool_id", "native_call_id", "model_input_ref", "created_at")
"""Fields of an invocation that no later record of it changes."""


def ids_are_unique(journal: Journal) -> Iterator[Violation]:
    """No two events or reports of progress share an id."""
    for kind in _RECORDED_ONCE:
        # {"event_id": "evt_1"} twice: a consumer that stores by id loses one of them
        seen: set[str] = set()
        for entry in journal.of(kind):
            if entry.id in seen:
                yield Violation("id.unique", f"two records of {kind} have one id", (entry.id,))
            seen.add(entry.id)


def result_ids_are_unique(journal: Journal) -> Iterator[Violation]:
    """No results of two calls share an id."""
    owners: dict[str, str] = {}
    for entry in journal.of("tool_result"):
        call_id = entry.record["invocation_id"]
        owner = owners.setdefault(entry.id, call_id)
        if owner != call_id:
            yield Violation("id.unique", "results of two calls have one id", (entry.id,))


def records_stay_as_they_were(journal: Journal) -> Iterator[Violation]:
    """A decision, a mutation or a persistence that is recorded again is what it was."""
    for kind in _RECORDED_AGAIN:
        first: dict[str, Entry] = {}
        for entry in journal.of(kind):
            before = first.setdefault(entry.id, entry)
            for name in _changed(before, entry):
                message = f"{name} of a {kind} is another one when it is recorded again"
                yield Violation("id.kept", message, (entry.id,))


def _changed(before: Entry, after: Entry) -> list[str]:
    changed = []
    for name in dict.fromkeys([*before.record, *after.record]):
        if before.record.get(name) != after.record.get(name):
            changed.append(name)
    return changed


@of_each_call("id.kept")
def invocations_keep_what_they_are(call: CallRecords) -> Iterator[str]:
    """Tool, native id, model input and beginning of an invocation are those of its first record."""
    invocations = call.of("tool_invocation")
    for later in invocations[1:]:
        for name in _KEPT:
            first = invocations[0].get(name)
            if later.get(name) != first:
                yield f"{name} of an invocation is another one later"
