"""What ``agenttool run --profile rehearse`` asks a decision point."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agenttool_otel.serve.client import DecisionPointError, RemoteGovernor
from agenttool_otel.serve.messages import (
    REHEARSALS_PATH,
    RehearsalAnswer,
    RehearsalEnd,
    RehearsalStart,
)

if TYPE_CHECKING:
    from agenttool_otel.enforcement.rehearsal import RehearsedRun, SealedLayer

_SECONDS: Final = 60.0
_MOST_REASON_CHARS: Final = 2_000


class RehearsalClient(RemoteGovernor):
    """Asks about one command on a layer.

    Args:
        socket_path: the Unix socket of ``agenttool serve``.
        ticket: what the hook was given for the command.
        timeout: seconds that one answer may take.
    """

    def __init__(self, socket_path: str | Path, ticket: str, *, timeout: float = _SECONDS) -> None:
        super().__init__(socket_path, timeout=timeout)
        self._ticket = ticket

    def begin(self, command: Sequence[str], roots: Sequence[str]) -> RehearsalAnswer:
        """Ask whether the command may run.

        Args:
            command: the program and its arguments.
            roots: the directories of the layer.

        Raises:
            DecisionPointError: there is no answer, or it may not.
        """
        start = RehearsalStart(ticket=self._ticket, command=list(command), roots=list(roots))
        return self._ask("POST", f"{REHEARSALS_PATH}/begin", RehearsalAnswer, start.model_dump())

    def settle(self, layer: SealedLayer, run: RehearsedRun) -> RehearsalAnswer:
        """Ask what becomes of the changes.

        Args:
            layer: the sealed layer.
            run: how the command ended.

        Raises:
            DecisionPointError: there is no answer, or it is no decision.
        """
        end = RehearsalEnd(
            ticket=self._ticket,
            layer=layer.id,
            digest=layer.digest,
            exit_code=run.exit_code,
            stdout=base64.b64encode(run.stdout).decode("ascii"),
            stderr=base64.b64encode(run.stderr).decode("ascii"),
            stdout_omitted=run.stdout_omitted,
            stderr_omitted=run.stderr_omitted,
            seconds=run.seconds,
        )
        return self._settle(end)

    def give_up(self, reason: str) -> None:
        """Let the decision point know that there is no layer; what goes wrong changes nothing.

        Args:
            reason: why.
        """
        end = RehearsalEnd(ticket=self._ticket, failure=reason[:_MOST_REASON_CHARS])
        with suppress(DecisionPointError):
            self._settle(end)

    def _settle(self, end: RehearsalEnd) -> RehearsalAnswer:
        return self._ask("POST", f"{REHEARSALS_PATH}/settle", RehearsalAnswer, end.model_dump())
