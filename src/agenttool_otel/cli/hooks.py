"""``agenttool hooks``: hooks in the settings of coding agents.

agenttool hooks install claude-code
agenttool hooks status claude-code --project .
agenttool hooks doctor claude-code
agenttool hooks remove claude-code
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from agenttool_otel.cli.common import failure, group
from agenttool_otel.coding_agents.dialects import AGENTS
from agenttool_otel.coding_agents.installation import Installation, settings_path
from agenttool_otel.coding_agents.trial import Trial, try_decision_point, try_failures
from agenttool_otel.errors import AgentToolError
from agenttool_otel.serve.sockets import default_socket

EXIT_CODES: Final = {"ok": 0, "problem": 1, "usage": 2}
"""What the exit codes of these commands mean."""

app = group("hooks", "Put hooks into a coding agent's settings, take them out, and try them.")

Agent = Annotated[str, typer.Argument(help=f"One of {', '.join(AGENTS)}.", metavar="AGENT")]
Project = Annotated[
    Path | None,
    typer.Option("--project", help="The settings of the project in this folder, not this user's."),
]
Socket = Annotated[
    Path | None, typer.Option("--socket", help="Socket of agenttool serve; of this user.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")
]


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except AgentToolError as error:
        raise failure(EXIT_CODES, str(error), "usage") from None


def _installation(agent: str, project: Path | None, socket: Path | None) -> Installation:
    path = settings_path(agent, project)
    return Installation(agent, path.absolute(), (socket or default_socket()).absolute())


@app.command()
def install(
    agent: Agent, project: Project = None, socket: Socket = None, dry_run: DryRun = False
) -> None:
    """Put the hooks of an agent into its settings, and show what changes."""
    with _failures():
        hooks = _installation(agent, project, socket)
        before = hooks.read()
        _change(hooks, before, hooks.installed(before), dry_run=dry_run)
        after = hooks.dialect.settings.after
        if after:
            typer.echo(after, err=True)
        typer.echo(f"now run: agenttool serve --agent {agent}", err=True)


@app.command()
def remove(agent: Agent, project: Project = None, dry_run: DryRun = False) -> None:
    """Take the hooks of an agent out of its settings, and leave every other byte as it is."""
    with _failures():
        hooks = _installation(agent, project, None)
        before = hooks.read()
        after = None if before is None else hooks.removed(before)
        _change(hooks, before, after, dry_run=dry_run)


@app.command()
def status(agent: Agent, project: Project = None, socket: Socket = None) -> None:
    """Show whether the hooks are in place; exits with 1 where they are not."""
    with _failures():
        hooks = _installation(agent, project, socket)
        problems = hooks.problems()
    typer.echo(f"{hooks.dialect.title}: {hooks.path}")
    for problem in problems:
        typer.echo(f"  {problem}")
    if problems:
        raise typer.Exit(EXIT_CODES["problem"])
    typer.echo("  in place")


@app.command()
def doctor(agent: Agent, project: Project = None, socket: Socket = None) -> None:
    """Try the hook of an agent: that its failures block each of its tools, and that it decides."""
    with _failures():
        hooks = _installation(agent, project, socket)
        problems = hooks.problems()
        trials = [Trial("the settings", not problems, "; ".join(problems) or "in place")]
        trials += try_failures(hooks)
        trials.append(try_decision_point(hooks))
    for trial in trials:
        typer.echo(f"{'ok  ' if trial.holds else 'FAIL'} {trial.what}: {trial.found}")
    if not all(trial.holds for trial in trials):
        raise typer.Exit(EXIT_CODES["problem"])


def _change(hooks: Installation, before: str | None, after: str | None, *, dry_run: bool) -> None:
    if before == after:
        typer.echo(f"{hooks.path}: nothing to change", err=True)
        return
    typer.echo(hooks.diff(before, after), nl=False)
    if not dry_run:
        hooks.write(after)
