"""Runs a project's ``_test.rego`` files: on a real OPA, or on the embedded engine.

A test is a rule whose name starts with ``test_``; ``todo_test_`` is skipped. It passes when it is
``true``. A test over many cases (``test_x[case] if ...``) passes when each of its cases holds.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from agenttool_otel.authoring.opa_program import OpaRun, find_opa, opa_errors, unpacked
from agenttool_otel.authoring.probes import Prober
from agenttool_otel.authoring.project import Project, parse_tests
from agenttool_otel.errors import (
    ConfigurationError,
    PolicyError,
    PolicyEvaluationError,
    PolicyLoadError,
)
from agenttool_otel.names import EngineName
from agenttool_otel.policy.bundles.check import check_program
from agenttool_otel.policy.rego.builtins import EMBEDDED_BUILTINS
from agenttool_otel.policy.rego.native import UNDEFINED, loaded_engine, native_error
from agenttool_otel.policy.rego.syntax import Path, Program, Rule

ENGINES: Final = ("auto", "opa", EngineName.EMBEDDED.value)
"""What tests can run on; ``opa`` is a program, ``auto`` that program where there is one, else the
embedded engine.
"""
_FAILURES: Final = ("failed", "error")
_MAX_MESSAGE: Final = 300


@dataclass(slots=True)
class TestResult:
    """One test."""

    __test__ = False

    name: str  # full name of the rule, starting with ``data``
    file: str  # its file
    line: int  # its line
    outcome: str  # ``passed``, ``failed``, ``error`` or ``skipped``
    message: str = ""  # why it did not pass
    failed_line: int = 0  # line of the first expression that failed, or 0
    failed_text: str = ""  # that expression
    # the value of the left side of that comparison, as JSON; empty where it is not known
    found: str = ""
    cases: list[str] = field(default_factory=list)  # cases of a test over many that failed
    seconds: float = 0.0  # how long it took


class FileCoverage(NamedTuple):
    """Lines of one rule file that the tests evaluated."""

    file: str  # the file
    covered: int  # how many lines were
    missed: tuple[int, ...]  # the lines that were not

    @property
    def percent(self) -> float:
        """Covered lines, of a hundred."""
        return _percent([self])

    def to_json_object(self) -> dict[str, Any]:
        """Return the coverage as plain JSON data."""
        return {
            "file": self.file,
            "covered": self.covered,
            "missed": list(self.missed),
            "percent": round(self.percent, 2),
        }


@dataclass(slots=True)
class TestReport:
    """What a run of tests gave."""

    __test__ = False

    engine: str  # what they ran on
    results: list[TestResult]  # in the order of files and lines
    # of the project's own rule files; ``None`` where it could not be measured
    coverage: list[FileCoverage] | None = None
    uncovered_because: str = ""  # why not

    @property
    def ran(self) -> int:
        """How many tests ran."""
        return sum(result.outcome != "skipped" for result in self.results)

    @property
    def failures(self) -> list[TestResult]:
        """Those that did not pass."""
        return [result for result in self.results if result.outcome in _FAILURES]

    @property
    def percent(self) -> float | None:
        """Covered lines of all files together, of a hundred."""
        if self.coverage is None:
            return None
        return _percent(self.coverage)

    def to_json_object(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        percent = self.percent
        files = None
        if self.coverage is not None:
            files = [file.to_json_object() for file in self.coverage]
        return {
            "engine": self.engine,
            "tests": self.ran,
            "failed": len(self.failures),
            "skipped": len(self.results) - self.ran,
            "results": [asdict(result) for result in self.results],
            "coverage": None if percent is None else round(percent, 2),
            "coverage_missing_because": self.uncovered_because,
            "files": files,
        }


def _percent(files: list[FileCoverage]) -> float:
    covered = sum(file.covered for file in files)
    missed = sum(len(file.missed) for file in files)
    lines = covered + missed
    # a file of comments only
    if lines == 0:
        return 100.0
    return 100.0 * covered / lines


def run_tests(project: Project, *, engine: str = "auto", pattern: str = "") -> TestReport:
    """Run a project's tests.

    Args:
        project: The policy.
        engine: What they run on, one of ``ENGINES``.
        pattern: Run only the tests whose full name (``data.agenttool.rules.roles_test.test_x``)
            matches this regular expression somewhere, as ``opa test --run`` does. Coverage is not
            measured then.

    Raises:
        ConfigurationError: There is no such engine, or no OPA program where one is wanted, or the
            pattern is no regular expression.
        PolicyLoadError: The rules or the tests do not load.
    """
    if engine not in ENGINES:
        raise ConfigurationError(f"tests run on one of {', '.join(ENGINES)}")
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(f"{pattern!r} is no regular expression: {error}") from None
    program = parse_tests(project)
    opa = None
    if engine != EngineName.EMBEDDED:
        opa = find_opa()
    if engine == "opa" and opa is None:
        raise ConfigurationError(
            "no OPA program was found: set AGENTTOOL_OPA, or put opa into PATH"
        )
    builtins = EMBEDDED_BUILTINS
    if opa is not None:
        # every builtin is allowed: OPA itself refuses those that it lacks
        builtins = _called(program)
    check_program(program, builtins=builtins, entry_points=(), engine="the embedded engine")
    tests = [rule for rule in list_tests(project, program) if wanted.search(name_of_test(rule))]
    if opa is not None:
        report = _on_opa(project, tests, opa, pattern)
    else:
        report = _embedded(project, program, tests)
    if pattern:
        report.coverage = None
        report.uncovered_because = "only some of the tests ran"
    report.results.sort(key=lambda result: (result.file, result.line))
    _locate(project, program, report)
    return report


def _called(program: Program) -> frozenset[str]:
    """The names of all functions that a program calls."""
    names: set[str] = set()
    for rule in program.rules:
        names.update(call.name for call in rule.calls)
    return frozenset(names)


def list_tests(project: Project, program: Program) -> list[Rule]:
    """Return the first definition of each of a project's tests."""
    found: dict[tuple[str, ...], Rule] = {}
    packages = {module.file: module.package for module in program.modules}
    for rule in program.rules:
        if rule.file not in project.own.tests:
            continue
        package = packages[rule.file]
        name = rule.path[: len(package) + 1]
        if _is_test(name[-1]):
            found.setdefault(name, rule)
    return list(found.values())


