"""Everything that a check of words finds in the rules of a project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from agenttool_otel.authoring.project import Project
from agenttool_otel.authoring.words.findings import Finding, double_names, finding_slips, kind_of
from agenttool_otel.authoring.words.habits import habit_slips, paths_asked, unread_rules
from agenttool_otel.authoring.words.slips import Slip, Slips
from agenttool_otel.authoring.words.walk import Walk, walk_rules
from agenttool_otel.authoring.words.world import World
from agenttool_otel.policy.bundles.settings_check import answer_problems
from agenttool_otel.policy.rego.syntax import Rule

# such a list is looked at where the settings are
_LISTED: Final = re.compile(r'"waives":\s*\[')


class Found(NamedTuple):
    """What was found, by what it is about."""

    words: list[Slip]  # expressions
    findings: list[Slip]  # what rules put into deny, ask and allow
    habits: list[Slip]  # rules that mean something else by their form
    unread: list[Slip]  # rules that nothing reads


def slips_of(project: Project) -> Found:
    """Return the slips in the rules of a project."""
    world = World(project, project.program)
    walk = Walk(world)
    rules = [rule for rule in project.program.rules if project.is_own(rule.file)]
    values = walk_rules(walk, rules)
    answers = answer_problems(project.whole)
    findings = Slips()
    stated: list[Finding] = []
    for rule, value in values:
        text = world.modules[rule.file].text
        for slip in finding_slips(rule, value, _nothing if _LISTED.search(text) else answers):
            findings.add(slip)
        kind = kind_of(rule)
        if kind and value.items is not None:
            stated.append(Finding(rule, kind, value.items))
    for slip in double_names(stated):
        findings.add(slip)
    return Found(
        list(walk.slips), list(findings), list(_habits(world, rules)), list(_unread(project, rules))
    )


def _nothing(name: str) -> Iterator[str]:
    del name
    return iter(())


def _habits(world: World, rules: list[Rule]) -> Iterator[Slip]:
    found = Slips()
    for rule in rules:
        source = world.modules[rule.file].text.encode("utf-8")
        for slip in habit_slips(rule, source):
            found.add(slip)
    return iter(found)


def _unread(project: Project, rules: list[Rule]) -> Iterator[Slip]:
    # of a whole bundle, the program that asks it knows what it reads
    if project.base is None:
        return iter(())
    return unread_rules(rules, paths_asked(project.program.rules))
