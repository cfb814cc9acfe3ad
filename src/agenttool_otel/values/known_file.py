"""A file that stays open for long is known by its name, and a name may come to lead to another file.

A backup tool that puts a copy in its place, a volume that is restored, a rotation, ``rm``: a
writer that goes on with the open handle then writes what is never read. So a writer notes what the
name led to, and looks again.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any, Final

_SQLITE_HEADER: Final = b"SQLite format 3\0"
_HEADERS: Final[dict[tuple[int, int], int]] = {}
"""Descriptors to read the headers of databases with. They stay open: closing one would end the
locks that SQLite holds on the same file in this process.
"""


class FileReplaced(OSError):
    """The name of an open file leads to another file by now, or to none."""


class KnownFile:
    """What a name led to when it was opened.

    Args:
        path: the name.
        descriptor: the open file; what the name leads to now, where not given.

    Raises:
        FileNotFoundError: there is no such file.
    """

    __slots__ = ("_content", "_identity", "_path")

    def __init__(self, path: str | os.PathLike[str], descriptor: int | None = None) -> None:
        self._path = os.fspath(path)
        status = os.stat(self._path) if descriptor is None else os.fstat(descriptor)
        self._identity = (status.st_dev, status.st_ino)
        self._content = (status.st_mtime_ns, status.st_size)

    def check(self) -> bool:
        """Return whether the file is as it was when it was opened; one that was written since is
        still the same file.

        Raises:
            FileReplaced: the name leads to another file, or to none.
        """
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            raise FileReplaced("what it had open was removed") from None
        if (status.st_dev, status.st_ino) != self._identity:
            raise FileReplaced("what it had open was replaced")
        return (status.st_mtime_ns, status.st_size) == self._content

    def check_header(self) -> None:
        """Refuse a database that was overwritten with something else.

        Raises:
            FileReplaced: it is none any more.
        """
        if not hasattr(os, "pread"):  # Windows, where an open file can't be replaced
            return
        if self._identity not in _HEADERS:
            _HEADERS[self._identity] = os.open(
                self._path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
            )
        header = os.pread(_HEADERS[self._identity], len(_SQLITE_HEADER), 0)
        if header not in (b"", _SQLITE_HEADER):
            raise FileReplaced("what it had open was overwritten")


def make_private_file(path: Path) -> None:
    """Make an empty file for its owner alone, where there is none.

    Args:
        path: the file; its folder is made as well.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # closing it would end the locks that this process has on it (POSIX)
    if not os.access(path, os.R_OK | os.W_OK):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


class _Connection(sqlite3.Connection):
    known: KnownFile
    is_new = True


def connect_to(path: Path, timeout: float) -> sqlite3.Connection:
    """Connect to a SQLite database that is there; none is made.

    Args:
        path: the database.
        timeout: seconds to wait for a lock.

    Raises:
        FileReplaced: there is no such file, or another one took its place just now.
    """
    uri = f"{path.absolute().as_uri()}?mode=rw"
    try:
        known = KnownFile(path)
    except FileNotFoundError:
        raise FileReplaced("its file was removed") from None
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=timeout,
        check_same_thread=False,
        isolation_level=None,
        factory=_Connection,
    )
    known.check()
    connection.known = known
    return connection


def watch_database(engine: Any) -> None:
    """Let each transaction of an SQLAlchemy engine look whether its SQLite file is still the one
    that it has open.

    One that was written by others, which also a checkpoint of SQLite's does, is connected to anew,
    so that nothing comes from the pages in memory that is not in the file. One that was replaced,
    removed or overwritten costs the operation that finds it; the next one opens what is there by
    then.

    Args:
        engine: the engine, whose connections come from ``connect_to``.
    """
    from sqlalchemy import event
    from sqlalchemy.exc import DisconnectionError

    def taken(connection: _Connection, _record: Any, _proxy: Any) -> None:
        if connection.is_new:
            connection.is_new = False
            return
        if not connection.known.check():
            connection.known.check_header()
            raise DisconnectionError

    def commits(connection: Any) -> None:
        connection.connection.dbapi_connection.known.check()

    event.listen(engine, "checkout", taken)
    event.listen(engine, "commit", commits)
