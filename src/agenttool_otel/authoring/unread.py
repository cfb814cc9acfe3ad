"""References to data that is not there: undefined in Rego, and mostly a slip of the pen.

Rules that no decision reaches are reported when a bundle is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agenttool_otel.authoring.project import Project
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.policy.rego.syntax import Path, Program, Rule

# the host puts its settings here, in configure(settings={"shell": {...}})
_SETTINGS: Final = ("agenttool", "settings")
# the stock bundle reads data.agenttool.custom if it is there
_OPTIONAL: Final = (_SETTINGS, ("agenttool", "custom"))


def missing_data(project: Project) -> Iterator[tuple[Rule, int, str]]:
    """Find references of the project's own rules to data that neither a rule nor a data
    file makes.
    """
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
                yield rule, reference.line, problem


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
