"""The system calls that a profile refuses, as one BPF program that a thread installs for itself.

The table is ``data/refused_calls.toml``; here are the calls of which some arguments are refused. A
program of another architecture (x32, i386) is refused every call, and so is every call with a
number that was new after Linux 5.17: programs fall back to what that kernel had.

Arguments are compared in their lower 32 bits wherever the kernel reads an int: it would take
``kill(0x100000001, 9)`` for ``kill(1, 9)``.

Source: https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from functools import lru_cache
from typing import Any, Final

from agenttool_otel.enforcement.libc import prctl
from agenttool_otel.values.tables import load_table

_LAST_CALL: Final = 450  # set_mempolicy_home_node; numbers from 424 on are those of every machine
_LOW: Final = 0xFFFFFFFF
_THREAD: Final = 0x7FFA_51D3  # stands for the id of the thread that installs the program
_INSTRUCTION: Final = "=HBBI"  # code, jump if true, jump if false, operand
_LOAD, _IF_GREATER, _RETURN = 0x20, 0x25, 0x06
_PR_SET_SECCOMP: Final = 22
_MODE_FILTER: Final = 2

# CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NAMESPACES: Final = (
    0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_DEVICE_CONTROLS: Final = (
    0x5412,  # TIOCSTI types into the terminal
    0x541C,  # TIOCLINUX pastes into it
    0x40086602, 0x40046602,  # FS_IOC_SETFLAGS: chattr needs no open for writing
    0x401C5820,  # FS_IOC_FSSETXATTR
    0xC0045877, 0xC0045878, 0xC0185879,  # FIFREEZE, FITHAW, FITRIM
    0x8901, 0x8902,  # FIOSETOWN, SIOCSPGRP: whom SIGIO is sent to
)  # fmt: skip
_OWNER_OF_SIGNALS: Final = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX
_ONLY_ITSELF: Final = (
    "prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr",
)  # fmt: skip
_ONLY_ITSELF_SECOND: Final = ("setpriority", "ioprio_set")


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _number(library: Any, name: str) -> int | None:
    """Return a call's number; ``None`` where this machine has no such call.

    Raises:
        LookupError: the library does not know the name.
    """
    number = library.resolve_syscall(library.system_arch(), name)
    if number == -1:
        raise LookupError(f"libseccomp does not know the system call {name}")
    # aarch64 has no chmod, only fchmodat: libseccomp answers with a negative number
    return int(number) if number >= 0 else None


class _Filter:
    """Rules, by name of the call."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._filter = library.SyscallFilter(library.ALLOW)
        self._filter.set_attr(library.Attr.ACT_BADARCH, library.ERRNO(errno.EPERM))
        # a tree instead of a chain: the kernel runs the program for each number when it is loaded
        self._filter.set_attr(library.Attr.CTL_OPTIMIZE, 2)

    def refuse(self, name: str, code: int, *arguments: Any) -> None:
        number = _number(self._library, name)
        if number is not None:
            self._filter.add_rule_exactly(self._library.ERRNO(code), number, *arguments)

    def refuse_value(self, name: str, position: int, value: int, code: int = errno.EPERM) -> None:
        """Refuse a call where the lower half of an argument has a value."""
        self.refuse_bits(name, position, _LOW, value, code)

    def refuse_bits(
        self, name: str, position: int, mask: int, value: int, code: int = errno.EPERM
    ) -> None:
        equal = self._library.Arg(position, self._library.MASKED_EQ, mask, value)
        self.refuse(name, code, equal)

    def refuse_others(self, name: str, position: int, value: int, code: int = errno.EPERM) -> None:
        """Refuse a call unless an argument has a value in all its 64 bits."""
        self.refuse(name, code, self._library.Arg(position, self._library.NE, value))

    def program(self) -> bytes:
        """Return the instructions, those for numbers that are not known in front."""
        descriptor = os.memfd_create("filter", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "r+b") as file:
            self._filter.export_bpf(file)
            file.seek(0)
            known = file.read()
        unknown = [
            (_LOAD, 0, 0, 0),
            (_IF_GREATER, 0, 1, _LAST_CALL),
            (_RETURN, 0, 0, self._library.ERRNO(errno.ENOSYS)),
        ]
        return b"".join(struct.pack(_INSTRUCTION, *line) for line in unknown) + known


@lru_cache(maxsize=4)
def _program(process: int) -> bytes:
    """Return the program of a process.

    Args:
        process: its id; a forked child is another.

    Raises:
        ImportError, RuntimeError: pyseccomp or libseccomp is missing.
        LookupError, OSError: libseccomp is too old for a rule.
    """
    import pyseccomp

    rules = _Filter(pyseccomp)
    for group in load_table("agenttool_otel.enforcement", "data/refused_calls.toml").values():
        for name in group["calls"]:
            rules.refuse(name, getattr(errno, group["errno"]))
    _refuse_sockets(rules)
    _refuse_signals(rules, process)
    for flag in _NAMESPACES:
        rules.refuse_bits("clone", 0, flag, flag)
    for request in _DEVICE_CONTROLS:
        rules.refuse_value("ioctl", 1, request)
    for request in _OWNER_OF_SIGNALS:
        rules.refuse_value("fcntl", 1, request)
    for name in _ONLY_ITSELF:
        rules.refuse_others(name, 0, 0)
    for name in _ONLY_ITSELF_SECOND:
        rules.refuse_others(name, 1, 0)
    return rules.program()


def _refuse_sockets(rules: _Filter) -> None:
    """Refuse all but pairs that stay in the process: a datagram socket of a pair can send to any
    address.
    """
    rules.refuse_others("socketpair", 0, socket.AF_UNIX, errno.EACCES)
    # of the kinds 0 to 15 that leaves 0b0001 and 0b0101, SOCK_STREAM and SOCK_SEQPACKET
    for bit, refused in ((0b0001, 0), (0b0010, 0b0010), (0b1000, 0b1000)):
        rules.refuse_bits("socketpair", 1, bit, refused, errno.EACCES)
    # a socket that was open before may not be pointed to another address
    rules.refuse_others("sendto", 4, 0, errno.EACCES)


def _refuse_signals(rules: _Filter, process: int) -> None:
    """Refuse signals to the agent by the id of its process, and of the thread that is confined.

    Landlock lets a process signal its own domain, and the thread that started it is a part of that:
    ``tgkill(agent, thread, SIGKILL)`` would end the agent.
    """
    for name in ("kill", "rt_sigqueueinfo", "pidfd_open"):
        rules.refuse_value(name, 0, process)
        rules.refuse_value(name, 0, _THREAD)
    for name in ("tgkill", "rt_tgsigqueueinfo"):
        rules.refuse_value(name, 0, process)
        rules.refuse_value(name, 1, _THREAD)


def check() -> None:
    """Build the program once; see ``_program`` for what is raised."""
    _program(os.getpid())


def install(thread: int) -> None:
    """Refuse the calls to the current thread, and to what it starts.

    Args:
        thread: its id (``threading.get_native_id()``).

    Raises:
        OSError: the kernel takes no filter.
    """
    instructions = _program(os.getpid()).replace(_operand(_THREAD), _operand(thread))
    program = _Program(len(instructions) // struct.calcsize(_INSTRUCTION), instructions)
    prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program))


def _operand(value: int) -> bytes:
    return struct.pack("=I", value)
