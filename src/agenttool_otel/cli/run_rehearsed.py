"""``agenttool run --profile rehearse``: a command of a coding agent on a layer.

``agenttool serve`` decided the command, and gave the agent's hook a ticket for it. It decides a second time, on what
the command would change, and commits that or not. Without its answer nothing happens.
"""

from __future__ import annotations

import base64
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import typer

from agenttool_otel.cli.plain_text import clean
from agenttool_otel.enforcement.rehearsal import (
    RehearsalError,
    Rehearsals,
    RehearsedRun,
    SealedLayer,
    UnknownLayer,
)
from agenttool_otel.names import RehearsalState
from agenttool_otel.serve.client import DecisionPointError, DecisionPointRefused
from agenttool_otel.serve.messages import RehearsalAnswer
from agenttool_otel.serve.rehearsal_client import RehearsalClient

REFUSED: Final = 126
"""Exit status where the changes are not permitted, or wait for an answer."""
UNAVAILABLE: Final = 125
"""Exit status where the command did not run, or nothing was decided of its changes."""
_BY_SIGNAL: Final = 128
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_MOST_REASON_CHARS: Final = 2_000


@dataclass(frozen=True)
class RehearsedCommand:
    """A command of an agent, and the decision point that decides it.

    Attributes:
        client: asks the decision point.
        command: the program and its arguments.
        roots: the directories of the layer.
    """

    client: RehearsalClient
    command: Sequence[str]
    roots: Sequence[Path]

    def run(self) -> NoReturn:
        """Run the command on a layer, and end as it does where its changes have happened.

        Raises:
            Exit: always.
        """
        try:
            order = self.client.begin(self.command, [str(root) for root in self.roots])
        except DecisionPointError as error:
            _end(f"nothing ran: {error}", UNAVAILABLE)
        if order.state is RehearsalState.COMMITTED:
            _print(base64.b64decode(order.stdout), base64.b64decode(order.stderr))
            raise typer.Exit(order.exit_code)
        if order.state is not RehearsalState.RUN:
            _end(_refusal(order), REFUSED)
        _end_by_signals()
        self._rehearse(order)

    def _rehearse(self, order: RehearsalAnswer) -> NoReturn:
        try:
            rehearsals = Rehearsals(Path(order.directory), keep_seconds=order.keep_seconds)
            rehearsals.sweep()
            # whatever is raised inside discards the layer
            with rehearsals.open(self.roots) as layer:
                run = layer.run(self.command, cwd=Path.cwd())
                sealed = layer.finish()
        except (RehearsalError, OSError) as error:
            reason = str(error) or type(error).__name__
            self.client.give_up(reason)
            _end(f"nothing happened: {reason}", UNAVAILABLE)
        try:
            answer = self.client.settle(sealed, run)
        except DecisionPointRefused as error:
            _discard(rehearsals, sealed)
            _end(f"the changes were discarded: {error}", UNAVAILABLE)
        except DecisionPointError as error:
            _end(f"{_discard(rehearsals, sealed)}: {error}", UNAVAILABLE)
        except BaseException:  # a signal: the agent gives up
            _discard(rehearsals, sealed)
            raise
        _finish(answer, sealed, run)


def _finish(answer: RehearsalAnswer, sealed: SealedLayer, run: RehearsedRun) -> NoReturn:
    if answer.state is RehearsalState.COMMITTED:
        _print(run.stdout, run.stderr)
        omitted = run.stdout_omitted + run.stderr_omitted
        if omitted:
            typer.echo(f"agenttool: {omitted} bytes of the output were left out", err=True)
        raise typer.Exit(run.exit_code)
    if answer.state is not RehearsalState.WAITING:
        # the decision point has thrown it away, unless its disk failed
        with suppress(RehearsalError, OSError):
            sealed.discard()
    _end(_refusal(answer), REFUSED)


def _refusal(answer: RehearsalAnswer) -> str:
    if answer.state is not RehearsalState.WAITING:
        return f"not permitted: {answer.reason}"
    return (
        f"{answer.reason}. Nothing has happened yet; the changes are kept. Make the same call again "
        "when it is approved"
    )


def _discard(rehearsals: Rehearsals, sealed: SealedLayer) -> str:
    """Throw a layer away of which the decision point gave no answer, and return what became of it."""
    try:
        rehearsals.kept(sealed.id)
        sealed.discard()
    except UnknownLayer:
        # decided, and the answer was lost
        return "the changes were committed or discarded, which one is not known"
    except (RehearsalError, OSError) as error:
        return f"the changes may happen yet ({error})"
    return "the changes were discarded"


def _end_by_signals() -> None:
    """Let the signals by which an agent gives up end the command, too."""

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(_BY_SIGNAL + number)

    for number in _ENDING:
        signal.signal(number, end)


def _print(stdout: bytes, stderr: bytes) -> None:
    sys.stdout.buffer.write(stdout)
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(stderr)
    sys.stderr.buffer.flush()


def _end(message: str, status: int) -> NoReturn:
    typer.echo(f"agenttool: {clean(message, limit=_MOST_REASON_CHARS)}", err=True)
    raise typer.Exit(status)
