"""``agenttool policy diff``: what two policies decide otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agenttool_otel.cli.common import AsJson, print_json
from agenttool_otel.cli.policy.common import failures, open_project
from agenttool_otel.cli.policy.recorded import Jobs, open_records
from agenttool_otel.cli.policy.replaying import end_by, show_changes
from agenttool_otel.policy.bundles.bundle import Bundle


def diff(
    first: Annotated[Path, typer.Argument(help="Project folder or bundle that is there.")],
    second: Annotated[Path, typer.Argument(help="The one that it is compared with.")],
    sources: Annotated[
        list[Path] | None,
        typer.Option(
            "--from", help="File of recorded decisions; may be repeated.", show_default=False
        ),
    ] = None,
    made_up: Annotated[
        int, typer.Option("--made-up", min=0, help="Inputs to make up of the policies' words.")
    ] = 300,
    jobs: Jobs = 0,
    as_json: AsJson = False,
) -> None:
    """Compare two policies on recorded decisions, and on made-up inputs where nothing was recorded.

    Exits with 0 where the second one permits nothing more, 1 where it does, and 2 where one of them
    reads what was not recorded.
    """
    with failures():
        policies = open_project(first).whole, open_project(second).whole
        report = _report(sources or [], policies, made_up, jobs)
    if as_json:
        print_json(report)
    else:
        show_changes(report)
    end_by(report)


def _report(
    sources: list[Path], policies: tuple[Bundle, Bundle], made_up: int, jobs: int
) -> dict[str, Any]:
    from agenttool_otel.evidence.diff import diff_made_up, diff_records
    from agenttool_otel.evidence.replay import Replay

    found = Replay()
    losses: dict[str, Any] = {"lost": 0, "torn": []}
    if sources:
        records = open_records(sources)
        for each in diff_records(records.lines(), *policies, records.key, jobs):
            found.add(each)
        losses = records.losses()
    recorded = found.decisions
    if made_up:
        for each in diff_made_up(*policies, made_up):
            found.add(each)
    report = found.report()
    for change in report["changes"]:
        change["where"] = _where(change, *policies)
    return {"recorded": recorded, **report, **losses}


def _where(change: dict[str, Any], first: Bundle, second: Bundle) -> str:
    """Return the place of the rule that made a difference: one in a file that only one policy has so."""
    from agenttool_otel.evidence.reports import place_of

    sides = ((change["rule_after"], second, first), (change["rule_before"], first, second))
    for rule, policy, other in sides:
        place = place_of(rule, policy)
        if place and policy.modules[place[0]] != other.modules.get(place[0]):
            return f"{place[0]}:{place[1]}"
    return ""
