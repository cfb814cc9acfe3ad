"""``agenttool policy export``: recorded decisions for other tools."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenttool_otel.cli.policy.common import failures
from agenttool_otel.cli.policy.recorded import Records, Sources, open_records
from agenttool_otel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Format(StrEnum):
    """What recorded decisions are written as."""

    OPA = "opa"
    """OPA's decision log, one event a line."""
    OCSF = "ocsf"
    """Events of OCSF, one a line."""
    PARQUET = "parquet"
    """A table, for DuckDB and data frames; needs the extra ``parquet``."""


def export(
    sources: Sources,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; by default standard output.", show_default=False
        ),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="What to write.")] = Format.OPA,
) -> None:
    """Write recorded decisions as OPA's decision log, events of OCSF or a table; hidden words stay
    digests.
    """
    with failures():
        records = open_records(sources)
        if form is Format.PARQUET:
            _write_table(records, output)
        else:
            _write_lines(_lines(records, form), output)


def _lines(records: Records, form: Format) -> Iterator[str]:
    from agenttool_otel.evidence.ocsf import ocsf_events
    from agenttool_otel.evidence.opa_log import opa_log

    events = opa_log if form is Format.OPA else ocsf_events
    return (f"{json.dumps(event)}\n" for event in events(records.lines()))


def _write_lines(lines: Iterable[str], output: Path | None) -> None:
    if output is None:
        sys.stdout.writelines(lines)
        return
    try:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise _unwritable(output, error) from None


def _write_table(records: Records, output: Path | None) -> None:
    from agenttool_otel.evidence.tables import write_parquet

    if output is None:
        raise ConfigurationError("a table needs a file to write: --output")
    try:
        write_parquet(records.lines(), output)
    except OSError as error:
        raise _unwritable(output, error) from None


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"{path} can't be written: {error.strerror or error}")
