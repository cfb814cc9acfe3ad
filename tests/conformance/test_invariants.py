"""The invariants hold of records in which all holds, and each break of them is found by its rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from good_records import Line, at, good_records

from agenttool_otel.conformance.invariants import RULES, find_violations
from agenttool_otel.conformance.rules.journal import read_journal
from agenttool_otel.conformance.schema_check import problems_of

Break = Callable[[list[Line]], object]


def find(lines: list[Line], kind: str, call: str = "", number: int = -1) -> dict[str, Any]:
    """The last record of an object, of a call if one is named."""
    found = [
        line["record"]
        for line in lines
        if line["object"] == kind and call in ("", line["record"].get("invocation_id"))
    ]
    return found[number]


def put(kind: str, call: str = "", **fields: Any) -> Break:
    """Change fields of the last such record; ``None`` takes one out."""

    def change(lines: list[Line]) -> None:
        record = find(lines, kind, call)
        for name, value in fields.items():
            record[name] = value
            if value is None:
                del record[name]

    return change


def drop(kind: str, call: str = "") -> Break:
    """Take the last such record out, and number the others anew."""

    def change(lines: list[Line]) -> None:
        record = find(lines, kind, call)
        lines[:] = [line for line in lines if line["record"] is not record]
        renumber(lines)

    return change


def again(kind: str, call: str = "", **fields: Any) -> Break:
    """Add the last such record once more, changed; ``None`` takes a field out."""

    def change(lines: list[Line]) -> None:
        record = {**find(lines, kind, call), **fields}
        record = {name: value for name, value in record.items() if value is not None}
        lines.append({"producer": "p", "object": kind, "record": record})
        renumber(lines)

    return change


def event(call: str, name: str, seconds: float) -> Break:
    """Add an event."""
    return again(
        "tool_event",
        invocation_id=call,
        event_id="evt_x",
        event_type=f"tool.{name}",
        time=at(seconds),
        data={},
    )


def states(call: str, *changed: tuple[str, float]) -> Break:
    """Add states to the last invocation of a call."""

    def change(lines: list[Line]) -> None:
        invocation = find(lines, "tool_invocation", call)
        for state, seconds in changed:
            invocation["status_transitions"].append({"status": state, "at": at(seconds)})

    return change


def both(*breaks: Break) -> Break:
    """Break in several ways."""

    def change(lines: list[Line]) -> None:
        for one in breaks:
            one(lines)

    return change


def renumber(lines: list[Line]) -> None:
    for number, line in enumerate(lines, 1):
        line["sequence"] = number


def reverse(lines: list[Line]) -> None:
    find(lines, "tool_invocation", "inv_1")["status_transitions"].reverse()


def forget(lines: list[Line]) -> None:
    """The record of the second part leaves out that it waited."""
    steps = find(lines, "tool_invocation", "inv_3")["status_transitions"]
    steps[:] = [step for step in steps if step["status"] != "selected"]


def declare_last(lines: list[Line]) -> None:
    lines.append(lines.pop(0))
    renumber(lines)


def second_profile(lines: list[Line]) -> None:
    """The tool has the profile of another one."""
    again("tool_permission_profile", permission_profile_id="perm:2")(lines)
    put("tool_declaration", permission_profile_ref="perm:2")(lines)


def steps_back(lines: list[Line]) -> None:
    find(lines, "tool_progress", "inv_1")["percent"] = 30


INPUTS = {"permission_input_ref": "sha:9", "call_input_ref": "sha:9"}
BREAKS: dict[str, tuple[str, Break]] = {
    "no status": ("schema", put("tool_invocation", "inv_1", status=None)),
    "no terminal event": ("ending.event", drop("tool_event", "inv_1")),
    "two terminal events": ("ending.event", event("inv_1", "invocation.succeeded", 8)),
    "an end of a call that waits": ("ending.event", event("inv_4", "invocation.failed", 50)),
    "no invocation after the pause": ("ending.event", drop("tool_invocation", "inv_3")),
    "no terminal result": ("ending.result", drop("tool_result", "inv_1")),
    "two terminal results": ("ending.result", again("tool_result", "inv_1", result_id="other")),
    "a result of no state": ("ending.result", put("tool_result", "inv_1", status="fine")),
    "the event of another end": (
        "ending.status",
        put("tool_event", "inv_1", event_type="tool.invocation.failed"),
    ),
    "the result of another end": (
        "ending.status",
        put("tool_result", "inv_2", status="succeeded", is_error=False, error=None),
    ),
    "an error of another class": (
        "ending.error",
        put("tool_result", "inv_2", error={"error_class": "timeout"}),
    ),
    "an error of no class": ("ending.error", put("tool_result", "inv_2", error=None)),
    "a denial that is no error": ("ending.error", put("tool_result", "inv_2", is_error=False)),
    "a success that is an error": ("ending.error", put("tool_result", "inv_1", is_error=True)),
    "another id after a pause": ("ending.result_id", put("tool_result", "inv_3", result_id="x")),
    "a pause after the end": (
        "ending.result_id",
        again("tool_result", "inv_3", status="pending", is_error=False, error=None),
    ),
    "a denied call that started": (
        "ran.refused",
        put("tool_invocation", "inv_2", started_at=at(11)),
    ),
    "the time of an end of a call that waits": (
        "ending.early",
        put("tool_invocation", "inv_4", ended_at=at(42)),
    ),
    "a result of a call that waits": ("ending.early", event("inv_4", "result.created", 42)),
    "a denied call that was running": (
        "ran.refused",
        both(
            states("inv_2", ("running", 12), ("denied", 12)),
        ),
    ),
    "an event of a denied call's start": ("ran.refused", event("inv_2", "invocation.started", 11)),
    "a run without a decision": (
        "ran.decided",
        both(
            drop("tool_permission_decision", "inv_1"),
            put("tool_invocation", "inv_1", permission_decision_refs=[]),
        ),
    ),
    "a run on a deny": ("ran.decided", put("tool_permission_decision", "inv_1", behavior="deny")),
    "a run on an ask": ("ran.decided", put("tool_permission_decision", "inv_1", behavior="ask")),
    "a run on a passthrough": (
        "ran.decided",
        put("tool_permission_decision", "inv_1", behavior="passthrough"),
    ),
    "a success without a start": ("ran.started", put("tool_invocation", "inv_1", started_at=None)),
    "a run of a blocked tool": (
        "ran.surface",
        put("tool_surface", blocked_tools=[{"tool_id": "files.read", "reason": "policy_blocked"}]),
    ),
    "a tool that nobody declared": ("ref.tool", put("tool_invocation", "inv_4", tool_id="x")),
    "a surface with an unknown tool": ("ref.tool", put("tool_surface", loaded_tools=["x"])),
    "a tool that is declared late": ("ref.declared_first", declare_last),
    "no interface": ("ref.interface", drop("tool_interface")),
    "the interface of another tool": ("ref.interface", put("tool_interface", tool_id="x")),
    "no permission profile": ("ref.profile", drop("tool_permission_profile")),
    "the profile of another tool": ("ref.profile", second_profile),
    "no surface": ("ref.surface", put("tool_invocation", "inv_1", surface_id="x")),
    "no scheduler policy": (
        "ref.scheduler_policy",
        put("tool_invocation", "inv_1", scheduler_policy_ref="x"),
    ),
    "no parent": ("ref.parent", put("tool_invocation", "inv_1", parent_invocation_id="x")),
    "a dangling decision": (
        "ref.decision",
        put("tool_invocation", "inv_1", permission_decision_refs=["x"]),
    ),
    "a decision that nothing refers to": (
        "ref.decision",
        again("tool_permission_decision", "inv_1", decision_id="x"),
    ),
    "a decision in events alone": (
        "ref.decision",
        both(
            drop("tool_permission_decision", "inv_2"),
            put("tool_invocation", "inv_2", permission_decision_refs=[]),
        ),
    ),
    "no mutation": ("ref.mutation", drop("input_mutation", "inv_1")),
    "a result without its mutation": (
        "ref.mutation",
        put("tool_result", "inv_1", input_mutations=[]),
    ),
    "no hook": ("ref.hook", drop("tool_hook", "inv_1")),
    "no persistence": ("ref.persistence", drop("tool_result_persistence", "inv_1")),
    "a persistence of another result": (
        "ref.persistence",
        put("tool_result_persistence", "inv_1", result_id="x"),
    ),
    "a result without its persistence": (
        "ref.persistence",
        put("tool_result", "inv_1", persistence_refs=[]),
    ),
    "a result without its evidence": (
        "ref.evidence",
        put("tool_result", "inv_1", evidence_refs=[]),
    ),
    "a mutation that changes nothing": (
        "ref.input",
        put("input_mutation", "inv_1", from_input_ref="sha:3"),
    ),
    "a mutation of another input": (
        "ref.input",
        put("input_mutation", "inv_1", from_input_ref="sha:8"),
    ),
    "an input that nothing made": ("ref.input", put("tool_invocation", "inv_1", **INPUTS)),
    "states in reverse": ("state.transition", reverse),
    "a state that is forgotten": ("state.transition", forget),
    "a state after the end": ("state.transition", states("inv_1", ("yielded", 9))),
    "a last state of another end": (
        "state.transition",
        put("tool_invocation", "inv_3", status="denied"),
    ),
    "a state that is none": ("state.transition", states("inv_4", ("lost", 42), ("approved", 43))),
    "an end in 1970": ("time.plausible", put("tool_event", "inv_1", time="1970-01-01T00:00:00Z")),
    "a time in the future": (
        "time.plausible",
        put("tool_event", "inv_1", time="2999-01-01T00:00:00Z"),
    ),
    "a time that is none": ("time.plausible", put("tool_event", "inv_1", time="noon")),
    "an end before the start": ("time.order", put("tool_invocation", "inv_1", ended_at=at(3))),
    "a decision after the start": (
        "time.order",
        put("tool_permission_decision", "inv_1", decided_at=at(6)),
    ),
    "a hook that ends before it starts": ("time.order", put("tool_hook", "inv_1", ended_at=at(1))),
    "progress in another order": ("time.order", put("tool_progress", "inv_1", timestamp=at(4))),
    "a lost record": ("order.sequence", lambda lines: lines.pop(8)),
    "progress that goes back": ("order.progress", steps_back),
    "progress that is lost": ("order.progress", put("tool_progress", "inv_1", sequence=7)),
    "a start after the end": ("order.end", event("inv_1", "invocation.started", 9)),
    "a read-only call of a tool that writes": (
        "schedule.facts",
        both(
            put("tool_interface", is_read_only=False),
            put("tool_invocation", "inv_1", scheduler={"is_read_only": True}),
        ),
    ),
    "two unsafe calls at once": (
        "schedule.exclusive",
        both(
            put("tool_invocation", "inv_1", scheduler={"is_concurrency_safe": False}),
            put(
                "tool_invocation",
                "inv_3",
                scheduler={"is_concurrency_safe": False},
                scheduler_policy_ref="sched_1",
                started_at=at(7),
            ),
        ),
    ),
    "no evidence of an answer": (
        "ref.evidence",
        put("tool_invocation", "inv_3", approval_request_ref="appr_1"),
    ),
    "a preview larger than the whole": (
        "size.preview",
        put("tool_result_persistence", "inv_1", original_size_bytes=100),
    ),
    "a preview larger than the limit": (
        "size.preview",
        put("tool_result_persistence", "inv_1", preview_size_bytes=2048),
    ),
    "a whole result inline": (
        "size.preview",
        put("tool_result_persistence", "inv_1", strategy="inline", preview_size_bytes=None),
    ),
    "the whole beside a preview": (
        "size.inline",
        put("tool_result", "inv_1", structured_content={"text": "x" * 6500}),
    ),
    "content over the limit": (
        "size.inline",
        put("tool_result", "inv_3", content=[{"type": "text", "text": "x" * 501}]),
    ),
    "content over an obligation": (
        "size.inline",
        both(
            put("tool_permission_decision", "inv_3", obligations={"max_inline_chars": 5}),
            put("tool_result", "inv_3", content=[{"type": "text", "text": "x" * 6}]),
        ),
    ),
    "an event twice": ("id.unique", again("tool_event", "inv_1")),
    "one result id of two calls": (
        "id.unique",
        put("tool_result", "inv_2", result_id="inv_1_result"),
    ),
    "a decision that changes": (
        "id.kept",
        lambda lines: find(lines, "tool_permission_decision", "inv_3", 1).update(behavior="allow"),
    ),
    "another model input": ("id.kept", put("tool_invocation", "inv_3", model_input_ref="sha:7")),
}


def rules_of(lines: list[Line], **given: Any) -> set[str]:
    return {violation.rule for violation in find_violations(lines, **given)}


def test_records_in_which_all_holds_have_no_violation() -> None:
    lines = good_records()
    assert problems_of(lines) == []
    ran = ["inv_1", "inv_3"]
    assert find_violations(lines, ran=ran, canaries=["marigold"], spans=[{"name": "x"}]) == []


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_found_by_its_rule(name: str) -> None:
    rule, change = BREAKS[name]
    lines = good_records()
    change(lines)
    assert rule in rules_of(lines)


@pytest.mark.parametrize("noted", ["inv_2", "inv_4"])
def test_a_body_that_must_not_run_is_found_by_its_note(noted: str) -> None:
    assert rules_of(good_records(), ran=[noted]) & {"ran.refused", "ran.decided"}


def test_a_body_is_found_by_the_native_id_of_its_call() -> None:
    lines = good_records()
    put("tool_invocation", "inv_2", native_call_id="call_2")(lines)
    assert "ran.refused" in rules_of(lines, ran=["call_2"])


def test_a_body_that_no_record_names_is_found() -> None:
    assert rules_of(good_records(), ran=["inv_9"]) == {"ran.recorded"}


def test_a_canary_is_found_in_records_and_spans() -> None:
    lines = good_records()
    put("tool_event", "inv_1", data={"deep": [{"er": "a marigold"}]})(lines)
    [violation] = find_violations(lines, canaries=["tulip", "marigold"])
    assert violation.rule == "canary"
    assert "canary 2" in violation.message
    assert "marigold" not in str(violation)
    span = {"attributes": {"x": "tulip"}}
    assert rules_of(good_records(), canaries=["tulip"], spans=[span]) == {"canary"}


def test_a_shadow_decision_binds_nobody() -> None:
    lines = good_records()
    put("tool_permission_decision", "inv_1", behavior="deny", enforced=False)(lines)
    assert rules_of(lines) == set()


def test_an_unknown_tool_keeps_the_name_that_was_asked_for() -> None:
    def called(tool_id: str) -> list[Line]:
        lines = good_records()
        mapping = {"source": "function_calling", "function_name": "nobody"}
        error = {"error_class": "unknown_tool"}
        put("tool_result", "inv_2", status="failed", error=error)(lines)
        put("tool_invocation", "inv_2", tool_id=tool_id, external_mappings=[mapping])(lines)
        put("tool_invocation", "inv_2", status="blocked")(lines)
        find(lines, "tool_invocation", "inv_2")["status_transitions"][-1]["status"] = "blocked"
        return lines

    assert rules_of(called("nobody")) == set()
    assert rules_of(called("unknown.nobody")) == {"ref.unknown_tool"}


def test_every_rule_has_a_break() -> None:
    """A rule that no break of the table needs is one that no test shows."""
    needed = set()
    for rule in RULES:
        for wanted, change in BREAKS.values():
            lines = good_records()
            change(lines)
            if any(violation.rule == wanted for violation in rule(read_journal(lines))):
                needed.add(rule.__name__)
    noted = {"unrecorded_calls_never_run", "unknown_tools_keep_their_names"}  # shown above
    assert needed | noted == {rule.__name__ for rule in RULES}
