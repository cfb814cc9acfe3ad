"""Opening the file that was checked, and no other.

A path is a question, not a thing: between the decision and the call, another program can swap a file
or a directory for a link (CVE-2025-53109, CVE-2026-32043, CVE-2026-39861). ``open_checked`` closes that
gap for tools that open files through it:

- it walks the *resolved* path from ``/``, each component relative to the directory before it and
  without following links, so a component that became a link since the check ends the walk;
- it compares device and inode of what it opened with what the check saw, so another file put in the
  same place is noticed;
- a file that did not exist is made exclusively, in the directory that the check saw;
- it truncates only after all that, so a refused open destroys nothing.

Not guaranteed: that the *content* is the one that was there at the check (other programs may write
to it), that a deleted file's inode number was not given to a new one in between, and anything about
tools that open a path by themselves.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import IO, Any, Final

from agenttool_otel.errors import AgentToolError
from agenttool_otel.names import PathAccess
from agenttool_otel.readers.types import PathFact

# By getattr, because Windows has none of them; open_checked refuses there.
_NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_CLOSE_ON_EXEC: Final[int] = getattr(os, "O_CLOEXEC", 0)
_NO_BLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
_DIRECTORY: Final[int] = (
    getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW | _CLOSE_ON_EXEC
)
_MODES: Final = frozenset(
    {"r", "rb", "w", "wb", "a", "ab", "r+", "rb+", "r+b", "w+", "wb+", "w+b", "x", "xb"}
)


class PathChanged(AgentToolError, PermissionError):
    """What is at a path is not what the check saw, or the check did not establish what is there."""


def open_checked(
    fact: PathFact,
    mode: str = "r",
    *,
    permissions: int = 0o666,
    encoding: str | None = None,
    newline: str | None = None,
) -> IO[Any]:
    """Open the file that a fact is about; see the module's text for what is guaranteed and what is
    not.
    """
    if os.open not in os.supports_dir_fd or not _NO_FOLLOW:
        raise NotImplementedError("open_checked needs openat() and O_NOFOLLOW")
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {', '.join(sorted(_MODES))}")
    writes = mode[0] in "wax" or "+" in mode
    path = _ground(fact, writes)
    if fact["exists"] and mode[0] == "x":
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    if not fact["exists"] and mode[0] == "r":
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    descriptor = _open(fact, path, mode, permissions)
    try:
        if mode[0] == "w":
            os.ftruncate(descriptor, 0)
        return os.fdopen(descriptor, mode.replace("x", "w"), encoding=encoding, newline=newline)
    except BaseException:
        os.close(descriptor)
        raise


def _ground(fact: PathFact, writes: bool) -> str:
    path = fact["resolved"]
    if (
        path is None
        or not fact["certain"]
        or fact["rejected"] is not None
        or fact["identity"] is None
    ):
        raise PathChanged("the check did not establish what this path leads to")
    if not fact["inside"]:
        raise PathChanged("the path lies outside of every root")
    if writes and fact["access"] == PathAccess.READ:
        raise PathChanged("the check was for reading")
    return path


def _open(fact: PathFact, path: str, mode: str, permissions: int) -> int:
    *directories, name = [part for part in path.split("/") if part] or [""]
    if not name:
        raise PathChanged("the path is the root of the file system")
    try:
        parent = os.open("/", _DIRECTORY)
        try:
            for directory in directories:
                child = os.open(directory, _DIRECTORY, dir_fd=parent)
                os.close(parent)
                parent = child
            if fact["exists"]:
                return _open_existing(fact, parent, name, mode)
            return _make(fact, parent, name, mode, permissions)
        finally:
            os.close(parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT, errno.EEXIST, errno.ENXIO):
            raise PathChanged(
                f"the path changed since it was checked: {os.strerror(error.errno)}"
            ) from error
        raise


def _flags(mode: str) -> int:
    plain = os.O_RDONLY if mode[0] == "r" else os.O_WRONLY
    access = os.O_RDWR if "+" in mode else plain
    append = os.O_APPEND if mode[0] == "a" else 0
    return access | append | _NO_FOLLOW | _CLOSE_ON_EXEC | getattr(os, "O_NOCTTY", 0)


def _open_existing(fact: PathFact, parent: int, name: str, mode: str) -> int:
    # A FIFO or device put there since must not block or act: hence not blocking, and looked at
    # before anything else.
    descriptor = os.open(name, _flags(mode) | _NO_BLOCK, dir_fd=parent)
    try:
        status = os.fstat(descriptor)
        if f"{status.st_dev}:{status.st_ino}" != fact["identity"]:
            raise PathChanged("another file is there than the one that was checked")
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), fact["resolved"])
        if not stat.S_ISREG(status.st_mode):
            raise PathChanged("what is there is no regular file")
        if mode[0] != "r" or "+" in mode:
            links = fact["hard_links"]
            if links is None or status.st_nlink > links:
                raise PathChanged("the file got another name since it was checked")
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _make(fact: PathFact, parent: int, name: str, mode: str, permissions: int) -> int:
    status = os.fstat(parent)
    if f"{status.st_dev}:{status.st_ino}" != fact["identity"]:
        raise PathChanged("the directory of the new file is not the one that was checked")
    return os.open(name, _flags(mode) | os.O_CREAT | os.O_EXCL, permissions, dir_fd=parent)
