"""Tests that can't fail: their input or what they look at is misspelt, or they look at nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from agenttool_otel.authoring.project import Project, parse_tests
from agenttool_otel.authoring.words.comparing import nearest
from agenttool_otel.authoring.words.schemas import input_shape
from agenttool_otel.authoring.words.shapes import OBJECT, Place, Shape, elements
from agenttool_otel.authoring.words.slips import Slip, Slips
from agenttool_otel.authoring.words.walk import Walk, walk_rules
from agenttool_otel.authoring.words.world import World
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.policy.rego.syntax import Program, Rule

_MAX_DEPTH: Final = 12


def slips_of_tests(project: Project) -> list[Slip]:
    """Return the slips in the tests of a project."""
    program = parse_tests(project)
    inputs = _Inputs(project)
    world = World(project, program)
    walk = Walk(world, inputs.look_at)
    rules = []
    for rule in program.rules:
        if rule.file in project.own.tests:
            rules.append(rule)
    walk_rules(walk, rules)
    found = Slips()
    slips = itertools.chain(walk.slips, inputs.slips, _blind_tests(program, rules))
    for slip in slips:
        # a fixture of the stock bundle is right
        if slip.file in project.own.tests:
            found.add(slip)
    return list(found)


class _Inputs:
    """The inputs that tests give, compared with the schema of the input."""

    def __init__(self, project: Project) -> None:
        self.slips = Slips()
        self._files = project.own.tests

    def look_at(self, given: Shape, place: Place) -> None:
        """Look at one input.

        Args:
            given: what the test gives.
            place: where it is given.
        """
        self._compare(given, input_shape(), place, 0)

    def _compare(self, given: Shape, wanted: Shape, place: Place, depth: int) -> None:
        if depth > _MAX_DEPTH or given is wanted:
            return
        at = given.place or place
        if given.kinds <= {OBJECT} and given.members is not None:
            self._members(given, wanted, at, depth)
        elif given.items is not None and wanted.items is not None:
            self._compare(elements(given), elements(wanted), at, depth + 1)
        self._words(given, wanted, at)

    def _members(self, given: Shape, wanted: Shape, place: Place, depth: int) -> None:
        members = given.members or {}
        for name, member in members.items():
            other = _member_of(wanted, name)
            if other is not None:
                self._compare(member, other, place, depth + 1)
            elif wanted.members is not None:
                self._unknown(name, wanted, member.place or place)

    def _unknown(self, name: str, wanted: Shape, place: Place) -> None:
        # a test may add members to show that they change nothing: "extra"
        near = did_you_mean(name, wanted.members or ())
        if near:
            message = f"{wanted.name} has no member {name!r}{near}: the test gives what no call has"
            self.slips.add(Slip(place.file, place.line, message))

    def _words(self, given: Shape, wanted: Shape, place: Place) -> None:
        ours = wanted.words
        words = given.words
        if words is None or ours is None or not words.stated:
            return
        for word in sorted(words.known - ours.known):
            # "Approved" shows that a rule takes no other case
            if word.lower() in ours.known:
                continue
            near = nearest(word, ours)
            if near:
                message = f"{wanted.name} is never {word!r}{near}: the test gives what no call has"
                self.slips.add(Slip(place.file, place.line, message))


def _member_of(shape: Shape, name: str) -> Shape | None:
    if shape.members is None:
        return shape.items
    if name in shape.members:
        return shape.members[name]
    return shape.others


# --- tests that look at nothing -------------------------------------------------------------------


def _blind_tests(program: Program, rules: list[Rule]) -> Iterator[Slip]:
    """Yield the tests that no change of a rule can make fail."""
    files = {rule.file for rule in rules}
    for rule in rules:
        name = _test_name(rule)
        if not name:
            continue
        reached = program.closure([rule])
        asked = []
        for other in reached:
            if other.file not in files and not _is_fixture(other):
                asked.append(other)
        if not asked and not _reads_data(program, reached):
            message = f"{name} looks at no rule, so no change of the policy makes it fail"
            yield Slip(rule.file, rule.line, message, certain=False)
        elif _needs_input(asked) and not _gives_input(reached, files):
            message = (
                f"{name} gives no input, so the rules that it looks at see none: with input as ..."
            )
            yield Slip(rule.file, rule.line, message)


def _test_name(rule: Rule) -> str:
    for part in rule.path:
        if part.startswith("test_"):
            return part
    return ""


def _is_fixture(rule: Rule) -> bool:
    return any(part.endswith("_test") for part in rule.path[:-1])


def _reads_data(program: Program, rules: list[Rule]) -> bool:
    """Return whether rules read a data file."""
    references = itertools.chain.from_iterable(rule.references for rule in rules)
    data = (reference.path for reference in references if reference.base == "data")
    return any(not program.matching(path) for path in data)


def _needs_input(rules: list[Rule]) -> bool:
    references = itertools.chain.from_iterable(rule.references for rule in rules)
    return any(reference.base == "input" for reference in references)


def _gives_input(rules: list[Rule], files: set[str]) -> bool:
    giving = (rule for rule in rules if rule.has_with)
    return any(rule.file in files or _is_fixture(rule) for rule in giving)
