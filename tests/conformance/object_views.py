"""What the fields of the standard's fifteen objects should be."""

from __future__ import annotations

from typing import Any

import situations as made
from situations import ASKED, SCHEDULE, STATED, World
from views import (
    VERSION,
    AtMost,
    Between,
    Like,
    View,
    during,
    envelope,
    inv,
    of,
    permission,
    view,
)

from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.telemetry import package_version
from agenttool_otel.values.canonical import keyed_digest

VIEWS: list[View] = []


def stated(*names: str) -> dict[str, Any]:
    """Return what was stated of the tool."""
    return {name: STATED[name] for name in names}


# --- a tool ---------------------------------------------------------------------------------------

MODEL_SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
    "additionalProperties": True,
}
RUNTIME_SCHEMA = {
    **MODEL_SCHEMA,
    "properties": {
        "command": {"type": "string"},
        "token": {"visibility": "internal", "mutation_source": "hook"},
    },
}

VIEWS.append(
    view(
        "tool_declaration",
        made.everything_stated,
        **VERSION,
        **stated(
            *("tool_id", "namespace", "name", "aliases", "search_hint", "title", "description"),
            *("lifecycle", "tool_kind", "capability_refs", "external_mappings", "annotations"),
        ),
        input_contract={
            "model_input_schema": MODEL_SCHEMA,
            "runtime_input_schema": RUNTIME_SCHEMA,
            "strict": False,
            "sensitive_fields": [],
            "internal_only_fields": ["token"],
            "argument_mode": "json",
            "mutation_policy": "allow",
        },
        output_contract={
            "structured_schema": {"type": "string"},
            "content_types": [],
            "max_inline_chars": 300,
            "persistence_policy_ref": "ref_only",
            "redaction_rules": [],
        },
        interface_ref=of("tool_interface", "interface_id", tool_id="desk:run"),
        execution_profile_ref=of("tool_execution_profile", "execution_profile_id"),
        permission_profile_ref=of("tool_permission_profile", "permission_profile_id"),
    )
)

VIEWS.append(
    view(
        "tool_interface",
        made.everything_stated,
        **VERSION,
        **stated("tool_id", "name", "aliases", "search_hint", "strict", "output_schema"),
        **stated("requires_user_interaction", "max_inline_chars", "external_mappings"),
        interface_id=of("tool_declaration", "interface_ref", tool_id="desk:run"),
        model_input_schema=MODEL_SCHEMA,
        runtime_input_schema=RUNTIME_SCHEMA,
        schema_visibility="deferred",
        is_enabled=True,
        is_read_only="classifier:command_read_only",
        is_concurrency_safe="same_as:is_read_only",
        is_destructive="classifier:command_destructive",
        is_open_world=False,
        classifier_input="input.command",
        permission_matcher="shell_pattern",
        execution_profile_ref=of("tool_execution_profile", "execution_profile_id"),
        permission_profile_ref=of("tool_permission_profile", "permission_profile_id"),
        persistence_policy_ref="persistence:ref_only",
        rendering={
            "model": "model_facing_content",
            "ui": "ui_facing_summary",
            "transcript": "transcript_search_text",
        },
    )
)

VIEWS.append(
    view(
        "tool_execution_profile",
        made.everything_stated,
        **VERSION,
        **stated("execution_kind", "supports_progress", "supports_cancel", "sandbox_profile"),
        **stated("timeout_ms", "external_mappings"),
        execution_profile_id=of("tool_declaration", "execution_profile_ref"),
        supports_resume=True,
        supports_retries=True,
        supports_partial_results=True,
        supports_background=True,
        supports_artifacts=True,
        supports_context_modifiers=True,
        sandboxed=True,
    )
)

VIEWS.append(
    view(
        "tool_permission_profile",
        made.everything_stated,
        **VERSION,
        **stated("risk_level", "access_kinds", "write_effects", "network_scope", "tenant_scope"),
        **stated("credential_refs", "sandbox_profile", "approval_required", "approval_reason"),
        **stated(
            "rule_matching_fields", "data_sensitivity", "retention_hint", "redaction_required"
        ),
        permission_profile_id=of("tool_declaration", "permission_profile_ref"),
        permission_channel="approval_store",
    )
)

# --- a surface ------------------------------------------------------------------------------------

VIEWS.append(
    view(
        "tool_surface",
        made.a_surface,
        **VERSION,
        surface_id=lambda world: world.record("tool_event", event_type="tool.surface.created")[
            "data"
        ]["surface_id"],
        scope="task",
        created_at=lambda world: Between(world.began, world.ended),
        producer=f"agenttool-otel@{package_version()}",
        tool_refs=["situations.read", "situations.find"],
        loaded_tools=["situations.read"],
        deferred_tools=[
            {
                "schema_version": "0.2.0",
                "tool_id": "situations.find",
                "name": "find",
                "namespace": "situations",
                "schema_visibility": "deferred",
                "loading_state": "discoverable",
                "reason": "deferred_until_discovered",
                "selection_ref": "select:find",
            }
        ],
        blocked_tools=[
            {
                "tool_id": "situations.dig",
                "reason": "policy_blocked",
                "detail": "the policy hides it",
            }
        ],
        excluded_tools=[
            {
                "tool_id": "situations.mail",
                "reason": "feature_disabled",
                "detail": "it offers none of text",
            }
        ],
        selection_policy={"limit": 5, "search": True, "outside": "refused"},
        default_tool_choice="required",
        capability_requirements=["text"],
        model_capabilities={"vision": True},
        role_constraints={"roles": ["reader"], "agents": ["clerk"]},
        surface_reason="the tools that agent:clerk may see in mode default",
        policy_refs=["policy:static@test-1"],
        runtime_refs=["session:monday"],
    )
)

