"""Runs a project's ``_test.rego`` files: on a real OPA, or on the embedded engine.

A test is a rule whose name starts with ``test_``; ``todo_test_`` is skipped. It passes when it is
``true``. A test over many cases (``test_x[case] if ...``) passes when each of its cases holds.
"""

from __future__ import annotations

import contextlib
import json
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
from agenttool_otel.policy.rego.syntax import Program, Rule

ENGINES: Final = ("auto", "opa", EngineName.EMBEDDED.value)
"""What tests can run on; ``opa`` is a program, ``auto`` that program where there is one, else the
embedded engine.
"""


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
    # what a comparison found on its left side instead, as JSON; empty where that can't be told
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
        return [result for result in self.results if result.outcome in ("failed", "error")]

    @property
    def percent(self) -> float | None:
        """Covered lines of all files together, of a hundred."""
        return None if self.coverage is None else _percent(self.coverage)

    def to_json_object(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        files = [
            {**item._asdict(), "percent": round(item.percent, 2), "missed": list(item.missed)}
            for item in self.coverage or ()
        ]
        return {
            "engine": self.engine,
            "tests": self.ran,
            "failed": len(self.failures),
            "skipped": len(self.results) - self.ran,
            "results": [asdict(result) for result in self.results],
            "coverage": None if self.percent is None else round(self.percent, 2),
            "coverage_missing_because": self.uncovered_because,
            "files": None if self.coverage is None else files,
        }


def _percent(files: list[FileCoverage]) -> float:
    covered, missed = sum(file.covered for file in files), sum(len(file.missed) for file in files)
    return 100.0 * covered / (covered + missed) if covered + missed else 100.0


def run_tests(project: Project, *, engine: str = "auto") -> TestReport:
    """Run a project's tests."""
    if engine not in ENGINES:
        raise ConfigurationError(f"tests run on one of {', '.join(ENGINES)}")
    program = parse_tests(project)
    opa = find_opa() if engine in ("auto", "opa") else None
    if engine == "opa" and opa is None:
        raise ConfigurationError(
            "no OPA program was found: set AGENTTOOL_OPA, or put opa into PATH"
        )
    builtins = EMBEDDED_BUILTINS if opa is None else _called(program)
    check_program(program, builtins=builtins, entry_points=(), engine="the embedded engine")
    report = _embedded(project, program) if opa is None else _on_opa(project, program, opa)
    report.results.sort(key=lambda result: (result.file, result.line))
    _locate(project, program, report)
    return report


def _called(program: Program) -> frozenset[str]:
    return frozenset(call.name for rule in program.rules for call in rule.calls)


def _tests(project: Project, program: Program) -> list[Rule]:
    """The first definition of each test."""
    found: dict[tuple[str, ...], Rule] = {}
    packages = {module.file: module.package for module in program.modules}
    for rule in program.rules:
        if rule.file not in project.own.tests:
            continue
        name = (
            rule.path[len(packages[rule.file])] if len(rule.path) > len(packages[rule.file]) else ""
        )
        if name.startswith(("test_", "todo_test_")):
            found.setdefault((*packages[rule.file], name), rule)
    return list(found.values())


def _name(rule: Rule) -> tuple[str, ...]:
    index = next(i for i, part in enumerate(rule.path) if part.startswith(("test_", "todo_test_")))
    return rule.path[: index + 1]


def _case(value: Any) -> str:
    """Return the text of a case: engines write a list or object as a key with spaces or without."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    return value if isinstance(value, str) else json.dumps(value)


def _judged(rule: Rule, value: Any, wanted: Iterable[Any] | None, seconds: float) -> TestResult:
    """Make a result of a test's value, and of the cases that it should have."""
    name = ".".join(("data", *_name(rule)))
    result = TestResult(name, rule.file, rule.line, "passed", seconds=seconds)
    if value is True:
        return result
    result.outcome = "failed"
    if isinstance(value, dict):
        cases = {_case(key): held for key, held in value.items()}
        for case in wanted if wanted is not None else ():
            cases.setdefault(_case(case), False)
        result.cases = [case for case, held in cases.items() if held is not True]
        if cases and not result.cases:
            result.outcome = "passed"
        else:
            result.message = "some cases do not hold" if cases else "it has no cases"
    else:
        result.message = "it is not true"
    return result


# --- the embedded engine --------------------------------------------------------------------------


def _embedded(project: Project, program: Program) -> TestReport:
    # every rule compiles, those too that no test reaches
    Prober(program, project.whole.data_json, ())
    modules = ((module.file, module.text) for module in program.modules)
    engine = loaded_engine(modules, project.whole.data_json, what="the tests")
    engine.set_enable_coverage(True)

    def value_of(path: tuple[str, ...]) -> Any:
        try:
            return json.loads(engine.eval_rule_as_json(".".join(("data", *path))))
        except BaseException as error:
            failure = native_error(error, PolicyEvaluationError)
            if any(word in str(failure) for word in ("unsafe", "could not find function")):
                raise PolicyLoadError(str(failure)) from None
            raise failure from None

    results = _run_each(project, program, value_of)
    try:
        report = json.loads(engine.get_coverage_report_as_json())
    except BaseException as error:
        raise native_error(error, PolicyEvaluationError, "coverage: ") from None
    coverage = [
        FileCoverage(item["path"], len(item["covered"]), tuple(item["not_covered"]))
        for item in report["files"]
        if item["path"] in project.own.modules
    ]
    return TestReport(
        EngineName.EMBEDDED.value, results, sorted(coverage, key=lambda item: item.file)
    )


def _run_each(
    project: Project, program: Program, value_of: Callable[[tuple[str, ...]], Any]
) -> list[TestResult]:
    tests = _tests(project, program)
    over_cases = [rule for rule in tests if len(rule.path) == len(_name(rule)) and _brackets(rule)]
    prober = Prober(program, project.whole.data_json, over_cases) if over_cases else None
    results = []
    for rule in tests:
        if _name(rule)[-1].startswith("todo_"):
            results.append(
                TestResult(".".join(("data", *_name(rule))), rule.file, rule.line, "skipped")
            )
            continue
        started = time.perf_counter()
        try:
            value = value_of(_name(rule))
        except PolicyLoadError:
            raise
        except PolicyError as error:
            name = ".".join(("data", *_name(rule)))
            results.append(TestResult(name, rule.file, rule.line, "error", str(error)))
            continue
        seconds = time.perf_counter() - started
        wanted = None
        if prober is not None and rule in over_cases:
            number = next(i for i, body in enumerate(prober.bodies) if body.rule is rule)
            wanted = prober.cases(number)
            if value == UNDEFINED:
                value = {}
        results.append(_judged(rule, value, wanted, seconds))
    return results


def _brackets(rule: Rule) -> bool:
    head = next(iter(rule.node.values())).get("head", {})
    return "RefBrack" in head.get("Compr", {}).get("refr", {})


# --- an OPA program -------------------------------------------------------------------------------

_Part = tuple[int, int, int, int]


def _parts(ranges: Any) -> set[_Part]:
    return {
        (part["start"]["row"], part["start"]["col"], part["end"]["row"], part["end"]["col"])
        for part in ranges or ()
    }


def _coverage(file: str, covered: set[_Part], missed: set[_Part]) -> FileCoverage:
    """Count lines; one of which a part was never evaluated is missed, as OPA has it."""
    rows = {row for part in missed - covered for row in range(part[0], part[2] + 1)}
    lines = {row for part in covered for row in range(part[0], part[2] + 1)}
    return FileCoverage(file, len(lines - rows), tuple(sorted(rows)))


def _on_opa(project: Project, program: Program, opa: str) -> TestReport:
    tests = {".".join(_name(rule)): rule for rule in _tests(project, program)}
    with unpacked(project.whole, {**project.support, **project.own.tests}) as folder:
        run = OpaRun(opa, "test", "--format=json", ".", folder=folder)
        found = run.json()
        if not isinstance(found, list):
            if run.status == 0 and not run.output.strip():
                found = []
            else:
                file, line, message = opa_errors(run)[0]
                raise PolicyLoadError(f"{file}:{line}: {message}" if file else message)
        results = [_from_opa(entry, tests) for entry in found]
        report = TestReport("opa", results)
        if report.failures:
            report.uncovered_because = "OPA measures it when all tests pass"
            return report
        covered = OpaRun(opa, "test", "--coverage", "--format=json", ".", folder=folder).json()
    if not isinstance(covered, dict) or not isinstance(covered.get("files"), dict):
        report.uncovered_because = "OPA gave no coverage report"
        return report
    report.coverage = [
        _coverage(file, _parts(entry.get("covered")), _parts(entry.get("not_covered")))
        for file, entry in sorted(covered["files"].items())
        if file in project.own.modules
    ]
    return report


def _from_opa(entry: dict[str, Any], tests: dict[str, Rule]) -> TestResult:
    place = entry.get("location") or {}
    name = f"{entry['package']}.{entry['name']}"
    rule = tests.get(name.removeprefix("data."))
    result = TestResult(
        name,
        rule.file if rule else str(place.get("file", "")),
        rule.line if rule else int(place.get("row", 0)),
        "passed",
        seconds=int(entry.get("duration", 0)) / 1e9,
    )
    if entry.get("skip"):
        result.outcome = "skipped"
    elif entry.get("error"):
        result.outcome = "error"
        error = entry["error"]
        result.message = str(error.get("message", error) if isinstance(error, dict) else error)[
            :300
        ]
    elif entry.get("fail"):
        result.outcome = "failed"
        cases = entry.get("sub_results") or {}
        result.cases = [case for case, part in cases.items() if part.get("fail")]
        result.message = "some cases do not hold" if result.cases else "it is not true"
    return result


# --- where a test failed --------------------------------------------------------------------------


def _locate(project: Project, program: Program, report: TestReport) -> None:
    """Say which expression of a failed test did not hold, as far as the embedded engine can
    tell.
    """
    failed = {result.name: result for result in report.failures}
    if not failed or not _called(program) <= EMBEDDED_BUILTINS:
        return
    rules = [
        rule for rule in _tests(project, program) if ".".join(("data", *_name(rule))) in failed
    ]
    try:
        prober = Prober(program, project.whole.data_json, rules)
        readings = prober.readings(None)
    except PolicyError:
        return
    for reading in readings:
        result = failed[".".join(("data", *_name(reading.body.rule)))]
        if reading.failed is not None and not result.failed_line:
            result.failed_line, result.failed_text = reading.failed.line, reading.failed.shown
            result.found = prober.found_instead(reading)
