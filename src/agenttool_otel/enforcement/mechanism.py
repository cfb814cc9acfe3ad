"""What holds a profile: the protocol, and Landlock with seccomp for the profile ``read``."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from agenttool_otel.enforcement import processes

_ROUNDS = 50
_PAUSE = 0.002


class Mechanism(Protocol):
    """Restricts the thread that calls it.

    Attributes:
        name: as in a proof.
    """

    name: str

    def prepare(self, masked: frozenset[Path]) -> Any:
        """Do what can be done before a thread is there, and return it for ``confine``."""
        ...

    def confine(self, prepared: Any, scratch: str) -> None:
        """Restrict the current thread, and all that it starts, for ever.

        Args:
            prepared: what ``prepare`` returned.
            scratch: the directory that it may write.

        Raises:
            Exception: it could not; the thread then runs nothing.
        """
        ...

    def masks(self, prepared: Any, path: str) -> bool:
        """Return whether a path is a masked secret."""
        ...

    def sweep(self, scratch: str, since: processes.Moment) -> bool:
        """End the processes that the current thread started, and theirs; return whether none is
        left.

        Args:
            scratch: the thread's directory.
            since: when the thread had started nothing yet.
        """
        ...


class Landlock:
    """Landlock for files, TCP, signals and abstract sockets; seccomp for what it does not judge."""

    name = "landlock"

    def prepare(self, masked: frozenset[Path]) -> Any:
        """Return the ruleset of reading; see ``readable`` for what is raised."""
        from agenttool_otel.enforcement import landlock, readable, seccomp

        landlock.check()
        seccomp.check()
        return readable.readable(masked)

    def confine(self, prepared: Any, scratch: str) -> None:
        """Enter both rulesets, drop capabilities, install the filter."""
        from agenttool_otel.enforcement import landlock, privileges, seccomp

        ruleset = landlock.writable(scratch)
        landlock.set_no_new_privs()
        # the second domain copies the rules of the first: reading has hundreds
        landlock.enter(ruleset.descriptor)
        landlock.enter(prepared.ruleset.descriptor)
        privileges.drop_capabilities()
        seccomp.install(threading.get_native_id())

    def masks(self, prepared: Any, path: str) -> bool:
        """Return whether a path is a masked secret."""
        return bool(prepared.masks(path))

    def sweep(self, scratch: str, since: processes.Moment) -> bool:
        """End all processes of the thread's Landlock domain.

        One signal reaches all of them at once, so that no fork bomb outruns it, whatever sessions
        it makes; the domain keeps the signal from everything else.
        """
        for _ in range(_ROUNDS):
            if next(processes.in_domain(processes.pids_since(since)), None) is None:
                return True
            if not _is_alone(scratch):
                return False
            # a forking process that has been sent SIGKILL can't finish its fork
            with suppress(ProcessLookupError, PermissionError):
                os.kill(-1, signal.SIGKILL)
            time.sleep(_PAUSE)
        return False


def _is_alone(scratch: str) -> bool:
    """Return whether this thread is in a domain indeed: what it sends to all must not reach others."""
    # the ruleset that keeps signals in is the one that keeps writes in
    beside = f"{scratch}.beside"
    with suppress(PermissionError):
        os.mkdir(beside)
        os.rmdir(beside)
        return False
    for outside in {1, os.getppid()} - {0, os.getpid()}:
        with suppress(PermissionError, ProcessLookupError):
            os.kill(outside, 0)
            return False
    return True