VIEWS.append(
    view(
        "deferred_tool_ref",
        made.a_tool_of_a_server_that_connects,
        **VERSION,
        tool_id="docs.ask",
        name="ask",
        namespace="docs",
        search_hint="ask the documents",
        source="docs-server",
        schema_visibility="deferred",
        loading_state="pending_provider",
        reason="deferred_until_discovered",
        pending_provider_or_server="docs-server",
        selection_ref="select:ask",
        native_ref={"source": "mcp", "server_id": "docs", "tool_name": "ask"},
    )
)

# --- a call ---------------------------------------------------------------------------------------


def trace_refs(world: World) -> list[JsonObject]:
    """Return the trace that the caller got with the result."""
    [ref] = world.result.telemetry_refs
    return [{"trace_id": ref["trace_id"], "span_id": ref["span_id"]}]


GIVEN, RAN = keyed_digest({"text": "B"}), keyed_digest({"text": "b"})
REPORT = {"artifact_id": "report-1", "uri": "store:report-1"}

VIEWS.append(
    view(
        "tool_invocation",
        made.a_batch,
        **VERSION,
        invocation_id=inv,
        tool_id="desk.write",
        surface_id=of("tool_surface", "surface_id"),
        native_call_id="call_1",
        status="succeeded",
        model_input_ref=GIVEN,
        observable_input_ref=GIVEN,
        permission_input_ref=RAN,
        call_input_ref=RAN,
        actor_ref="agent:clerk",
        runtime_refs=["session:monday"],
        policy_refs=["policy:static@test-1"],
        permission_decision_refs=lambda world: [permission(world)["decision_id"]],
        hook_refs=["trim"],
        telemetry_refs=trace_refs,
        artifact_refs=[REPORT],
        scheduler_policy_ref="sched_monday",
        created_at=during,
        started_at=lambda world: Between(
            world.record("tool_invocation")["created_at"], world.ended
        ),
        ended_at=lambda world: Between(world.record("tool_invocation")["started_at"], world.ended),
    )
)


def _transitions(world: World) -> list[JsonObject]:
    """Return the states of a call that is allowed, each not before the last one."""
    found = world.record("tool_invocation")["status_transitions"]
    earliest = [world.began, *(step["at"] for step in found)]
    states = ["planned", "selected", "arguments_ready", "running", "succeeded"]
    return [
        {"status": state, "at": Between(before, world.ended)}
        for state, before in zip(states, earliest, strict=False)
    ]


VIEWS.append(
    view("tool_invocation", made.a_policy_changes_the_input, status_transitions=_transitions)
)

VIEWS.append(
    view(
        "tool_invocation",
        made.an_edited_approval,
        evidence_refs=lambda world: [f"approval_log:{world.request_ids[0]}"],
    )
)

VIEWS.append(
    view(
        "input_mutation",
        made.a_batch,
        **VERSION,
        mutation_id=lambda world: (world.result.input_mutations or [{}])[0]["mutation_id"],
        invocation_id=inv,
        source_type="hook",
        source_ref="trim",
        from_input_ref=GIVEN,
        to_input_ref=RAN,
        changed_fields=["/text"],
        created_at=lambda world: Between(
            world.record("tool_hook")["started_at"], permission(world)["decided_at"]
        ),
    )
)

VIEWS.append(
    view(
        "tool_hook",
        made.a_batch,
        **VERSION,
        hook_id="trim",
        hook_event="pre_tool_use",
        invocation_id=inv,
        tool_id="desk.write",
        matcher={"tool": ["write"]},
        outputs=[{"kind": "updated_input", "applied": True}, {"kind": "permission_result"}],
        permission_result={"behavior": "allow"},
        started_at=during,
        ended_at=lambda world: Between(
            world.record("tool_hook")["started_at"], permission(world)["decided_at"]
        ),
    )
)

VIEWS.append(view("tool_hook", made.a_hook_that_stops, stop={"effect": "passed_on"}))

VIEWS.append(view("input_mutation", made.an_edited_approval, reason="edited by the approver"))

VIEWS.append(view("tool_scheduler_policy", made.a_batch, **VERSION, **SCHEDULE))

VIEWS.append(
    view(
        "tool_event",
        made.a_batch,
        lambda world: world.record("tool_event", event_type="tool.invocation.succeeded"),
        **VERSION,
        event_id=Like("evt_[0-9a-f]{32}"),
        event_type="tool.invocation.succeeded",
        source="agenttool-otel",
        subject="desk.write",
        time=lambda world: Between(world.record("tool_invocation")["started_at"], world.ended),
        invocation_id=inv,
        tool_id="desk.write",
        data={"status": "succeeded", "agenttool.invocation.status": "succeeded"},
        trace_refs=trace_refs,
    )
)

