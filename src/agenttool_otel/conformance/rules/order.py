"""Nothing is lost between two records, and progress goes forward."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from agenttool_otel.conformance.rules.journal import (
    END_EVENTS,
    CallRecords,
    Journal,
    Violation,
    of_each_call,
)

_GROWING: Final = ("percent", "elapsed_ms", "bytes_read", "bytes_written", "line_count")
"""Fields of progress that do not shrink."""

_BEFORE_END: Final = {
    "tool.invocation.planned",
    "tool.invocation.selected",
    "tool.invocation.arguments_ready",
    "tool.invocation.validation_failed",
    "tool.invocation.queued",
    "tool.invocation.started",
    "tool.invocation.partial_result",
    "tool.hook.pre.started",
    "tool.hook.pre.completed",
    "tool.permission.requested",
    "tool.permission.decided",
    "tool.result.created",
}
"""Event classes that a call which ended has no more of."""


def sequence_has_no_gap(journal: Journal) -> Iterator[Violation]:
    """Each producer numbers its records 1, 2, 3 ... without a gap."""
    last: dict[str, int] = {}
    for entry in journal.numbered:
        if entry.producer is None or entry.sequence is None:
            continue
        expected = last.get(entry.producer, 0) + 1
        if entry.sequence != expected:
            message = f"{entry.producer} continues with {entry.sequence} instead of {expected}"
            yield Violation("order.sequence", message, (entry.id,))
        last[entry.producer] = entry.sequence


@of_each_call("order.progress")
def progress_goes_forward(call: CallRecords) -> Iterator[str]:
    """The progress of a call is numbered without a gap, and none of its numbers shrinks."""
    reports = call.of("tool_progress")
    for before, after in pairwise(reports):
        if after["sequence"] != before["sequence"] + 1:
            yield f"progress {after['sequence']} follows {before['sequence']}"
    for name in _GROWING:
        values = [report[name] for report in reports if report.get(name) is not None]
        for before, after in pairwise(values):
            if after < before:
                yield f"{name} of progress goes from {before} back to {after}"


@of_each_call("order.end")
def nothing_follows_the_end(call: CallRecords) -> Iterator[str]:
    """No event that leads to an end follows the terminal event of its call."""
    ended = ""
    for event in call.of("tool_event"):
        name = event["event_type"]
        if ended and name in _BEFORE_END:
            yield f"{name} follows {ended}"
        if name in END_EVENTS:
            ended = name
