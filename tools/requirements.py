"""The requirements of Agent Tool v0.2.0 as rows: one for each field, word and event of the
standard, and one for each sentence of its documents that asks for a behaviour.

Rows of fields, words and events follow from the standard's schemas and the package's vocabularies.
Rows of behaviour are in ``tests/conformance/rows/*.toml``::

    [[row]]
    id = "denied-body-does-not-run"
    requirement = "The body of a denied call does not run."
    source = "Specification, Execution pipeline, phase 7"
    mutant = { file = "call/phases/permission.py", old = "...", new = "..." }

A row that is not met has ``not_met``, the reason, in place of ``mutant``. A test states the rows
that it shows by the marker ``covers``: ``@pytest.mark.covers("denied-body-does-not-run")``.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from mutants import PACKAGE, LineMutant, Mutant, RecordMutant

ROOT: Final = Path(__file__).resolve().parent.parent
DATA: Final = ROOT / "tests" / "conformance" / "rows"
SCHEMAS: Final = ROOT / "src" / "agenttool_otel" / "conformance" / "schemas"
sys.path.insert(0, str(ROOT / "src"))

OBJECTS: Final = {
    "tool_declaration": "tool-declaration",
    "tool_interface": "tool-interface",
    "tool_surface": "tool-surface",
    "deferred_tool_ref": "deferred-tool",
    "tool_execution_profile": "execution-profile",
    "tool_permission_profile": "permission-profile",
    "tool_permission_decision": "permission-decision",
    "tool_invocation": "invocation",
    "input_mutation": "input-mutation",
    "tool_hook": "hook",
    "tool_scheduler_policy": "scheduler-policy",
    "tool_progress": "progress",
    "tool_result": "result",
    "tool_result_persistence": "result-persistence",
    "tool_event": "event",
}
"""The standard's objects that have a schema, and the name of its file."""

FURTHER: Final = {
    "tool_interface": (
        *("namespace", "native_ids", "user_facing_name", "description", "capability_refs"),
        *("should_defer", "always_load", "requires_setup", "required_credentials"),
        *("model_requirements", "feature_gate_refs", "schema_validation", "value_validation"),
        *("io_preflight_validation", "deny_before_io", "sandbox_profile", "permission_channel"),
        *("decision_ref", "timeout_ms", "abort_semantics", "progress_schema"),
        *("context_modifier_policy", "interrupt_behavior", "result_mapper"),
        *("empty_result_policy", "redaction_policy_refs", "ui_summary", "activity_description"),
        *("progress_render_hint", "rejected_render_hint", "error_render_hint"),
        "transcript_search_text",
    ),
    "tool_invocation": ("approval_request_ref",),
    "tool_result": ("transcript_search_text",),
}
"""Fields of the objects that the documents name and the schemas leave out."""

PARTS: Final = {
    "tool_error": (
        "tool_result",
        "error",
        (
            *("error_code", "error_class", "message", "recoverability", "retry_after"),
            *("native_error_ref", "policy_refs", "evidence_refs"),
        ),
    ),
    "scheduler_facts": (
        "tool_invocation",
        "scheduler",
        (
            *("is_concurrency_safe", "is_read_only", "is_destructive", "is_open_world"),
            *("requires_exclusive_context", "context_modifier_policy", "resource_locks"),
        ),
    ),
    "tool_external_mapping.mcp": (
        "tool_invocation",
        "external_mappings[]",
        (
            *("server_id", "mcp_session_id", "mcp_protocol_version", "method", "tool_name"),
            *("jsonrpc_request_id", "structuredContent", "isError", "_meta"),
        ),
    ),
    "tool_external_mapping.openapi": (
        "tool_invocation",
        "external_mappings[]",
        ("operation_id", "method", "path", "server_url", "security_scheme_refs"),
    ),
    "tool_external_mapping.function_calling": (
        "tool_invocation",
        "external_mappings[]",
        (
            *("tool_call_id", "function_name", "tool_choice", "parallel_tool_calls", "strict"),
            "defer_loading",
        ),
    ),
    "tool_external_mapping.a2a": (
        "tool_invocation",
        "external_mappings[]",
        (
            *("agent_card_url", "agent_skill_id", "task_id", "context_id", "message_id"),
            "artifact_id",
        ),
    ),
    "tool_external_mapping.cli": (
        "tool_invocation",
        "external_mappings[]",
        (
            *("command_id", "argv_ref", "cwd_ref", "env_policy_ref", "exit_code", "signal"),
            "sandbox_ref",
        ),
    ),
    "tool_external_mapping.browser": (
        "tool_invocation",
        "external_mappings[]",
        ("browser_session_id", "page_id", "action_id", "observation_ref", "screenshot_ref"),
    ),
    "tool_external_mapping.telemetry": (
        "tool_invocation",
        "external_mappings[]",
        (
            *("trace_id", "span_id", "tool_name", "tool_call_id", "request_id", "duration_ms"),
            "result_size_bytes",
        ),
    ),
}
"""Objects that are parts of others and have no schema: the object and field that hold each, and the
fields that the documents list. Those of search results and contracts are
rows of behaviour.
"""

