"""Changes a policy's conditions and numbers one by one, and runs its tests on each change.

A change that no test notices is a condition, or a number, that the tests leave open: somebody may edit it
and every test stays green. Changed are the project's own rules and ``data.json`` files, never the stock
bundle. Each change is made in the text of a file, at a place that the engine's own syntax tree names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from agenttool_otel.authoring.bodies import first_query, without_places
from agenttool_otel.authoring.project import Project
from agenttool_otel.authoring.testing import list_tests, name_of_test, run_tests
from agenttool_otel.errors import ConfigurationError, PolicyError, PolicyLoadError
from agenttool_otel.names import EngineName
from agenttool_otel.policy.bundles.bundle import bundle_from_files
from agenttool_otel.policy.bundles.bundle_files import read_archive, read_directory
from agenttool_otel.policy.bundles.overlay import overlay
from agenttool_otel.policy.rego.native import Owned, loaded_engine, native_error
from agenttool_otel.policy.rego.syntax import Module, Rule
from agenttool_otel.policy.rego.tree import Node

_BINDING: Final = frozenset({"SomeVars", "SomeIn"})
"""Statements that give variables their values: without them, the others mean nothing."""

_OPENING: Final = (b'"', b"`", b"(")
_ENDS: Final = re.compile(rb"[\n;}\])]|\s+else\b|\Z")
_COMMENT: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"|`[^`]*`|(#[^\n]*)')
_MAX_ENDS: Final = 200
_JSON_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)')
_MAX_SHOWN: Final = 120
_UNSAFE: Final = ("unsafe", "could not find function")


class Change(NamedTuple):
    """One edit of one file."""

    file: str  # path in the project
    line: int  # where the edit is
    original: str  # the condition or number, on one line
    what: str  # what was done to it: ``left out``, ``negated``, ``501 instead of 500``
    text: str  # the whole file, edited


@dataclass(slots=True)
class Mutant:
    """One edit and the tests that notice it."""

    change: Change  # the edit
    noticed_by: list[str] = field(default_factory=list)  # full names of tests that fail with it

    def to_json_object(self) -> dict[str, Any]:
        """Return the mutant as plain JSON data."""
        return {
            "file": self.change.file,
            "line": self.change.line,
            "original": self.change.original,
            "change": self.change.what,
            "noticed_by": self.noticed_by,
        }


@dataclass(slots=True)
class MutationReport:
    """What became of every change."""

    tests: int  # how many tests ran on each change
    failing: list[str] = field(default_factory=list)  # tests that fail without any change
    mutants: list[Mutant] = field(default_factory=list)  # in the order of files and lines
    # changes that no engine loads, such as a condition without which a variable has no value
    invalid: list[Change] = field(default_factory=list)
    # ``file:line`` of conditions whose text can't be cut out safely
    unreadable: list[str] = field(default_factory=list)

    @property
    def survivors(self) -> list[Mutant]:
        """The changes that no test notices."""
        return [mutant for mutant in self.mutants if not mutant.noticed_by]

    def to_json_object(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        return {
            "tests": self.tests,
            "failing": self.failing,
            "changes": len(self.mutants),
            "survived": len(self.survivors),
            "mutants": [mutant.to_json_object() for mutant in self.mutants],
            "invalid": len(self.invalid),
            "unreadable": self.unreadable,
        }


def mutate(project: Project, *, pattern: str = "", rules: str = "") -> MutationReport:
    """Change each condition and each number of a project, and run its tests on each change.

    Args:
        project: The policy.
        pattern: Run only tests whose full name matches this regular expression, as ``run_tests`` does.
        rules: Change only rules whose full name (``data.agenttool.custom.deny``) matches this regular
            expression; data files are then left alone.

    Raises:
        ConfigurationError: One of the patterns is no regular expression.
        PolicyLoadError: The rules or the tests do not load.
        PolicyUnsupported: They use a builtin that the embedded engine lacks; changes run on it alone.
    """
    wanted = _compiled(rules)
    before = run_tests(project, engine=EngineName.EMBEDDED.value, pattern=pattern)
    failing = [result.name for result in before.failures]
    report = MutationReport(before.ran, failing)
    if failing or not before.ran:
        return report
    passed = {result.name for result in before.results if result.outcome == "passed"}
    names = [name_of_test(rule) for rule in list_tests(project, project.test_program)]
    bench = _Bench(project, [name for name in names if name in passed])
    for module in project.program.modules:
        if module.file in project.own.modules:
            chosen = [rule for rule in module.rules if wanted.search(rule.name)]
            changes = _rego_changes(module, chosen, report.unreadable)
            bench.try_rules(module.file, changes, report)
    if not rules:
        bench.try_data(report)
    report.mutants.sort(key=lambda mutant: (mutant.change.file, mutant.change.line))
    return report


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(f"{pattern!r} is no regular expression: {error}") from None


# --- changes of rules -----------------------------------------------------------------------------


def _rego_changes(module: Module, rules: list[Rule], unreadable: list[str]) -> list[Change]:
    source = module.text.encode("utf-8")
    changes: list[Change] = []
    for rule in rules:
        for node in rule.nodes:
            for statement, limit in _conditions(node, len(source)):
                place = _extent(source, statement, limit)
                if place is None:
                    unreadable.append(f"{module.file}:{statement['span']['line']}")
                    continue
                changes += _condition_changes(module.file, source, statement, *place)
            if "Number" in node:
                span = node["Number"]["span"]
                changes += _number_changes(
                    module.file, source, span["line"], span["start"], span["end"]
                )
    return changes


def _conditions(node: Node, end: int) -> Iterator[tuple[Node, int]]:
    """Yield the conditions of a query with the byte offset before which each one ends."""
    statements = node.get("stmts")
    if not isinstance(statements, list):
        return
    ordered = sorted(statements, key=lambda statement: statement["span"]["start"])
    limits = [statement["span"]["start"] for statement in ordered[1:]]
    for statement, limit in zip(ordered, [*limits, end], strict=True):
        if _is_condition(statement["literal"]):
            yield statement, limit


def _is_condition(literal: Node) -> bool:
    if literal.keys() & _BINDING:
        return False
    expression = literal.get("Expr")
    # day := time.weekday(...) is no condition
    return expression is None or "AssignExpr" not in expression["expr"]


def _extent(source: bytes, statement: Node, limit: int) -> tuple[int, int] | None:
    """Return where a statement starts and ends: the tree has no reliable place of either.

    A piece of the source is taken that gives, parsed alone, the very tree of the statement.
    """
    wanted = [without_places(statement)]
    start = statement["span"]["start"]
    while True:
        end = _end_from(source, start, limit, wanted)
        if end is not None:
            return start, end
        # ("a" in x): the tree's first place is that of the a
        if source[start - 1 : start] not in _OPENING:
            return None
        start -= 1


def _end_from(source: bytes, start: int, limit: int, wanted: list[Any]) -> int | None:
    for number, match in enumerate(_ENDS.finditer(source, start)):
        # a bracket that belongs to the statement is a part of it: f(x)
        for end in (match.start(), match.end()):
            piece = source[start:end].decode("utf-8", "replace").strip()
            query = first_query(piece) if piece else None
            if query is not None and without_places(query["stmts"]) == wanted:
                return start + len(_without_comment(source[start:end]).rstrip())
        if match.start() > limit or number > _MAX_ENDS:
            return None
    return None


def _without_comment(text: bytes) -> bytes:
    """Cut off a comment in which a text ends: ``a == b # as [1`` of ``a == b # as [1] has it``."""
    for match in _COMMENT.finditer(text):
        if match[1] and match.end() == len(text):
            return text[: match.start()]
    return text


