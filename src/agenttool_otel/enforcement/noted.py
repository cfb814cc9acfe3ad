"""What commands were refused, for the call that started them: their results are the body's alone."""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from agenttool_otel.enforcement.types import Violation

_kinds: Final[contextvars.ContextVar[set[str] | None]] = contextvars.ContextVar(
    "agenttool_refused_commands", default=None
)


@contextmanager
def noting(kinds: set[str]) -> Iterator[None]:
    """Let each ``run_command`` add what was refused to it, or may have been.

    Args:
        kinds: a set that takes the kinds; threads and tasks of the body share it.
    """
    token = _kinds.set(kinds)
    try:
        yield
    finally:
        _kinds.reset(token)


def note(violations: Iterable[Violation]) -> None:
    """Add what a command was refused.

    Args:
        violations: those of its result.
    """
    kinds = _kinds.get()
    if kinds is not None:
        kinds.update(str(violation.kind) for violation in violations)
