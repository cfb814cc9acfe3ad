"""The records of a call that ended, for sinks: the standard's own objects, without content of
arguments and results.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from agenttool_otel.call.invocation import CallRecord, Invocation
from agenttool_otel.call.records import (
    decision_records,
    invocation_record,
    references,
    result_facts,
)
from agenttool_otel.names import InvocationStatus, MutationSource
from agenttool_otel.records import HookRecord, InputMutation, PermissionDecision, ToolResult
from agenttool_otel.records.base import JsonObject, Part
from agenttool_otel.telemetry.sinks import Build

DECISION_WITHOUT_CONTENT: Final = frozenset(
    {
        "schema_version",
        "decision_id",
        "invocation_id",
        "behavior",
        "mode",
        "enforced",
        "shadow",
        "source",
        "reason",
        "rule_refs",
        "policy_refs",
        "user_modified",
        "obligations",
        "decided_at",
        "expires_at",
        "updated_input_ref",
    }
)
"""Fields of a decision that repeat nothing of the arguments: a field that is added to the record
stays out of the sinks until it is named here.
"""

MUTATION_WITHOUT_CONTENT: Final = frozenset(
    {
        "schema_version",
        "mutation_id",
        "invocation_id",
        "source_type",
        "source_ref",
        "from_input_ref",
        "to_input_ref",
        "changed_fields",
        "fields",
        "reason",
        "created_at",
    }
)
"""Fields of a mutation that repeat nothing of the arguments: names, digests and this package's own
words, never values.
"""

HOOK_WITHOUT_CONTENT: Final = frozenset(
    {
        "schema_version",
        "hook_id",
        "hook_event",
        "invocation_id",
        "tool_id",
        "matcher",
        "outputs",
        "permission_result",
        "stop",
        "failure",
        "started_at",
        "ended_at",
    }
)
"""Fields of a hook's record that repeat nothing of arguments and results, once the texts that the
hook wrote are taken out.
"""

_WAITING: Final = frozenset({InvocationStatus.AWAITING_APPROVAL, InvocationStatus.NEEDS_INPUT})

_FREE_TEXTS: Final = frozenset({"message", "reason"})
"""What a hook wrote about a call, which may repeat an argument: "alice@example.com is no customer"."""


def finished_records(call: Invocation) -> Build:
    """Return what makes the records of a call that ended or waits."""
    return partial(_records, call.as_record())


def _records(call: CallRecord) -> Iterator[tuple[str, JsonObject]]:
    invocation = invocation_record(call)
    yield "tool_invocation", invocation.to_json_object()
    for decision in decision_records(call):
        yield "tool_permission_decision", _decision_without_content(call, decision)
    for mutation in call.inputs.mutations:
        yield "input_mutation", _mutation_without_content(mutation)
    for hook in call.decision.hook_records:
        yield "tool_hook", _hook_without_content(hook)
    if call.outcome.persistence is not None:
        yield "tool_result_persistence", call.outcome.persistence.to_json_object()
    # "pending" is no status of the standard: a call that waits has no result yet; one whose task
    # is cancelled while it is stored has ended
    if call.outcome.status in _WAITING:
        return
    yield "tool_result", _result_without_content(call, invocation.telemetry_refs).to_json_object()


def _decision_without_content(call: CallRecord, decision: PermissionDecision) -> JsonObject:
    shown = _fields_of(decision, DECISION_WITHOUT_CONTENT)
    classified = call.decision.classified
    # a policy's own may hold anything, that of the host's classifier holds numbers
    if classified is not None and decision.pending_classifier_check == classified.record:
        shown["pending_classifier_check"] = classified.record
    return shown


def _mutation_without_content(mutation: InputMutation) -> JsonObject:
    names = MUTATION_WITHOUT_CONTENT
    if mutation.source_type is MutationSource.HOOK:
        names = names - _FREE_TEXTS
    return _fields_of(mutation, names)


def _hook_without_content(hook: HookRecord) -> JsonObject:
    shown = _fields_of(hook, HOOK_WITHOUT_CONTENT)
    for name in ("permission_result", "stop"):
        if name in shown:
            shown[name] = _without_texts(shown[name])
    shown["outputs"] = [_without_texts(output) for output in shown["outputs"]]
    return shown


def _without_texts(part: JsonObject) -> JsonObject:
    return {name: item for name, item in part.items() if name not in _FREE_TEXTS}


def _fields_of(record: Part, names: frozenset[str]) -> JsonObject:
    """Return the named fields of a record as JSON."""
    return record.model_dump(mode="json", exclude_none=True, include=set(names))


def _result_without_content(
    call: CallRecord, telemetry_refs: list[JsonObject] | None
) -> ToolResult:
    error = call.outcome.error or call.outcome.result_error
    if error is not None:
        error = error.model_copy(update={"message": "", **references(call)})
    return ToolResult(
        **result_facts(call),
        artifact_refs=call.outcome.artifact_refs,
        telemetry_refs=telemetry_refs,
        error=error,
    )
