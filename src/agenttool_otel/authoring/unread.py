"""Data that is not there: silent in Rego, and mostly a slip. (Rules that nobody asks are told at
load.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agenttool_otel.authoring.project import Project
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.policy.rego.syntax import Path, Rule

# where the host, and not the bundle, may put data; and what is read if it is there
_OPTIONAL: Final = (("agenttool", "settings"), ("agenttool", "custom"))


def missing_data(project: Project) -> Iterator[tuple[Rule, int, str]]:
    """Find references of the project's own rules to data that neither a rule nor a data
    file makes.
    """
    program, document = project.program, project.whole.data
    packages = {module.package for module in program.modules}
    told: set[tuple[str, Path]] = set()
    for rule in program.rules:
        if not project.is_own(rule.file):
            continue
        for reference in rule.references:
            path = reference.path
            if (
                reference.base != "data"
                or not path
                or (rule.file, path) in told
                or path in _OPTIONAL
            ):
                continue
            if (
                path[:2] == _OPTIONAL[0]
                or program.matching(path)
                or any(path == p[: len(path)] for p in packages)
            ):
                continue
            if (known := _lacking(document, path)) is None:
                continue
            told.add((rule.file, path))
            name = ".".join(("data", *path))
            yield (
                rule,
                reference.line,
                f"{name} is neither a rule nor in a data file{did_you_mean(path[-1], known)}",
            )


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