def _condition_changes(
    file: str, source: bytes, statement: Node, start: int, end: int
) -> Iterator[Change]:
    text = source[start:end]
    line = source.count(b"\n", 0, start) + 1
    original = _shown(text)
    # "true" and the line ends keep every other line where it was
    without = b"true" + b"\n" * text.count(b"\n")
    yield Change(file, line, original, "left out", _edited(source, start, end, without))
    literal = statement["literal"]
    # Rego has no "not every"
    if "Every" in literal:
        return
    opposite = b"not " + text
    if "NotExpr" in literal:
        opposite = text.removeprefix(b"not").lstrip()
    yield Change(file, line, original, "negated", _edited(source, start, end, opposite))


def _number_changes(file: str, source: bytes, line: int, start: int, end: int) -> Iterator[Change]:
    text = source[start:end].decode("utf-8", "replace")
    try:
        number = Decimal(text)
    except InvalidOperation:
        return
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int):
        return
    # 500 is 501 and 499, 0.25 is 0.26 and 0.24: the values at the edge of a comparison
    step = Decimal(1).scaleb(min(exponent, 0))
    for changed in (number + step, number - step):
        other = f"{changed:f}"
        what = f"{other} instead of {text}"
        yield Change(file, line, text, what, _edited(source, start, end, other.encode()))


