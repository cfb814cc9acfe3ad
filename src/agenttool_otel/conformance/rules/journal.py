"""Records by call, by tool and by id, as the rules look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, NamedTuple, TypeAlias

from agenttool_otel.conformance.schema_check import misfits_of

Record = Mapping[str, Any]

ID_FIELDS: Final = {
    "tool_declaration": "tool_id",
    "tool_interface": "interface_id",
    "tool_execution_profile": "execution_profile_id",
    "tool_permission_profile": "permission_profile_id",
    "tool_surface": "surface_id",
    "tool_scheduler_policy": "scheduler_policy_id",
    "deferred_tool_ref": "tool_id",
    "tool_event": "event_id",
    "tool_progress": "progress_id",
    "tool_invocation": "invocation_id",
    "tool_permission_decision": "decision_id",
    "input_mutation": "mutation_id",
    "tool_hook": "hook_id",
    "tool_result_persistence": "decision_id",
    "tool_result": "result_id",
}
"""The field of each object that holds its id."""

TERMINAL_STATES: Final = frozenset(
    {
        "schema_parse_failed",
        "validation_failed",
        "denied",
        "succeeded",
        "failed",
        "canceled",
        "timed_out",
        "blocked",
    }
)
"""States of an invocation after which none follows."""

REFUSED_STATES: Final = frozenset({"schema_parse_failed", "validation_failed", "denied", "blocked"})
"""States in which a call ends whose tool must not have run."""

RESULT_STATES: Final = frozenset(
    {
        "succeeded",
        "partial_succeeded",
        "failed",
        "denied",
        "rejected",
        "redacted",
        "too_large",
        "canceled",
        "timed_out",
        "synthetic_error",
        "discarded",
    }
)
"""The standard's result states: all are terminal. Another word is that of a call which waits."""

END_EVENTS: Final = frozenset(
    {
        "tool.invocation.succeeded",
        "tool.invocation.failed",
        "tool.invocation.canceled",
        "tool.invocation.timed_out",
    }
)
"""Classes of events of which an ended call has one."""


@dataclass(frozen=True, slots=True)
class Violation:
    """What a record shows that must not be so.

    Attributes:
        rule: id of the rule, as ``ending.event``.
        message: what is wrong, in words.
        records: ids of the records that show it, at most five.
    """

    rule: str
    message: str
    records: tuple[str, ...] = ()

    def __str__(self) -> str:
        """``ending.event: a call has 2 terminal events (inv_01)``."""
        if not self.records:
            return f"{self.rule}: {self.message}"
        return f"{self.rule}: {self.message} ({', '.join(self.records)})"


class Entry(NamedTuple):
    """One record, and where it was."""

    place: int  # 0, 1, 2 ... in the order in which the records were received
    kind: str  # name of the object, as tool_result
    record: Record
    producer: str | None  # who numbered it, where lines are numbered
    sequence: int | None

    @property
    def id(self) -> str:
        """The record's own id; its place where it has none."""
        return str(self.record.get(ID_FIELDS.get(self.kind, ""), f"#{self.place}"))


@dataclass(slots=True)
class CallRecords:
    """The records that name one invocation."""

    id: str
    entries: list[Entry] = field(default_factory=list)

    def of(self, kind: str) -> list[Record]:
        """Return the records of one object, oldest first."""
        return [entry.record for entry in self.entries if entry.kind == kind]

    @property
    def invocation(self) -> Record | None:
        """The last tool_invocation, which is the one that counts."""
        invocations = self.of("tool_invocation")
        return invocations[-1] if invocations else None

    @property
    def state(self) -> str:
        """The state in the last tool_invocation; empty where there is none."""
        invocation = self.invocation
        return "" if invocation is None else str(invocation["status"])

    @property
    def has_ended(self) -> bool:
        """Whether the call is in a terminal state."""
        return self.state in TERMINAL_STATES

    @property
    def result(self) -> Record | None:
        """The last terminal tool_result."""
        results = [record for record in self.of("tool_result") if record["status"] in RESULT_STATES]
        return results[-1] if results else None

    @property
    def error_class(self) -> str:
        """The class of the error in the terminal result; empty where there is none."""
        return error_class_of(self.result or {})

    @property
    def states(self) -> list[str]:
        """The states of the last tool_invocation, in the order of its transitions."""
        return states_of(self.invocation or {})

    def events(self, *names: str) -> list[Record]:
        """Return the events of these classes, oldest first."""
        return [event for event in self.of("tool_event") if event["event_type"] in names]

    @property
    def traces_of_run(self) -> list[str]:
        """What in the records shows that the tool ran."""
        traces = []
        if any(record.get("started_at") for record in self.of("tool_invocation")):
            traces.append("started_at")
        if "running" in self.states:
            traces.append("the state running")
        if self.events("tool.invocation.started"):
            traces.append("the event tool.invocation.started")
        return traces


