"""``agenttool policy mutate``: which conditions and numbers the tests leave open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from agenttool_otel.approvals.display import visible
from agenttool_otel.authoring.mutating import Change, MutationReport
from agenttool_otel.authoring.mutating import mutate as run_mutants
from agenttool_otel.cli.common import AsJson, print_json
from agenttool_otel.cli.policy.common import (
    EXIT_CODES,
    Folder,
    Standalone,
    console,
    fail,
    failures,
    open_project,
)

_HERE: Final = Path()


def mutate(
    folder: Folder = _HERE,
    pattern: Annotated[
        str,
        typer.Option("--run", help="Run only tests whose name matches this regular expression."),
    ] = "",
    rules: Annotated[
        str,
        typer.Option(
            "--rules", help="Change only rules whose name matches this regular expression."
        ),
    ] = "",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every change with the tests that notice.")
    ] = False,
    standalone: Standalone = None,
    as_json: AsJson = False,
) -> None:
    """Change each condition and each number of a policy, and name the changes that no test notices.

    Exits with 1 when there is one. Changes run on the embedded engine.
    """
    with failures():
        report = run_mutants(
            open_project(folder, standalone=standalone), pattern=pattern, rules=rules
        )
    problem = _problem(report)
    if as_json:
        print_json({"ok": not problem, "problem": problem, **report.to_json_object()})
    else:
        _show(console(), report, verbose)
    if problem:
        raise typer.Exit(EXIT_CODES["failed"]) if as_json else fail(problem, "failed")


def _problem(report: MutationReport) -> str:
    if report.failing:
        return f"{len(report.failing)} tests fail without any change: {report.failing[0]}"
    if report.tests == 0:
        return "There are no tests: a rule named test_ in a _test.rego file is one."
    if report.unreadable:
        return f"The condition at {report.unreadable[0]} can't be changed: write it on a line of its own."
    survivors = report.survivors
    if survivors:
        return f"{len(survivors)} of {len(report.mutants)} changes are noticed by no test."
    return ""


def _show(out: Console, report: MutationReport, verbose: bool) -> None:
    for mutant in report.mutants:
        if not mutant.noticed_by:
            out.print(_line("survived", "red", mutant.change))
        elif verbose:
            out.print(_line("noticed ", "green", mutant.change))
            for name in mutant.noticed_by:
                out.print(Text(f"         by {visible(name)}", style="dim"))
    if not report.survivors and report.mutants:
        out.print(f"all {len(report.mutants)} changes were noticed by {report.tests} tests")


def _line(word: str, style: str, change: Change) -> Text:
    line = Text()
    line.append(f"{word} ", style=style)
    line.append(visible(f"{change.file}:{change.line}"), style="cyan")
    # a project may be a stranger's: its text must not steer the terminal
    line.append(f"  {visible(change.what)}: {visible(change.original)}")
    return line
