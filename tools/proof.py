"""Show which requirements of the standard a test really holds: break each, and run its tests.

``python tools/proof.py`` breaks the package once for each row (``tools/requirements.py``), runs the
tests that state to cover it, and writes ``tests/conformance/proof.json``. A row is *shown* if its
tests pass on the package as it is and fail on the broken one, *mentioned* if they pass on both, and
*not met* if it says why. ``--sample 40 --seed 7`` tries a few rows and writes nothing; ``--rows A B``
those rows.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from enum import StrEnum
from itertools import groupby
from typing import Final

import pytest
from mutants import Mutant, RecordMutant
from requirements import ROOT, Requirement, rows

RESULTS: Final = ROOT / "tests" / "conformance" / "proof.json"
LIMIT_S: Final = 300
_NOT_INSTALLED: Final = 70
"""Exit code where a mutant can't be put in force; none of pytest's."""
_PLUGINS: Final = ("cacheprovider", "xdist", "randomly", "langsmith_plugin")
_OPTIONS: Final = [
    *("-q", "-x", "--assert=plain"),
    *(option for plugin in _PLUGINS for option in ("-p", f"no:{plugin}")),
]
_WARM: Final = (
    "pydantic",
    "hypothesis",
    "jsonschema_rs",
    "langchain_core.tools",
    "langgraph.graph",
    "opentelemetry.sdk.metrics.export",
    "opentelemetry.sdk.trace.export",
    "sqlalchemy",
    "sqlglot",
    "tree_sitter_bash",
)
"""Imported before the processes fork, as the mutants leave them alone; absent ones are skipped."""
_UNCHECKED: Final = ("-o", "agenttool_known_violations=:")
"""Each violation is known, as each has a colon: the look at the records of all tests sees that a
field is gone, whatever a test is about.
"""
_FORK: Final = multiprocessing.get_context("fork")


class Finding(StrEnum):
    """What breaking a row has shown."""

    SHOWN = "shown"
    """The tests pass on the package and fail on the mutant."""

    MENTIONED = "mentioned"
    """The tests pass on both: none of them looks at what the mutant breaks."""

    UNCOVERED = "uncovered"
    """No test states to cover the row."""

    FAILING = "failing"
    """The tests fail, or can't be collected, on the package as it is."""

    UNMADE = "unmade"
    """The mutant can't be made: its file changed, or it breaks the import."""

    NOT_MET = "not met"
    """The row says why the package doesn't do it."""


class _Coverage:
    """A pytest plugin that notes which tests cover which rows."""

    def __init__(self) -> None:
        self.tests: dict[str, list[str]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("covers"):
                for row in mark.args:
                    self.tests.setdefault(row, []).append(item.nodeid)


def covering_tests(paths: Sequence[str] = ("tests",)) -> dict[str, list[str]]:
    """Return by row the ids of the tests that state to cover it.

    Args:
        paths: files or folders to collect.

    Raises:
        RuntimeError: they can't be collected.
    """
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_collect, args=(list(paths), sender))
    process.start()
    sender.close()
    try:
        found: dict[str, list[str]] = receiver.recv()
    except EOFError as error:
        raise RuntimeError("the tests can't be collected") from error
    process.join()
    return found


def _collect(paths: list[str], sender: multiprocessing.connection.Connection) -> None:
    _silence()
    coverage = _Coverage()
    code = pytest.main([*_OPTIONS, "--collect-only", *paths], plugins=[coverage])
    if code == pytest.ExitCode.OK:
        sender.send(coverage.tests)
    sender.close()


