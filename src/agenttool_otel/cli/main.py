"""The ``agenttool`` command."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

import agenttool_otel

_COMMANDS: Final = (
    "approvals",
    "conformance",
    "permissions",
    "policy",
    "records",
    "tools",
    "trace",
)
"""The modules of commands, each imported when it is used: one needs a database, another an HTTP
client.
"""


class _LazyGroup(TyperGroup):
    # typer has brought its own click for some versions, and asked for it in others: its types are
    # left open

    def list_commands(self, ctx: Any) -> list[str]:
        return [*_COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _COMMANDS:
            return get_command(importlib.import_module(f"agenttool_otel.cli.{cmd_name}").app)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="agenttool",
    cls=_LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # local variables may hold what must not be shown
)


@app.callback()
def agenttool() -> None:
    """What may an agent's tools call, who decided, and what happened?"""


@app.command()
def demo(
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Answer the questions yourself.")
    ] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", dir_okay=False, help="Write the trace to this file, for agenttool trace."
        ),
    ] = None,
) -> None:
    """Watch a scripted agent's tool calls being decided and traced; needs no key, no server and no
    network.
    """
    from rich.console import Console

    # a wheel has the demo inside, a clone beside the package
    package = Path(agenttool_otel.__file__).parent
    folder = next(
        filter(Path.is_dir, (package / "_demo", package.parent.parent / "examples" / "demo"))
    )
    run_demo = runpy.run_path(str(folder))["run_demo"]
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    if not run_demo(console, interactive=interactive, save=save):
        raise typer.Exit(1)
