"""``agenttool rehearse``: run a command on a layer over directories, look at its effects, then commit or discard them.

agenttool rehearse -- make format
agenttool rehearse list
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from agenttool_otel.cli.common import AsJson, failure, print_json
from agenttool_otel.cli.plain_text import clean, counted, size_text
from agenttool_otel.cli.rendering import out
from agenttool_otel.context.settings import Settings
from agenttool_otel.enforcement.rehearsal import (
    Change,
    CommitConflict,
    CommitRefused,
    Effects,
    LayerBusy,
    Operation,
    RehearsalError,
    Rehearsals,
    RehearsalUnavailable,
    RehearsedRun,
    SealedLayer,
    UnknownLayer,
    default_directory,
    layer_diff,
)

EXIT_CODES: Final = {
    "done": 0,
    "failed": 1,
    "usage": 2,
    "unknown": 3,
    "not_committed": 4,
    "unavailable": 5,
}
"""What the exit codes of these commands mean."""
_ROWS: Final = 100
_LINE_CHARS: Final = 200
_STYLES: Final[dict[str, str]] = {
    Operation.CREATED: "green",
    Operation.DELETED: "red",
}

_fail = partial(failure, EXIT_CODES)


class _Group(TyperGroup):
    """Takes what is no name of a command for the command to rehearse."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="rehearse",
    cls=_Group,
    help="Run a command on a layer over directories, and commit what it would change, or not.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # local variables hold what the command printed
)
State = Annotated[
    Path | None,
    typer.Option("--state", help="Where layers are kept.", file_okay=False, show_default=False),
]
LayerId = Annotated[str, typer.Argument(help="Id of a kept layer.")]


@app.command("run")
def rehearse(
    command: Annotated[list[str], typer.Argument(help="The command, after --.")],
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root", help="A directory that it may change; may be repeated. [default: .]"
        ),
    ] = None,
    commit: Annotated[bool, typer.Option("--commit", help="Commit without a question.")] = False,
    discard: Annotated[bool, typer.Option("--discard", help="Discard without a question.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the layer for later.")] = False,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds until it is killed.", show_default=False)
    ] = None,
    state: State = None,
    as_json: AsJson = False,
) -> None:
    """Rehearse a command: show what it would change, then commit, keep or discard it."""
    if commit + discard + keep > 1:
        raise _fail("--commit, --discard and --keep exclude each other", "usage")
    with _failures():
        rehearsals = _opened(state)
        rehearsals.sweep()
        with rehearsals.open(root or [Path()]) as layer:
            run = layer.run(command, cwd=Path(), timeout=timeout)
            sealed = layer.finish()
        stays = False
        try:
            _show_all(sealed, run, as_json=as_json)
            stays = _is_wanted(sealed, run, commit=commit, discard=discard, keep=keep)
        finally:  # whatever interrupts the question leaves nothing behind
            if not stays:
                sealed.discard()
        if stays and not keep:
            _commit(sealed)


@app.command("list")
def list_layers(state: State = None, as_json: AsJson = False) -> None:
    """List the layers that are kept."""
    with _failures():
        layers = list(_opened(state).layers())
    if as_json:
        print_json([_document(layer) for layer in layers])
        return
    table = Table("id", "kept until (UTC)", "changes", "roots")
    for layer in layers:
        until = datetime.fromtimestamp(layer.expires_at, UTC)
        changes = str(len(layer.effects.changes))
        roots = clean(layer.manifest.roots, limit=_LINE_CHARS)
        table.add_row(layer.id, f"{until:%Y-%m-%d %H:%M}", changes, Text(roots))
    out().print(table)


@app.command()
def show(layer: LayerId, state: State = None, as_json: AsJson = False) -> None:
    """Show what a kept layer would change."""
    with _failures():
        _show_all(_opened(state).kept(layer), None, as_json=as_json)


@app.command("commit")
def commit_layer(layer: LayerId, state: State = None) -> None:
    """Commit a kept layer."""
    with _failures():
        _commit(_opened(state).kept(layer))


@app.command("discard")
def discard_layer(layer: LayerId, state: State = None) -> None:
    """Discard a kept layer."""
    with _failures():
        _opened(state).kept(layer).discard()


@contextmanager
def _failures() -> Iterator[None]:
    """End the command with a line and an exit code where a rehearsal fails."""
    try:
        yield
    except RehearsalUnavailable as error:
        raise _fail(f"nothing ran: {error.reason}", "unavailable") from None
    except UnknownLayer as error:
        raise _fail(str(error), "unknown") from None
    except (CommitRefused, LayerBusy) as error:
        raise _fail(f"nothing was committed: {error}", "not_committed") from None
    except RehearsalError as error:
        raise _fail(str(error), "failed") from None