class _Passed:
    """A pytest plugin that notes which tests pass."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.add(report.nodeid)


def passing_tests(tests: Set[str], *, workers: int) -> set[str]:
    """Return those of some tests that pass on the package as it is.

    Args:
        tests: their ids.
        workers: how many processes run at once, each some files.
    """
    parts: list[list[str]] = [[] for _ in range(workers)]
    for _, of_a_file in groupby(sorted(tests), key=lambda test: test.partition("::")[0]):
        min(parts, key=len).extend(of_a_file)
    with ThreadPoolExecutor(workers) as pool:
        return set().union(*pool.map(_passing, parts))


def _passing(tests: list[str]) -> set[str]:
    if not tests:
        return set()
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_note_passing, args=(tests, sender))
    process.start()
    sender.close()
    try:
        found: set[str] = receiver.recv()
    except EOFError:
        # one of them ended the process
        return {test for test in tests if run([test], None) == pytest.ExitCode.OK}
    process.join()
    return found


def _note_passing(tests: list[str], sender: multiprocessing.connection.Connection) -> None:
    _silence()
    noted = _Passed()
    pytest.main([option for option in _OPTIONS if option != "-x"] + tests, plugins=[noted])
    sender.send(noted.passed - noted.failed)
    # threads of a test may never end
    os._exit(0)


def run(tests: Iterable[str], mutant: Mutant | None) -> int:
    """Run tests in a process of their own and return pytest's exit code.

    Args:
        tests: their ids.
        mutant: what to break before; ``None`` for the package as it is.

    Returns:
        The code; -1 where the time limit ran out.
    """
    process = _FORK.Process(target=_run, args=(list(tests), mutant))
    process.start()
    process.join(LIMIT_S)
    if process.exitcode is None:
        process.kill()
        process.join()
        return -1
    return process.exitcode


def _run(tests: list[str], mutant: Mutant | None) -> None:
    _silence()
    try:
        if mutant is not None:
            mutant.install()
    except ValueError:
        # a process that ends by an exception has the exit code of a test that fails
        os._exit(_NOT_INSTALLED)
    unchecked = _UNCHECKED if isinstance(mutant, RecordMutant) else ()
    code = int(pytest.main([*_OPTIONS, *unchecked, *tests]))
    # threads of a broken package may never end
    os._exit(code)


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


@contextmanager
def _silenced() -> Iterator[None]:
    out, err = os.dup(1), os.dup(2)
    _silence()
    try:
        yield
    finally:
        os.dup2(out, 1)
        os.dup2(err, 2)


def _warm_up(files: Iterable[str]) -> None:
    """Import the package and some tests, and make a call: all that record mutants leave alone."""
    from agenttool_otel import TelemetrySettings
    from agenttool_otel.govern.governor import Governor
    from agenttool_otel.telemetry.sinks import CallbackSink
    from agenttool_otel.testing import StaticEngine

    pytest.main([*_OPTIONS, "--collect-only", *files])
    sink = CallbackSink(lambda line: None)
    governor = Governor(
        policy=StaticEngine("allow"),
        approvals="sqlite://",
        telemetry=TelemetrySettings(sinks=(sink,)),
    )
    governor.govern(lambda text: text, name="act").tool.invoke(text="a")
    governor.close()
    sink.close()


def prove(row: Requirement, tests: Sequence[str]) -> Finding:
    """Break one row and return what its tests make of it.

    Args:
        row: the requirement.
        tests: ids of the tests that cover it; they pass on the package as it is.
    """
    if row.mutant is None:
        return Finding.NOT_MET
    if row.mutant.problem():
        return Finding.UNMADE
    if not tests:
        return Finding.UNCOVERED
    code = run(tests, row.mutant)
    if code == pytest.ExitCode.OK:
        return Finding.MENTIONED
    # 2 and more: the broken package can't be imported, so nothing was shown
    return Finding.SHOWN if code in (pytest.ExitCode.TESTS_FAILED, -1) else Finding.UNMADE


def prove_all(
    chosen: Sequence[Requirement], tests: Mapping[str, Sequence[str]], *, workers: int
) -> dict[str, Finding]:
    """Break each row, a few at once, and return the findings by row.

    Args:
        chosen: the rows.
        tests: ids of tests by row.
        workers: how many processes run at once.
    """
    named = {test for row in chosen for test in tests.get(row.id, ())}
    healthy = passing_tests(named, workers=workers)
    for test in sorted(named - healthy):
        print(f"fails on the package as it is: {test}", flush=True)
    lines = [row for row in chosen if not isinstance(row.mutant, RecordMutant)]
    records = [row for row in chosen if isinstance(row.mutant, RecordMutant)]
    findings = _prove_each(lines, tests, healthy, workers)
    if records:
        findings |= _prove_warm(records, tests, healthy, workers)
    return {row.id: findings[row.id] for row in chosen}


def _prove_each(
    chosen: Sequence[Requirement],
    tests: Mapping[str, Sequence[str]],
    healthy: Set[str],
    workers: int,
) -> dict[str, Finding]:
    findings: dict[str, Finding] = {}

    def prove_row(row: Requirement) -> None:
        named = tests.get(row.id, ())
        passing = [test for test in named if test in healthy]
        if named and not passing:
            findings[row.id] = Finding.FAILING
        else:
            findings[row.id] = prove(row, passing)
        print(f"{findings[row.id]:10} {row.id}", flush=True)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(prove_row, chosen))
    return findings


def _prove_warm(
    chosen: Sequence[Requirement],
    tests: Mapping[str, Sequence[str]],
    healthy: Set[str],
    workers: int,
) -> dict[str, Finding]:
    """Do the same for record mutants, which change a package that is imported already: its import
    would take longer than the tests.
    """
    files = sorted({test.partition("::")[0] for row in chosen for test in tests.get(row.id, ())})
    receiver, sender = _FORK.Pipe(duplex=False)

    def work() -> None:
        with _silenced():
            _warm_up(files)
        sender.send(_prove_each(chosen, tests, healthy, workers))

    process = _FORK.Process(target=work)
    process.start()
    sender.close()
    findings: dict[str, Finding] = receiver.recv()
    process.join()
    return findings


def summary(findings: Mapping[str, Finding]) -> str:
    """Return the numbers of rows by finding, in words.

    Args:
        findings: by row.
    """
    counted = Counter(findings.values())
    numbers = [f"{counted[finding]} {finding}" for finding in Finding if counted[finding]]
    return f"{len(findings)} requirements: " + ", ".join(numbers)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="try so many rows, drawn by the seed")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--rows", nargs="+", help="try these rows")
    parser.add_argument("--paths", nargs="+", default=["tests"], help="where the tests are")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return parser.parse_args()


def _choose(options: argparse.Namespace) -> list[Requirement]:
    found = rows()
    if options.rows:
        return [row for row in found if row.id in options.rows]
    if options.sample:
        print(f"--seed {options.seed}")
        return random.Random(options.seed).sample(found, options.sample)
    return found


def _worse_than_recorded(findings: Mapping[str, Finding]) -> list[str]:
    recorded = json.loads(RESULTS.read_text("utf-8"))
    worse = []
    for row, finding in findings.items():
        if recorded[row]["finding"] == Finding.SHOWN and finding != Finding.SHOWN:
            worse.append(row)
    return worse


def main() -> int:
    """Break the chosen rows, print what was found, and return 1 if a row is worse than recorded."""
    options = _arguments()
    for name in _WARM:
        with suppress(ImportError):
            importlib.import_module(name)
    chosen = _choose(options)
    tests = covering_tests(options.paths)
    unknown = set(tests) - {row.id for row in rows()}
    findings = prove_all(chosen, tests, workers=options.workers)
    print(summary(findings))
    for row in sorted(unknown):
        print(f"a test covers {row}, which is no requirement")
    if options.rows:
        return 0
    if options.sample:
        worse = _worse_than_recorded(findings)
        if worse:
            # a test that waits for a time may not see its mutant on a busy machine
            again = [row for row in chosen if row.id in worse]
            worse = _worse_than_recorded(prove_all(again, tests, workers=1))
        print("no longer shown:", *worse or ["none"])
        return bool(worse or unknown)
    recorded = {
        row: {"finding": finding, "tests": sorted(tests.get(row, ()))}
        for row, finding in findings.items()
    }
    RESULTS.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    return bool(unknown)


if __name__ == "__main__":
    sys.exit(main())
