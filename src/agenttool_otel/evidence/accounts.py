"""How many records each process was given: what a killed one had in its queue leaves no gap in any
file, so another process counts it.

An account is a small file beside the records, locked for as long as its process lives. Whoever gets
the lock knows that the process is gone. The numbers are in shared memory, which costs a call a tenth
of a microsecond and outlives ``kill -9``, but not a machine that loses its power.
"""

from __future__ import annotations

import logging
import mmap
import os
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

    def __init__(self, path: Path, numbers: Sequence[int]) -> None:
        self._path = path
        self._descriptor = _made_and_locked(path)
        try:
            # real bytes: memory over a hole would raise a signal where the disk is full
            os.pwrite(self._descriptor, _NUMBERS.pack(*numbers), 0)
            self._memory = mmap.mmap(self._descriptor, _NUMBERS.size)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.numbers = memoryview(self._memory).cast("Q")

    def settle(self) -> bool:
        """Remove it if nothing is missing, and return whether it is removed; the lock is held."""
        if self.numbers[TAKEN] != self.numbers[WRITTEN]:
            return False
        _remove(self._path)
        self.close()
        return True

    def close(self) -> None:
        """Close the file, which stays: a forked child closes that of its parent."""
        self.numbers.release()
        self._memory.close()  # which holds a descriptor, and the lock, too
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
    held: list[tuple[int, Path]] = []
    gone: list[GoneAccount] = []
    try:
        for each in _files_in(folder_of(path)):
            descriptor = _locked_if_gone(each)
            if descriptor is not None:
                held.append((descriptor, each))
                gone.append(_read(each, descriptor))
        yield [each for each in gone if each.taken > each.written]
        for _, each in held:
            _remove(each)
    finally:
        for descriptor, _ in held:
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
    for each in _files_in(folder_of(path)):
        descriptor = _locked_if_gone(each)
        if descriptor is None:
            continue
        account = _read(each, descriptor)
        os.close(descriptor)
        lost += account.lost_after(sequences.get(each.name, 0))
    return lost


def _read(path: Path, descriptor: int) -> GoneAccount:
    content = os.pread(descriptor, _NUMBERS.size, 0)
    # who was killed while it made its account has been given nothing yet
    numbers = _NUMBERS.unpack(content) if len(content) == _NUMBERS.size else (0, 0)
    return GoneAccount(path, *numbers)


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


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _locked_if_gone(path: Path) -> int | None:
    """Return a file locked, ``None`` where its process lives or another one has counted it."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        KnownFile(path, descriptor).check()
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove(path: Path) -> None:
    """Remove an account, and the folder behind the last one."""
    with suppress(OSError):
        path.unlink()
        path.parent.rmdir()
