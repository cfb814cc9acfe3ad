"""``agenttool policy suggest``: an extension made of what people agreed to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from agenttool_otel.cli.common import AsJson, print_json
from agenttool_otel.cli.policy.common import EXIT_CODES, console, failures, open_project
from agenttool_otel.cli.policy.recorded import Sources, open_records, show_losses
from agenttool_otel.errors import ConfigurationError

if TYPE_CHECKING:  # loaded where records are read
    from agenttool_otel.evidence.suggesting import Suggestion


def suggest(
    sources: Sources,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write.", show_default=False)
    ],
    words: Annotated[
        list[Path] | None,
        typer.Option(
            "--words",
            help="Text file whose words may stand in it in clear: your hosts, folders, names.",
            show_default=False,
        ),
    ] = None,
    least: Annotated[
        int,
        typer.Option(
            "--least", min=2, help="Different values that have to be seen before a step is taken."
        ),
    ] = 2,
    as_json: AsJson = False,
) -> None:
    """Write an extension that answers what people always answered with yes: rules, data and tests.

    What was denied or rejected is never allowed by it. Exits with 1 where nothing could be learnt.
    """
    with failures():
        from agenttool_otel.evidence.suggesting import suggest

        records = open_records(sources)
        texts = [_text(path) for path in words or ()]
        made = suggest(records.lines(), open_project(None).whole, records.key, texts, least)
        _write(output, made.files)
        report = {**_report(made, output), **records.losses()}
    if as_json:
        print_json(report)
    else:
        _show(console(), report)
    if not made.files:
        raise typer.Exit(EXIT_CODES["failed"])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} can't be read: {type(error).__name__}") from None


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write the files into a folder that is empty, or not there."""
    try:
        if folder.exists() and any(folder.iterdir()):
            raise ConfigurationError(f"{folder} is not empty")
        for name, text in files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{folder} can't be written: {error.strerror}") from None


def _report(made: Suggestion, folder: Path) -> dict[str, Any]:
    from agenttool_otel.evidence.extension import RULE_PREFIX

    return {
        "folder": str(folder) if made.files else None,
        "rules": [
            {
                "rule": RULE_PREFIX + rule.name,
                "tool": rule.tool,
                "calls": len(rule.calls),
                "answers": list(rule.questions),
                "as_seen": rule.exact,
                "steps": rule.wider,
            }
            for rule in made.learnt
        ],
        "not_learnt": [each._asdict() for each in made.unlearnt],
        "refused": made.refused,
    }


def _show(out: Console, report: dict[str, Any]) -> None:
    show_losses(out, report)
    for rule in report["rules"]:
        out.print(
            f"[green]{escape(rule['rule'])}[/green] {escape(rule['tool'])}: {rule['calls']} calls"
        )
    for each in report["not_learnt"]:
        hidden = f": {', '.join(each['hidden'][:5])}" if each["hidden"] else ""
        text = f"{each['tool']}, {each['calls']} calls: {each['reason']}{hidden}"
        out.print(f"[yellow]not learnt[/yellow] {escape(text)}")
    out.print(f"{report['refused']} different calls that were denied or rejected stay so")
    if report["folder"]:
        out.print(
            f"\nNext: read {escape(report['folder'])}, then agenttool policy test {escape(report['folder'])}"
        )
