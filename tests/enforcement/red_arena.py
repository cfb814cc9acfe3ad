"""What the red set acts on, and the processes that try it, as root and as an ordinary user."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import socket
import tempfile
import traceback
import uuid
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from red_lines import FUNCTIONS, LINES

from agenttool_otel.enforcement import Limits, available, hold, oblige_commands, run_command
from agenttool_otel.enforcement.proofs import require
from agenttool_otel.enforcement.rehearsal import Rehearsals
from agenttool_otel.enforcement.rehearsing import Rehearsal, commands_on
from agenttool_otel.enforcement.thread import hold_by

ORDINARY = 65534
SECONDS = 20


class Arena:
    """A directory outside, a masked secret, and listeners.

    Args:
        user: whose they are.
        parent: where the directory is made.
    """

    def __init__(self, user: int, parent: str = "/tmp") -> None:
        self.user = user
        self.place = Path(tempfile.mkdtemp(prefix="red-", dir=parent))
        self.layers = Path(tempfile.mkdtemp(prefix="red-layers-", dir=parent))
        self.root = self.place / "root"
        self.out, self.keys = self.place / "out", self.place / "keys"
        self.secret = self.keys / "secret"
        self.word = "secret-" + uuid.uuid4().hex
        self.nap = f"97{uuid.uuid4().int % 10**6}.5"
        self._make()
        inet, unix, stream, datagram = (
            socket.AF_INET, socket.AF_UNIX, socket.SOCK_STREAM, socket.SOCK_DGRAM,
        )  # fmt: skip
        self.abstract = uuid.uuid4().hex
        self.listeners = [
            self._listener(inet, stream, ("127.0.0.1", 0)),
            self._listener(inet, datagram, ("127.0.0.1", 0)),
            self._listener(unix, stream, str(self.place / "s")),
            self._listener(unix, datagram, str(self.place / "sd")),
            self._listener(unix, stream, "\0" + self.abstract),
        ]
        self._own()

    def _make(self) -> None:
        for folder in (self.out / "tree", self.out / "empty", self.keys, self.root):
            folder.mkdir(parents=True)
        (self.out / "file").write_text("aaaa")
        (self.out / "tree" / "leaf").write_text("leaf")
        (self.out / "red_module.py").write_text("")
        self.secret.write_text(self.word + "\n")

    def _listener(self, family: int, kind: int, address: Any) -> socket.socket:
        made = socket.socket(family, kind)
        made.bind(address)
        if kind == socket.SOCK_STREAM:
            made.listen(8)
        made.setblocking(False)
        return made

    def _own(self) -> None:
        if os.getuid() == 0:
            for path in [self.layers, self.place, *self.place.rglob("*")]:
                os.chown(path, self.user, self.user)

    def environment(self, agent: int) -> dict[str, str]:
        tcp, udp = (str(one.getsockname()[1]) for one in self.listeners[:2])
        return {
            "OUT": str(self.out), "SECRET": str(self.secret), "PORT": tcp, "UDP": udp, "AGENT": str(agent),
            "UNIX": str(self.place / "s"), "ABSTRACT": self.abstract, "NAP": self.nap,
        }  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return all that a line could change."""
        found: dict[str, Any] = {}
        for path in [self.place, *sorted(self.place.rglob("*"))]:
            seen = path.lstat()
            found[str(path)] = (
                seen.st_mode, seen.st_uid, seen.st_size, seen.st_mtime_ns, seen.st_nlink,
                os.listxattr(path, follow_symlinks=False), path.read_bytes() if path.is_file() else b"",
            )  # fmt: skip
        return found

    def connections(self) -> int:
        """Return how many listeners something has reached."""
        reached = 0
        for listener in self.listeners:
            try:
                if listener.type == socket.SOCK_STREAM:
                    listener.accept()[0].close()
                else:
                    listener.recv(100)
                reached += 1
            except BlockingIOError:
                pass
        return reached

    def left(self) -> list[str]:
        """Return the command lines of processes that sleep on."""
        found = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if self.nap.encode() in line:
                found.append(line.decode())
        return found

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()
        for path in (self.place, self.layers):
            shutil.rmtree(path, ignore_errors=True)


class Agent:
    """A process of a user that holds lines and functions.

    Args:
        arena: what they act on.
    """

    def __init__(self, arena: Arena) -> None:
        available()  # loads all modules, which an ordinary user may not be able to read
        context = multiprocessing.get_context("fork")
        self._here, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there, arena), daemon=True)
        self.process.start()
        there.close()
        self.ready: Any = self.ask("proof", "")

    def ask(self, kind: str, name: str) -> Any:
        """Return what a line or function gave, as text."""
        self._here.send((kind, name))
        assert self._here.poll(120), name
        return self._here.recv()

    def close(self) -> None:
        self.process.kill()
        self.process.join()


def _serve(asked: Connection, arena: Arena) -> None:
    if os.getuid() == 0 and arena.user != 0:
        os.setgroups([])
        os.setgid(arena.user)
        os.setuid(arena.user)
        os.environ["HOME"] = "/nonexistent"
    # a change of user makes a process undumpable; an agent that was started as that user is not
    from agenttool_otel.enforcement.libc import prctl

    prctl(4, 1)
    environment = arena.environment(os.getpid())
    os.environ.update(environment, AGENT_KEY=arena.word)
    while True:
        kind, name = asked.recv()
        try:
            asked.send(_try(kind, name, arena, environment))
        except BaseException:
            asked.send(traceback.format_exc())


def _try(kind: str, name: str, arena: Arena, environment: dict[str, str]) -> Any:
    if kind == "proof":
        return available()["read"]
    if kind == "proof of a layer":
        # the package's own canary is Python, whose folder may be closed to an ordinary user
        ended = _on_a_layer("exit 7", arena, environment)
        return "" if ended.status == 7 else repr(ended)
    if kind == "layer":
        return repr(_on_a_layer(LINES[name], arena, environment))
    if kind == "function":
        held = hold("read", FUNCTIONS[name], (str(arena.out),), masked=[arena.secret])
        return repr(held.value) + repr(held.exception)
    if kind == "plain":
        return repr(run_command(LINES[name], cwd=arena.out, env=environment, timeout=SECONDS))
    limits = Limits(memory_bytes=4 << 30, processes=200, output_bytes=100_000)
    with oblige_commands("read"):
        held = hold_by(
            require("read"),
            "read",
            lambda: run_command(
                LINES[name], cwd=arena.out, env=environment, timeout=SECONDS, limits=limits
            ),
            [arena.secret],
        )
    return repr(held)


def _on_a_layer(line: str, arena: Arena, environment: dict[str, str]) -> Any:
    """Run a line as a call does whose decision obliges ``rehearse`` or ``write``."""
    layer = Rehearsals(arena.layers / "state").open([arena.root], masked=[arena.secret])
    rehearsal = Rehearsal(layer)
    try:
        with commands_on(rehearsal):
            # a fork bomb goes on until its time is over: processes of a layer are not counted
            return run_command(line, cwd=arena.root, env=environment, timeout=5)
    finally:
        rehearsal.discard()
