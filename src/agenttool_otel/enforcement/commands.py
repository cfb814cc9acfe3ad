"""``run_command``: a subprocess with limits, that leaves nothing behind.

In a tool it takes the place of ``subprocess.run``. Where a policy has obliged a profile, the
command runs under it; elsewhere it is governed by its limits alone.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import IO, Any, Final

from agenttool_otel.enforcement import processes, scratch
from agenttool_otel.enforcement.holding import mechanism_of
from agenttool_otel.enforcement.limits import CommandResult, Limits
from agenttool_otel.enforcement.noted import note
from agenttool_otel.enforcement.output import Output
from agenttool_otel.enforcement.own import limited
from agenttool_otel.enforcement.refusals import suspected_in
from agenttool_otel.enforcement.rehearsing import Rehearsal, current_rehearsal
from agenttool_otel.enforcement.thread import confined, held_duty, hold_by
from agenttool_otel.enforcement.types import Violation, ViolationKind
from agenttool_otel.errors import SandboxUnavailable

KEPT_VARIABLES: Final = frozenset(
    {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "SYSTEMROOT", "TERM", "TZ", "USER"}
)
"""Variables of the environment that a command gets, beside ``LC_*`` and those of ``env``."""

_TICK: Final = 0.1  # seconds between two looks at the clock and at who is there
_GRACE: Final = 0.5  # seconds for the last bytes of a pipe that a dying process holds
_CHUNK: Final = 65536
_REHEARSED_PLACES: Final = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), "/tmp")  # noqa: S108 - the layer's own
_LIMITED: Final = 'ulimit -v "$1" || exit 126; shift; exec "$@"'


def run_command(
    command: str | Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,
    timeout: float | None = None,
    limits: Limits | None = None,
) -> CommandResult:
    """Run a command, and return how it ended.

    When it ends, so do the processes that it has started in its session. Under a profile those
    end, too, that left the session.

    Args:
        command: a line for ``/bin/sh``, or a program with its arguments.
        cwd: the directory to run in.
        env: variables in addition to KEPT_VARIABLES.
        input: what it reads from standard input; nothing where not given.
        timeout: seconds of wall time, after which all its processes are killed.
        limits: what it may use.

    Raises:
        SandboxUnavailable: a profile is obliged, and not to be had; the command has not run.
        OSError: the program can't be started.
    """
    return _Command(command, cwd, env, input, timeout, limits or Limits()).run()


async def arun_command(
    command: str | Sequence[str],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    input: str | bytes | None = None,
    timeout: float | None = None,
    limits: Limits | None = None,
) -> CommandResult:
    """Run a command without blocking the event loop; see ``run_command``.

    When the task is canceled, the command's processes are ended first.
    """
    made = _Command(command, cwd, env, input, timeout, limits or Limits())
    task = asyncio.ensure_future(asyncio.to_thread(made.run))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        made.stop()
        with suppress(Exception):
            await asyncio.shield(task)
        raise


class _Command:
    """One command."""

    def __init__(
        self,
        command: str | Sequence[str],
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str] | None,
        input: str | bytes | None,
        timeout: float | None,
        limits: Limits,
    ) -> None:
        self._command = command
        self._cwd = cwd
        self._environment = _environment(env or {})
        self._input = input.encode() if isinstance(input, str) else input
        self._limits = limits if timeout is None else replace(limits, seconds=timeout)
        self._stopped = threading.Event()
        self._rehearsal: Rehearsal | None = None

    def stop(self) -> None:
        """End it soon."""
        self._stopped.set()
        if self._rehearsal is not None:
            self._rehearsal.stop()

    def run(self) -> CommandResult:
        """Run it, under the profile that holds here."""
        result = self._run_held()
        note(result.violations)
        return result

    def _run_held(self) -> CommandResult:
        rehearsal = current_rehearsal()
        if rehearsal is not None:
            self._limits = limited(self._limits, rehearsal.profile)
            return self._rehearse(rehearsal)
        duty = held_duty()
        if duty is None:
            return self._run(None, None)
        profile, masked = duty
        self._limits = limited(self._limits, profile)
        if confined() is not None:
            return self._run(profile, None)
        mechanism = mechanism_of(profile)
        held = hold_by(
            mechanism, profile, lambda: self._alone(profile), tuple(masked), abandoned=self.stop
        )
        if held.exception is not None:
            raise held.exception
        result: CommandResult = held.value
        return result

    def _rehearse(self, rehearsal: Rehearsal) -> CommandResult:
        """Run it on a layer, which has a temporary directory of its own."""
        self._rehearsal = rehearsal
        run = rehearsal.run(
            _arguments(self._command, self._limits),
            cwd=self._cwd,
            env={**_REHEARSED_PLACES, **self._environment},
            input=self._input,
            timeout=self._limits.seconds,
            output_limit=self._limits.output_bytes,
        )
        found = [Violation(ViolationKind.LIMIT, "seconds")] if run.timed_out else []
        return CommandResult(
            status=-signal.SIGKILL if run.timed_out else run.exit_code,
            signal=signal.SIGKILL.value if run.timed_out else None,
            stdout=run.stdout,
            stderr=run.stderr,
            stdout_omitted=run.stdout_omitted,
            stderr_omitted=run.stderr_omitted,
            seconds=run.seconds,
            timed_out=run.timed_out,
            profile=rehearsal.profile,
            left=0,
            violations=(*found, *suspected_in(run.stderr + run.stdout)),
        )

    def _alone(self, profile: str) -> CommandResult:
        """Run it in a thread that was confined for it; the thread's directory is its own."""
        here = confined()
        if here is None:
            return self._run(profile, None)
        return self._run(profile, here.scratch, here.since)

    def _run(
        self, profile: str | None, place: str | None, began: processes.Moment | None = None
    ) -> CommandResult:
        began = began or processes.now()
        with nullcontext(place) if place is not None else _private_directory() as place:
            environment = {"TMPDIR": place, "TMP": place, "TEMP": place, **self._environment}
            process = subprocess.Popen(  # noqa: S603 # what it is for
                _arguments(self._command, self._limits),
                cwd=self._cwd,
                env=environment,
                stdin=subprocess.DEVNULL if self._input is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
            watch = _Watch(process, self._input, self._limits, began)
            try:
                watch.until_end(self._limits.seconds, self._stopped)
            finally:
                watch.end()
            return watch.result(profile)


class _Watch:
    """A process that runs: its pipes, its time, and who else is there."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        input: bytes | None,
        limits: Limits,
        since: processes.Moment,
    ) -> None:
        self._process = process
        self._limits = limits
        self._since = since
        self._alone = confined() is not None
        self._input = memoryview(input or b"")
        self._outputs = {
            process.stdout: Output(limits.output_bytes),
            process.stderr: Output(limits.output_bytes),
        }
        self._timed_out = False
        self._crowded = False
        self._left = 0
        self._selector = selectors.DefaultSelector()
        for pipe in self._outputs:
            self._register(pipe, selectors.EVENT_READ)
        if process.stdin is not None:
            self._register(process.stdin, selectors.EVENT_WRITE)
        self._exit = _exit_descriptor(process.pid)
        if self._exit is not None:
            self._selector.register(self._exit, selectors.EVENT_READ)

    def _register(self, pipe: IO[bytes] | None, event: int) -> None:
        assert pipe is not None  # noqa: S101 # each was asked for as a pipe
        os.set_blocking(pipe.fileno(), False)
        self._selector.register(pipe, event)

    def until_end(self, seconds: float | None, stopped: threading.Event) -> None:
        """Serve the pipes until the process has ended, or has to."""
        while not self._has_exited():
            now = time.monotonic() - self._since.seconds
            if stopped.is_set():
                return
            if seconds is not None and now >= seconds:
                self._timed_out = True
                return
            if now > _TICK and self._is_crowded():
                self._crowded = True
                return
            remaining = _TICK if seconds is None else min(_TICK, seconds - now)
            self._serve(max(0.0, remaining) if self._exit is not None else 0.01)

    def _has_exited(self) -> bool:
        """Return whether the process has ended; it is not reaped, so that its id stays its own."""
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self._process.pid, options) is not None
        except ChildProcessError:
            return True

    def _is_crowded(self) -> bool:
        most = self._limits.processes
        if most is None:
            return False
        ids = processes.pids_since(self._since)
        leader = self._process.pid
        there = processes.in_domain(ids) if self._alone else processes.in_session(leader, ids)
        return sum(1 for _ in there) > most

    def _serve(self, seconds: float) -> bool:
        """Move what the pipes have; return whether one had something."""
        moved = False
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._process.stdin:
                self._write()
            elif key.fileobj != self._exit:
                moved |= self._read(key.fileobj)
        return moved

    def _read(self, pipe: Any) -> bool:
        try:
            data = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(pipe)
            return False
        self._outputs[pipe].add(data)
        return True

    def _write(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None  # noqa: S101 # it was registered
        try:
            written = os.write(pipe.fileno(), self._input[:_CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:
            written = len(self._input)  # it reads no more
        self._input = self._input[written:]
        if not self._input:
            self._selector.unregister(pipe)
            pipe.close()

    def end(self) -> None:
        """End all that is left, and read what the pipes still have."""
        leader = self._process.pid
        processes.end_group(leader)
        # bash -c 'set -m; sleep 60 &' has groups of its own
        self._left = processes.end_session(leader, self._since)
        self._process.wait()
        until = time.monotonic() + _GRACE
        while self._is_reading() and time.monotonic() < until:
            self._serve(_GRACE / 10)
        self._selector.close()
        if self._exit is not None:
            os.close(self._exit)
        for pipe in (self._process.stdin, *self._outputs):
            if pipe is not None:
                pipe.close()

    def _is_reading(self) -> bool:
        registered = self._selector.get_map()
        return any(pipe in registered for pipe in self._outputs if pipe is not None)

    def result(self, profile: str | None) -> CommandResult:
        """Return how it ended."""
        out, err = self._outputs.values()
        stdout, stderr = out.kept(), err.kept()
        status = self._process.returncode
        return CommandResult(
            status=status,
            signal=-status if status < 0 else None,
            stdout=stdout,
            stderr=stderr,
            stdout_omitted=out.omitted,
            stderr_omitted=err.omitted,
            seconds=time.monotonic() - self._since.seconds,
            timed_out=self._timed_out,
            profile=profile,
            left=self._left,
            violations=tuple(self._violations(profile, stderr + stdout)),
        )

    def _violations(self, profile: str | None, output: bytes) -> Iterator[Violation]:
        if self._crowded:
            yield Violation(ViolationKind.LIMIT, "processes")
        if self._timed_out:
            yield Violation(ViolationKind.LIMIT, "seconds")
        if profile is None:
            return
        if self._process.returncode == -signal.SIGSYS:
            yield Violation(ViolationKind.CALL)
        yield from suspected_in(output)


def _arguments(command: str | Sequence[str], limits: Limits) -> list[str]:
    arguments = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    if limits.memory_bytes is None:
        return arguments
    # the limit is set by what becomes the program: nothing can start before it holds
    kibibytes = str(max(1, limits.memory_bytes // 1024))
    return ["/bin/sh", "-c", _LIMITED, "sh", kibibytes, *arguments]


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT_VARIABLES or name.startswith("LC_")
    }
    return {**kept, **more}


@contextmanager
def _private_directory() -> Iterator[str]:
    held = confined()
    try:
        place = scratch.make(held.scratch if held is not None else None)
    except OSError as error:
        # a thread that a held function has started is confined, and can't know it
        raise SandboxUnavailable(f"there is no temporary directory: {error}") from error
    try:
        yield place
    finally:
        scratch.remove(place)


def _exit_descriptor(pid: int) -> int | None:
    """Return a descriptor that can be read when a process has ended, where there are such."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