def _opened(state: Path | None) -> Rehearsals:
    if state is None:
        stated = Settings.load().rehearsals_dir
        state = Path(stated) if stated else default_directory()
    return Rehearsals(state)


def _is_wanted(
    layer: SealedLayer, run: RehearsedRun, *, commit: bool, discard: bool, keep: bool
) -> bool:
    """Return whether the layer is to be kept or committed, by the options or by a person's answer."""
    effects = layer.effects
    if not effects.changes and effects.complete:
        return False
    if not effects.complete:
        raise _fail(f"discarded: {effects.reasons[0]}", "not_committed")
    if keep:
        line = f"kept as {layer.id}: agenttool rehearse commit {layer.id}"
        Console(stderr=True).print(Text(line), soft_wrap=True)
        return True
    if discard:
        return False
    if commit:
        if run.exit_code != 0:
            raise _fail(f"discarded: the command ended with {run.exit_code}", "not_committed")
        return True
    if not sys.stdin.isatty():
        raise _fail("discarded: state --commit or --keep without a terminal", "not_committed")
    if not typer.confirm("Commit?", default=False, err=True):
        raise _fail("discarded", "not_committed")
    return True


def _commit(layer: SealedLayer) -> None:
    try:
        committed = layer.commit(layer.digest)
    except CommitConflict:
        layer.discard()  # it never fits again
        raise
    if not committed.whole:
        for left in committed.unfinished:
            Console(stderr=True).print(Text(f"not done: {clean(left.path)}: {left.reason}"))
        raise _fail("half committed; the next rehearsal tries to finish it", "failed")
    line = f"committed {counted(len(layer.effects.changes), 'change')}"
    Console(stderr=True).print(Text(line))


def _show_all(layer: SealedLayer, run: RehearsedRun | None, *, as_json: bool) -> None:
    if as_json:
        document = _document(layer)
        if run is not None:
            document["exit_code"] = run.exit_code
            document["timed_out"] = run.timed_out
        print_json(document)
        return
    if run is not None:
        sys.stdout.write(run.stdout.decode("utf-8", "replace"))
        sys.stdout.flush()
        sys.stderr.write(run.stderr.decode("utf-8", "replace"))
        if run.exit_code != 0:
            out().print(Text(f"the command ended with {run.exit_code}", style="yellow"))
    _show_effects(layer.effects)
    diff = layer_diff(layer)
    for line in diff.splitlines():
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        out().print(Text(clean(line), style=style), soft_wrap=True)


def _show_effects(effects: Effects) -> None:
    console = out()
    loud = [change for change in effects.changes if not change.noise]
    if not loud:
        console.print("it would change nothing")
    else:
        table = Table("effect", "path", "kind", "size")
        for change in loud[:_ROWS]:
            table.add_row(*_row(change))
        console.print(table)
    if len(loud) > _ROWS:
        left = Counter(change.operation.value for change in loud[_ROWS:])
        console.print(Text(f"and {', '.join(f'{count} {name}' for name, count in left.items())}"))
    noise = len(effects.changes) - len(loud)
    if noise:
        console.print(Text(f"and {counted(noise, 'change')} of caches", style="dim"))
    for tried in effects.connections:
        host = clean(tried.host)
        console.print(Text(f"tried to connect to {host} port {tried.port}: {tried.attempts} times"))
    if not effects.connections_counted:
        console.print(Text("attempts to connect were not counted on this host", style="dim"))
    for reason in effects.reasons:
        console.print(Text(f"incomplete: {clean(reason)}", style="red"))


def _row(change: Change) -> tuple[Text, Text, str, str]:
    path = clean(change.path, limit=_LINE_CHARS)
    if change.target:
        path = f"{path} -> {clean(change.target, limit=_LINE_CHARS)}"
    if change.below:
        path = f"{path} (with {change.below} below)"
    kind = change.kind.value
    if change.executable:
        kind = f"{kind}, may be run"
    effect = Text(change.operation.value, style=_STYLES.get(change.operation, ""))
    return effect, Text(path), kind, size_text(change.size)


def _document(layer: SealedLayer) -> dict[str, Any]:
    document = layer.manifest.document()
    changes = [
        {
            "operation": change.operation.value,
            "path": change.path,
            "kind": change.kind.value,
            "size": change.size,
            "below": change.below,
            "noise": change.noise,
        }
        for change in layer.effects.changes
    ]
    return {
        "id": layer.id,
        "digest": layer.digest,
        "roots": document["roots"],
        "complete": layer.effects.complete,
        "reasons": document["reasons"],
        "changes": changes,
        "connections": document["connections"],
    }
