"""The ``agenttool`` command."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import agenttool_otel

COMMANDS: Final = {
    "approvals": "List, show, answer, watch and serve approval requests.",
    "conformance": "Run the 17 acceptance scenarios of the standard and validate every record.",
    "doctor": "What is in force here, from where it is, and what does not work.",
    "evidence": "Sign what files of decision records hold, and check it.",
    "hooks": "Put hooks into a coding agent's settings, take them out, and try them.",
    "mcp": "A governed proxy in front of an MCP server, and the pins of its tools.",
    "permissions": "Ask the policy what it would decide, without running anything.",
    "policy": "Start, check, test, explain, build and ask a policy.",
    "records": "Show the calls in a file of records: decision, end, result, what was lost.",
    "rehearse": "Run a command on a layer over directories, and commit what it would change, or not.",
    "run": "Run a command under a profile that the kernel holds, or not at all.",
    "serve": "Decide calls for other programs, over a Unix socket or loopback HTTP.",
    "tools": "What a program's tools declare.",
    "trace": "Show traces of governed tool calls: decisions, waits, sizes, redactions.",
}
"""The modules of commands with their line in ``agenttool --help``.

Each is imported when it is used: together they take two seconds, as one needs a database, another an
HTTP client.
"""
_LISTING: Final = "agenttool_otel.listing"


class _LazyGroup(TyperGroup):
    # typer has brought its own click for some versions, and asked for it in others: its types are
    # left open

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *super().list_commands(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        ctx.meta[_LISTING] = True
        super().format_help(ctx, formatter)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        if ctx is not None and _LISTING in ctx.meta:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name])
        module = importlib.import_module(f"agenttool_otel.cli.{cmd_name}")
        return get_command(module.app)


app = typer.Typer(
    name="agenttool",
    cls=_LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # local variables may hold what must not be shown
)


def _print_version(wanted: bool) -> None:
    if wanted:
        # not with the module: the names of telemetry take longer than agenttool --help may
        from importlib.metadata import version

        from agenttool_otel.names import SCHEMA_VERSION

        typer.echo(f"agenttool-otel {version('agenttool-otel')}, Agent Tool {SCHEMA_VERSION}")
        raise typer.Exit


@app.callback()
def agenttool(
    print_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print versions, and exit."
        ),
    ] = False,
) -> None:
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

    run_demo = runpy.run_path(str(_demo_folder()))["run_demo"]
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    if not run_demo(console, interactive=interactive, save=save):
        raise typer.Exit(1)


def _demo_folder() -> Path:
    """A wheel has the demo inside of the package; in a clone it lies among the examples."""
    package = Path(agenttool_otel.__file__).parent
    inside = package / "_demo"
    if inside.is_dir():
        return inside
    return package.parent.parent / "examples" / "demo"
