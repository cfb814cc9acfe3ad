"""What fields should be that the documents name and the schemas leave out: of the interface, and of
the parts of objects.
"""

from __future__ import annotations

import situations as made
import word_situations
from situations import INTERFACE, MAPPINGS, World
from views import View, envelope, view

from agenttool_otel.records.base import JsonObject


def error(world: World) -> JsonObject:
    """Return the error in the envelope."""
    found: JsonObject = envelope(world)["error"]
    return found


VIEWS: list[View] = [
    view(
        "tool_interface",
        made.interfaces_stated,
        lambda world: world.record("tool_interface", name="act"),
        **INTERFACE,
        requires_setup=["browser"],
        required_credentials=["mail"],
        feature_gate_refs=["beta"],
        schema_validation="strict",
        value_validation=True,
        io_preflight_validation=True,
        deny_before_io=True,
        permission_channel="approval_store",
        decision_ref="data.agenttool.permission.decision",
        abort_semantics="cancel",
        context_modifier_policy="refuse",
        result_mapper="content_blocks",
        empty_result_policy="empty_marker",
        redaction_policy_refs=["data.agenttool.redaction.obligations"],
    ),
    view(
        "tool_interface",
        made.interfaces_stated,
        lambda world: world.record("tool_interface", name="later"),
        should_defer=True,
    ),
    view(
        "tool_invocation",
        made.an_edited_approval,
        approval_request_ref=lambda world: world.request_ids[0],
    ),
    view(
        "tool_result",
        made.a_result_of_many_kinds,
        envelope,
        transcript_search_text='{"text":"a"}',
    ),
    view(
        "tool_error",
        made.a_server_that_is_busy,
        error,
        error_code="AT-505",
        error_class="rate_limited",
        message="urllib.error.HTTPError: HTTP Error 429: Too Many Requests",
        recoverability="retry_later",
        retry_after=7.0,
        native_error_ref="http:429",
        policy_refs=["policy:static@test-1"],
    ),
    view(
        "tool_error",
        word_situations.a_person_says_no,
        error,
        evidence_refs=lambda world: [f"approval_log:{world.request_ids[0]}"],
    ),
    view(
        "scheduler_facts",
        made.a_call_with_scheduler_facts,
        lambda world: world.record("tool_invocation")["scheduler"],
        is_concurrency_safe=True,
        is_read_only=True,
        is_open_world=False,
        context_modifier_policy="defer",
        resource_locks=["printer"],
    ),
    view(
        "scheduler_facts",
        made.a_call_that_destroys,
        lambda world: world.record("tool_invocation")["scheduler"],
        is_destructive=True,
        requires_exclusive_context=True,
    ),
]


def mapping(source: str) -> View:
    """Make the view of a call's ids in one native system."""

    def record(world: World) -> JsonObject:
        found = world.record("tool_invocation")["external_mappings"]
        [ids] = [ids for ids in found if ids["source"] == source]
        return dict(ids)

    return View(
        f"tool_external_mapping.{source}", made.a_call_with_native_ids, record, MAPPINGS[source]
    )


VIEWS += [mapping(source) for source in MAPPINGS]