def _is_test(part: str) -> bool:
    return part.startswith(("test_", "todo_test_"))


def _path(rule: Rule) -> Path:
    """The path of a test without its cases: ``test_x`` of ``test_x["weekend"]``."""
    for index, part in enumerate(rule.path):
        if _is_test(part):
            return rule.path[: index + 1]
    raise ValueError(f"{rule.name} is no test")


def name_of_test(rule: Rule) -> str:
    """Return the full name of a test, without its cases."""
    return ".".join(("data", *_path(rule)))


def _case(value: Any) -> str:
    """The text of a case: engines write a list as a key with spaces or without."""
    # regorus: ["deploy", "friday"]; OPA: ["deploy","friday"]
    if isinstance(value, str) and value[:1] in ("[", "{"):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _result(rule: Rule, value: Any, cases: Iterable[Any], seconds: float) -> TestResult:
    """Make a result of the value of a test.

    Args:
        rule: The test.
        value: ``True``; for a test over many cases, an object of those that hold.
        cases: All cases of a test over many, where they are known.
        seconds: How long it took.
    """
    result = TestResult(name_of_test(rule), rule.file, rule.line, "passed", seconds=seconds)
    if value is True:
        return result
    if not isinstance(value, dict):
        result.outcome = "failed"
        result.message = "it is not true"
        return result
    holds = {_case(key): held for key, held in value.items()}
    # a case that does not hold is not in the object at all
    for case in cases:
        holds.setdefault(_case(case), False)
    result.cases = [case for case, held in holds.items() if held is not True]
    if not holds:
        result.outcome = "failed"
        result.message = "it has no cases"
    elif result.cases:
        result.outcome = "failed"
        result.message = "some cases do not hold"
    return result


