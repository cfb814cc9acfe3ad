"""Records of four calls in which all holds, written by hand: by no means those of this package."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
Line = dict[str, Any]


def at(seconds: float) -> str:
    """A time so many seconds after the run began."""
    return (BEGIN + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


class Run:
    """Numbers records as a sink does."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._events = itertools.count()

    def add(self, kind: str, **fields: Any) -> None:
        """Add a record."""
        record = {"schema_version": "0.2.0", **fields}
        line = {"producer": "p", "sequence": len(self.lines) + 1, "object": kind, "record": record}
        self.lines.append(line)

    def event(self, call: str, name: str, seconds: float, **data: Any) -> None:
        """Add an event of a call."""
        self.add(
            "tool_event",
            event_id=f"evt_{next(self._events)}",
            event_type=f"tool.{name}",
            source="test",
            time=at(seconds),
            invocation_id=call,
            tool_id="files.read",
            data=data,
        )

    def invocation(self, call: str, states: dict[str, float], **fields: Any) -> None:
        """Add an invocation with its states, each with its second."""
        self.add(
            "tool_invocation",
            invocation_id=call,
            tool_id="files.read",
            status=list(states)[-1],
            created_at=at(min(states.values())),
            status_transitions=[{"status": state, "at": at(s)} for state, s in states.items()],
            **fields,
        )

    def decision(self, call: str, number: int, behavior: str, seconds: float, **more: Any) -> None:
        """Add a decision."""
        self.add(
            "tool_permission_decision",
            decision_id=f"{call}_perm_{number}",
            invocation_id=call,
            behavior=behavior,
            decided_at=at(seconds),
            **more,
        )

    def result(self, call: str, status: str, seconds: float, **fields: Any) -> None:
        """Add a result."""
        self.add(
            "tool_result",
            result_id=f"{call}_result",
            invocation_id=call,
            status=status,
            created_at=at(seconds),
            **fields,
        )


def good_records() -> list[Line]:
    """Return the records: a tool, a surface, a policy, and calls that succeed, are denied, are
    asked about, and wait.
    """
    run = Run()
    _declare(run)
    _succeeds(run)
    _is_denied(run)
    _is_asked_about(run)
    _waits(run)
    return run.lines


def _declare(run: Run) -> None:
    refs = {"execution_profile_ref": "exec:1", "permission_profile_ref": "perm:1"}
    run.add(
        "tool_declaration",
        tool_id="files.read",
        namespace="files",
        name="read",
        description="Read a file.",
        lifecycle="available",
        tool_kind="function",
        interface_ref="face:1",
        **refs,
    )
    run.add(
        "tool_interface", interface_id="face:1", tool_id="files.read", max_inline_chars=500, **refs
    )
    run.add("tool_execution_profile", execution_profile_id="exec:1", execution_kind="shell")
    run.add("tool_permission_profile", permission_profile_id="perm:1", risk_level="low")
    run.add(
        "tool_surface",
        surface_id="surface_1",
        scope="turn",
        tool_refs=["files.read"],
        loaded_tools=["files.read"],
        deferred_tools=[],
        blocked_tools=[],
    )
    run.add("tool_scheduler_policy", scheduler_policy_id="sched_1")


def _succeeds(run: Run) -> None:
    """A hook changes its input, it reports, and its result is kept elsewhere."""
    call = "inv_1"
    run.event(call, "invocation.planned", 1)
    run.event(call, "hook.pre.completed", 2, hook_id="trimmer")
    run.event(call, "permission.decided", 3, decision_id=f"{call}_perm_1")
    run.event(call, "invocation.started", 4)
    for number in range(2):
        run.add(
            "tool_progress",
            progress_id=f"prog_{number}",
            invocation_id=call,
            sequence=number,
            status="running",
            percent=40 + 10 * number,
            elapsed_ms=1000 * number,
            timestamp=at(5 + number),
        )
    run.event(call, "invocation.succeeded", 8)
    run.invocation(
        call,
        {"planned": 1, "selected": 1, "arguments_ready": 2, "running": 4, "succeeded": 8},
        surface_id="surface_1",
        scheduler_policy_ref="sched_1",
        native_call_id="call_1",
        model_input_ref="sha:1",
        observable_input_ref="sha:2",
        permission_input_ref="sha:3",
        call_input_ref="sha:3",
        permission_decision_refs=[f"{call}_perm_1"],
        mutation_refs=["mut_1"],
        hook_refs=["trimmer"],
        evidence_refs=["log:1"],
        started_at=at(4),
        ended_at=at(8),
    )
    run.decision(call, 1, "allow", 3)
    run.add(
        "input_mutation",
        mutation_id="mut_1",
        invocation_id=call,
        source_type="hook",
        source_ref="trimmer",
        from_input_ref="sha:2",
        to_input_ref="sha:3",
        created_at=at(2),
    )
    run.add(
        "tool_hook",
        hook_id="trimmer",
        hook_event="pre_tool_use",
        invocation_id=call,
        started_at=at(1.5),
        ended_at=at(2),
    )
    run.add(
        "tool_result_persistence",
        decision_id="persist_1",
        invocation_id=call,
        result_id=f"{call}_result",
        strategy="preview_and_persist",
        threshold={"max_inline_chars": 500},
        original_size_bytes=6500,
        preview_size_bytes=480,
        created_at=at(7),
    )
    run.result(
        call,
        "succeeded",
        8,
        is_error=False,
        content=[{"type": "text", "text": "line"}],
        persistence_refs=["persist_1"],
        evidence_refs=["log:1"],
        input_mutations=[{"mutation_id": "mut_1"}],
    )


def _is_denied(run: Run) -> None:
    call = "inv_2"
    run.event(call, "permission.decided", 11, decision_id=f"{call}_perm_1")
    run.event(call, "invocation.failed", 12)
    run.invocation(
        call,
        {"planned": 10, "selected": 10, "denied": 12},
        permission_decision_refs=[f"{call}_perm_1"],
        ended_at=at(12),
    )
    run.decision(call, 1, "deny", 11)
    error = {"error_class": "permission_denied"}
    run.result(call, "denied", 12, is_error=True, error=error)


def _is_asked_about(run: Run) -> None:
    call = "inv_3"
    asked = {"planned": 20, "selected": 20, "arguments_ready": 21, "awaiting_approval": 22}
    run.invocation(call, asked, permission_decision_refs=[f"{call}_perm_1"])
    run.decision(call, 1, "ask", 22)
    run.result(call, "pending", 22)
    run.event(call, "invocation.started", 31)
    run.event(call, "invocation.failed", 32)
    run.invocation(
        call,
        {**asked, "approved": 30, "running": 31, "failed": 32},
        permission_decision_refs=[f"{call}_perm_1", f"{call}_perm_2"],
        started_at=at(31),
        ended_at=at(32),
    )
    run.decision(call, 1, "ask", 22)
    run.decision(call, 2, "allow", 30)
    error = {"error_class": "execution_failed"}
    run.result(call, "failed", 32, is_error=True, error=error)


def _waits(run: Run) -> None:
    call = "inv_4"
    run.invocation(
        call,
        {"planned": 40, "selected": 40, "awaiting_approval": 41},
        permission_decision_refs=[f"{call}_perm_1"],
    )
    run.decision(call, 1, "ask", 41)
    run.result(call, "pending", 41)