@dataclass(slots=True)
class Journal:
    """All records of a run.

    Attributes:
        entries: the records that fit their schemas.
        misfits: where the others miss theirs.
        calls: records by invocation id.
        ran: ids of the calls whose body ran, as someone else noted them.
    """

    entries: list[Entry] = field(default_factory=list)
    numbered: list[Entry] = field(default_factory=list)  # misfits included
    misfits: list[Violation] = field(default_factory=list)
    calls: dict[str, CallRecords] = field(default_factory=dict)
    ran: frozenset[str] = frozenset()

    def add(self, line: Record) -> None:
        """Add one record.

        Args:
            line: ``object``, ``record``, and maybe ``producer`` and ``sequence``.
        """
        place = len(self.numbered)
        entry = Entry(
            place, line["object"], line["record"], line.get("producer"), line.get("sequence")
        )
        self.numbered.append(entry)
        misfits = misfits_of(entry.kind, entry.record)
        if misfits:
            self.misfits += [Violation("schema", misfit, (entry.id,)) for misfit in misfits]
            return
        self.entries.append(entry)
        call_id = entry.record.get("invocation_id")
        if isinstance(call_id, str):
            self.calls.setdefault(call_id, CallRecords(call_id)).entries.append(entry)

    def of(self, kind: str) -> Iterator[Entry]:
        """Yield the records of one object, oldest first."""
        for entry in self.entries:
            if entry.kind == kind:
                yield entry

    def by_id(self, kind: str) -> dict[str, Record]:
        """Return the records of one object by their ids; the last of each id."""
        return {entry.id: entry.record for entry in self.of(kind)}

    def has_run(self, call: CallRecords) -> bool:
        """Whether a note or a record shows that a call's tool ran."""
        return self.is_noted(call) or bool(call.traces_of_run)

    def is_noted(self, call: CallRecords) -> bool:
        """Whether a call is among those whose body is known to have run."""
        if call.id in self.ran:
            return True
        return any(
            record.get("native_call_id") in self.ran for record in call.of("tool_invocation")
        )


def read_journal(lines: Iterable[Record], ran: Iterable[str] = ()) -> Journal:
    """Read records in the order in which a sink received them."""
    journal = Journal(ran=frozenset(ran))
    for line in lines:
        journal.add(line)
    return journal


Rule: TypeAlias = Callable[[Journal], Iterator[Violation]]
"""Yields what breaks a rule."""

CallRule: TypeAlias = Callable[[CallRecords], Iterator[str]]
"""Yields what in the records of one call breaks a rule."""


def of_each_call(rule_id: str) -> Callable[[CallRule], Rule]:
    """Make a rule of all records of what holds of the records of each call.

    Args:
        rule_id: the id of the rule.
    """

    def make(of_call: CallRule) -> Rule:
        @wraps(of_call)
        def rule(journal: Journal) -> Iterator[Violation]:
            for call in journal.calls.values():
                for message in of_call(call):
                    yield Violation(rule_id, message, (call.id,))

        return rule

    return make


def error_class_of(result: Record) -> str:
    """Return the class of a result's error; empty where there is none."""
    error = result.get("error") or {}
    return str(error.get("error_class") or "")


def transitions_of(invocation: Record) -> list[Record]:
    """Return the status transitions of an invocation."""
    return list(invocation.get("status_transitions") or ())


def states_of(invocation: Record) -> list[str]:
    """Return the states of an invocation, in the order of its transitions."""
    return [str(step.get("status")) for step in transitions_of(invocation)]


def texts_of(value: Any) -> Iterator[str]:
    """Yield every text in JSON data, names of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield str(name)
            yield from texts_of(member)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from texts_of(item)
