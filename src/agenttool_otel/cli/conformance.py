"""``agenttool conformance``: the standard's acceptance scenarios against this package, or another
implementation.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.rendering import out

if TYPE_CHECKING:
    from agenttool_otel.conformance.checking import Outcome, Report

_COLORS: Final = {
    "pass": "green",
    "FAIL": "red",
    "lacks": "yellow",
    "broken": "red",
}
EXIT_CODES: Final = {"passed": 0, "failed": 1, "not_started": 2, "broken": 3}
"""What the exit codes of this command mean; ``broken`` is a program that stopped answering."""

app = typer.Typer(add_completion=False)


@app.command("conformance")
def conformance(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="After --, the program to examine; this package if not given.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", dir_okay=False, help="Write a JSON report here.")
    ] = None,
    only: Annotated[
        list[int] | None, typer.Option("--scenario", help="Run this scenario alone; repeatable.")
    ] = None,
    ours: Annotated[
        bool,
        typer.Option(
            "--ours",
            help="Fail for this package's own expectations, too; so it is without a command.",
        ),
    ] = False,
    time_limit: Annotated[
        float, typer.Option("--time-limit", min=0.1, help="Seconds for each reply.")
    ] = 60.0,
) -> None:
    """Run the 17 acceptance scenarios of the standard and validate every record.

    Exit code 0: all pass. 1: some do not. 2: the program can't be started. 3: it ended, did not
    answer in time, or wrote something that is no reply.
    """
    from agenttool_otel.conformance.checking import examine
    from agenttool_otel.conformance.process import SubjectError, SubjectProcess
    from agenttool_otel.conformance.scenarios import read_scenarios

    console = out()
    argv = command or [sys.executable, "-m", "agenttool_otel.conformance"]
    scenarios = read_scenarios()
    if only:
        scenarios = [scenario for scenario in scenarios if scenario.number in only]
    try:
        result = examine(
            lambda: SubjectProcess(argv, time_limit=time_limit),
            scenarios,
            command=argv,
        )
    except OSError as error:
        console.print(Text(f"{argv[0]} can't be started: {error}"))
        raise typer.Exit(EXIT_CODES["not_started"]) from error
    except SubjectError as error:
        console.print(Text(str(error)))
        raise typer.Exit(EXIT_CODES["broken"]) from error
    counts_ours = ours or not command
    _print(result, with_ours=counts_ours)
    if report is not None:
        text = json.dumps(result.to_json_object(), indent=2)
        report.write_text(f"{text}\n", encoding="utf-8")
    code = _exit_code(result, with_ours=counts_ours)
    if code:
        raise typer.Exit(code)


def _exit_code(result: Report, *, with_ours: bool) -> int:
    if result.broken:
        return EXIT_CODES["broken"]
    if not result.passed:
        return EXIT_CODES["failed"]
    if with_ours and not result.ours_passed:
        return EXIT_CODES["failed"]
    return EXIT_CODES["passed"]


def _print(result: Report, *, with_ours: bool) -> None:
    console = out()
    console.print(_table(result, with_ours=with_ours))
    passed = sum(outcome.passed for outcome in result.outcomes)
    total = len(result.outcomes)
    named = Text(f"{result.subject} {result.version}".strip())
    console.print(
        named.append(f": {passed} of {total} scenarios pass (Agent Tool {result.standard})")
    )
    count = sum(outcome.ours for outcome in result.outcomes)
    failed = sum(len(outcome.ours_failed) for outcome in result.outcomes)
    console.print(
        f"beyond the standard: {count - failed} of {count} expectations of agenttool-otel hold"
    )
    for lack in result.lacks:
        console.print(Text(f"not implemented: {lack}"))


def _table(result: Report, *, with_ours: bool) -> Table:
    table = Table("#", "scenario", "", "ours", "records", "what is wrong")
    for outcome in result.outcomes:
        table.add_row(
            str(outcome.number),
            outcome.title,
            Text(outcome.state, _COLORS[outcome.state]),
            f"{outcome.ours - len(outcome.ours_failed)}/{outcome.ours}",
            str(outcome.records),
            # a Text: a record's path such as [0] is no markup
            Text("\n".join(_faults(outcome, with_ours=with_ours))),
        )
    return table


def _faults(outcome: Outcome, *, with_ours: bool) -> list[str]:
    faults = list(outcome.failures)
    if outcome.lacks:
        faults.append(f"not implemented: {outcome.lacks}")
    if outcome.broken:
        faults.append(outcome.broken)
    if with_ours:
        faults += [f"ours: {words}" for words in outcome.ours_failed]
    return faults