PLACES: Final = {
    "ToolKind": "tool_declaration.tool_kind",
    "Lifecycle": "tool_declaration.lifecycle",
    "ExecutionKind": "tool_execution_profile.execution_kind",
    "RiskLevel": "tool_permission_profile.risk_level",
    "AccessKind": "tool_permission_profile.access_kinds[]",
    "WriteEffect": "tool_permission_profile.write_effects[]",
    "SchemaVisibility": "deferred_tool_ref.schema_visibility",
    "LoadingState": "deferred_tool_ref.loading_state",
    "SurfaceScope": "tool_surface.scope",
    "BlockReason": "tool_surface.blocked_tools[].reason",
    "ArgumentMode": "tool_declaration.input_contract.argument_mode",
    "InvocationStatus": "tool_invocation.status_transitions[].status",
    "ResultStatus": "tool_result.status",
    "ErrorClass": "tool_result.error.error_class",
    "ContentType": "tool_result.content[].type",
    "Behavior": "tool_permission_decision.behavior",
    "ReasonType": "tool_permission_decision.reason.type",
    "MutationSource": "input_mutation.source_type",
    "HookEvent": "tool_hook.hook_event",
    "ProgressStatus": "tool_progress.status",
    "PersistenceStrategy": "tool_result_persistence.strategy",
    "AbortReason": "tool_result.abort_reason",
    "InterruptBehavior": "tool_scheduler_policy.interrupt_behavior",
    "SiblingFailurePolicy": "tool_scheduler_policy.sibling_failure_policy",
    "OrderingPolicy": "tool_scheduler_policy.ordering_policy",
    "YieldPolicy": "tool_scheduler_policy.yield_policy",
    "ContextModifierPolicy": "tool_scheduler_policy.context_modifier_policy",
}
"""By vocabulary of ``agenttool_otel.names`` the field of a record that holds its words."""

ELSEWHERE: Final = {
    # "Tools removed by role, recursion, feature, model, or policy filters"
    "BlockReason.model_unsupported": "tool_surface.excluded_tools[].reason",
    "BlockReason.recursive_tool_forbidden": "tool_surface.excluded_tools[].reason",
    "BlockReason.role_not_allowed": "tool_surface.excluded_tools[].reason",
    "BlockReason.feature_disabled": "tool_surface.excluded_tools[].reason",
    "BlockReason.deferred_until_discovered": "deferred_tool_ref.reason",
    # "Internal-only fields MUST be marked with visibility"
    "SchemaVisibility.internal": "tool_interface.runtime_input_schema.properties.*.visibility",
    # "Initial scheduler states": a result is handed on after its call has ended
    "InvocationStatus.yielded": "tool_invocation.scheduler.state",
}
"""The fields of words that stand elsewhere than the others of their vocabulary."""

DOCUMENTED: Final = {
    "tool_hook.outputs[].kind": (
        "message",
        "progress",
        "updated_input",
        "permission_result",
        "additional_context",
        "stop",
        "updated_output",
    ),
    "tool_permission_decision.source": (
        "user_settings",
        "project_settings",
        "local_settings",
        "flag_settings",
        "policy_settings",
        "cli_arg",
        "command",
        "session",
    ),
    "tool_surface.default_tool_choice": ("auto", "none", "required"),
}
"""By field the words of the documents' lists that are no vocabulary of ``agenttool_otel.names``, and
no rows of behaviour, as the queue states are.
"""

EXTENSIONS: Final = {
    "ResultStatus.pending": "The envelope of a call that waits; the standard's states all end it.",
    "AbortReason.abandoned": "The consumer of a stream left it.",
    "AbortReason.unknown": "Nobody gave a reason.",
}
"""Words of this package that the standard has not, each with what it is for: they are no rows.

The standard has a field ``redaction_state``, and ``recoverability`` of an error, but no list of
words for them: RedactionState and Recoverability are this package's as a whole.
"""

EVENTS: Final = [
    "declared",
    "surface.created",
    "surface.updated",
    "deferred.discovered",
    "deferred.loaded",
    "invocation.planned",
    "invocation.selected",
    "invocation.arguments_ready",
    "invocation.validation_failed",
    "hook.pre.started",
    "hook.pre.completed",
    "permission.requested",
    "permission.decided",
    "invocation.queued",
    "invocation.started",
    "invocation.progress",
    "invocation.partial_result",
    "hook.post.started",
    "hook.post.completed",
    "result.persisted",
    "invocation.yielded",
    "invocation.succeeded",
    "invocation.failed",
    "invocation.canceled",
    "invocation.timed_out",
    "result.created",
    "result.redacted",
]
"""The standard's 27 event classes, without ``tool.``."""


class Kind(StrEnum):
    """What a row is about."""

    FIELD = "field"
    """A field of one of the standard's objects."""

    WORD = "word"
    """A word of a closed or suggested list."""

    EVENT = "event"
    """An event class."""

    BEHAVIOR = "behavior"
    """A sentence that asks for a behaviour."""


