"""How many records each process was given: what a killed one had in its queue leaves no gap in any
file, so another process counts it.

An account is a small file beside the records, locked for as long as its process lives: where the lock
can be had, the process is gone. The numbers are written without a sync, which costs a call a
microsecond and outlives ``kill -9``, but not a machine that loses its power.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

try:
    import fcntl
except ImportError:  # Windows: what a killed process loses is not counted there
    fcntl = None  # type: ignore[assignment]

from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.sinks import TAKEN, WRITTEN
from agenttool_otel.values.known_file import FileReplaced, KnownFile

_NUMBERS: Final = struct.Struct("=QQ")
_PRODUCER: Final = re.compile("producer_[0-9a-f]+")
"""Names of accounts: the ids of producers."""
_ATTEMPTS: Final = 10
_FLAGS: Final = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_logger = logging.getLogger("agenttool_otel.evidence")


class Account:
    """What this process was given for a file of records, and what of it stands there.

    Args:
        path: the account's own file.
        numbers: records that the producer was given, and the last one that was written.

    Raises:
        OSError: it can't be made.
    """

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path, numbers: Sequence[int]) -> None:
        self._path = path
        self._descriptor = _made_and_locked(path)
        try:
            # at once: a disk that is full later still takes other numbers in their place
            os.pwrite(self._descriptor, _NUMBERS.pack(*numbers), 0)
        except BaseException:
            os.close(self._descriptor)
            raise

    def note(self, numbers: Sequence[int]) -> None:
        """Write the numbers, also where the file was truncated; an error is not raised.

        Args:
            numbers: records that the producer was given, and the last one that was written.
        """
        # not mapped memory: a truncated file would end the process there with SIGBUS
        try:
            os.pwrite(self._descriptor, _NUMBERS.pack(*numbers), 0)
        except OSError:
            return  # suppress() would cost each call a third of a write

    def settle(self, numbers: Sequence[int]) -> bool:
        """Remove it if nothing is missing, and return whether it is removed; the lock is held.

        Args:
            numbers: records that the producer was given, and the last one that was written.
        """
        if numbers[TAKEN] != numbers[WRITTEN]:
            return False
        _remove(self._path)
        self.close()
        return True

    def close(self) -> None:
        """Close the file, which stays: a forked child closes that of its parent."""
        os.close(self._descriptor)


class GoneAccount(NamedTuple):
    """The account of a process that is gone."""

    path: Path
    taken: int
    written: int  # at least: it may have been killed before it noted the last ones

    def lost_after(self, last: int) -> int:
        """Return how many records it lost.

        Args:
            last: the number of its last line in the files.
        """
        return max(0, self.taken - max(self.written, last))

    def record(self) -> JsonObject:
        """Return the record of what it lost; who reads the files knows what was written."""
        return {"producer": self.path.name, "taken": self.taken, "written": self.written}


def folder_of(path: Path) -> Path:
    """Return where the accounts of a file of records are.

    Args:
        path: the file.
    """
    return Path(f"{path}.accounts")


def open_account(path: Path, producer: str, numbers: Sequence[int]) -> Account | None:
    """Open the account of a producer, ``None`` where the file system lets none be kept.

    Args:
        path: the file of records.
        producer: its id.
        numbers: records that it was given, and the last one that was written.
    """
    if fcntl is None:
        return None
    try:
        return Account(folder_of(path) / producer, numbers)
    except OSError as error:
        _logger.warning("what a killed process loses is not counted: %s", type(error).__name__)
        return None


@contextmanager
def gone_accounts(path: Path) -> Iterator[list[GoneAccount]]:
    """Give the accounts of processes that are gone with records lost, and remove them behind it
    unless it raises; the file of records is locked.

    Args:
        path: the file of records.
    """
    if fcntl is None:
        yield []
        return
    held: list[int] = []
    gone: list[GoneAccount] = []
    try:
        for each in _accounts_in(folder_of(path)):
            found = _locked_if_gone(each)
            if found is not None:
                held.append(found[0])
                gone.append(found[1])
        yield [each for each in gone if each.taken > each.written]
        for account in gone:
            _remove(account.path)
    finally:
        for descriptor in held:
            os.close(descriptor)


def unreported(path: Path, sequences: Mapping[str, int]) -> int:
    """Return how many records killed processes lost of which no line was written yet.

    Args:
        path: the file of records.
        sequences: the number of each producer's last line in it.
    """
    if fcntl is None:
        return 0
    lost = 0
    for each in _accounts_in(folder_of(path)):
        found = _locked_if_gone(each)
        if found is None:
            continue
        descriptor, account = found
        os.close(descriptor)
        lost += account.lost_after(sequences.get(each.name, 0))
    return lost


def _read(path: Path, descriptor: int) -> GoneAccount:
    """Return what an account's file holds.

    Raises:
        OSError: it is no account: a FIFO, a stray file of another size.
    """
    content = os.pread(descriptor, _NUMBERS.size + 1, 0)
    if len(content) != _NUMBERS.size or not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError("no account")
    return GoneAccount(path, *_NUMBERS.unpack(content))


def _made_and_locked(path: Path) -> int:
    """Make a file for its owner alone, and return it locked.

    Raises:
        OSError: it can't be made.
    """
    for _ in range(_ATTEMPTS):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            descriptor = os.open(path, _FLAGS | os.O_CREAT, 0o600)
        except FileNotFoundError:  # another process has just removed the empty folder
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # who looked between both lines took it for that of a process that is gone
            KnownFile(path, descriptor).check()
        except FileReplaced:
            os.close(descriptor)
            continue
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor
    raise FileReplaced("the account is removed again and again")


def _accounts_in(folder: Path) -> list[Path]:
    """Return the files that are named like accounts; others are left alone."""
    try:
        return sorted(each for each in folder.iterdir() if _PRODUCER.fullmatch(each.name))
    except OSError:
        return []


def _locked_if_gone(path: Path) -> tuple[int, GoneAccount] | None:
    """Return an account with its open file, which is locked; ``None`` where its process lives, another
    one has counted it, or it is none.
    """
    try:
        # a FIFO without a reader would be waited for
        descriptor = os.open(path, _FLAGS | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        KnownFile(path, descriptor).check()
        return descriptor, _read(path, descriptor)
    except OSError:
        os.close(descriptor)
        return None


def _remove(path: Path) -> None:
    """Remove an account, and the folder behind the last one."""
    with suppress(OSError):
        path.unlink()
        path.parent.rmdir()
