"""Times are those of a run, and none is before its cause."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

from agenttool_otel.conformance.rules.journal import (
    CallRecords,
    Journal,
    Record,
    Violation,
    of_each_call,
    transitions_of,
)

_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
_AHEAD: Final = timedelta(minutes=5)  # of the clock of another machine
ROUNDING: Final = timedelta(milliseconds=1)
"""A time is rounded to microseconds on its way through a float."""
_FIELDS: Final = (
    "created_at",
    "started_at",
    "ended_at",
    "decided_at",
    "timestamp",
    "time",
)


class _Moment(NamedTuple):
    name: str
    at: datetime


def times_are_plausible(journal: Journal) -> Iterator[Violation]:
    """Every time is an RFC 3339 time, not before the year 2000 and not in the future."""
    latest = datetime.now(UTC) + _AHEAD
    for entry in journal.entries:
        times = [(name, entry.record.get(name)) for name in _FIELDS]
        for step in transitions_of(entry.record):
            times.append((f"the time of {step.get('status')}", step.get("at")))
        for name, text in times:
            if text is None:
                continue
            at = read_time(text)
            if at is None:
                message = f"{name} of a {entry.kind} is no time"
                yield Violation("time.plausible", message, (entry.id,))
            elif not _EARLIEST <= at <= latest:
                message = f"{name} of a {entry.kind} is {text}"
                yield Violation("time.plausible", message, (entry.id,))


@of_each_call("time.order")
def times_follow_each_other(call: CallRecords) -> Iterator[str]:
    """The times of a call are in the order of what they are the times of."""
    for order in _orders(call):
        moments = [moment for moment in order if moment is not None]
        for before, after in pairwise(moments):
            if before.at > after.at + ROUNDING:
                yield f"{after.name} is before {before.name}"


def _orders(call: CallRecords) -> Iterator[list[_Moment | None]]:
    """Yield lists of times, each of which is to be in order."""
    invocation = call.invocation
    if invocation is not None:
        created = _moment(invocation, "created_at")
        ended = _moment(invocation, "ended_at")
        steps = [_step(step) for step in transitions_of(invocation)]
        yield [created, _moment(invocation, "started_at"), ended]
        yield [created, *steps]
        # a batch hands a call on after it ended
        before_end = [step for step in steps if step is None or step.name != "the state yielded"]
        yield [*before_end, ended]
        decisions = _decisions(call, invocation)
        yield [created, *decisions, ended]
        yield [*decisions[:1], _moment(invocation, "started_at")]
        if call.result is not None:
            yield [created, _moment(call.result, "created_at")]
    for hook in call.of("tool_hook"):
        yield [_moment(hook, "started_at"), _moment(hook, "ended_at")]
    yield [_moment(record, "timestamp") for record in call.of("tool_progress")]


def _decisions(call: CallRecords, invocation: Record) -> list[_Moment | None]:
    """The times of the decisions in the order in which the invocation refers to them."""
    by_id = {record["decision_id"]: record for record in call.of("tool_permission_decision")}
    moments = []
    for ref in invocation.get("permission_decision_refs") or ():
        if ref in by_id:
            at = read_time(by_id[ref]["decided_at"])
            moments.append(None if at is None else _Moment(f"the decision {ref}", at))
    return moments


def _moment(record: Record, name: str) -> _Moment | None:
    at = read_time(record.get(name))
    return None if at is None else _Moment(name, at)


def _step(step: Record) -> _Moment | None:
    at = read_time(step.get("at"))
    return None if at is None else _Moment(f"the state {step.get('status')}", at)


def read_time(text: Any) -> datetime | None:
    """Read an RFC 3339 time; one without a zone is in UTC."""
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
