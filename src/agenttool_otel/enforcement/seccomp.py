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
from typing import Final

from agenttool_otel.enforcement import bpf
from agenttool_otel.enforcement.bpf import Check, Refusal, only
from agenttool_otel.enforcement.libc import prctl
from agenttool_otel.values.tables import load_table

_LAST_CALL: Final = 450  # set_mempolicy_home_node; numbers from 424 on are those of every machine
_THREAD: Final = 0x7FFA_51D3  # stands for the id of the thread that installs the program
_PR_SET_SECCOMP: Final = 22
_MODE_FILTER: Final = 2

# CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NAMESPACES: Final = (
    0x80 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
)
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


@lru_cache(maxsize=4)
def _program(process: int) -> bytes:
    """Return the program of a process.

    Args:
        process: its id; a forked child is another.

    Raises:
        ImportError, RuntimeError: pyseccomp or libseccomp is missing.
        LookupError: libseccomp is too old for a call.
        struct.error: the program is too long.
    """
    import pyseccomp

    refusals = {}
    for name, refusal in _refusals(process).items():
        number = pyseccomp.resolve_syscall(pyseccomp.system_arch(), name)
        if number == -1:
            raise LookupError(f"libseccomp does not know the system call {name}")
        # aarch64 has no chmod, only fchmodat: libseccomp answers with a negative number
        if number >= 0:
            refusals[number] = refusal
    return bpf.program(pyseccomp.system_arch(), _LAST_CALL, refusals)


def _refusals(process: int) -> dict[str, Refusal]:
    """Return how each call is judged that is not simply allowed, by its name."""
    refusals = {
        **_of_sockets(),
        **_of_signals(process),
        "clone": _where(Check(0, _NAMESPACES, any_bit=True)),
        "ioctl": _where(*(Check(1, request) for request in _DEVICE_CONTROLS)),
        "fcntl": _where(*(Check(1, request) for request in _OWNER_OF_SIGNALS)),
        **dict.fromkeys(_ONLY_ITSELF, _where(*only(0, 0))),
        **dict.fromkeys(_ONLY_ITSELF_SECOND, _where(*only(1, 0))),
    }
    # the table comes last: what it refuses is refused whatever the arguments are
    for group in load_table("agenttool_otel.enforcement", "data/refused_calls.toml").values():
        for name in group["calls"]:
            refusals[name] = Refusal(getattr(errno, group["errno"]))
    return refusals


def _where(*checks: Check) -> Refusal:
    return Refusal(errno.EPERM, checks)


def _of_sockets() -> dict[str, Refusal]:
    """Refuse all but pairs that stay in the process: a datagram socket of a pair can send to any
    address.
    """
    kinds = (
        # of the kinds 0 to 15 that leaves 0b0001 and 0b0101, SOCK_STREAM and SOCK_SEQPACKET
        Check(1, 0b0001, any_bit=True, refused=False),
        Check(1, 0b1010, any_bit=True),
    )
    return {
        "socketpair": Refusal(errno.EACCES, (*only(0, socket.AF_UNIX), *kinds)),
        # a socket that was open before may not be pointed to another address
        "sendto": Refusal(errno.EACCES, only(4, 0)),
    }


def _of_signals(process: int) -> dict[str, Refusal]:
    """Refuse signals to the agent by the id of its process, and of the thread that is confined.

    Landlock lets a process signal its own domain, and the thread that started it is a part of that:
    ``tgkill(agent, thread, SIGKILL)`` would end the agent.
    """
    by_process = _where(Check(0, process), Check(0, _THREAD))
    by_thread = _where(Check(0, process), Check(1, _THREAD))
    return {
        **dict.fromkeys(("kill", "rt_sigqueueinfo", "pidfd_open"), by_process),
        **dict.fromkeys(("tgkill", "rt_tgsigqueueinfo"), by_thread),
    }


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
    program = _Program(len(instructions) // bpf.SIZE, instructions)
    prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program))


def _operand(value: int) -> bytes:
    return struct.pack("=I", value)
