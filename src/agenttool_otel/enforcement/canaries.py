"""What is tried under a profile before anybody relies on it, on this very host.

A canary is an act that the profile must refuse. Each is tried twice: it must go through without the
profile, or else its failure under the profile shows nothing.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agenttool_otel.enforcement import scratch
from agenttool_otel.enforcement.mechanism import Mechanism
from agenttool_otel.enforcement.own import masked_by
from agenttool_otel.enforcement.thread import hold_by
from agenttool_otel.errors import SandboxUnavailable

_SECONDS = 10
_MOST_FILES = 1000


@dataclass(frozen=True)
class Canary:
    """An act that must be refused.

    Attributes:
        name: what it tries.
        act: does it; raises OSError where it is refused.
    """

    name: str
    act: Callable[[], object]


def failure(mechanism: Mechanism, profile: str) -> str:
    """Return why a mechanism does not hold a profile here; nothing if each canary shows that it
    does.

    Args:
        mechanism: what would confine threads.
        profile: the profile's name.
    """
    try:
        with _stage() as stage:
            return _first_failure(mechanism, profile, stage)
    except SandboxUnavailable as error:
        return error.reason
    except Exception as error:
        # Windows has no AF_UNIX: what can't be tried is not proven
        return f"the canaries could not be tried: {type(error).__name__}: {error}"


def _first_failure(mechanism: Mechanism, profile: str, stage: _Stage) -> str:
    masked = [stage.secret]
    for canary in [*stage.canaries(), *_own_masks(profile)]:
        try:
            canary.act()
        except Exception as error:
            return f"the canary {canary.name!r} fails without the profile: {error}"
        held = hold_by(mechanism, profile, canary.act, masked)
        if held.exception is None:
            return f"the canary {canary.name!r} was not refused"
        if not isinstance(held.exception, OSError):
            return f"the canary {canary.name!r} failed otherwise: {held.exception!r}"
    for name, act in stage.honest().items():
        held = hold_by(mechanism, profile, act, masked)
        if held.exception is not None:
            return f"what the profile allows is refused: {name}: {held.exception}"
    return ""


def _own_masks(profile: str) -> Iterator[Canary]:
    """Yield a read of each place that a profile of one's own masks, and that can be read now."""
    for place in sorted(masked_by(profile)):
        file = _readable_file(place)
        if file is not None:
            yield Canary("a read of a place that it masks", file.read_bytes)


def _readable_file(place: Path) -> Path | None:
    """Return a file that can be read at a place, or below it: names stay visible, contents not."""
    below = (Path(folder, name) for folder, _, names in os.walk(place) for name in names)
    for file in itertools.islice(itertools.chain([place], below), _MOST_FILES):
        if file.is_file() and not file.is_symlink() and os.access(file, os.R_OK):
            return file
    return None


@dataclass(frozen=True)
class _Stage:
    """What the canaries act on: a directory, and listeners of this process."""

    place: Path
    secret: Path
    tcp: socket.socket
    udp: socket.socket
    unix: socket.socket
    abstract: socket.socket

    def canaries(self) -> Iterator[Canary]:
        written = self.place / "written"
        yield Canary("a write outside", lambda: written.write_text("x"))
        yield Canary("a change of mode", lambda: self.place.chmod(0o700))
        yield Canary("a removal", written.unlink)
        yield Canary("a masked read", self.secret.read_text)
        stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
        yield Canary("a connection by TCP", lambda: _send(stream, self.tcp))
        yield Canary("a datagram by UDP", lambda: _send(datagram, self.udp))
        yield Canary("a connection by a Unix socket", lambda: _send(stream, self.unix))
        yield Canary("a connection by an abstract socket", lambda: _send(stream, self.abstract))
        parent = os.getpid()
        yield Canary("a signal to the parent", lambda: _shell(f"kill -0 {parent}"))
        # one thread of the parent is enough: all have the same memory
        line = f"for t in /proc/{parent}/task/*; do head -c1 $t/environ && exit 0; done; exit 1"
        yield Canary("the parent's memory", lambda: _shell(line))

    def honest(self) -> dict[str, Callable[[], object]]:
        """Return what must go through, or a profile that refuses all would be proven."""
        return {
            "a read": (self.place / "open").read_text,
            "a program": lambda: _shell("test -r /bin/sh"),
            "a directory's names": lambda: os.listdir(self.place),
        }


@contextmanager
def _stage() -> Iterator[_Stage]:
    place = Path(scratch.make())
    with ExitStack() as stack:
        stack.callback(scratch.remove, str(place))
        secret = place / "secret"
        for file in (secret, place / "open"):
            file.write_text("x")
        inet, unix = socket.AF_INET, socket.AF_UNIX
        # the path of a Unix socket has 107 bytes at most, which a long TMPDIR exceeds
        short = stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))
        yield _Stage(
            place=place,
            secret=secret,
            tcp=_listener(stack, inet, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            udp=_listener(stack, inet, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            unix=_listener(stack, unix, socket.SOCK_STREAM, f"{short}/s"),
            abstract=_listener(stack, unix, socket.SOCK_STREAM, ""),
        )


def _listener(stack: ExitStack, family: int, kind: int, address: object) -> socket.socket:
    made = stack.enter_context(socket.socket(family, kind))
    made.bind(address)  # type: ignore[arg-type]  # a pair, or a path; "" asks for an abstract name
    if kind == socket.SOCK_STREAM:
        made.listen(8)
    return made


def _send(kind: int, listener: socket.socket) -> None:
    with socket.socket(listener.family, kind) as client:
        client.settimeout(_SECONDS)
        client.connect(listener.getsockname())
        client.send(b"x")


def _shell(line: str) -> None:
    """Run a line by ``/bin/sh``.

    Raises:
        PermissionError: it ended with another status than 0.
    """
    done = subprocess.run(  # noqa: S603 # a line of this module
        ["/bin/sh", "-c", line], capture_output=True, timeout=_SECONDS, check=False
    )
    if done.returncode != 0:
        raise PermissionError(done.stderr.decode("utf-8", "replace").strip())