@dataclass(frozen=True)
class Requirement:
    """One row.

    Attributes:
        id: what a test names in ``covers``.
        kind: what the row is about.
        chapter: heading under which the page lists it.
        text: the requirement in our words.
        source: document and section of the standard.
        mutant: what breaks it; ``None`` only where it is not met.
        not_met: why it is not met; empty where it is.
    """

    id: str
    kind: Kind
    chapter: str
    text: str
    source: str
    mutant: Mutant | None = None
    not_met: str = ""


def rows() -> list[Requirement]:
    """Return all rows, each id once.

    Raises:
        ValueError: two rows have the same id.
    """
    found = [*_fields(), *_words(), *_events(), *_behaviors()]
    ids = set[str]()
    for row in found:
        if row.id in ids:
            raise ValueError(f"two rows are called {row.id}")
        ids.add(row.id)
    return found


@cache
def by_id() -> dict[str, Requirement]:
    """Return all rows by their ids."""
    return {row.id: row for row in rows()}


def mutant_of(row: str) -> Mutant:
    """Return the mutant of a row.

    Args:
        row: its id.

    Raises:
        KeyError: there is no such row, or it has no mutant.
    """
    mutant = by_id()[row].mutant
    if mutant is None:
        raise KeyError(f"{row} is not met and has no mutant")
    return mutant


def _fields() -> Iterator[Requirement]:
    for name, file in OBJECTS.items():
        schema = json.loads((SCHEMAS / f"agenttool-{file}.schema.json").read_text("utf-8"))
        for field in (*schema["properties"], *FURTHER.get(name, ())):
            yield _field(name, field, f"{file} schema or page", RecordMutant(name, field))
    for name, (whole, place, fields) in PARTS.items():
        for field in fields:
            mutant = RecordMutant(whole, f"{place}.{field}")
            yield _field(name, field, "Specification and its pages", mutant)


def _field(name: str, field: str, source: str, mutant: RecordMutant) -> Requirement:
    chapter = f"Fields of {name}"
    return _generated(Kind.FIELD, f"{name}.{field}", chapter=chapter, source=source, mutant=mutant)


def _words() -> Iterator[Requirement]:
    for place, word in _places_of_words():
        name, _, field = place.partition(".")
        yield _generated(
            Kind.WORD,
            f"{place}={word}",
            chapter=f"Words of {place}",
            source=f"{OBJECTS[name]} page",
            mutant=RecordMutant(name, field, word=word),
        )


@cache
def _vocabularies() -> dict[str, list[str]]:
    """Return the words of each vocabulary, and leave the package as unimported as it was: a mutant
    changes what is imported after it.
    """
    before = set(sys.modules)
    from agenttool_otel import names

    words = {name: [str(word) for word in getattr(names, name)] for name in PLACES}
    for module in set(sys.modules) - before:
        if module.partition(".")[0] == PACKAGE:
            del sys.modules[module]
    return words


def _places_of_words() -> Iterator[tuple[str, str]]:
    for vocabulary, place in PLACES.items():
        for word in _vocabularies()[vocabulary]:
            known_as = f"{vocabulary}.{word}"
            if known_as not in EXTENSIONS:
                yield ELSEWHERE.get(known_as, place), word
    for place, words in DOCUMENTED.items():
        for word in words:
            yield place, word


def _events() -> Iterator[Requirement]:
    for name in EVENTS:
        event = f"tool.{name}"
        yield _generated(
            Kind.EVENT,
            event,
            chapter="Event classes",
            source="Specification, Event classes",
            mutant=RecordMutant("tool_event", "event_type", word=event),
        )


def _generated(
    kind: Kind, row: str, *, chapter: str, source: str, mutant: RecordMutant
) -> Requirement:
    reason = _reasons().get(row, "")
    return Requirement(
        id=row,
        kind=kind,
        chapter=chapter,
        text=row,
        source=source,
        mutant=None if reason else mutant,
        not_met=reason,
    )


@cache
def _reasons() -> dict[str, str]:
    """Return why fields, words and events are not met, by row."""
    path = DATA / "not_met.toml"
    reasons: dict[str, str] = tomllib.loads(path.read_text("utf-8"))
    return reasons


def _behaviors() -> Iterator[Requirement]:
    for path in sorted(DATA.glob("*.toml")):
        if path.stem == "not_met":
            continue
        file = tomllib.loads(path.read_text("utf-8"))
        for entry in file["row"]:
            yield _behavior(file["chapter"], entry)


def _behavior(chapter: str, entry: dict[str, Any]) -> Requirement:
    mutant = entry.get("mutant")
    return Requirement(
        id=entry["id"],
        kind=Kind.BEHAVIOR,
        chapter=chapter,
        text=entry["requirement"],
        source=entry["source"],
        mutant=LineMutant(**mutant) if mutant else None,
        not_met=entry.get("not_met", ""),
    )
