"""``agenttool run``: a command under a profile that the kernel holds, or not at all.

agenttool run -- pytest -q
agenttool run --root ~/shop -- sh -c 'make report | head'

With ``--shadow`` it is a Python program whose tools are decided and not held: ``agenttool run --shadow app.py``.

With ``--profile rehearse`` it is what the hook of a coding agent puts before a command; ``agenttool serve`` decides.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from agenttool_otel.cli.common import failure
from agenttool_otel.enforcement import CommandResult, arun_command, oblige_commands
from agenttool_otel.enforcement.secrets import secrets_below
from agenttool_otel.errors import ConfigurationError, SandboxUnavailable
from agenttool_otel.names import SandboxProfile

EXIT_CODES: Final = {"usage": 2, "unavailable": 125, "refused": 126, "not_found": 127}
"""What the exit codes of this command mean, beside those of the command that it runs."""
_BY_SIGNAL: Final = 128
_OF_A_PROFILE: Final = ("profile", "root", "ticket", "socket")
_OF_SHADOW: Final = ("trace",)
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

app = typer.Typer(pretty_exceptions_show_locals=False)  # local variables hold what was printed


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    ctx: typer.Context,
    command: Annotated[list[str], typer.Argument(help="The command; what follows it is its own.")],
    shadow: Annotated[
        bool,
        typer.Option(
            "--shadow",
            help="The command is a Python file, or -- -m and a module: run it as it is, decide its tools in shadow"
            " mode, and print what would have been asked about and denied.",
        ),
    ] = False,
    trace: Annotated[
        Path,
        typer.Option("--trace", dir_okay=False, help="With --shadow: the file for the spans."),
    ] = Path("agenttool-trace.jsonl"),
    profile: Annotated[
        str,
        typer.Option(
            "--profile", help="What it may do: read, or a profile of your own that narrows it."
        ),
    ] = SandboxProfile.READ.value,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            help="A directory whose keys and credentials are masked; may be repeated. [default: .]",
            show_default=False,
        ),
    ] = None,
    ticket: Annotated[
        str | None,
        typer.Option(
            "--ticket",
            help="With --profile rehearse: what agenttool serve gave an agent's hook for this command.",
            show_default=False,
        ),
    ] = None,
    socket: Annotated[
        Path | None,
        typer.Option("--socket", help="The socket of that agenttool serve.", show_default=False),
    ] = None,
) -> None:
    """Run a command under a profile that the kernel holds, or not at all."""
    _check_options(ctx, shadow=shadow)
    if shadow:
        raise typer.Exit(_run_in_shadow(command, trace))
    if profile == SandboxProfile.REHEARSE and ticket and socket:
        _rehearse(command, root or [Path()], ticket, socket)
    # the effects of the others need a decision, or a commit: agenttool rehearse
    if not _changes_nothing(profile):
        raise failure(EXIT_CODES, f"no profile {profile!r} can be held here; read can", "usage")
    try:
        roots = [path.absolute() for path in root or [Path()]]
        masked = secrets_below(roots, profile)
        ended = asyncio.run(_run(command, profile, masked))
    except SandboxUnavailable as error:
        raise failure(EXIT_CODES, f"nothing ran: {error}", "unavailable") from None
    except OSError as error:
        message = f"{command[0]} can't be started: {error.strerror}"
        raise failure(EXIT_CODES, message, "not_found") from None
    except asyncio.CancelledError:
        raise typer.Exit(_BY_SIGNAL + signal.SIGTERM) from None
    _show(ended)
    raise typer.Exit(ended.status if ended.status >= 0 else _BY_SIGNAL - ended.status)


def _check_options(ctx: typer.Context, *, shadow: bool) -> None:
    """Refuse options that would have no effect: a program in shadow mode is held by nothing."""
    ignored = _OF_A_PROFILE if shadow else _OF_SHADOW
    for name in ignored:
        source = ctx.get_parameter_source(name)
        # by name: Typer has a copy of Click's class in some versions
        if source is not None and source.name == "COMMANDLINE":
            with_or_without = "has no effect with" if shadow else "needs"
            raise failure(EXIT_CODES, f"--{name} {with_or_without} --shadow", "usage")


def _run_in_shadow(program: Sequence[str], trace: Path) -> int:
    from agenttool_otel.cli.run_shadow import run_in_shadow
    from agenttool_otel.cli.trace_sources import TraceUnavailable

    if program[0] != "-m" and not Path(program[0]).is_file():
        raise failure(EXIT_CODES, f"{program[0]} is no Python file", "usage")
    try:
        status = run_in_shadow(program, trace)
    except TraceUnavailable as error:
        raise failure(EXIT_CODES, str(error), "usage") from None
    return status if status >= 0 else _BY_SIGNAL - status


def _rehearse(command: Sequence[str], roots: Sequence[Path], ticket: str, socket: Path) -> NoReturn:
    from agenttool_otel.cli.run_rehearsed import RehearsedCommand
    from agenttool_otel.serve.rehearsal_client import RehearsalClient

    client = RehearsalClient(socket, ticket)
    RehearsedCommand(client, command, [path.absolute() for path in roots]).run()


def _changes_nothing(profile: str) -> bool:
    if profile == SandboxProfile.READ:
        return True
    from agenttool_otel.cli.common import use_own_profiles
    from agenttool_otel.enforcement.own import profile_named

    try:
        use_own_profiles()
    except ConfigurationError as error:
        raise failure(EXIT_CODES, str(error), "usage") from None
    known = profile_named(profile)
    return known is not None and known.base is SandboxProfile.READ


async def _run(command: Sequence[str], profile: str, masked: Sequence[Path]) -> CommandResult:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - asyncio.run has made it
    for number in _ENDING:
        # an agent that gives up ends the command, too
        loop.add_signal_handler(number, task.cancel)
    with oblige_commands(profile, tuple(masked)):
        return await arun_command(command)


def _show(ended: CommandResult) -> None:
    sys.stdout.buffer.write(ended.stdout)
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(ended.stderr)
    sys.stderr.buffer.flush()
    omitted = ended.stdout_omitted + ended.stderr_omitted
    if omitted:
        typer.echo(f"agenttool: {omitted} bytes of the output were left out", err=True)
    # words of its output: nothing proves what it was refused
    if ended.violations and ended.status != 0:
        typer.echo(f"agenttool: held by the profile {ended.profile}, it may only read", err=True)
