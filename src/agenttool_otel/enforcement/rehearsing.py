"""Commands of a body on a layer: ``run_command`` runs them there while a rehearsal goes on.

The body itself is held by the profile ``read``. What it starts inherits that, and bubblewrap could
not be started; so a thread that was there before starts it.
"""

from __future__ import annotations

import contextvars
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agenttool_otel.enforcement.rehearsal.failures import RehearsalError
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.names import SandboxProfile

if TYPE_CHECKING:  # most commands run on no layer
    from agenttool_otel.enforcement.rehearsal.rehearsals import OpenLayer, SealedLayer
    from agenttool_otel.enforcement.rehearsal.types import RehearsedRun


class Rehearsal:
    """The layer of one body, and the commands that ran on it.

    Args:
        layer: the layer, which this object seals or discards.
        profile: the profile that they run under.
    """

    def __init__(self, layer: OpenLayer, profile: str = SandboxProfile.REHEARSE.value) -> None:
        self.profile = profile
        self.runs: list[RehearsedRun] = []
        self.failure: Exception | None = None  # why a command did not run; a body may catch it
        self._layer = layer
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="agenttool rehearse")
        try:
            # a pool makes its thread when it is first used, and a thread inherits what holds its maker
            self._starter.submit(int).result()
        except BaseException:
            self.discard()
            raise

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str],
        input: bytes | None,
        timeout: float | None,
        output_limit: int,
    ) -> RehearsedRun:
        """Run a command on the layer.

        Args:
            argv: the program and its arguments.
            cwd: where it runs; this process' directory where ``None``.
            env: its environment.
            input: what it reads.
            timeout: seconds until it is killed.
            output_limit: bytes that are kept of each output.

        Raises:
            SandboxUnavailable: it could not be run there; it has not run.
        """
        run = partial(
            self._layer.run,
            argv,
            cwd=Path(cwd or os.getcwd()),
            env=env,
            input=input,
            timeout=timeout,
            output_limit=output_limit,
        )
        try:
            ended = self._starter.submit(run).result()
        except (RehearsalError, RuntimeError) as error:
            # a pool that is shut down raises RuntimeError: the body has ended
            self.failure = error
            raise SandboxUnavailable(str(error), profile=self.profile) from error
        self.runs.append(ended)
        return ended

    def stop(self) -> None:
        """Kill the command that runs, and let no other one run."""
        self._layer.stop()

    def seal(self) -> SealedLayer:
        """End what still runs, and find the effects.

        Raises:
            RehearsalError: the layer was discarded meanwhile.
            OSError: what was found can't be kept.
        """
        self._end()
        return self._layer.finish()

    def discard(self) -> None:
        """End what still runs, and throw the layer away."""
        self._end()
        self._layer.discard()

    def _end(self) -> None:
        self._layer.stop()
        self._starter.shutdown(wait=False)


_current: Final[contextvars.ContextVar[Rehearsal | None]] = contextvars.ContextVar(
    "agenttool_rehearsal", default=None
)


def current_rehearsal() -> Rehearsal | None:
    """Return the rehearsal that commands of the current code run in; ``None`` for none."""
    return _current.get()


@contextmanager
def commands_on(rehearsal: Rehearsal | None) -> Iterator[None]:
    """Let each ``run_command`` run on a layer.

    Args:
        rehearsal: the layer; ``None`` where commands run under a stricter profile again.
    """
    token = _current.set(rehearsal)
    try:
        yield
    finally:
        _current.reset(token)
