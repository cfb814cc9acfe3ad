"""What the commands on recorded decisions share: their options, and how the records are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from agenttool_otel.cli.policy.common import fail

if TYPE_CHECKING:  # loaded by the commands that read records
    from collections.abc import Iterator

    from agenttool_otel.evidence.chain import Reading
    from agenttool_otel.records.base import JsonObject

Sources = Annotated[
    list[Path],
    typer.Option("--from", help="File of recorded decisions; may be repeated."),
]
Jobs = Annotated[int, typer.Option("--jobs", min=0, help="Processes; 0 for one a processor.")]
Candidate = Annotated[
    Path | None,
    typer.Option(
        "--candidate",
        "-c",
        help="Project folder or bundle to try; by default the stock one.",
        show_default=False,
    ),
]


@dataclass
class Records:
    """Files of records, and their key."""

    sources: list[Path]
    key: bytes
    reading: Reading = field(init=False)  # what was found while they were read

    def lines(self) -> Iterator[JsonObject]:
        """Yield the lines."""
        from agenttool_otel.evidence.chain import Reading, read_lines

        self.reading = Reading()
        return read_lines(self.sources, self.key, self.reading)

    def losses(self) -> dict[str, object]:
        """Return what is missing in the files, as plain data."""
        from agenttool_otel.evidence.accounts import unreported

        # a process was killed, and none has written to the file since
        waiting = sum(unreported(path, self.reading.sequences) for path in self.sources)
        return {"lost": self.reading.lost + waiting, "torn": self.reading.torn}


def open_records(sources: list[Path]) -> Records:
    """Find the key of files of records.

    Args:
        sources: the files.
    """
    from agenttool_otel.evidence.files import key_of

    return Records(sources, key_of(sources[0]))


def nothing_found() -> typer.Exit:
    """Print that files hold no decisions, and return the exception that ends the command."""
    return fail("There are no decisions in these files.")


def show_losses(out: Console, report: dict[str, object]) -> None:
    """Print what is missing in the files.

    Args:
        out: where to print.
        report: has ``lost`` and ``torn``.
    """
    if report["lost"]:
        out.print(f"[yellow]{report['lost']} decisions were lost before they were written[/yellow]")
    torn = report["torn"]
    for place in torn if isinstance(torn, list) else ():
        out.print(f"[yellow]torn[/yellow] {escape(place)}: its last line was not written whole")
