"""What a rehearsal returns: effects, runs, and what became of layers."""

from __future__ import annotations

from dataclasses import dataclass

from agenttool_otel.names import EffectKind, EffectOperation

Kind = EffectKind
Operation = EffectOperation


@dataclass(frozen=True, slots=True)
class Change:
    """What would happen to a path.

    Attributes:
        operation: what would happen.
        path: the path, absolute, with no symbolic link on the way.
        kind: what is there afterwards; of a deleted path, what was there.
        size: bytes of the file afterwards; of a deleted file, before.
        mode: permission bits afterwards; of a deleted path, before.
        below: how many deleted paths lie below a deleted directory; each is a change of its own.
        target: where a symbolic link leads; of a second name of a file, the first.
        noise: whether the path is a cache or a clock of the reviewed list (``noise.toml``).
    """

    operation: Operation
    path: str
    kind: Kind
    size: int = 0
    mode: int = 0
    below: int = 0
    target: str = ""
    noise: bool = False

    @property
    def executable(self) -> bool:
        """Whether a file afterwards may be run by somebody."""
        return self.kind is Kind.FILE and bool(self.mode & 0o111)


@dataclass(frozen=True, slots=True)
class Connection:
    """Attempts to connect, none of which left the sandbox.

    Attributes:
        host: the address; of a Unix socket, its path.
        port: the port; 0 for a Unix socket.
        family: ``inet``, ``inet6`` or ``unix``.
        attempts: how many.
    """

    host: str
    port: int
    family: str
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Effects:
    """What a layer's commands would change.

    Attributes:
        changes: by path.
        connections: what they tried to connect to.
        complete: whether that is all; incomplete effects can't be committed.
        reasons: why it is not all, a sentence each.
        connections_counted: whether attempts to connect could be counted on this host; none is
            made either way.
    """

    changes: tuple[Change, ...] = ()
    connections: tuple[Connection, ...] = ()
    complete: bool = True
    reasons: tuple[str, ...] = ()
    connections_counted: bool = True

    @property
    def empty(self) -> bool:
        """Whether nothing would change and nothing was tried, but for noise."""
        quiet = all(change.noise for change in self.changes)
        return self.complete and quiet and not self.connections


@dataclass(frozen=True, slots=True)
class RehearsedRun:
    """How a command in a layer ended.

    Attributes:
        exit_code: its exit status; 128 and the signal's number where a signal ended it, 127 where
            there is no such program.
        stdout: the first bytes of its standard output.
        stderr: the first bytes of its standard error.
        timed_out: whether it was killed at its time limit.
        seconds: how long it took.
        stdout_omitted: bytes of its standard output that are not here.
        stderr_omitted: bytes of its standard error that are not here.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    seconds: float
    stdout_omitted: int = 0
    stderr_omitted: int = 0

    @property
    def truncated(self) -> bool:
        """Whether it wrote more than is here."""
        return self.stdout_omitted > 0 or self.stderr_omitted > 0


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A step of a commit that could not be done.

    Attributes:
        path: the place.
        reason: why.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a commit.

    Attributes:
        layer_id: the layer.
        steps: how many steps it has.
        unfinished: steps that failed. While there is any the layer is kept, and ``sweep`` tries
            again.
    """

    layer_id: str
    steps: int
    unfinished: tuple[Unfinished, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether all of it was done."""
        return not self.unfinished


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did.

    Attributes:
        finished: commits that a process had begun and this sweep ended.
        half: commits that can't be finished, with what is left of them.
        removed: layers that were abandoned or have expired.
        busy: layers that another process holds.
    """

    finished: tuple[str, ...] = ()
    half: tuple[Committed, ...] = ()
    removed: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
