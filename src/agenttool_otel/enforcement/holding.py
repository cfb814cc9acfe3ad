"""``hold``: a function under a profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenttool_otel.enforcement.mechanism import Mechanism
from agenttool_otel.enforcement.proofs import require
from agenttool_otel.enforcement.thread import confined, hold_by
from agenttool_otel.enforcement.types import HeldResult


def mechanism_of(profile: str) -> Mechanism:
    """Return what holds a profile: what holds this thread already, or what was proven.

    Raises:
        SandboxUnavailable: it is not proven here.
    """
    outer = confined()
    # the canaries can't be tried in a thread that may write nothing
    return outer.mechanism if outer is not None else require(profile)


def hold(
    profile: str,
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    masked: Sequence[Path] = (),
) -> HeldResult:
    """Run a function under a profile, in a thread of its own that restricts itself first.

    The function sees the caller's context variables. What existed before is not held: open files
    and connections, threads, pools. The processes that it started are ended when it returns.

    Args:
        profile: one of SandboxProfile.
        function: what to run.
        args: its positional arguments.
        kwargs: its keyword arguments.
        masked: files and directories that it must not read, beside the host's keys and
          credentials.

    Raises:
        SandboxUnavailable: the profile is not proven here, or the thread could not enter it; the
          function has not run.
    """
    named = kwargs or {}
    return hold_by(mechanism_of(profile), profile, lambda: function(*args, **named), masked)
