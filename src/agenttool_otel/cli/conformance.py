"""``agenttool conformance``: the standard's acceptance scenarios against this package, or another
module.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.rendering import out
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import SCHEMA_VERSION

if TYPE_CHECKING:
    from agenttool_otel.conformance.checking import Report

app = typer.Typer(add_completion=False)


@app.command("conformance")
def conformance(
    module: Annotated[
        str,
        typer.Argument(
            help="Module with declare, surface, invoke and records; this package if not given."
        ),
    ] = "",
    report: Annotated[
        Path | None, typer.Option("--report", dir_okay=False, help="Write a JSON report here.")
    ] = None,
    only: Annotated[
        list[int] | None, typer.Option("--scenario", help="Run this scenario alone; repeatable.")
    ] = None,
) -> None:
    """Run the 17 acceptance scenarios of the standard and validate every record."""
    from agenttool_otel.conformance.checking import examine
    from agenttool_otel.conformance.scenarios import SCENARIOS
    from agenttool_otel.conformance.subject import load_subject

    console = out()
    sys.path.insert(0, str(Path.cwd()))
    try:
        subject = load_subject(module)
        chosen = list(SCENARIOS)
        if only:
            chosen = [scenario for scenario in SCENARIOS if scenario.number in only]
        result = examine(
            subject,
            chosen,
            name=module or "agenttool_otel",
            standard=SCHEMA_VERSION,
        )
    except ConfigurationError as error:
        console.print(Text(str(error)))
        raise typer.Exit(2) from error
    console.print(_table(result))
    passed = sum(outcome.passed for outcome in result.outcomes)
    total = len(result.outcomes)
    console.print(f"{passed} of {total} scenarios pass (Agent Tool {result.standard})")
    if report is not None:
        text = json.dumps(result.to_json_object(), indent=2)
        report.write_text(f"{text}\n", encoding="utf-8")
    if not result.passed:
        raise typer.Exit(1)


def _table(result: Report) -> Table:
    table = Table("#", "scenario", "", "records", "what is wrong")
    for outcome in result.outcomes:
        problems = list(outcome.problems)
        if outcome.failure:
            problems.insert(0, outcome.failure)
        state = Text("FAIL", "red")
        if outcome.passed:
            state = Text("pass", "green")
        table.add_row(
            str(outcome.number),
            outcome.title,
            state,
            str(outcome.records),
            # a Text: a record's path such as [0] is no markup
            Text("; ".join(problems)),
        )
    return table
