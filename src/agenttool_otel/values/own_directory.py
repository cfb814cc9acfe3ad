"""Private temporary directories that belong to a process.

Each is locked while its process lives. What a process that was killed left behind is removed by the
next that makes one of the same kind: the kernel has released the lock.

Source: https://man7.org/linux/man-pages/man2/flock.2.html
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from weakref import finalize

try:
    import fcntl
except ImportError:  # Windows: what a killed process leaves stays
    fcntl = None  # type: ignore[assignment]

_ATTEMPTS: Final = 10
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


class OwnDirectory:
    """A temporary directory that only this user may enter, and that its process removes.

    Args:
        kind: the directory's name begins with ``agenttool-`` and this.
        owner: the directory is removed when this is collected, or the process ends. A forked child
          does not remove what is its parent's.

    Attributes:
        path: the directory.

    Raises:
        OSError: it can't be made.
    """

    def __init__(self, kind: str, owner: object) -> None:
        prefix = f"agenttool-{kind}-"
        _remove_leftovers(prefix)
        self.path, self._lock = _make(prefix)
        self._finalize = finalize(owner, _close, self.path, self._lock, os.getpid())

    def remove(self) -> None:
        """Remove it now; more than once is no error."""
        self._finalize()

    def leave(self) -> None:
        """Close the lock in a forked child, which does not use the directory."""
        self._finalize.detach()
        os.close(self._lock)


def remove(place: str) -> None:
    """Remove a directory, whatever was made in it; what can't be removed stays."""
    with suppress(OSError):
        os.rmdir(place)
        return
    try:
        shutil.rmtree(place, onerror=_open_and_retry)
    except RecursionError:
        import subprocess  # slow to import, and never needed

        # mkdir -p a/a/a/...: rmtree calls itself for each level
        with suppress(OSError):
            arguments = ["/bin/rm", "-rf", "--", place]
            subprocess.run(arguments, check=False, capture_output=True)  # noqa: S603


def _open_and_retry(function: Any, path: str, _: Any) -> None:
    """Remove what its directory's mode protects: ``mkdir -m 0 x``."""
    with suppress(OSError):
        parent = Path(path).parent
        parent.chmod(0o700)
        if not os.path.islink(path) and os.path.isdir(path):
            os.chmod(path, 0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def _make(prefix: str) -> tuple[str, int]:
    for _ in range(_ATTEMPTS):
        path = tempfile.mkdtemp(prefix=prefix)
        # another process may take it for a leftover before it is locked, and remove it
        with suppress(FileNotFoundError):
            descriptor = _opened(path)
            _lock(descriptor)
            if os.path.isdir(path):
                return path, descriptor
            os.close(descriptor)
    raise FileNotFoundError(f"a directory {prefix}... was removed while it was made")


def _lock(descriptor: int) -> None:
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks: no process takes it for a leftover
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def _opened(path: str) -> int:
    if fcntl is None:
        return os.open(os.devnull, os.O_RDONLY)  # a directory can't be opened there
    return os.open(path, _DIRECTORY)


def _close(path: str, descriptor: int, process: int) -> None:
    if os.getpid() != process:
        return
    remove(path)
    os.close(descriptor)


def _remove_leftovers(prefix: str) -> None:
    if fcntl is None:
        return
    with suppress(OSError):
        for entry in os.scandir(tempfile.gettempdir()):
            if entry.name.startswith(prefix):
                _remove_leftover(entry.path)


def _remove_leftover(path: str) -> None:
    with suppress(OSError):  # another user's, or another process removes it
        descriptor = os.open(path, _DIRECTORY)
        try:
            if _is_own(descriptor):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(path)
        finally:
            os.close(descriptor)


def _is_own(descriptor: int) -> bool:
    state = os.fstat(descriptor)
    return state.st_uid == os.geteuid() and not stat.S_IMODE(state.st_mode) & 0o077
