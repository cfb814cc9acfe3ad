"""Run the scenarios, and validate every record by the standard's own JSON Schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

import jsonschema_rs

from agenttool_otel.conformance.subject import Subject
from agenttool_otel.records.base import JsonObject
from agenttool_otel.values.tables import load_table

_FILES: Final[dict[str, str]] = load_table(__package__, "objects.json")
"""The file of each object's schema."""

_MAX_PROBLEMS: Final = 5  # of the records of one scenario
_MAX_MESSAGE: Final = 500  # characters of an error of the subject


@dataclass(slots=True)
class Outcome:
    """The outcome of one scenario."""

    number: int  # its number in the standard, from 1
    title: str  # its sentence in the standard
    passed: bool = False  # every expectation holds and every record fits its schema
    failure: str = ""  # the expectation that does not hold, or the error that was raised
    records: int = 0  # how many records were validated
    problems: list[str] = field(default_factory=list)  # of records that don't fit their schema


@dataclass(slots=True)
class Report:
    """The outcomes of all scenarios, and which words of the standard the records have."""

    standard: str  # version of the standard
    subject: str  # name of the module that was examined
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

    def to_json_object(self) -> JsonObject:
        """Return the report as plain JSON data."""
        return {**asdict(self), "passed": self.passed}


class Scenario(NamedTuple):
    """One of the standard's acceptance scenarios."""

    number: int  # its number in the standard, from 1
    title: str  # its sentence in the standard
    run: Callable[[Subject], Any]  # raises where an expectation does not hold


def examine(subject: Subject, scenarios: Sequence[Scenario], *, name: str, standard: str) -> Report:
    """Run scenarios and report.

    Args:
        subject: what is examined.
        scenarios: which ones.
        name: name of the subject, for the report.
        standard: version of the standard.
    """
    report = Report(standard, name)
    seen: dict[str, set[str]] = {
        "events": set(),
        "error_classes": set(),
        "invocation_states": set(),
        "results": set(),
    }
    for scenario in scenarios:
        report.outcomes.append(_examine_one(subject, scenario, seen))
    report.seen = {kind: sorted(words) for kind, words in seen.items()}
    return report


def _examine_one(subject: Subject, scenario: Scenario, seen: dict[str, set[str]]) -> Outcome:
    outcome = Outcome(scenario.number, scenario.title)
    # another implementation may raise anything: what it raises is the finding
    try:
        scenario.run(subject)
    except Exception as error:
        outcome.failure = _message(error)
    try:
        lines = list(subject.records())
        outcome.problems = problems_of(lines)[:_MAX_PROBLEMS]
        outcome.records = len(lines)
        _note(seen, lines)
    except Exception as error:
        problem = f"the records can't be read: {_message(error)}"
        outcome.failure = outcome.failure or problem
    outcome.passed = not outcome.failure and not outcome.problems
    return outcome


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_MAX_MESSAGE]


def problems_of(lines: Iterable[JsonObject]) -> list[str]:
    """Return where records miss their schemas: object, place and keyword.

    Args:
        lines: records as a subject gives them.
    """
    problems = []
    for line in lines:
        kind = line["object"]
        # the standard has no schema for a tool_search_result
        if kind not in _FILES:
            continue
        validator = _validator(_FILES[kind])
        for error in validator.iter_errors(line["record"]):
            # tool_result /content/0/type: enum
            place = "/".join(str(part) for part in error.instance_path)
            problems.append(f"{kind} /{place}: {error.kind.name}")
    return problems


@lru_cache
def _validator(name: str) -> jsonschema_rs.Draft202012Validator:
    schema = load_table(__package__, f"schemas/agenttool-{name}.schema.json")
    return jsonschema_rs.Draft202012Validator(schema)


def _note(seen: dict[str, set[str]], lines: Iterable[JsonObject]) -> None:
    for line in lines:
        record = line["record"]
        match line["object"]:
            case "tool_event":
                seen["events"].add(record["event_type"])
            case "tool_invocation":
                seen["invocation_states"].add(record["status"])
                for step in record.get("status_transitions", []):
                    seen["invocation_states"].add(step["status"])
            case "tool_result":
                seen["results"].add(record["status"])
                error = record.get("error") or {}
                if error.get("error_class"):
                    seen["error_classes"].add(error["error_class"])
