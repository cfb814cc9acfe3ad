"""Landlock rulesets, by py-landlock's system calls.

py-landlock's own class builds a ruleset for every call; a ruleset with two hundred rules is built
once here, and each thread enters it by its descriptor.

Source: https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import os
import stat
from functools import cache, lru_cache
from typing import Final
from weakref import finalize

import py_landlock as kernel
from py_landlock import AccessFs, AccessNet, Scope
from py_landlock.abi import get_supported_fs, get_supported_net, get_supported_scope
from py_landlock.prctl import set_no_new_privs

NEEDED_ABI: Final = 6
"""Since Linux 6.12 signals and abstract sockets stay in a domain; before 6.2, open() could cut a
file that it only reads.
"""

_READING: Final = AccessFs.READ_FILE | AccessFs.READ_DIR
# EXECUTE is no write: a program runs under the profile, too
_NOT_WRITING: Final = _READING | AccessFs.EXECUTE


_OF_FILES: Final = AccessFs.READ_FILE | AccessFs.WRITE_FILE | AccessFs.TRUNCATE | AccessFs.IOCTL_DEV
_WRITING_OF_FILES: Final = AccessFs.WRITE_FILE | AccessFs.TRUNCATE | AccessFs.IOCTL_DEV
# directories of calls that run at once, and the spare ones
_MOST_KEPT: Final = 16
_BY_PATH: Final = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW

DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
"""Devices that may be read and written; no others: a disk has every secret on it."""


@cache
def _devices() -> tuple[int, ...]:
    """Return descriptors of the devices, which stay open."""
    return tuple(os.open(place, _BY_PATH) for place in DEVICES if _is_device(place))


def _is_device(place: str) -> bool:
    try:
        return stat.S_ISCHR(os.lstat(place).st_mode)
    except OSError:
        return False


@cache
def check() -> None:
    """Look at what the kernel offers.

    Raises:
        LandlockError: it has no Landlock, or none that does what is needed.
    """
    version = kernel.get_abi_version()
    if version < NEEDED_ABI:
        raise kernel.CompatibilityError("signals and abstract sockets", NEEDED_ABI, version)


def reads() -> kernel.RulesetAttr:
    """Return what a ruleset of reading judges."""
    judged = kernel.RulesetAttr()
    # a ruleset that leaves REFER out forbids every move to another directory
    judged.handled_access_fs = _READING | AccessFs.REFER
    return judged


@cache
def _writing() -> AccessFs:
    return get_supported_fs(kernel.get_abi_version()) & ~_NOT_WRITING


@cache
def writes() -> kernel.RulesetAttr:
    """Return what a ruleset of everything else judges: writes, TCP, signals, abstract sockets."""
    version = kernel.get_abi_version()
    judged = kernel.RulesetAttr()
    judged.handled_access_fs = _writing()
    judged.handled_access_net = get_supported_net(version)
    judged.scoped = get_supported_scope(version)
    return judged


class Ruleset:
    """A ruleset, open as long as this object lives: threads enter it by its descriptor.

    Args:
        judged: what it judges.

    Attributes:
        descriptor: closed with the last reference to this object, which a thread that is about to
          enter it holds: the number would be another file's.

    Raises:
        LandlockError: the kernel takes no ruleset.
    """

    def __init__(self, judged: kernel.RulesetAttr) -> None:
        self.descriptor = int(kernel.create_ruleset(judged))
        finalize(self, os.close, self.descriptor)

    def allow_listing(self, place: str) -> None:
        """Let directories be listed, and files be moved, from here on down."""
        self._allow(place, AccessFs.READ_DIR | AccessFs.REFER)

    def allow_reading(self, place: str) -> None:
        """Let files be read from here on down."""
        self._allow(place, _READING)

    def allow_writing(self, place: str) -> None:
        """Let files be changed and made from here on down; of a file, let it be written."""
        self._allow(place, _writing())

    def allow_devices(self) -> None:
        """Let the devices that hold nothing be written."""
        for descriptor in _devices():
            self._add(descriptor, _WRITING_OF_FILES)

    def _allow(self, place: str, access: AccessFs) -> None:
        try:
            descriptor = os.open(place, _BY_PATH)
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            return  # gone since it was listed, or nothing that this user reaches
        try:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                # the kernel refuses rules about entries of what is no directory
                access &= _OF_FILES
            if access:
                self._add(descriptor, access)
        finally:
            os.close(descriptor)

    def _add(self, descriptor: int, access: AccessFs) -> None:
        rule = kernel.PathBeneathAttr()
        rule.allowed_access = access
        rule.parent_fd = descriptor
        kernel.add_rule(kernel.RulesetFd(self.descriptor), rule)


@lru_cache(maxsize=_MOST_KEPT)
def writable(scratch: str) -> Ruleset:
    """Return the ruleset of writing nothing but a call's directory and the devices, made once a
    directory.

    Args:
        scratch: the directory. Its path is never another directory's in the same process.

    Raises:
        LandlockError: the kernel takes no ruleset.
    """
    ruleset = Ruleset(writes())
    ruleset.allow_writing(scratch)
    ruleset.allow_devices()
    return ruleset


def enter(descriptor: int) -> None:
    """Restrict the current thread, and what it starts, for ever; it needs no_new_privs.

    Raises:
        LandlockError: the kernel refuses; a thread can enter 16 rulesets.
    """
    kernel.restrict_self(kernel.RulesetFd(descriptor), None)


__all__ = [
    "DEVICES", "NEEDED_ABI", "AccessFs", "AccessNet", "Ruleset", "Scope", "check", "enter", "reads", "set_no_new_privs",
    "writable", "writes",
]  # fmt: skip
