"""A server's process under an enforcement profile: ``agenttool mcp proxy --profile read -- COMMAND...``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeAlias

import anyio
from anyio import to_thread
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from mcp import StdioServerParameters
from mcp.client.stdio import get_default_environment

from agenttool_otel.call.sandbox import ProcessSandbox
from agenttool_otel.enforcement import available
from agenttool_otel.enforcement.programs import HeldProgram, check_holds_programs
from agenttool_otel.enforcement.secrets import secrets_below


@dataclass
class HeldServer:
    """How a server's process is run under a profile.

    It is no ``StdioServerParameters``: the SDK's own client would start it without the profile.

    Attributes:
        process: how it is run without one.
        profile: the profile's name.
        roots: absolute directories whose keys and credentials it must not read.
    """

    process: StdioServerParameters
    profile: str
    roots: list[Path]
    _masked: frozenset[Path] | None = field(default=None, init=False)

    @property
    def sandbox(self) -> ProcessSandbox:
        """What the calls of its tools are held by."""
        mechanism = available()[self.profile].mechanism
        return ProcessSandbox(self.profile, str(mechanism), tuple(self.roots), lambda: self._masked)

    def program(self) -> HeldProgram:
        """Return the program; its secrets are looked for anew.

        Raises:
            SandboxUnavailable: a secret could not be looked for everywhere.
        """
        masked = secrets_below(self.roots, self.profile)
        self._masked = frozenset(masked)
        return HeldProgram(
            [self.process.command, *self.process.args],
            profile=self.profile,
            masked=masked,
            env=get_default_environment() | (self.process.env or {}),
            cwd=self.process.cwd,
            stderr=sys.stderr,
        )


ServerProcess: TypeAlias = StdioServerParameters | HeldServer


def held_server(
    server: StdioServerParameters, profile: str, roots: Sequence[str | os.PathLike[str]] = ()
) -> HeldServer:
    """Return how a server's process is run under a profile.

    Args:
        server: How it is run without one, from ``server_process``.
        profile: ``read``, or a profile of your own that narrows it.
        roots: Directories whose keys and credentials are masked; that in which it runs where none is given.

    Raises:
        SandboxUnavailable: The profile can't be held on this host; nothing was started.
    """
    check_holds_programs(profile)
    absolute = [Path(root).absolute() for root in roots or [server.cwd or Path()]]
    return HeldServer(server, profile, absolute)


async def start_held(server: HeldServer) -> HeldProcess:
    """Start a server's process under its profile.

    Args:
        server: How it is run.

    Raises:
        SandboxUnavailable: It can't be held; nothing was started.
        OSError: The program can't be started.
    """
    # walks through the roots, and waits for a thread
    program = await to_thread.run_sync(server.program)
    return HeldProcess(program, await to_thread.run_sync(program.start))


class HeldProcess(Process):
    """A process under a profile, with the face of anyio's own.

    Args:
        program: What holds it.
        process: The process, with pipes.
    """

    def __init__(self, program: HeldProgram, process: subprocess.Popen[bytes]) -> None:
        self._program = program
        self._process = process
        self._stdin = Input(_pipe(process.stdin))
        self._stdout = _Reader(_pipe(process.stdout))

    @property
    def pid(self) -> int:
        """Its id, which is that of its process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; ``None`` while it runs."""
        return self._process.poll()

    @property
    def stdin(self) -> Input:
        """Its standard input."""
        return self._stdin

    @property
    def stdout(self) -> ByteReceiveStream:
        """Its standard output."""
        return self._stdout

    @property
    def stderr(self) -> None:
        """Its errors go where those of this process go."""

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it."""
        self._process.kill()

    def send_signal(self, signal: signal.Signals) -> None:
        """Send it a signal.

        Args:
            signal: The signal.
        """
        self._process.send_signal(signal)

    async def wait(self) -> int:
        """Wait until it has ended, and all that it has started."""
        await to_thread.run_sync(self._program.wait, abandon_on_cancel=True)
        return self._process.wait()

    async def aclose(self) -> None:
        """Close its pipes."""
        await self._stdin.aclose()
        await self._stdout.aclose()


class _Pipe:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        os.set_blocking(file.fileno(), False)

    def _descriptor(self) -> int:
        if self._file.closed:
            raise anyio.ClosedResourceError
        return self._file.fileno()

    async def aclose(self) -> None:
        if self._file.closed:
            return
        # a task that waits for the pipe would wait for ever
        anyio.notify_closing(self._file)
        self._file.close()


class _Reader(_Pipe, ByteReceiveStream):
    async def receive(self, max_bytes: int = 65_536) -> bytes:
        while True:
            descriptor = self._descriptor()
            try:
                data = os.read(descriptor, max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(descriptor)
                continue
            if not data:
                raise anyio.EndOfStream
            return data


class Input(_Pipe, ByteSendStream):
    """The standard input of a process under a profile."""

    def write_now(self, data: memoryview) -> int:
        """Write what there is room for; return how many bytes that were.

        Args:
            data: What is to be written.
        """
        try:
            return os.write(self._descriptor(), data)
        except BlockingIOError:
            return 0

    async def wait(self) -> None:
        """Wait until there is room."""
        await anyio.wait_writable(self._descriptor())

    async def send(self, item: bytes) -> None:
        """Write all of it.

        Args:
            item: What is written.
        """
        remaining = memoryview(item)
        while remaining:
            written = self.write_now(remaining)
            if not written:
                await self.wait()
            remaining = remaining[written:]


def _pipe(file: Any) -> IO[bytes]:
    assert file is not None  # noqa: S101 - the process is started with pipes
    opened: IO[bytes] = file
    return opened
