"""``agenttool policy coverage``: which rules recorded traffic reached."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agenttool_otel.cli.common import AsJson, print_json
from agenttool_otel.cli.policy.common import Data, Standalone, console, failures, open_project
from agenttool_otel.cli.policy.recorded import (
    Candidate,
    Jobs,
    Sources,
    nothing_found,
    open_records,
    show_losses,
)


def coverage(
    sources: Sources,
    candidate: Candidate = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show the stock rules that were never reached, too.")
    ] = False,
    jobs: Jobs = 0,
    data: Data = None,
    standalone: Standalone = None,
    as_json: AsJson = False,
) -> None:
    """Show which rules of a policy recorded traffic reached, how people answered them, and which
    settings never mattered.
    """
    with failures():
        from agenttool_otel.evidence.coverage import cover

        bundle = open_project(candidate, data, standalone).whole
        records = open_records(sources)
        found = cover(records.lines(), bundle, records.key, jobs)
        if not found.decisions:
            raise nothing_found()
        report = {**found.report(), **records.losses()}
    if as_json:
        print_json(report)
    else:
        _show(console(), report, every)


def _show(out: Console, report: dict[str, Any], every: bool) -> None:
    rules = report["rules"]
    reached = [rule for rule in rules if rule["found"] or rule["approved"] or rule["rejected"]]
    out.print(f"{report['decisions']} decisions reached {len(reached)} of {len(rules)} rules")
    show_losses(out, report)
    table = Table("rule", "sets", "found", "decided", "approved", "rejected")
    for rule in sorted(reached, key=lambda rule: (-rule["found"], rule["rule"])):
        names = ("found", "decided", "approved", "rejected")
        cells = [str(rule[name] or "") for name in names]
        table.add_row(escape(rule["rule"]), ", ".join(rule["sets"]), *cells)
    out.print(table)
    _list(out, "people always agreed", report["always_approved"])
    _list(out, "people always refused", report["always_rejected"])
    _list(out, "never mattered", report["never_mattered"])
    never = [rule["rule"] for rule in rules if not rule["found"] and (every or rule["own"])]
    _list(out, "never reached", never)
    if not every:
        stock = len(report["never_reached"]) - len(never)
        out.print(f"[dim]{stock} stock rules were never reached (--all shows them)[/dim]")


def _list(out: Console, title: str, names: list[str]) -> None:
    for name in names:
        out.print(f"[yellow]{title}[/yellow] {escape(name)}")
