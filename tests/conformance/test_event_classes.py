"""Each event class of the standard is emitted by what it is about, once, with its ids and its time."""

from __future__ import annotations

from datetime import datetime

import pytest
import situations
import word_situations as made
from requirements import EVENTS
from situations import Situation

TOOLS: dict[str, Situation] = {
    "declared": situations.a_surface,
    "surface.created": situations.a_surface,
    "surface.updated": made.a_deferred_tool_is_loaded,
    "deferred.discovered": made.a_deferred_tool_is_loaded,
    "deferred.loaded": made.a_deferred_tool_is_loaded,
}
"""Events of tools and surfaces."""

CALLS: dict[str, Situation] = {
    "invocation.planned": made.a_call_that_reports,
    "invocation.selected": made.a_call_that_reports,
    "invocation.arguments_ready": made.a_call_that_reports,
    "invocation.validation_failed": made.values_that_a_check_refuses,
    "hook.pre.started": made.a_hook_objects,
    "hook.pre.completed": made.a_hook_objects,
    "permission.requested": made.a_person_says_yes,
    "permission.decided": made.a_call_that_reports,
    "invocation.queued": made.a_batch_of_one,
    "invocation.started": made.a_call_that_reports,
    "invocation.progress": made.a_call_that_reports,
    "invocation.partial_result": made.a_stream,
    "hook.post.started": made.a_hook_that_breaks_afterwards,
    "hook.post.completed": made.a_hook_that_breaks_afterwards,
    "result.persisted": made.a_large_result,
    "invocation.yielded": made.a_batch_of_one,
    "invocation.succeeded": made.a_call_that_reports,
    "invocation.failed": made.a_body_raises,
    "invocation.canceled": made.somebody_stops_a_call,
    "invocation.timed_out": made.a_body_takes_too_long,
    "result.created": made.a_call_that_reports,
    "result.redacted": made.a_policy_has_a_result_redacted,
}
"""Events of calls."""

REPEATED = {"invocation.progress", "invocation.partial_result"}
"""Events that a call may have more than once, beside those of a call that goes on after a pause."""


def cases(ways: dict[str, Situation]) -> list[object]:
    return [
        pytest.param(name, marks=pytest.mark.covers(f"tool.{name}"), id=f"tool.{name}")
        for name in ways
    ]


@pytest.mark.parametrize("name", cases(TOOLS))
def test_a_change_of_tools_is_an_event(name: str) -> None:
    world = TOOLS[name]()
    found = world.records("tool_event", event_type=f"tool.{name}")
    declared = {record["tool_id"] for record in world.records("tool_declaration")}
    surfaces = {record["surface_id"] for record in world.records("tool_surface")}
    assert found
    for event in found:
        about = event.get("tool_id")
        assert about in declared or (about is None and event["data"]["surface_id"] in surfaces)
        assert world.began <= datetime.fromisoformat(event["time"]) <= world.ended


@pytest.mark.parametrize("name", cases(CALLS))
def test_a_step_of_a_call_is_an_event(name: str) -> None:
    world = CALLS[name]()
    found = world.records("tool_event", event_type=f"tool.{name}")
    [call] = {record["invocation_id"] for record in world.records("tool_invocation")}
    assert found
    assert len(found) == 1 or name in REPEATED
    for event in found:
        assert event["invocation_id"] == call
        assert event["tool_id"] == world.record("tool_invocation")["tool_id"]
        assert world.began <= datetime.fromisoformat(event["time"]) <= world.ended


def test_every_event_class_of_the_standard_has_its_situation() -> None:
    assert {*TOOLS, *CALLS} == set(EVENTS)
