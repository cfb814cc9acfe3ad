"""Each word of the standard stands in its field in the records of what really went so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import situations
import word_situations as made
from mutants import RecordMutant
from requirements import Kind, Requirement, rows
from situations import Situation, World

STATED: dict[str, Callable[[str], World]] = {
    "tool_declaration.tool_kind": partial(made.declared, "tool_kind"),
    "tool_declaration.lifecycle": partial(made.declared, "lifecycle"),
    "tool_declaration.input_contract.argument_mode": partial(made.declared, "argument_mode"),
    "tool_execution_profile.execution_kind": partial(made.declared, "execution_kind"),
    "tool_permission_profile.risk_level": partial(made.declared, "risk_level"),
    "tool_permission_profile.access_kinds[]": partial(made.declared, "access_kinds", listed=True),
    "tool_permission_profile.write_effects[]": partial(made.declared, "write_effects", listed=True),
    "tool_surface.scope": made.surfaced,
    "tool_surface.default_tool_choice": partial(made.surfaced, "session"),
    "tool_scheduler_policy.ordering_policy": partial(made.scheduled, "ordering_policy"),
    "tool_scheduler_policy.yield_policy": partial(made.scheduled, "yield_policy"),
    "tool_scheduler_policy.interrupt_behavior": partial(made.scheduled, "interrupt_behavior"),
    "tool_scheduler_policy.sibling_failure_policy": partial(
        made.scheduled, "sibling_failure_policy"
    ),
    "tool_scheduler_policy.context_modifier_policy": partial(
        made.scheduled, "context_modifier_policy"
    ),
    "tool_permission_decision.behavior": made.decided,
    "tool_permission_decision.reason.type": partial(made.decided, "deny"),
    "tool_permission_decision.source": partial(made.decided, "allow", "rule"),
    "tool_result.content[].type": made.gave,
    "tool_result_persistence.strategy": made.kept,
}
"""By field what makes a situation of a word: in its records the field holds that word alone."""

WAYS: dict[str, dict[str, Situation]] = {
    "tool_surface.blocked_tools[].reason": dict.fromkeys(
        ["policy_blocked", "credential_missing", "setup_required"], made.tools_that_are_hidden
    ),
    "tool_surface.excluded_tools[].reason": dict.fromkeys(
        [
            "model_unsupported",
            "recursive_tool_forbidden",
            "role_not_allowed",
            "feature_disabled",
        ],
        made.tools_that_are_hidden,
    ),
    "deferred_tool_ref.reason": {"deferred_until_discovered": made.tools_that_are_hidden},
    "deferred_tool_ref.loading_state": {
        "deferred": made.a_reference_is_added,
        "discoverable": made.a_deferred_tool_is_loaded,
        "loaded": made.a_deferred_tool_is_loaded,
        "unavailable": made.a_deferred_tool_is_loaded,
        "pending_provider": situations.a_tool_of_a_server_that_connects,
    },
    "deferred_tool_ref.schema_visibility": {
        "loaded": made.a_deferred_tool_is_loaded,
        "deferred": made.a_deferred_tool_is_loaded,
    },
    "tool_interface.runtime_input_schema.properties.*.visibility": {
        "internal": situations.everything_stated
    },
    "tool_permission_decision.reason.type": {
        "hook": made.a_hook_objects,
        "permission_prompt_tool": made.a_person_says_yes,
    },
    "tool_result.content[].type": {"persisted_output_ref": made.a_large_result},
    "input_mutation.source_type": {
        "hook": made.a_hook_changes_the_input,
        "permission_prompt": made.a_person_changes_the_arguments,
        "adapter": made.an_adapter_reads_the_input,
        "runtime": situations.a_policy_changes_the_input,
    },
    "tool_hook.hook_event": {
        "pre_tool_use": made.a_hook_objects,
        "post_tool_use": made.a_hook_that_breaks_afterwards,
        "post_tool_use_failure": made.a_body_raises,
        "permission_request": made.a_person_says_yes,
        "permission_decision": made.a_person_says_yes,
        "result_persistence": made.a_large_result,
    },
    "tool_hook.outputs[].kind": dict.fromkeys(
        [
            *("message", "progress", "additional_context", "stop", "updated_output"),
            *("updated_input", "permission_result"),
        ],
        made.a_hook_with_all_outputs,
    ),
    "tool_invocation.scheduler.state": {"yielded": made.a_batch_of_one},
    "tool_invocation.status_transitions[].status": {
        "planned": made.a_call_that_reports,
        "selected": made.a_call_that_reports,
        "arguments_ready": made.a_call_that_reports,
        "running": made.a_call_that_reports,
        "succeeded": made.a_call_that_reports,
        "schema_parse_failed": made.arguments_of_another_type,
        "validation_failed": made.values_that_a_check_refuses,
        "pre_hooks_running": made.a_hook_objects,
        "post_hooks_running": made.a_hook_that_breaks_afterwards,
        "awaiting_approval": made.a_person_says_no,
        "approved": made.a_person_says_yes,
        "denied": made.a_policy_denies,
        "queued": made.a_batch_of_one,
        "needs_input": made.a_custom_tool_waits_for_its_result,
        "partial_result": made.a_stream,
        "failed": made.a_body_raises,
        "canceled": made.somebody_stops_a_call,
        "timed_out": made.a_body_takes_too_long,
        "blocked": made.nobody_has_such_a_tool,
    },
    "tool_progress.status": {
        "queued": made.a_batch_of_one,
        "started": made.a_call_that_reports,
        "running": made.a_call_that_reports,
        "completed": made.a_call_that_reports,
        "waiting_for_permission": made.a_person_says_yes,
        "waiting_for_input": made.a_custom_tool_waits_for_its_result,
        "backgrounded": made.a_body_takes_too_long,
        "partial_result": made.a_stream,
        "failed": made.a_body_raises,
        "canceled": made.somebody_stops_a_call,
    },
    "tool_result.status": {
        "succeeded": made.a_call_that_reports,
        "partial_succeeded": made.a_stopped_body_gives_what_it_has,
        "failed": made.a_body_raises,
        "denied": made.a_policy_denies,
        "rejected": made.a_person_says_no,
        "redacted": made.a_result_that_can_not_be_redacted,
        "too_large": made.a_large_result_that_nobody_can_keep,
        "canceled": made.somebody_stops_a_call,
        "timed_out": made.a_body_takes_too_long,
        "synthetic_error": made.a_sibling_fails,
        "discarded": made.another_model_answers_instead,
    },
    "tool_result.abort_reason": {
        "user_interruption": made.somebody_stops_a_call,
        "sibling_error": made.a_sibling_fails,
        "timeout": made.a_body_takes_too_long,
        "fallback": made.another_model_answers_instead,
        "runtime_shutdown": made.the_program_ends,
    },
    "tool_result.error.error_class": {
        "unknown_tool": made.nobody_has_such_a_tool,
        "schema_validation_failed": made.arguments_of_another_type,
        "invalid_arguments": made.values_that_a_check_refuses,
        "schema_not_loaded": made.a_deferred_tool_called_too_early,
        "setup_required": made.a_tool_that_is_not_set_up,
        "blocked_tool": made.a_tool_that_is_switched_off,
        "permission_denied": made.a_policy_denies,
        "policy_blocked": made.a_policy_that_breaks,
        "approval_rejected": made.a_person_says_no,
        "hook_blocked": made.a_hook_objects,
        "hook_failed": made.a_hook_breaks,
        "input_mutation_failed": made.a_hook_gives_what_does_not_fit,
        "execution_failed": made.a_body_raises,
        "capability_gap": made.a_body_that_is_not_written_yet,
        "partial_failure": made.a_body_that_fails_in_several_ways,
        "dependency_unavailable": made.nobody_listens,
        "credential_missing": made.a_server_refuses,
        "rate_limited": made.a_server_refuses,
        "sandbox_violation": made.a_command_leaves_its_sandbox,
        "timeout": made.a_body_takes_too_long,
        "canceled": made.somebody_stops_a_call,
        "streaming_fallback_discarded": made.another_model_answers_instead,
        "sibling_canceled": made.a_sibling_fails,
        "result_mapping_failed": made.a_result_that_misses_its_schema,
        "result_too_large": made.a_large_result_that_nobody_can_keep,
        "result_redacted": made.a_result_that_can_not_be_redacted,
        "post_hook_failed": made.a_hook_that_breaks_afterwards,
    },
}
"""By field and word a way in which a call, a surface or a batch went; other words may be there, too."""


def values_at(record: Any, field: str) -> Iterator[Any]:
    """Yield what stands at a field, in the notation of RecordMutant."""
    name, _, rest = field.partition(".")
    entries: Any = [record.get(name.removesuffix("[]"))] if isinstance(record, dict) else []
    if name == "*":
        entries = record.values()
    elif name.endswith("[]"):
        entries = entries[0] or ()
    for entry in entries:
        if rest:
            yield from values_at(entry, rest)
        elif entry is not None:
            yield entry


def words_in(world: World, mutant: RecordMutant) -> set[str]:
    """Return the words that stand in a field of all records of a situation."""
    records = list(world.records(mutant.object))
    if mutant.object == "tool_result":  # sinks get no content
        records += [result.to_json_object() for result in world.results]
    return {str(word) for record in records for word in values_at(record, mutant.field)}


def cases(kind: Kind) -> list[Any]:
    """Return the rows of a kind that are met, as parameters of a test."""
    return [
        pytest.param(row, marks=pytest.mark.covers(row.id), id=row.id)
        for row in rows()
        if row.kind is kind and not row.not_met
    ]


@pytest.mark.parametrize("row", cases(Kind.WORD))
def test_a_word_stands_in_its_field(row: Requirement) -> None:
    field, _, word = row.id.partition("=")
    assert isinstance(row.mutant, RecordMutant)
    way = WAYS.get(field, {}).get(word)
    if way is not None:
        assert word in words_in(way(), row.mutant)
    else:
        assert words_in(STATED[field](word), row.mutant) == {word}


def test_a_word_that_is_not_met_is_in_no_record() -> None:
    ways = {way for of_field in WAYS.values() for way in of_field.values()}
    for row in rows():
        field, _, word = row.id.partition("=")
        if row.kind is not Kind.WORD or not row.not_met:
            continue
        name, _, rest = field.partition(".")
        for way in ways:
            found = words_in(way(), RecordMutant(name, rest))
            assert word not in found, f"{row.id} is made: take it out of not_met.toml"
