"""What the names of a policy stand for: the input, data files, rules and functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
        self.modules: dict[str, Module] = {module.file: module for module in program.modules}
        self.rules: dict[Path, list[Rule]] = {}
        self.above: set[Path] = set()
        for rule in program.rules:
            self.rules.setdefault(rule.path, []).append(rule)
            for size in range(len(rule.path)):
                self.above.add(rule.path[:size])
        for module in program.modules:
            self.above.add(module.package)
        self.names: dict[Path, set[str]] = {}
        for module in program.modules:
            known = self.names.setdefault(module.package, set())
            for rule in module.rules:
                if len(rule.path) > len(module.package):
                    known.add(rule.path[len(module.package)])

    def is_own(self, rule: Rule) -> bool:
        """Return whether slips of a rule are looked for, rather than trusted not to be there."""
        return self.project.is_own(rule.file)

    def is_read(self, rule: Rule) -> bool:
        """Return whether the value of a rule is worked out."""
        return self.is_own(rule) or rule.path[: len(_FIXTURES)] == _FIXTURES

    def rule_of(self, path: Sequence[Any]) -> Path | None:
        """Return the rule that a reference below ``data`` begins with."""
        for size in range(1, len(path) + 1):
            part = path[size - 1]
            if not isinstance(part, str):
                return None
            if tuple(path[:size]) in self.rules:
                return tuple(path[:size])
        return None

    def data_shape(self, path: Sequence[Any]) -> tuple[Shape, int]:
        """Return the shape of data, and how many segments of the path lead to it.

        What is not there is reported as a read of missing data, so it may be anything here.
        """
        value: Any = self.data
        used = 0
        for part in path:
            if not isinstance(part, str) or not isinstance(value, Mapping) or part not in value:
                break
            value = value[part]
            used += 1
        whole = tuple(path[:used])
        # data.agenttool.custom[name]: rules and data lie below it
        if used == 0 or whole in self.above or whole[:2] == _ON_CALL:
            return ANY, len(path)
        if used < len(path) and isinstance(path[used], str) and isinstance(value, Mapping):
            return ANY, len(path)
        return of_value(value, ".".join(("data", *whole))), used

    def decision(self, path: Path) -> Shape | None:
        """Return the shape of the decision where that is what a path leads to."""
        if path != _DECISION or self.project.base is None:
            return None
        names = rule_names(self.project.whole.modules)
        return decision_shape(None if self._computes_names() else names)

    def _computes_names(self) -> bool:
        """Return whether a rule puts the name of its finding together."""
        for file, text in self.project.own.modules.items():
            if self.project.is_own(file) and '"rule": ' in _without_literals(text):
                return True
        return False


def _without_literals(text: str) -> str:
    return text.replace('"rule": "', "")


def own_rules(world: World, files: Iterable[str]) -> list[Rule]:
    """Return the rules of some files."""
    wanted = set(files)
    return [rule for rule in world.program.rules if rule.file in wanted]
