"""``agenttool policy import``: decisions of an OPA server as recorded decisions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape

from agenttool_otel.cli.policy.common import console, failures
from agenttool_otel.cli.policy.recorded import nothing_found
from agenttool_otel.errors import ConfigurationError

if TYPE_CHECKING:
    from agenttool_otel.evidence.opa_import import Imported

_AT_ONCE: Final = 1_000  # records that wait to be written


def import_log(
    log: Annotated[Path, typer.Argument(help="File of OPA's decision log, one event a line.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File of recorded decisions to write.")
    ],
) -> None:
    """Write the decisions of OPA's decision log as recorded decisions, their words hidden.

    Exits with 2 where no event holds enough to be decided again.
    """
    with failures():
        try:
            with log.open(encoding="utf-8", errors="replace") as lines:
                found = _write(lines, output)
        except OSError as error:
            raise ConfigurationError(f"{log} can't be read: {error.strerror}") from None
    out = console()
    out.print(f"{found.decisions} decisions")
    for lack, count in found.passed_over.items():
        out.print(f"[yellow]left out[/yellow] {count}: {escape(lack)}")
    if not found.decisions:
        raise nothing_found()


def _write(lines: Iterable[str], output: Path) -> Imported:
    from agenttool_otel.evidence.files import DecisionFile, key_of
    from agenttool_otel.evidence.opa_import import Imported, records_of
    from agenttool_otel.evidence.record import OBJECT
    from agenttool_otel.evidence.words import Words

    if output.exists():
        raise ConfigurationError(f"{output} is there already")
    key = key_of(output, make=True)
    sink = DecisionFile(output, key)
    found = Imported()
    for record in records_of(lines, Words(key), found):
        entries = [(OBJECT, record)]
        sink.put(entries.copy)
        if found.decisions % _AT_ONCE == 0:
            sink.flush(60)
    sink.flush(60)
    sink.close()
    if sink.lost:
        raise ConfigurationError(f"{output} can't be written: {sink.lost} decisions were lost")
    return found
