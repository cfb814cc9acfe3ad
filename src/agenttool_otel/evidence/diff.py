"""What two policies decide otherwise: of recorded decisions, and of inputs made of their own words,
where there was no traffic.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, cast

from agenttool_otel.evidence.record import OBJECT
from agenttool_otel.evidence.replay import Candidate, Replayed
from agenttool_otel.evidence.spread import PackedBundle, Work, packed, spread
from agenttool_otel.evidence.terms import input_path
from agenttool_otel.names import Behavior
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.rego.syntax import Rule, parse_program
from agenttool_otel.policy.rego.tree import only
from agenttool_otel.policy.samples import sample_documents
from agenttool_otel.records.base import JsonObject

MADE_UP: Final = 300
"""Inputs that are made up where nothing else is stated."""

_TIMEOUT: Final = 10.0
_BASES: Final = 10  # made-up inputs on which each boundary is tried
_SIDES: Final = {"lhs": "rhs", "rhs": "lhs"}


class Comparison:
    """Decides recorded decisions on two policies.

    Args:
        first: the policy that is there.
        second: the one that it is compared with.
        key: of the records' words.
    """

    def __init__(self, first: Bundle, second: Bundle, key: bytes) -> None:
        self._first = Candidate(first, key)
        self._second = Candidate(second, key)

    def compare(self, line: JsonObject) -> Replayed:
        """Decide a recorded decision on both.

        Args:
            line: a line of a file of records.
        """
        before = self._first.replay(line)
        after = self._second.replay(line)
        return after._replace(
            before=before.after,
            rule_before=before.rule_after,
            unsure=before.unsure or after.unsure,
        )


def diff_records(
    lines: Iterable[JsonObject], first: Bundle, second: Bundle, key: bytes, jobs: int = 0
) -> Iterator[Replayed]:
    """Yield what two policies decide of recorded decisions.

    Args:
        lines: of files of records; those of answers are passed over.
        first: the policy that is there.
        second: the one that it is compared with.
        key: of the records' words.
        jobs: processes; as many as there are processors where 0.
    """
    decisions = (line for line in lines if line["object"] == OBJECT)
    return spread(decisions, _comparer, (packed(first), packed(second), key), jobs)


def _comparer(first: PackedBundle, second: PackedBundle, key: bytes) -> Work[Replayed]:
    return Comparison(first.unpacked(), second.unpacked(), key).compare


def diff_made_up(first: Bundle, second: Bundle, count: int = MADE_UP) -> Iterator[Replayed]:
    """Yield what two policies decide of made-up inputs: those that fit the schema and hold words of
    both policies, and those at the boundaries of the rules in which the policies differ.

    Args:
        first: the policy that is there.
        second: the one that it is compared with.
        count: how many inputs that hold their words.
    """
    deciders = [Decider((EmbeddedEngine(bundle),), timeout=_TIMEOUT) for bundle in (first, second)]
    for number, (document, condition) in enumerate(_inputs(first, second, count, deciders[0])):
        before, after = (decider.decide(document) for decider in deciders)
        yield Replayed(
            document["tool"]["id"],
            before.behavior.value,
            before.rule_ref,
            after.behavior.value,
            after.rule_ref,
            f"made-up-{number}",
            document["time"],
            "",
            condition,
        )


def _inputs(
    first: Bundle, second: Bundle, count: int, decider: Decider
) -> Iterator[tuple[Any, str]]:
    """Yield inputs, each with the condition that it is made for; empty for one made of words alone."""
    for modules in _differing_modules(first, second):
        program = parse_program(modules)
        documents = sample_documents(program, count // 2)
        yield from ((document, "") for document in documents)
        bases = _open_inputs(documents, decider)
        for rule in program.rules:
            for boundaries in _boundaries(rule):
                condition = _condition(rule, boundaries)
                yield from ((document, condition) for document in _changed(bases, boundaries))


def _condition(rule: Rule, boundaries: Iterable[_Boundary]) -> str:
    """Return what is set for a rule: ``input.session.counters.calls = 10 (acme.rego:3)``."""
    members = [f"input.{'.'.join(each.path)} = {json.dumps(each.value)}" for each in boundaries]
    return f"{', '.join(members)} ({rule.file}:{rule.line})"


def _open_inputs(documents: Iterable[Any], decider: Decider) -> list[Any]:
    """Return some inputs that a policy does not deny: a denial would hide what another rule finds."""
    found: list[Any] = []
    for document in documents:
        calm = {**document, "facts": _without_findings(document["facts"]), "hooks": []}
        if decider.decide(cast(Any, calm)).behavior is not Behavior.DENY:
            found.append(calm)
        if len(found) == _BASES:
            break
    return found


def _without_findings(facts: dict[str, Any]) -> dict[str, Any]:
    kept = {name: found for name, found in facts.items() if name != "effects"}
    return {name: [] if isinstance(found, list) else found for name, found in kept.items()}


def _changed(documents: Iterable[Any], boundaries: Iterable[_Boundary]) -> Iterator[Any]:
    """Yield inputs with members set, those that have a place for each."""
    for document in documents:
        changed = copy.deepcopy(document)
        if all(_set_at(changed, boundary) for boundary in boundaries):
            yield changed


def _differing_modules(first: Bundle, second: Bundle) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files that each policy has and the other one has not, or has in another form; all
    of both, where only their data differ.
    """
    ones, others = set(first.modules.items()), set(second.modules.items())
    if ones == others:
        return dict(ones), {}
    return dict(ones - others), dict(others - ones)


class _Boundary(NamedTuple):
    """A value at which a rule's condition may change."""

    path: tuple[str, ...]  # of the input
    value: Any


def _boundaries(rule: Rule) -> Iterator[list[_Boundary]]:
    """Yield what to set so that a rule comes near its conditions: all texts that it compares with, and
    one number at a time.
    """
    found = [boundary for node in rule.nodes for boundary in _compared(node)]
    texts = [each for each in found if isinstance(each.value, str)]
    numbers = [each for each in found if not isinstance(each.value, str)]
    for number in numbers:
        yield [*texts, number]
    if texts and not numbers:
        yield texts


def _compared(node: Any) -> Iterator[_Boundary]:
    comparison = node.get("BoolExpr")
    if comparison is None:
        return
    for side, other in _SIDES.items():
        path = input_path(comparison[side])
        kind, content = only(comparison[other])
        if not path:
            continue
        if kind == "String":
            yield _Boundary(path, content["value"])
        if kind == "Number":
            number = float(content["value"])
            whole = int(number) if number.is_integer() else number
            yield from (_Boundary(path, whole + step) for step in (-1, 0, 1))


def _set_at(document: Any, boundary: _Boundary) -> bool:
    """Set a member of an input, and return whether it has a place for it."""
    *steps, last = boundary.path
    for step in steps:
        if not isinstance(document, dict) or step not in document:
            return False
        document = document[step]
    if not isinstance(document, dict):
        return False
    document[last] = boundary.value
    return True