# --- the embedded engine --------------------------------------------------------------------------


def _embedded(project: Project, program: Program, tests: list[Rule]) -> TestReport:
    # every rule has to compile, also those that no test reaches
    Prober(program, project.whole.data_json, ())
    modules = [(module.file, module.text) for module in program.modules]
    engine = loaded_engine(modules, project.whole.data_json, what="the tests")
    engine.set_enable_coverage(True)

    def value_of(name: str) -> Any:
        try:
            return json.loads(engine.eval_rule_as_json(name))
        except BaseException as error:
            failure = native_error(error, PolicyEvaluationError)
            # the engine finds some errors of the whole program only when it evaluates
            if "unsafe" in str(failure) or "could not find function" in str(failure):
                raise PolicyLoadError(str(failure)) from None
            raise failure from None

    results = _run_each(project, program, tests, value_of)
    try:
        report = json.loads(engine.get_coverage_report_as_json())
    except BaseException as error:
        raise native_error(error, PolicyEvaluationError, "coverage: ") from None
    coverage = []
    for item in report["files"]:
        if item["path"] in project.own.modules:
            missed = tuple(item["not_covered"])
            coverage.append(FileCoverage(item["path"], len(item["covered"]), missed))
    coverage.sort(key=lambda item: item.file)
    return TestReport(EngineName.EMBEDDED.value, results, coverage)


def _run_each(
    project: Project, program: Program, tests: list[Rule], value_of: Callable[[str], Any]
) -> list[TestResult]:
    over_cases = [rule for rule in tests if _has_cases(rule)]
    prober = None
    if over_cases:
        prober = Prober(program, project.whole.data_json, over_cases)
    results = []
    for rule in tests:
        name = name_of_test(rule)
        if _path(rule)[-1].startswith("todo_"):
            results.append(TestResult(name, rule.file, rule.line, "skipped"))
            continue
        started = time.perf_counter()
        try:
            value = value_of(name)
        except PolicyLoadError:
            raise
        except PolicyError as error:
            results.append(TestResult(name, rule.file, rule.line, "error", str(error)))
            continue
        seconds = time.perf_counter() - started
        cases: Iterable[Any] = ()
        if prober is not None and _has_cases(rule):
            cases = _all_cases(prober, rule)
            # no case holds: the engine has no value for the rule at all
            if value == UNDEFINED:
                value = {}
        results.append(_result(rule, value, cases, seconds))
    return results


def _all_cases(prober: Prober, rule: Rule) -> list[Any]:
    for number, body in enumerate(prober.bodies):
        if body.rule is rule:
            return prober.cases(number) or []
    return []


def _has_cases(rule: Rule) -> bool:
    """Whether a test is one over many: ``test_x[case] if ...``."""
    if rule.path != _path(rule):
        return False
    head = next(iter(rule.node.values())).get("head", {})
    return "RefBrack" in head.get("Compr", {}).get("refr", {})


# --- an OPA program -------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A part of a file that OPA evaluated or did not: from one row and column to another."""

    start_row: int
    start_column: int
    end_row: int
    end_column: int


def _parts(ranges: Any) -> set[_Part]:
    parts = set()
    for item in ranges or ():
        start = item["start"]
        end = item["end"]
        parts.add(_Part(start["row"], start["col"], end["row"], end["col"]))
    return parts


def _rows(parts: Iterable[_Part]) -> set[int]:
    rows: set[int] = set()
    for part in parts:
        rows.update(range(part.start_row, part.end_row + 1))
    return rows


