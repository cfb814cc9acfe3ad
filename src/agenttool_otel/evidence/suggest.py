"""What people agreed to, as the least that would answer their questions.

Only arguments that name whom or what a call reaches are learnt: places, hosts, receivers, and the
programs of commands. A value is generalised by one step, where enough different values were seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from agenttool_otel.evidence.answers import Agreed
from agenttool_otel.evidence.parts import Part
from agenttool_otel.evidence.words import hidden_words

_SLUG: Final = re.compile(r"[^a-z0-9]+")

_Step = tuple[str, bytes]
"""A kind of values, and what a step makes of some of them."""


@dataclass
class Learnt:
    """What one rule of the extension permits."""

    name: str  # the last part of the rule's name, and of its data
    tool: str  # the tool's id
    questions: tuple[str, ...]  # what it answers
    calls: list[Agreed]  # what it was made of
    exact: dict[str, list[Any]] = field(default_factory=dict)  # values as seen, by kind
    wider: dict[str, list[Any]] = field(default_factory=dict)  # values after a step, by kind

    @property
    def kinds(self) -> list[str]:
        """The kinds of its values."""
        return sorted({*self.exact, *self.wider})

    def hold(self, call: Agreed, stepped: set[_Step]) -> None:
        """Permit what a call reaches.

        Args:
            call: the call.
            stepped: the steps that are taken.
        """
        self.calls.append(call)
        for part in call.parts:
            if _step_of(part) in stepped:
                _add(self.wider, part.kind, part.wider)
            else:
                _add(self.exact, part.kind, part.exact)


class Unlearnt(NamedTuple):
    """Calls that people agreed to, of which no rule was made."""

    tool: str  # the tool's id
    reason: str  # why
    calls: int  # how many
    hidden: list[str]  # digests of words that would have to be known


class _Aside:
    """Collects the calls of which no rule is made."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str], int] = {}
        self._hidden: dict[tuple[str, str], set[str]] = {}

    def add(self, call: Agreed, reason: str, hidden: Iterable[str] = ()) -> None:
        key = call.tool, reason
        self._calls[key] = self._calls.get(key, 0) + 1
        self._hidden.setdefault(key, set()).update(hidden)

    def found(self) -> list[Unlearnt]:
        found = []
        for key in sorted(self._calls):
            tool, reason = key
            hidden = sorted(self._hidden[key])
            found.append(Unlearnt(tool, reason, self._calls[key], hidden))
        return found


def learn(calls: Iterable[Agreed], least: int) -> tuple[list[Learnt], list[Unlearnt]]:
    """Return what one rule each permits, and what none is made of.

    Args:
        calls: what people agreed to.
        least: how many different values have to be seen before a step is taken.
    """
    groups: dict[tuple[Any, ...], list[Agreed]] = {}
    aside = _Aside()
    for call in calls:
        if call.reason:
            aside.add(call, call.reason)
        else:
            groups.setdefault(call.group, []).append(call)
    learnt: list[Learnt] = []
    for key in sorted(groups):
        tool, questions, _ = key
        name = _slug(tool, len(learnt) + 1)
        rule = Learnt(name, tool, questions, [])
        _fill(rule, groups[key], least, aside)
        if rule.calls:
            learnt.append(rule)
    return learnt, aside.found()


def _fill(rule: Learnt, calls: list[Agreed], least: int, aside: _Aside) -> None:
    """Put calls into a rule, those apart whose values hold a hidden word."""
    stepped = _stepped(calls, least)
    for call in calls:
        hidden = _hidden_in(call, stepped)
        if hidden:
            aside.add(call, "words of it are hidden", hidden)
        else:
            rule.hold(call, stepped)


def _hidden_in(call: Agreed, stepped: set[_Step]) -> list[str]:
    """Return the digests in what a rule would hold of a call."""
    hidden: list[str] = []
    for part in call.parts:
        value = part.wider if _step_of(part) in stepped else part.exact
        hidden += hidden_words(part.kind)
        hidden += hidden_words(value)
    return hidden


def _step_of(part: Part) -> _Step:
    return part.kind, orjson.dumps(part.wider)


def _stepped(calls: list[Agreed], least: int) -> set[_Step]:
    """Return the steps for which enough different values were seen."""
    seen: dict[_Step, set[bytes]] = {}
    for call in calls:
        for part in call.parts:
            if part.wider is not None:
                values = seen.setdefault(_step_of(part), set())
                values.add(orjson.dumps(part.exact))
    return {step for step, values in seen.items() if len(values) >= least}


def _add(held: dict[str, list[Any]], kind: str, value: Any) -> None:
    values = held.setdefault(kind, [])
    if value not in values:
        values.append(value)


def _slug(tool: str, number: int) -> str:
    """Return a name for a rule and its data: a word of Rego, which begins with a letter."""
    last = tool.rpartition(".")[2]
    words = _SLUG.sub("_", last.lower()).strip("_")
    if not words[:1].isalpha():
        words = f"tool_{words}"
    return f"{words}_{number}"
