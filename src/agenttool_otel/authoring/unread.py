"""References to data that is not there: undefined in Rego, and mostly a slip of the pen.

Rules that no decision reaches are reported when a bundle is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.authoring.project import Project
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.policy.rego.syntax import Path, Program, Rule

# the host puts its settings here, in configure(settings={"shell": {...}})
_SETTINGS: Final = ("agenttool", "settings")
# the stock bundle reads data.agenttool.custom if it is there
_CUSTOM: Final = ("agenttool", "custom")
_RESTRICTING: Final = frozenset({"deny", "ask"})
_OPTIONAL: Final = (_SETTINGS, _CUSTOM)


class MissingData(NamedTuple):
    """A reference to data that is not there."""

    rule: Rule  # the rule that has it
    line: int  # its line
    message: str  # what is missing
    opens: bool  # a deny or an ask never fires for it


def missing_data(project: Project) -> Iterator[MissingData]:
    """Find references of the project's own rules to data that neither a rule nor a data
    file makes.
    """
    needed = _needed_by_restrictions(project)
    # a path is reported once a file
    reported: set[tuple[str, Path]] = set()
    for rule in project.program.rules:
        if not project.is_own(rule.file):
            continue
        for reference in rule.references:
            key = (rule.file, reference.path)
            if reference.base != "data" or key in reported:
                continue
            problem = _problem(project, reference.path)
            if problem:
                reported.add(key)
                negated = _is_negated(rule, reference.start)
                opens = id(rule) in needed and not negated
                yield MissingData(rule, reference.line, problem, opens)


def _needed_by_restrictions(project: Project) -> set[int]:
    """The rules without whose value some deny or ask never fires.

    What is negated is none of them: ``deny ... if not open_day`` denies where nothing is known.
    """
    needed: dict[int, Rule] = {}
    waiting = []
    for rule in project.program.rules:
        if project.is_own(rule.file) and rule.path[-1] in _RESTRICTING:
            waiting.append(rule)
    while waiting:
        rule = waiting.pop()
        if id(rule) in needed or not project.is_own(rule.file):
            continue
        needed[id(rule)] = rule
        for path, start in _asked(rule):
            if not _is_negated(rule, start):
                waiting += project.program.matching(path)
    return set(needed)


def _asked(rule: Rule) -> Iterator[tuple[Path, int]]:
    for reference in rule.references:
        if reference.base == "data":
            yield reference.path, reference.start
    for path, _, start in rule.functions:
        yield path, start


def _is_negated(rule: Rule, start: int) -> bool:
    for node in rule.nodes:
        span = node["NotExpr"]["span"] if "NotExpr" in node else None
        if span is not None and span["start"] <= start < span["end"]:
            return True
    return False


def unread_data(project: Project) -> Iterator[str]:
    """Find members of the project's own data that no rule reads: a misspelt limit, mostly."""
    if project.base is None:
        return
    asked: set[Path] = set()
    for rule in project.program.rules:
        for reference in rule.references:
            # the stock bundle reads all of data.agenttool.custom, as it looks for rules
            if reference.base == "data" and len(reference.path) > len(_CUSTOM):
                asked.add(reference.path)
    ours = project.own.data.get("agenttool") or {}
    custom = ours.get("custom") if isinstance(ours, Mapping) else None
    yield from _unread_members(custom, _CUSTOM, asked)


def _unread_members(value: Any, path: Path, asked: set[Path]) -> Iterator[str]:
    if not isinstance(value, Mapping):
        return
    for name, member in value.items():
        inner = (*path, str(name))
        size = len(inner)
        if any(inner[: len(other)] == other for other in asked):
            continue
        if any(other[:size] == inner for other in asked):
            yield from _unread_members(member, inner, asked)
            continue
        near = did_you_mean(name, {other[size - 1] for other in asked if len(other) >= size})
        yield f"{'.'.join(('data', *inner))} is read by no rule{near}"


def _problem(project: Project, path: Path) -> str:
    """What is wrong with a path of data; empty when nothing is."""
    if _is_optional(path) or _is_made_by_rules(project.program, path):
        return ""
    known = _lacking(project.whole.data, path)
    if known is None:
        return ""
    name = ".".join(("data", *path))
    hint = did_you_mean(path[-1], known)
    return f"{name} is neither a rule nor in a data file{hint}"


def _is_optional(path: Path) -> bool:
    # data alone is everything
    if not path or path in _OPTIONAL:
        return True
    return path[:2] == _SETTINGS


def _is_made_by_rules(program: Program, path: Path) -> bool:
    if program.matching(path):
        return True
    # data.agenttool.rules: packages lie below it
    size = len(path)
    return any(module.package[:size] == path for module in program.modules)


def _lacking(document: Mapping[str, Any], path: Path) -> list[str] | None:
    """The names beside the first segment that is not there; ``None`` where all are."""
    value: Any = document
    for segment in path:
        if not isinstance(value, Mapping):
            return None  # data.shop.prices[3]: an index into a list, which only an evaluation reads
        if segment not in value:
            return [str(name) for name in value]
        value = value[segment]
    return None
