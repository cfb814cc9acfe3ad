"""``agenttool policy replay``: recorded decisions on a policy that is to be tried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from agenttool_otel.cli.common import AsJson, print_json
from agenttool_otel.cli.policy.common import (
    EXIT_CODES,
    Data,
    Standalone,
    console,
    failures,
    open_project,
)
from agenttool_otel.cli.policy.recorded import (
    Candidate,
    Jobs,
    Sources,
    nothing_found,
    open_records,
    show_losses,
)
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.policy.bundles.bundle import Bundle


def replay(
    sources: Sources,
    candidate: Candidate = None,
    approve: Annotated[
        list[str] | None,
        typer.Option(
            "--approve",
            metavar="GLOB",
            help="Tools for which it may permit more.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="File for a page of HTML to write.", show_default=False),
    ] = None,
    sarif: Annotated[
        Path | None, typer.Option("--sarif", help="File for SARIF to write.", show_default=False)
    ] = None,
    jobs: Jobs = 0,
    data: Data = None,
    standalone: Standalone = None,
    as_json: AsJson = False,
) -> None:
    """Decide recorded decisions on another policy, and show what would have changed.

    Exits with 0 where it permits nothing more, 1 where it does, and 2 where it reads what was not
    recorded, or the records are not what was written.
    """
    with failures():
        bundle = open_project(candidate, data, standalone).whole
        report = _report(sources, bundle, approve or [], jobs)
        _write_reports(report, bundle, html, sarif)
    if as_json:
        print_json(report)
    else:
        show_changes(report)
    end_by(report)


def end_by(report: dict[str, Any]) -> None:
    """Raise the exit code of a report, where it is not 0.

    Args:
        report: has ``unsure`` and ``widened``.
    """
    if report["unsure"]:
        raise typer.Exit(EXIT_CODES["error"])
    if report["widened"]:
        raise typer.Exit(EXIT_CODES["failed"])


def _report(sources: list[Path], bundle: Bundle, approved: list[str], jobs: int) -> dict[str, Any]:
    """Replay the records, and return what was found as plain data."""
    from agenttool_otel.evidence.replay import Replay, replay

    records = open_records(sources)
    found = Replay(approved)
    for replayed in replay(records.lines(), bundle, records.key, jobs):
        found.add(replayed)
    if not found.decisions:
        raise nothing_found()
    return {**found.report(), **records.losses()}


def _write_reports(
    report: dict[str, Any], bundle: Bundle, html: Path | None, sarif: Path | None
) -> None:
    from agenttool_otel.evidence import reports

    texts: list[tuple[Path, str]] = []
    if html is not None:
        texts.append((html, reports.page(report)))
    if sarif is not None:
        texts.append((sarif, json.dumps(reports.sarif(report, bundle), indent=2)))
    for path, text in texts:
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"{path} can't be written: {error.strerror}") from None


def show_changes(report: dict[str, Any]) -> None:
    """Print which decisions change.

    Args:
        report: of a replay, or of a comparison.
    """
    out = console()
    decisions = report["decisions"]
    out.print(f"{decisions} decisions, {report['same']} with the same answer by the same rule")
    show_losses(out, report)
    for reason, count in report["unsure"].items():
        out.print(f"[red]unsure[/red] {count}: {escape(reason)}")
    if not report["changes"]:
        return
    table = Table("before", "after", "count", "tool", "rule before", "rule after", "an example")
    for change in report["changes"]:
        style = "red" if change["widens"] and not change["approved"] else ""
        names = ("before", "after", "count", "tool", "rule_before", "rule_after")
        cells = [escape(str(change[name])) for name in names]
        table.add_row(*cells, escape(_example(change)), style=style)
    out.print(table)
    if report["widened"]:
        out.print(f"[red]{report['widened']} decisions would permit more[/red]")


def _example(change: dict[str, Any]) -> str:
    """Return an example of a change; under it the condition and the rule that made it, if known."""
    example = change["examples"][0]
    lines = (example["invocation_id"], example.get("condition", ""), change.get("where", ""))
    return "\n".join(filter(None, lines))
