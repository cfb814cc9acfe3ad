"""``agenttool policy export``: recorded decisions for other tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from agenttool_otel.cli.policy.common import failures
from agenttool_otel.cli.policy.recorded import Sources, open_records
from agenttool_otel.errors import ConfigurationError


def export(
    sources: Sources,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; by default standard output.", show_default=False
        ),
    ] = None,
) -> None:
    """Write recorded decisions as OPA's decision log, one event a line; hidden words stay digests."""
    with failures():
        from agenttool_otel.evidence.opa_log import opa_log

        records = open_records(sources)
        lines = (f"{json.dumps(event)}\n" for event in opa_log(records.lines()))
        if output is None:
            sys.stdout.writelines(lines)
            return
        try:
            with output.open("w", encoding="utf-8") as file:
                file.writelines(lines)
        except OSError as error:
            raise ConfigurationError(f"{output} can't be written: {error.strerror}") from None
