"""The ``agenttool`` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agenttool_otel.cli.approvals import app as approvals
from agenttool_otel.cli.permissions import app as permissions
from agenttool_otel.cli.policy import app as policy
from agenttool_otel.cli.trace import app as trace

__all__ = ["app"]

app = typer.Typer(
    name="agenttool",
    help="What may an agent's tools call, who decided, and what happened?",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # local variables may hold what must not be shown
)
app.add_typer(approvals, name="approvals")
app.add_typer(policy, name="policy")
app.add_typer(permissions, name="permissions")
app.add_typer(trace)


@app.command()
def demo(
    interactive: Annotated[bool, typer.Option("--interactive", "-i", help="Answer the questions yourself.")] = False,
    save: Annotated[
        Path | None,
        typer.Option("--save", dir_okay=False, help="Write the trace to this file, for agenttool trace."),
    ] = None,
) -> None:
    """Watch a scripted agent's tool calls being decided and traced; needs no key, no server and no network."""
    from rich.console import Console

    from agenttool_otel.cli.demo.show import run_demo

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    if not run_demo(console, interactive=interactive, save=save):
        raise typer.Exit(1)
