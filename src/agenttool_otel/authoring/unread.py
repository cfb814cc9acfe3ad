"""Rules that nobody asks, and data that is not there: both are silent in Rego, and both are mostly a slip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agenttool_otel.authoring.project import Project
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.check import entry_path
from agenttool_otel.policy.bundles.rego import Path, Program, Rule

_KINDS: Final = ("deny", "ask", "allow")
_CUSTOM: Final = ("agenttool", "custom")
# where the host, and not the bundle, may put data; and what is read if it is there
_OPTIONAL: Final = (("agenttool", "settings"), ("agenttool", "custom"))


def unread_rules(project: Project) -> Iterator[tuple[Rule, str]]:
    """Find the project's own rules that no decision reaches."""
    program = project.program
    reached = {id(rule) for rule in _reached(project, program)}
    told: set[Path] = set()
    live = {rule.path for rule in program.rules if id(rule) in reached}
    for module in program.modules:
        if not project.is_own(module.file):
            continue
        for rule in module.rules:
            if id(rule) in reached or rule.path in live or rule.path in told:
                continue
            told.add(rule.path)
            name = rule.path[len(module.package)] if len(rule.path) > len(module.package) else rule.path[-1]
            yield rule, f"{rule.name} is asked by no decision{did_you_mean(name, _KINDS)}"


def _reached(project: Project, program: Program) -> list[Rule]:
    entries = [entry_path(entry) for entry in EntryPoint]
    if project.base is None:
        return [rule for entry in entries for rule in program.reachable(entry)]
    # the stock bundle reads all of agenttool.custom by computed names, but asks for these three only
    found: dict[int, Rule] = {}
    for module in program.modules:
        if not project.is_own(module.file):
            continue
        placed = module.package[:2] == _CUSTOM and len(module.package) <= len(_CUSTOM) + 1
        for rule in module.rules:
            size = len(module.package)
            if (placed and len(rule.path) > size and rule.path[size] in _KINDS) or not placed:
                found.update((id(other), other) for other in program.closure([rule]))
    return list(found.values())


def missing_data(project: Project) -> Iterator[tuple[Rule, int, str]]:
    """Find references of the project's own rules to data that neither a rule nor a data file makes."""
    program, document = project.program, project.whole.data
    packages = {module.package for module in program.modules}
    told: set[tuple[str, Path]] = set()
    for rule in program.rules:
        if not project.is_own(rule.file):
            continue
        for reference in rule.references:
            path = reference.path
            if reference.base != "data" or not path or (rule.file, path) in told or path in _OPTIONAL:
                continue
            if path[:2] == _OPTIONAL[0] or program.matching(path) or any(path == p[: len(path)] for p in packages):
                continue
            known = _lacking(document, path)
            if known is None:
                continue
            told.add((rule.file, path))
            name = ".".join(("data", *path))
            yield rule, reference.line, f"{name} is neither a rule nor in a data file{did_you_mean(path[-1], known)}"


def _lacking(document: Mapping[str, Any], path: Path) -> list[str] | None:
    """The names beside the first segment that is not there; ``None`` where all are."""
    value: Any = document
    for segment in path:
        if not isinstance(value, Mapping):
            return None  # an index into a list or text: only an evaluation tells
        if segment not in value:
            return [str(name) for name in value]
        value = value[segment]
    return None
