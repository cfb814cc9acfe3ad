"""Examine a subject: take the steps of each scenario, and report what does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Protocol

from agenttool_otel.conformance.always import faults
from agenttool_otel.conformance.invariants import Violation, find_violations
from agenttool_otel.conformance.judging import failures
from agenttool_otel.conformance.process import (
    SubjectBrokenError,
    SubjectError,
    SubjectLacksError,
)
from agenttool_otel.conformance.rules.journal import error_class_of, transitions_of
from agenttool_otel.conformance.running import Observed, run_steps
from agenttool_otel.conformance.scenarios import Scenario
from agenttool_otel.conformance.schema_check import misfits_of
from agenttool_otel.conformance.subject import PROTOCOL_VERSION, Connection, ask
from agenttool_otel.names import SCHEMA_VERSION
from agenttool_otel.records.base import JsonObject

_MAX_PROBLEMS: Final = 10  # of one kind in one scenario


class ClosableConnection(Connection, Protocol):
    """A connection that can be closed."""

    def close(self) -> None:
        """End it."""


@dataclass(slots=True)
class Outcome:
    """The outcome of one scenario."""

    number: int  # its number in the standard, from 1
    title: str  # its sentence in the standard
    passed: bool = False  # nothing is in failures, and it was examined to its end
    # what the standard asks for and does not hold: expectations, schemas, invariants
    failures: list[str] = field(default_factory=list)
    lacks: str = ""  # what the subject does not implement, by its own account
    broken: str = ""  # how the subject ended, hung, or answered with what is no reply
    ours: int = 0  # how many expectations beyond the standard were looked at
    ours_failed: list[str] = field(default_factory=list)  # those of them that do not hold
    records: int = 0  # how many records were validated

    @property
    def state(self) -> str:
        """One word: pass, FAIL, lacks or broken."""
        if self.broken:
            return "broken"
        if self.lacks:
            return "lacks"
        return "pass" if self.passed else "FAIL"


@dataclass(slots=True)
class Report:
    """The outcomes of all scenarios, and which words of the standard the records have."""

    standard: str  # version of the standard
    subject: str  # its name, as it states it
    version: str = ""  # its version, as it states it
    command: list[str] = field(default_factory=list)  # what was run
    outcomes: list[Outcome] = field(default_factory=list)  # one a scenario, in their order
    # events, error classes, invocation states and result states that occurred
    seen: dict[str, list[str]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every scenario passed."""
        # a run of no scenario proves nothing
        if not self.outcomes:
            return False
        return all(outcome.passed for outcome in self.outcomes)

    @property
    def ours_passed(self) -> bool:
        """Whether every expectation beyond the standard holds, too."""
        return not any(outcome.ours_failed for outcome in self.outcomes)

    @property
    def broken(self) -> bool:
        """Whether the subject broke the protocol in a scenario."""
        return any(outcome.broken for outcome in self.outcomes)

    @property
    def lacks(self) -> list[str]:
        """What the subject does not implement, by its own account."""
        return sorted({outcome.lacks for outcome in self.outcomes if outcome.lacks})

    def to_json_object(self) -> JsonObject:
        """Return the report as plain JSON data."""
        return {
            **asdict(self),
            "passed": self.passed,
            "ours_passed": self.ours_passed,
            "lacks": self.lacks,
        }


def examine(
    start: Callable[[], ClosableConnection],
    scenarios: Iterable[Scenario],
    *,
    command: Sequence[str] = (),
) -> Report:
    """Run scenarios and report.

    Args:
        start: starts the subject; called again after it broke.
        scenarios: which ones.
        command: the subject's command, for the report.

    Raises:
        SubjectBrokenError: the subject breaks before the first scenario.
        SubjectError: the subject refuses to be examined.
    """
    examination = _Examination(start)
    try:
        named = examination.begin()
        report = Report(
            standard=SCHEMA_VERSION,
            subject=named["name"],
            version=named.get("version", ""),
            command=list(command),
        )
        for scenario in scenarios:
            report.outcomes.append(examination.run(scenario))
    finally:
        examination.end()
    report.seen = {kind: sorted(words) for kind, words in examination.seen.items()}
    return report


class _Examination:
    """One subject on its way through the scenarios."""

    def __init__(self, start: Callable[[], ClosableConnection]) -> None:
        self._start = start
        self._connection: ClosableConnection | None = None
        self.seen: dict[str, set[str]] = {
            "events": set(),
            "error_classes": set(),
            "invocation_states": set(),
            "results": set(),
        }

    def begin(self) -> JsonObject:
        """Start the subject, and return what it states of itself."""
        self._connection = self._start()
        greeting = {
            "protocol_version": PROTOCOL_VERSION,
            "schema_version": SCHEMA_VERSION,
        }
        named: JsonObject = ask(self._connection, "initialize", greeting)
        return named

    def end(self) -> None:
        """Close the subject, if it runs."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def run(self, scenario: Scenario) -> Outcome:
        """Run one scenario."""
        outcome = Outcome(scenario.number, scenario.title)
        try:
            # the scenario before may have ended it
            if self._connection is None:
                self.begin()
            assert self._connection is not None  # noqa: S101
            observed = run_steps(scenario.steps, self._connection)
        except SubjectLacksError as error:
            outcome.lacks = str(error)
        except SubjectBrokenError as error:
            outcome.broken = str(error)
            self.end()
        except SubjectError as error:
            outcome.failures.append(str(error))
        else:
            _judge(scenario, observed, outcome)
            _note(self.seen, observed.records)
        return outcome


def _judge(scenario: Scenario, observed: Observed, outcome: Outcome) -> None:
    document = observed.to_json_object()
    outcome.failures += failures(scenario.standard, document)
    outcome.failures += faults(observed)[:_MAX_PROBLEMS]
    violations = _violations(observed, scenario.canaries)
    for violation in violations:
        outcome.failures.append(f"{violation.rule}: {violation.message}")
    outcome.ours = len(scenario.ours)
    outcome.ours_failed += failures(scenario.ours, document)
    outcome.records = len(observed.records)
    outcome.passed = not outcome.failures


def _violations(observed: Observed, canaries: Sequence[str]) -> list[Violation]:
    records = []
    spans = []
    for line in observed.records:
        if line["object"] == "span":
            spans.append(line["record"])
        else:
            records.append(line)
    ran = [entry["invocation_id"] for entry in observed.ran if "invocation_id" in entry]
    return find_violations(records, ran=ran, canaries=canaries, spans=spans)


def _note(seen: dict[str, set[str]], lines: Iterable[JsonObject]) -> None:
    """Note the standard's words that records have."""
    for line in lines:
        record = line["record"]
        # its words may be numbers
        if misfits_of(line["object"], record):
            continue
        match line["object"]:
            case "tool_event":
                seen["events"].add(record["event_type"])
            case "tool_invocation":
                seen["invocation_states"].add(record["status"])
                for step in transitions_of(record):
                    seen["invocation_states"].add(str(step.get("status")))
            case "tool_result":
                seen["results"].add(record["status"])
                error_class = error_class_of(record)
                if error_class:
                    seen["error_classes"].add(error_class)
