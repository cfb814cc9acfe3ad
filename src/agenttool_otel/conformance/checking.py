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
"""The schema of each object; the standard has none for a tool_search_result."""

_MAX_PROBLEMS: Final = 5


@dataclass(slots=True)
class Outcome:
    """What became of one scenario."""

    number: int
    title: str
    passed: bool = False
    failure: str = ""
    records: int = 0
    problems: list[str] = field(default_factory=list)  # of records that don't fit their schema


@dataclass(slots=True)
class Report:
    """What became of all of them, and which words of the standard were seen in the records."""

    standard: str
    subject: str
    outcomes: list[Outcome] = field(default_factory=list)
    seen: dict[str, list[str]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether every scenario passed."""
        return bool(self.outcomes) and all(outcome.passed for outcome in self.outcomes)

    def to_json_object(self) -> JsonObject:
        """Return the report as plain JSON data."""
        return {**asdict(self), "passed": self.passed}


class Scenario(NamedTuple):
    """One of the standard's acceptance scenarios."""

    number: int
    title: str
    run: Callable[[Subject], Any]


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
        outcome = Outcome(scenario.number, scenario.title)
        report.outcomes.append(outcome)
        try:
            scenario.run(subject)
            outcome.passed = True
        except Exception as error:
            # a foreign module may raise anything; what it raises is the finding
            outcome.failure = f"{type(error).__name__}: {error}"[:500]
        try:
            lines = list(subject.records())
            outcome.problems = problems_of(lines)[:_MAX_PROBLEMS]
            outcome.records = len(lines)
            _note(seen, lines)
        except Exception as error:
            outcome.failure = (
                outcome.failure
                or f"the records can't be had: {type(error).__name__}: {error}"[:500]
            )
        outcome.passed = outcome.passed and not outcome.problems and not outcome.failure
    report.seen = {what: sorted(words) for what, words in seen.items()}
    return report


def problems_of(lines: Iterable[JsonObject]) -> list[str]:
    """Return where records miss their schemas: object, place and keyword.

    Args:
        lines: records as a subject gives them.
    """
    problems = []
    for line in lines:
        schema = _FILES.get(line["object"])
        if schema is None:
            continue
        for error in _validator(schema).iter_errors(line["record"]):
            place = "/".join(str(part) for part in error.instance_path)
            problems.append(f"{line['object']} /{place}: {error.kind.name}")
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
                seen["invocation_states"].update(
                    step["status"] for step in record.get("status_transitions", [])
                )
                seen["invocation_states"].add(record["status"])
            case "tool_result":
                seen["results"].add(record["status"])
                seen["error_classes"].update(
                    filter(None, [(record.get("error") or {}).get("error_class")])
                )