def _edited(source: bytes, start: int, end: int, text: bytes) -> str:
    return (source[:start] + text + source[end:]).decode("utf-8")


def _shown(text: bytes) -> str:
    line = " ".join(text.decode("utf-8", "replace").split())
    return line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}..."


# --- changes of data ------------------------------------------------------------------------------


def _files_of(root: Path | None) -> dict[str, bytes]:
    if root is None:
        return {}
    if root.is_dir():
        return read_directory(root)
    return read_archive(root.read_bytes(), origin=root.name)


def _data_changes(file: str, content: bytes) -> Iterator[Change]:
    for match in _JSON_TOKEN.finditer(content):
        # "500" in quotes is a text
        if match[1] is None:
            continue
        line = content.count(b"\n", 0, match.start()) + 1
        yield from _number_changes(file, content, line, match.start(), match.end())


# --- tests of a change ----------------------------------------------------------------------------


class _Bench:
    """The tests of a project, run on one change after the other."""

    def __init__(self, project: Project, tests: list[str]) -> None:
        self._project = project
        self._tests = tests
        self._modules = [(module.file, module.text) for module in project.test_program.modules]
        engine = loaded_engine(self._modules, project.whole.data_json, what="the tests")
        self._expected = {name: _value(engine, name) for name in tests}

    def try_rules(self, file: str, changes: list[Change], report: MutationReport) -> None:
        """Run the tests on each change of a rule file."""
        if not changes:
            return
        others = [module for module in self._modules if module[0] != file]
        base = loaded_engine(others, self._project.whole.data_json, what="the tests")
        for change in changes:
            self._try(base, change, report)

    def try_data(self, report: MutationReport) -> None:
        """Run the tests on each change of a data file."""
        files = _files_of(self._project.root)
        for file, content in files.items():
            if PurePosixPath(file).name != "data.json":
                continue
            for change in _data_changes(file, content):
                changed = {**files, file: change.text.encode("utf-8")}
                try:
                    base = loaded_engine(self._modules, self._data(changed), what="the tests")
                except PolicyError:
                    report.invalid.append(change)
                    continue
                report.mutants.append(Mutant(change, self._noticing(base)))

    def _data(self, files: dict[str, bytes]) -> str:
        own = bundle_from_files(files, origin=self._project.own.origin)
        if self._project.base is None:
            return own.data_json
        return overlay(self._project.base, extension=own).data_json

    def _try(self, base: Any, change: Change, report: MutationReport) -> None:
        engine = Owned(lambda: base.clone())
        try:
            engine.add_policy(change.file, change.text)
            noticed = self._noticing(engine)
        except PolicyLoadError:
            report.invalid.append(change)
        except BaseException as error:
            # not a failure of a test, but of the parser: the change makes no rule
            native_error(error, PolicyLoadError)
            report.invalid.append(change)
        else:
            report.mutants.append(Mutant(change, noticed))

    def _noticing(self, engine: Any) -> list[str]:
        noticed = []
        for name in self._tests:
            try:
                holds = _still_holds(_value(engine, name), self._expected[name])
            except PolicyLoadError:
                raise
            except PolicyError:
                holds = False
            if not holds:
                noticed.append(name)
        return noticed


def _value(engine: Any, name: str) -> Any:
    try:
        return json.loads(engine.eval_rule_as_json(name))
    except BaseException as error:
        failure = native_error(error, PolicyError)
        # a variable without a value is found only when the program is evaluated
        if any(word in str(failure) for word in _UNSAFE):
            raise PolicyLoadError(str(failure)) from None
        raise failure from None


def _still_holds(value: Any, expected: Any) -> bool:
    """Whether a test that passed before still passes: a test over many needs each of its cases."""
    if not isinstance(expected, dict):
        return bool(value is True)
    if not isinstance(value, dict):
        return False
    return all(value.get(case) is True for case in expected)