def _coverage(file: str, covered: set[_Part], missed: set[_Part]) -> FileCoverage:
    """Count lines; one of which a part was never evaluated is missed, as OPA counts."""
    missed_rows = _rows(missed - covered)
    covered_rows = _rows(covered) - missed_rows
    return FileCoverage(file, len(covered_rows), tuple(sorted(missed_rows)))


def _on_opa(project: Project, wanted: list[Rule], opa: str, pattern: str) -> TestReport:
    tests = {name_of_test(rule): rule for rule in wanted}
    options = ["--format=json"]
    if pattern:
        options.append(f"--run={pattern}")
    with unpacked(project.whole, {**project.support, **project.own.tests}) as folder:
        run = OpaRun(opa, "test", *options, ".", folder=folder)
        report = TestReport("opa", [_from_opa(entry, tests) for entry in _entries(run)])
        if pattern:
            return report
        if report.failures:
            report.uncovered_because = "OPA measures it when all tests pass"
            return report
        covered = OpaRun(opa, "test", "--coverage", "--format=json", ".", folder=folder).json()
    if not isinstance(covered, dict) or not isinstance(covered.get("files"), dict):
        report.uncovered_because = "OPA gave no coverage report"
        return report
    report.coverage = []
    for file, entry in sorted(covered["files"].items()):
        if file in project.own.modules:
            evaluated = _parts(entry.get("covered"))
            missed = _parts(entry.get("not_covered"))
            report.coverage.append(_coverage(file, evaluated, missed))
    return report


def _entries(run: OpaRun) -> list[dict[str, Any]]:
    """The results that OPA prints, one a test."""
    entries = run.json()
    if isinstance(entries, list):
        return entries
    # without any test OPA prints nothing, and succeeds
    if run.status == 0 and not run.output.strip():
        return []
    error = opa_errors(run)[0]
    if error.file:
        raise PolicyLoadError(f"{error.file}:{error.line}: {error.message}")
    raise PolicyLoadError(error.message)


def _from_opa(entry: dict[str, Any], tests: dict[str, Rule]) -> TestResult:
    name = f"{entry['package']}.{entry['name']}"
    rule = tests.get(name)
    if rule is not None:
        file = rule.file
        line = rule.line
    else:
        place = entry.get("location") or {}
        file = str(place.get("file", ""))
        line = int(place.get("row", 0))
    seconds = int(entry.get("duration", 0)) / 1e9
    result = TestResult(name, file, line, "passed", seconds=seconds)
    if entry.get("skip"):
        result.outcome = "skipped"
    elif entry.get("error"):
        result.outcome = "error"
        result.message = _error_message(entry["error"])
    elif entry.get("fail"):
        result.outcome = "failed"
        result.message = "it is not true"
        for case, part in (entry.get("sub_results") or {}).items():
            if part.get("fail"):
                result.cases.append(case)
        if result.cases:
            result.message = "some cases do not hold"
    return result


def _error_message(error: Any) -> str:
    # {"code": "eval_conflict_error", "message": "complete rules must not produce multiple outputs"}
    if isinstance(error, dict):
        error = error.get("message", error)
    return str(error)[:_MAX_MESSAGE]


# --- where a test failed --------------------------------------------------------------------------


def _locate(project: Project, program: Program, report: TestReport) -> None:
    """Put the expression that did not hold into each failed test, where the embedded engine can
    evaluate it.
    """
    failed = {result.name: result for result in report.failures}
    if not failed or not _called(program) <= EMBEDDED_BUILTINS:
        return
    rules = [rule for rule in list_tests(project, program) if name_of_test(rule) in failed]
    try:
        prober = Prober(program, project.whole.data_json, rules)
        readings = prober.readings(None)
    except PolicyError:
        return
    for reading in readings:
        result = failed[name_of_test(reading.body.rule)]
        # a test with several bodies: the first one that failed
        if reading.failed is not None and not result.failed_line:
            result.failed_line = reading.failed.line
            result.failed_text = reading.failed.shown
            result.found = prober.found_instead(reading)
