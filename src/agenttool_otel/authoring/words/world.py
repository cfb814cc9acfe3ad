"""What the names of a policy stand for: the input, data files, rules and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agenttool_otel.authoring.project import Project
from agenttool_otel.authoring.words.schemas import decision_shape, input_shape, of_value
from agenttool_otel.authoring.words.shapes import ANY, Shape
from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.check import entry_path
from agenttool_otel.policy.bundles.settings_schema import rule_names
from agenttool_otel.policy.rego.syntax import Module, Path, Program, Rule

_DECISION: Final = entry_path(EntryPoint.DECISION)
_FIXTURES: Final = ("agenttool", "lib", "fixtures_test")
_ON_CALL: Final = ("agenttool", "settings")


class World:
    """The names of one program.

    Args:
        project: the policy.
        program: its rules, or its rules and tests.
        given: the shape of the input; that of its schema where it is left out.
    """

    def __init__(self, project: Project, program: Program, given: Shape | None = None) -> None:
        self.project = project
        self.program = program
        self.input = given or input_shape()
        self.data: Mapping[str, Any] = project.whole.data
        self.modules: dict[str, Module] = {}
        self.rules: dict[Path, list[Rule]] = {}
        self.above: set[Path] = set()  # of which further paths lie below
        self.names: dict[Path, set[str]] = {}  # by package, the names of its rules
        for module in program.modules:
            self._take(module)

    def _take(self, module: Module) -> None:
        self.modules[module.file] = module
        self.above.add(module.package)
        names = self.names.setdefault(module.package, set())
        size = len(module.package)
        for rule in module.rules:
            path = rule.path
            self.rules.setdefault(path, []).append(rule)
            names.update(path[size : size + 1])
            for length in range(len(path)):
                self.above.add(path[:length])

    def is_own(self, rule: Rule) -> bool:
        """Return whether slips of a rule are looked for, rather than trusted not to be there."""
        return self.project.is_own(rule.file)

    def is_read(self, rule: Rule) -> bool:
        """Return whether the value of a rule is worked out."""
        return self.is_own(rule) or rule.path[: len(_FIXTURES)] == _FIXTURES

    def rule_of(self, path: Sequence[Any]) -> Path | None:
        """Return the rule that a reference below ``data`` begins with."""
        found: Path = ()
        for part in path:
            if not isinstance(part, str):
                return None
            found = (*found, part)
            if found in self.rules:
                return found
        return None

    def data_shape(self, path: Sequence[Any]) -> tuple[Shape, int]:
        """Return the shape of data, and how many segments of the path lead to it.

        What is not there is reported as a read of missing data, so it may be anything here.
        """
        value: Any = self.data
        used = 0
        for part in path:
            if not _has(value, part):
                break
            value = value[part]
            used += 1
        whole = tuple(path[:used])
        # data.agenttool.custom[name]: rules and data lie below it
        if not whole or whole in self.above or whole[:2] == _ON_CALL:
            return ANY, len(path)
        missing = path[used:]
        if missing and isinstance(missing[0], str) and isinstance(value, Mapping):
            return ANY, len(path)
        name = ".".join(("data", *whole))
        return of_value(value, name), used

    def decision(self, path: Path) -> Shape | None:
        """Return the shape of the decision where that is what a path leads to."""
        if path != _DECISION or self.project.base is None:
            return None
        if self._computes_names():
            return decision_shape(None)
        names = rule_names(self.project.whole.modules)
        return decision_shape(names)

    def _computes_names(self) -> bool:
        """Return whether a rule puts the name of its finding together."""
        # "rule": concat(".", ["acme", input.tool.name])
        texts = map(_without_literals, self.project.own.modules.values())
        return any('"rule": ' in text for text in texts)


def _without_literals(text: str) -> str:
    return text.replace('"rule": "', "")


def _has(value: Any, part: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return isinstance(part, str) and part in value
