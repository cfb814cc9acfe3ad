"""What the body of a call reports to change, as facts of a second decision, and what was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from agenttool_otel.facts.types import EffectsFact, ReportedChange
from agenttool_otel.names import ChangeKind, ChangeOperation
from agenttool_otel.values.canonical import digest

MOST_CHANGES: Final = 1_000
"""How many changes a report may have."""
MOST_CHARACTERS: Final = 500
"""How long a target may be."""
MOST_COUNTED: Final = 2**53 - 1
"""The largest count that every policy engine reads exactly."""


@dataclass(frozen=True, slots=True)
class EffectChange:
    """One change that a tool is about to make; ``EffectChange("sql", "orders", "changed", 12)``.

    Args:
        kind: what it is: ``sql``, ``resource``, ``api``, ``message`` or ``other``.
        target: the table, the resource, the receiver; a name and no content, as a person is shown it.
        operation: what happens to it: ``created``, ``changed``, ``deleted`` or ``sent``.
        count: how many rows, resources or messages.
    """

    kind: str
    target: str
    operation: str
    count: int = 1


class ReportState(Enum):
    """What was decided of what a body reports."""

    OPEN = auto()
    """Nothing yet."""

    ANSWERED = auto()
    """A person agreed before the body began, which runs again for it."""

    ALLOWED = auto()
    """The body may do it."""

    WAITS = auto()
    """A person is asked, and the body runs again when they agree."""

    REFUSED = auto()
    """The body must not do it."""


@dataclass(slots=True, eq=False)
class ReportedEffects:
    """What a body is about to do."""

    fact: EffectsFact  # as the policy sees it
    state: ReportState = ReportState.OPEN
    attempt: int = -1  # the attempts that had ended when it was reported
    again: bool = False  # whether the body reported something else, which was not decided
    diff: str = ""  # what a person who is asked is shown, redacted

    @property
    def refused(self) -> bool:
        """Whether the body must not go on, so that it is not run again at once."""
        return self.state not in (ReportState.ALLOWED, ReportState.ANSWERED)


def reported_fact(changes: Iterable[EffectChange]) -> EffectsFact:
    """Return a report as facts: equal changes are added up, and their order does not matter.

    Args:
        changes: what the body reports.

    Raises:
        TypeError: it reports something else than changes.
        ValueError: a change has a word, a text or a number that it must not have, or there are too
            many.
    """
    totals: Counter[tuple[str, str, str]] = Counter()
    for number, change in enumerate(changes):
        if number >= MOST_CHANGES:
            raise ValueError(f"more than {MOST_CHANGES:,} changes are reported")
        totals[_place_of(change)] += change.count
    found = [_change(place, count) for place, count in sorted(totals.items())]
    if sum(totals.values()) > MOST_COUNTED:
        raise ValueError("the counts are too large")
    return {
        "counts": {
            "created": 0,
            "changed": 0,
            "deleted": 0,
            "mode": 0,
            "owner": 0,
            "linked": 0,
            "connections": 0,
            "reported": sum(totals.values()),
        },
        "paths": [],
        "connections": [],
        "changes": found,
        "complete": True,
        "reasons": [],
        "commands": [],
        "digest": digest(found),
    }


def changes_text(effects: EffectsFact) -> str:
    """Return what a person is shown of reported changes, a line each, not yet redacted.

    Args:
        effects: the facts.
    """
    lines = [
        f"{change['operation']} {change['count']:,}  {change['kind']} {change['target']}"
        for change in effects["changes"]
    ]
    return "\n".join(lines)


def _place_of(change: EffectChange) -> tuple[str, str, str]:
    """Return the kind, target and operation of a change that can be used."""
    if type(change) is not EffectChange:
        raise TypeError("a report has EffectChange objects only")
    kind, operation = ChangeKind(change.kind), ChangeOperation(change.operation)
    target, count = change.target, change.count
    if type(target) is not str or not 0 < len(target) <= MOST_CHARACTERS:
        raise ValueError(f"a target is a text of 1 to {MOST_CHARACTERS} characters")
    target.encode()  # "\ud800" is no text for a policy
    if type(count) is not int or not 0 <= count <= MOST_COUNTED:
        raise ValueError("a count is a whole number, and not negative")
    return kind.value, target, operation.value


def _change(place: tuple[str, str, str], count: int) -> ReportedChange:
    kind, target, operation = place
    return {
        "kind": kind,
        "target": target,
        "operation": operation,
        "count": count,
    }
