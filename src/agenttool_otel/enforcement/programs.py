"""``HeldProgram``: a program that runs on under a profile, such as a server, with pipes to talk to it."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from agenttool_otel.enforcement.holding import mechanism_of
from agenttool_otel.enforcement.mechanism import Mechanism
from agenttool_otel.enforcement.own import profile_named
from agenttool_otel.enforcement.proofs import require
from agenttool_otel.enforcement.thread import confined, hold_by
from agenttool_otel.errors import SandboxUnavailable


def check_holds_programs(profile: str) -> None:
    """Look whether a program that runs on can be held by a profile here.

    Args:
        profile: the profile's name: ``read``, or one of your own that narrows it.

    Raises:
        SandboxUnavailable: there is no such profile, it is not proven on this host, or it states limits,
            which hold commands that end.
    """
    known = profile_named(profile)
    if known is not None and known.limits_commands:
        raise SandboxUnavailable("its limits are for commands that end", profile=profile)
    require(profile)


class HeldProgram:
    """A program under a profile, until it ends or is ended.

    A thread confines itself, starts the program and waits for it. When the program has ended, so do all
    processes of its domain, whatever sessions they made.

    Args:
        command: the program with its arguments.
        profile: the profile's name: ``read``, or one of your own that narrows it.
        masked: files and directories that it must not read, beside the host's keys and credentials.
        env: its variables, all of them; ``TMPDIR`` is set to the directory that it may write.
        cwd: the directory to run in.
        stderr: where its errors go, as for ``subprocess``; those of this process where not given.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        profile: str,
        masked: Sequence[Path] = (),
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None = None,
        stderr: Any = None,
    ) -> None:
        self._command = list(command)
        self._profile = profile
        self._masked = tuple(masked)
        self._env = dict(env)
        self._cwd = cwd
        self._stderr = stderr
        self._thread: threading.Thread | None = None

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, and return its process with pipes as standard input and output.

        Raises:
            SandboxUnavailable: it can't be held; nothing was started.
            OSError: the program can't be started.
        """
        check_holds_programs(self._profile)
        mechanism = mechanism_of(self._profile)
        started: Future[subprocess.Popen[bytes]] = Future()
        self._thread = threading.Thread(
            target=self._hold, args=(mechanism, started), name="agenttool held program", daemon=True
        )
        self._thread.start()
        return started.result()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, with all that it has started; return whether it has.

        Args:
            seconds: how long to wait at most; without a bound where not given.
        """
        if self._thread is None:
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _hold(self, mechanism: Mechanism, started: Future[subprocess.Popen[bytes]]) -> None:
        def run() -> None:
            process = self._popen()
            started.set_result(process)
            process.wait()

        try:
            held = hold_by(mechanism, self._profile, run, self._masked)
        except BaseException as error:
            started.set_exception(error)
            return
        if not started.done() and held.exception is not None:
            started.set_exception(held.exception)

    def _popen(self) -> subprocess.Popen[bytes]:
        here = confined()
        assert here is not None  # noqa: S101 - the thread is confined before it gets here
        places = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), here.scratch)
        return subprocess.Popen(  # noqa: S603 - what it is for
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**self._env, **places},
            cwd=self._cwd,
            # its own group, so that what it starts ends with it
            start_new_session=True,
            bufsize=0,
        )
