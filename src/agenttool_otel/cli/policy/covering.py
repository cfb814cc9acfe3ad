"""``agenttool policy coverage``: which rules recorded traffic reached."""

from __future__ import annotations

from typing import Annotated, Any, Final

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

_COUNTS: Final = ("found", "decided", "approved", "rejected")


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
    reached = [rule for rule in rules if _was_reached(rule)]
    out.print(f"{report['decisions']} decisions reached {len(reached)} of {len(rules)} rules")
    show_losses(out, report)
    out.print(_table(reached))
    _list(out, "people always agreed", report["always_approved"])
    _list(out, "people always refused", report["always_rejected"])
    _list(out, "never mattered", report["never_mattered"])
    never = report["never_reached"]
    if every:
        _list(out, "never reached", never)
        return
    own = {rule["rule"] for rule in rules if rule["own"]}
    shown = [name for name in never if name in own]
    _list(out, "never reached", shown)
    stock = len(never) - len(shown)
    out.print(f"[dim]{stock} stock rules were never reached (--all shows them)[/dim]")


def _was_reached(rule: dict[str, Any]) -> bool:
    # a rule that the policy no longer has can still have been answered
    return bool(rule["found"] or rule["approved"] or rule["rejected"])


def _table(rules: list[dict[str, Any]]) -> Table:
    """Return the rules that were reached, the most frequent first."""
    table = Table("rule", "sets", *_COUNTS)
    for rule in sorted(rules, key=_frequency):
        counts = [str(rule[name] or "") for name in _COUNTS]
        table.add_row(escape(rule["rule"]), ", ".join(rule["sets"]), *counts)
    return table


def _frequency(rule: dict[str, Any]) -> tuple[int, str]:
    return -rule["found"], rule["rule"]


def _list(out: Console, title: str, names: list[str]) -> None:
    for name in names:
        out.print(f"[yellow]{title}[/yellow] {escape(name)}")
