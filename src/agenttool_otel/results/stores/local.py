"""Blobs in a local directory: private permissions, atomic writes, safe beside other writers."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from agenttool_otel.errors import PersistenceError
from agenttool_otel.results.stores.types import BlobInfo
from agenttool_otel.values.known_file import FileReplaced, KnownFile

_KEY: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._\-]*(/[A-Za-z0-9_][A-Za-z0-9._\-]*)*")
_MAX_KEY_CHARS: Final = 255


class LocalBackend:
    """Keeps each blob in a file of its own.

    Directories are 0700 and files 0600 whatever the umask says. A blob is written to a temporary
    file, flushed to the disk and renamed, so that a crash leaves the old state or the new one.
    Symbolic links inside are never followed.

    Args:
        root: the directory; it is made when first needed. An existing one must belong to the user
            and nobody else may write to it.
        durable: flush to the disk before a write counts (``fsync``); off only for tests and scratch
          space.
    """

    name = "local"

    def __init__(self, root: str | os.PathLike[str], *, durable: bool = True) -> None:
        self._root = Path(root)
        self._durable = durable
        self._known: KnownFile | None = None

    def put(self, key: str, chunks: Iterable[bytes]) -> None:
        """Write a blob atomically; see Backend."""
        target = self._path(key)
        with _failing("write"):
            self._make_parent(target)
            temporary = target.parent / f"_{uuid4().hex}.tmp"
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW, 0o600)
            try:
                with os.fdopen(descriptor, "wb", buffering=0) as file:
                    for chunk in chunks:
                        view = memoryview(chunk)
                        while view.nbytes:
                            view = view[file.write(view) :]
                    if self._durable:
                        os.fsync(file.fileno())
                temporary.replace(target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            self._flush_directory(target.parent)

    def get(self, key: str, start: int, length: int) -> bytes:
        """Read a part of a blob; see Backend."""
        with _failing("read"):
            try:
                descriptor = os.open(self._path(key), os.O_RDONLY | _NOFOLLOW)
            except FileNotFoundError:
                # where the whole directory is gone, it is not this blob that is missing
                self._check_root()
                raise KeyError(key) from None
            with os.fdopen(descriptor, "rb") as file:
                file.seek(start)
                return file.read(length)

    def size(self, key: str) -> int | None:
        """Return a blob's size; see Backend."""
        with _failing("look up"):
            try:
                status = self._path(key).lstat()
            except FileNotFoundError:
                return None
            return status.st_size if stat.S_ISREG(status.st_mode) else None

    def move(self, source: str, target: str) -> None:
        """Rename a blob; see Backend."""
        destination = self._path(target)
        with _failing("rename"):
            self._make_parent(destination)
            self._path(source).replace(destination)
            self._flush_directory(destination.parent)

    def touch(self, key: str) -> None:
        """Set a blob's time to now; see Backend."""
        with _failing("touch"):
            os.utime(self._path(key))

    def delete(self, key: str) -> None:
        """Remove a blob; see Backend."""
        with _failing("delete"):
            self._path(key).unlink(missing_ok=True)

    def list(self, prefix: str) -> Iterator[BlobInfo]:
        """Yield the blobs under a prefix; see Backend."""
        stack = [self._root / prefix]
        while stack:
            with _failing("list"):
                for entry in _entries(stack.pop()):
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        with suppress(FileNotFoundError):  # another process removed it meanwhile
                            status = entry.stat(follow_symlinks=False)
                            key = Path(entry.path).relative_to(self._root).as_posix()
                            yield BlobInfo(key, status.st_size, status.st_mtime)

    def free_bytes(self) -> int | None:
        """Return the free space of the file system."""
        try:
            return shutil.disk_usage(self._root).free
        except OSError:
            return None

    def _path(self, key: str) -> Path:
        if len(key) > _MAX_KEY_CHARS or _KEY.fullmatch(key) is None:
            raise PersistenceError("not a key of this store")
        return self._root / key

    def _make_parent(self, target: Path) -> None:
        self._check_root()
        if self._known is None:
            self._make_private(self._root)
            self._known = KnownFile(self._root)
        inner = [folder for folder in target.parents if self._root in folder.parents]
        for folder in reversed(inner):
            self._make_private(folder)

    def _check_root(self) -> None:
        """Refuse what finds another directory than the one in use, or none; the next use takes it
        as a new one.
        """
        if self._known is None:
            return
        try:
            self._known.check()
        except FileReplaced as error:
            if self._root.exists():
                self._known = None
            raise PersistenceError(f"the store can't be used: {error}") from None

    def _make_private(self, folder: Path) -> None:
        try:
            # Parents above the root get the user's usual permissions; they are not ours.
            if folder == self._root:
                folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
        except FileExistsError:
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode):
                raise PersistenceError("the store's directory is a link or a file") from None
            if hasattr(os, "getuid") and status.st_uid != os.getuid():
                raise PersistenceError("the store's directory belongs to another user") from None
            if status.st_mode & 0o022:
                raise PersistenceError("the store's directory is writable by others") from None
        else:
            folder.chmod(0o700)

    def _flush_directory(self, folder: Path) -> None:
        if not self._durable or os.name != "posix":
            return
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with suppress(FileNotFoundError, NotADirectoryError):
        return list(os.scandir(folder))
    return []


@contextmanager
def _failing(action: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # Without the path: it may hold a user's or tenant's name, and the message reaches
        # telemetry.
        raise PersistenceError(
            f"can't {action}: {error.strerror or type(error).__name__}"
        ) from error
