"""``agenttool policy vendor`` and ``reference``: a project for other tools and for readers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from agenttool_otel.authoring.reference import chapters_of, reference_text
from agenttool_otel.authoring.vendoring import vendor as vendor_stock
from agenttool_otel.cli.policy.common import (
    EXIT_CODES,
    Folder,
    Standalone,
    console,
    fail,
    failures,
    open_project,
)
from agenttool_otel.values.files import replace_file

_HERE: Final = Path()


def vendor(
    folder: Folder = _HERE,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail where something is out of date.")
    ] = False,
) -> None:
    """Put the stock policy into a project, for opa check, opa test, Regal and editors."""
    with failures():
        done = vendor_stock(folder, write=not check)
    out = console()
    word = "out of date" if check else "wrote"
    for name in done.changed:
        out.print(f"[green]{word}[/green] {escape(name)}")
    for name in done.removed:
        out.print(
            f"[yellow]{'not in this version' if check else 'removed'}[/yellow] {escape(name)}"
        )
    for name in done.kept:
        out.print(f"[yellow]kept[/yellow] {escape(name)}")
    if check and (done.changed or done.removed):
        raise typer.Exit(EXIT_CODES["failed"])


def reference(
    folder: Folder = _HERE,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; otherwise it is printed."),
    ] = None,
    stock: Annotated[
        bool, typer.Option("--stock", help="With the rules of the stock policy.")
    ] = False,
    title: Annotated[str, typer.Option(help="Its heading.")] = "Policy reference",
    standalone: Standalone = None,
) -> None:
    """Write the METADATA of a policy's rules as a reference in Markdown."""
    with failures():
        chapters = chapters_of(open_project(folder, standalone=standalone), stock=stock)
    if not chapters:
        raise fail("No rule there decides anything: nothing to write.", "failed")
    text = reference_text(chapters, title)
    if output is None:
        sys.stdout.write(text)
        return
    try:
        replace_file(output, text.encode(), mode=0o644)
    except OSError as error:
        raise fail(f"{output} can't be written: {error.strerror}.") from None
