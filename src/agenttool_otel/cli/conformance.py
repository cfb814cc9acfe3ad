"""``agenttool conformance``: the standard's acceptance scenarios against this package, or another
module.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.rendering import out
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import SCHEMA_VERSION

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
    """Run the 17 acceptance scenarios of the standard and validate every record by its JSON
    Schema.
    """
    from agenttool_otel.conformance.checking import examine
    from agenttool_otel.conformance.scenarios import SCENARIOS
    from agenttool_otel.conformance.subject import load_subject

    console = out()
    sys.path.insert(0, str(Path.cwd()))
    try:
        subject = load_subject(module)
        chosen = [scenario for scenario in SCENARIOS if not only or scenario.number in only]
        found = examine(subject, chosen, name=module or "agenttool_otel", standard=SCHEMA_VERSION)
    except ConfigurationError as error:
        console.print(Text(str(error)))
        raise typer.Exit(2) from error
    table = Table("#", "scenario", "", "records", "what is wrong")
    for one in found.outcomes:
        wrong = "; ".join(filter(None, [one.failure, *one.problems]))
        state = Text("pass", "green") if one.passed else Text("FAIL", "red")
        table.add_row(str(one.number), one.title, state, str(one.records), Text(wrong))
    console.print(table)
    passed = sum(one.passed for one in found.outcomes)
    console.print(f"{passed} of {len(found.outcomes)} scenarios pass (Agent Tool {found.standard})")
    if report is not None:
        report.write_text(json.dumps(found.to_json_object(), indent=2) + "\n", encoding="utf-8")
    if not found.passed:
        raise typer.Exit(1)
