"""Everything that a check of words finds in the rules of a project."""

from __future__ import annotations

from typing import NamedTuple

from agenttool_otel.authoring.project import Project
from agenttool_otel.authoring.words.findings import Finding, double_names, finding_slips, kind_of
from agenttool_otel.authoring.words.slips import Slip, Slips
from agenttool_otel.authoring.words.walk import Walk, walk_rules
from agenttool_otel.authoring.words.world import World


class Found(NamedTuple):
    """What was found, by what it is about."""

    words: list[Slip]  # expressions
    findings: list[Slip]  # what rules put into deny, ask and allow


def slips_of(project: Project) -> Found:
    """Return the slips in the rules of a project."""
    world = World(project, project.program)
    walk = Walk(world)
    rules = [rule for rule in project.program.rules if project.is_own(rule.file)]
    values = walk_rules(walk, rules)
    findings = Slips()
    stated: list[Finding] = []
    for rule, value in values:
        for slip in finding_slips(rule, value):
            findings.add(slip)
        kind = kind_of(rule)
        if kind and value.items is not None:
            stated.append(Finding(rule, kind, value.items))
    for slip in double_names(stated):
        findings.add(slip)
    return Found(list(walk.slips), list(findings))