# --- decisions ------------------------------------------------------------------------------------


def asked(world: World) -> JsonObject:
    """Return the decision in the envelope of the call that waits."""
    return world.results[0].permission or {}


VIEWS.append(
    view(
        "tool_permission_decision",
        made.an_edited_approval,
        asked,
        **VERSION,
        **ASKED,
        decision_id=lambda world: world.records("tool_invocation")[0]["permission_decision_refs"][
            0
        ],
        invocation_id=inv,
        behavior="ask",
        mode="careful",
        policy_refs=["policy:static@test-1"],
        decided_at=lambda world: Between(
            world.records("tool_invocation")[0]["created_at"],
            world.records("tool_invocation")[-1]["ended_at"],
        ),
    )
)
VIEWS.append(
    view(
        "tool_permission_decision",
        made.an_edited_approval,
        permission,
        user_modified=True,
        accept_feedback="shorter",
    )
)
VIEWS.append(
    view(
        "tool_permission_decision",
        made.a_policy_changes_the_input,
        permission,
        updated_input={"text": "b"},
        updated_input_ref=RAN,
    )
)

# --- progress and results -------------------------------------------------------------------------

VIEWS.append(
    view(
        "tool_progress",
        made.a_report_of_progress,
        lambda world: world.record("tool_progress", status="running"),
        **VERSION,
        progress_id=Like("prog_[0-9a-f]{32}"),
        invocation_id=inv,
        sequence=1,
        status="running",
        message="copying",
        percent=40.0,
        current_step="second",
        total_steps=3,
        elapsed_ms=lambda world: _elapsed(world),
        bytes_read=5,
        bytes_written=4,
        line_count=2,
        task_id="task-1",
        partial_result_refs=["part:1"],
        artifact_refs=[{"artifact_id": "copy-1"}],
        timestamp=lambda world: Between(
            world.record("tool_invocation")["started_at"],
            world.record("tool_invocation")["ended_at"],
        ),
    )
)


def _elapsed(world: World) -> AtMost:
    return AtMost((world.ended - world.began).total_seconds() * 1000)


VIEWS.append(
    view(
        "tool_result_persistence",
        made.a_large_result,
        **VERSION,
        decision_id=lambda world: world.result.persistence_refs[0],
        invocation_id=inv,
        result_id=lambda world: world.result.result_id,
        strategy="preview_and_persist",
        threshold={"max_inline_chars": 300},
        original_size_bytes=5000,
        preview_size_bytes=lambda world: len(world.result.model_facing_content[0]["text"].encode()),
        persisted_ref=lambda world: world.result.resource_refs[0],
        redaction_state="none",
        reason="result_exceeded_inline_limit",
        created_at=during,
    )
)


DATA = {"text": "a"}
LINK = {"uri": "https://example.org/a", "name": "a"}

VIEWS.append(
    view(
        "tool_result",
        made.a_result_of_many_kinds,
        envelope,
        **VERSION,
        result_id=of("tool_result", "result_id"),
        invocation_id=of("tool_invocation", "invocation_id"),
        status="succeeded",
        is_error=False,
        content=[
            {"type": "structured_content", "data": DATA},
            {"type": "resource_link", **LINK},
            {"type": "artifact_ref", "artifact_id": "report-1"},
        ],
        structured_content=DATA,
        model_facing_content=[
            {"type": "text", "text": '{"text":"a"}'},
            {"type": "resource_link", **LINK},
        ],
        ui_facing_summary="object, 1 members; resource_link; artifact_ref",
        resource_refs=[LINK],
        artifact_refs=[{"artifact_id": "report-1"}],
        policy_refs=["policy:static@test-1"],
        summary="act: succeeded",
        redaction_state="none",
        created_at=of("tool_invocation", "ended_at"),
    )
)
VIEWS.append(
    view(
        "tool_result",
        made.a_result_of_many_kinds,
        telemetry_refs=of("tool_invocation", "telemetry_refs"),
    )
)
VIEWS.append(
    view(
        "tool_result",
        made.a_large_result,
        persistence_refs=lambda world: [world.record("tool_result_persistence")["decision_id"]],
    )
)
VIEWS.append(
    view(
        "tool_result",
        made.an_edited_approval,
        evidence_refs=lambda world: [f"approval_log:{world.request_ids[0]}"],
    )
)
VIEWS.append(
    view(
        "tool_result",
        made.a_body_that_fails,
        envelope,
        is_error=True,
        error={
            "error_class": "execution_failed",
            "error_code": "AT-502",
            "message": "OSError: no disk",
            "recoverability": "unknown",
            "native_error_ref": "builtins.OSError",
            "retry": {
                "retry_safe": False,
                "arguments_must_change": False,
                "discovery_required": False,
                "approval_required": False,
                "sibling_caused": False,
            },
            "policy_refs": ["policy:static@test-1"],
            "evidence_refs": [],
        },
    )
)
