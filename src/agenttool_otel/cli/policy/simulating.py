"""``agenttool policy simulate``: what somebody could do now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.common import AsJson, print_json
from agenttool_otel.cli.permissions import (
    Evaluation,
    Module,
    Roles,
    Roots,
    SessionId,
    Tenant,
    governor_in_context,
)
from agenttool_otel.cli.plain_text import clean
from agenttool_otel.cli.policy.common import console, failures
from agenttool_otel.cli.rendering import style_of
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.values.files import replace_file


def simulate(
    module: Module,
    who: Annotated[
        str | None, typer.Option("--who", help="The actor, such as agent:deployer.")
    ] = None,
    tenant: Tenant = None,
    role: Roles = None,
    session: SessionId = None,
    root: Roots = None,
    evaluation: Evaluation = "",
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", help="File of Markdown to write.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what an actor could do now: the decision of each tool with an argument of each kind.

    Runs no tool, and asks nobody. The arguments are made up.
    """
    from agenttool_otel.preflight.simulation import simulate, simulation_markdown

    with governor_in_context(
        module, evaluation, actor=who, tenant=tenant, roles=role, session_id=session, roots=root
    ) as governor:
        found = simulate(governor)
    if markdown is not None:
        with failures():
            _write(markdown, simulation_markdown(found))
    if as_json:
        print_json(found)
    elif markdown is None:
        console().print(_table(found))


def _write(path: Path, text: str) -> None:
    try:
        replace_file(path, text.encode(), mode=0o644)
    except OSError as error:
        raise ConfigurationError(f"{path} can't be written: {error.strerror or error}") from None


def _table(found: dict[str, Any]) -> Table:
    table = Table(title=Text(f"What {clean(found['actor'] or 'nobody in particular')} could do"))
    for title in ("tool", "kind", "argument", "decision", "rule"):
        table.add_column(title, overflow="fold")
    for call in found["calls"]:
        behavior = call["behavior"]
        table.add_row(
            Text(clean(call["tool"])),
            Text(call["kind"]),
            Text(call["argument"]),
            Text(behavior, style=style_of(behavior)),
            Text(clean(call["rule"])),
        )
    return table
