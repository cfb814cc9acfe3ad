"""Attempts to connect, counted by a seccomp notification.

A thread that is about to start a command restricts itself by a filter, which its children inherit; ``connect`` and
``sendto`` with an address then wait for an answer from here. The network namespace is what holds: the answer to all
but Unix sockets is "go on", and leads nowhere. A message by ``sendmsg`` with an address is held, too, and not counted.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import socket
import struct
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final

from agenttool_otel.enforcement.rehearsal.types import Connection

_PR_SET_NO_NEW_PRIVS: Final = 38
_SET_MODE_FILTER: Final = 1
_NEW_LISTENER: Final = 1 << 3
_RECEIVE: Final = 0xC0502100  # SECCOMP_IOCTL_NOTIF_RECV
_SEND: Final = 0xC0182101  # SECCOMP_IOCTL_NOTIF_SEND
_CONTINUE: Final = 1
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
"""id, process, flags; of the system call: number, architecture, instruction, six arguments."""
_ANSWER: Final = struct.Struct("=QqiI")
_LONGEST_ADDRESS: Final = 128


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


@cache
def _filter() -> tuple[bytes, int, dict[int, int]]:
    """Return the filter's program, the number of ``seccomp``, and of each counted system call which
    argument is the address.
    """
    import pyseccomp

    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    rules.add_rule(pyseccomp.NOTIFY, "connect")
    # send(2) is a sendto without an address
    rules.add_rule(pyseccomp.NOTIFY, "sendto", pyseccomp.Arg(4, pyseccomp.NE, 0))
    # a ring can connect without a system call of that name
    rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "io_uring_setup")
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        program = file.read()
    number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, "seccomp")
    connect = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, "connect")
    sendto = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, "sendto")
    return program, number, {connect: 1, sendto: 4}


def listen() -> int | None:
    """Restrict the calling thread, for good, and return the descriptor of its notifications;
    ``None`` where this host has none.
    """
    try:
        program, number, _ = _filter()
    except (ImportError, OSError, RuntimeError, AttributeError):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program, len(program))
    rules = _Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return None
    descriptor = libc.syscall(number, _SET_MODE_FILTER, _NEW_LISTENER, ctypes.byref(rules))
    if descriptor < 0:
        return None
    return int(descriptor)


class Attempts:
    """Counts what commands try to connect to.

    Args:
        private: directories of which the sandbox has its own: Unix sockets in them are its own.
    """

    def __init__(self, private: Sequence[str]) -> None:
        self._private = tuple(f"{path}/" for path in private)
        self._found: Counter[tuple[str, int, str]] = Counter()

    def connections(self) -> tuple[Connection, ...]:
        """Return what was tried so far."""
        found = []
        for (host, port, family), attempts in sorted(self._found.items()):
            found.append(Connection(host, port, family, attempts))
        return tuple(found)

    @contextmanager
    def answering(self, listener: int) -> Iterator[None]:
        """Answer notifications while the block runs, and close their descriptor."""
        stop, stopped = os.pipe()
        thread = threading.Thread(
            target=self._answer, args=(listener, stop), name="agenttool-attempts", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            os.close(stopped)
            thread.join()
            os.close(stop)
            os.close(listener)

    def _answer(self, listener: int, stop: int) -> None:
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(stop, select.POLLHUP)
        while True:
            ready = dict(poll.poll())
            if stop in ready:
                return
            if ready.get(listener, 0) & select.POLLIN:
                self._answer_next(listener)

    def _answer_next(self, listener: int) -> None:
        buffer = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, buffer)
        except OSError:  # the process was killed while it waited
            return
        fields = _NOTIFICATION.unpack(buffer)
        allowed = self._note(fields[1], fields[3], fields[6:])
        answer = _ANSWER.pack(fields[0], 0, 0, _CONTINUE)
        if not allowed:
            answer = _ANSWER.pack(fields[0], 0, -errno.ECONNREFUSED, 0)
        try:
            fcntl.ioctl(listener, _SEND, bytearray(answer))
        except OSError:
            return

    def _note(self, process: int, call: int, arguments: tuple[int, ...]) -> bool:
        """Count an attempt, and return whether it may go on."""
        place = _filter()[2][call]
        address = _read(process, arguments[place], min(arguments[place + 1], _LONGEST_ADDRESS))
        if len(address) < 2:
            return False
        (family,) = struct.unpack_from("=H", address)
        if family == socket.AF_UNIX:
            return self._note_unix(process, address[2:])
        if family == socket.AF_INET and len(address) >= 8:
            self._count(socket.inet_ntop(family, address[4:8]), address, "inet")
        if family == socket.AF_INET6 and len(address) >= 24:
            self._count(socket.inet_ntop(family, address[8:24]), address, "inet6")
        return True

    def _note_unix(self, process: int, address: bytes) -> bool:
        # "\0name" is of the network namespace, which the sandbox has of its own
        if address[:1] in (b"", b"\0"):
            return True
        path = os.fsdecode(address.partition(b"\0")[0])
        try:
            here = os.readlink(f"/proc/{process}/cwd")
        except OSError:
            return False
        path = os.path.normpath(os.path.join(here, path))
        if path.startswith(self._private):
            return True
        self._found[path, 0, "unix"] += 1
        return False

    def _count(self, host: str, address: bytes, family: str) -> None:
        (port,) = struct.unpack_from("!H", address, 2)
        self._found[host, port, family] += 1


def _read(process: int, address: int, length: int) -> bytes:
    try:
        with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
            return os.pread(memory.fileno(), length, address)
    except (OSError, OverflowError):
        return b""
