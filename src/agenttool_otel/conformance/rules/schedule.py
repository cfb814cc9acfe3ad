"""A scheduler's facts are the tool's, and calls that are not concurrency-safe run one by one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Final, NamedTuple

from agenttool_otel.conformance.rules.journal import (
    CallRecords,
    Journal,
    Record,
    Violation,
    transitions_of,
)
from agenttool_otel.conformance.rules.times import ROUNDING, read_time

_FACTS: Final = ("is_concurrency_safe", "is_read_only", "is_destructive", "is_open_world")


def facts_are_those_of_the_tool(journal: Journal) -> Iterator[Violation]:
    """An invocation's facts are those that its tool's interface states as true or false."""
    interfaces = {}
    for entry in journal.of("tool_interface"):
        interfaces[entry.record["tool_id"]] = entry.record
    for call in journal.calls.values():
        invocation = call.invocation
        if invocation is None or invocation["tool_id"] not in interfaces:
            continue
        interface = interfaces[invocation["tool_id"]]
        for name in _differing(interface, invocation.get("scheduler") or {}):
            message = f"{name} of a call is not what its tool's interface states"
            yield Violation("schedule.facts", message, (call.id, interface["interface_id"]))


def _differing(interface: Record, scheduler: Record) -> Iterator[str]:
    for name in _FACTS:
        stated = interface.get(name)
        # "classifier:command_read_only": it depends on the input
        if isinstance(stated, bool) and scheduler.get(name) not in {None, stated}:
            yield name


class _Run(NamedTuple):
    started: datetime
    ended: datetime
    call_id: str
    policy: str


def unsafe_calls_run_one_by_one(journal: Journal) -> Iterator[Violation]:
    """Of the calls of one scheduler policy, those that are not concurrency-safe do not overlap."""
    runs: dict[str, list[_Run]] = {}
    for call in journal.calls.values():
        run = _unsafe_run(call)
        if run is not None:
            runs.setdefault(run.policy, []).append(run)
    for of_policy in runs.values():
        for before, after in pairwise(sorted(of_policy)):
            if after.started + ROUNDING < before.ended:
                message = "two calls ran at once that are not concurrency-safe"
                yield Violation("schedule.exclusive", message, (before.call_id, after.call_id))


def _unsafe_run(call: CallRecords) -> _Run | None:
    """When a call of a batch ran that is not concurrency-safe: until its last state."""
    invocation = call.invocation
    if invocation is None:
        return None
    policy = invocation.get("scheduler_policy_ref")
    if policy is None:
        return None
    facts = invocation.get("scheduler") or {}
    if facts.get("is_concurrency_safe") is not False:
        return None
    started = read_time(invocation.get("started_at"))
    for step in transitions_of(invocation):
        ended = read_time(step.get("at"))
        if step.get("status") == call.state and started is not None and ended is not None:
            return _Run(started, ended, call.id, policy)
    return None
