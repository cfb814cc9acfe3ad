"""Where a decision point listens: a Unix socket of this user's alone, and a port of this machine's
alone with a token in a file.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import stat
import struct
import sys
from pathlib import Path
from typing import Final

from agenttool_otel.errors import ConfigurationError

MIN_TOKEN_CHARS: Final = 20
"""Characters that a token has at least."""
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid: struct ucred of Linux
_MAC_CREDENTIALS: Final = struct.Struct("IIh2x16I")  # struct xucred of macOS, sys/ucred.h
_MAC_VERSION: Final = 0  # XUCRED_VERSION
_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1  # sys/un.h of macOS


def default_folder() -> Path:
    """Return the folder of socket and token: of this session, or of this user."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "agenttool"
    return Path.home() / ".local" / "state" / "agenttool"


def default_socket() -> Path:
    """Return where a decision point listens, and where its clients look for it."""
    return default_folder() / "serve.sock"


class SocketFile:
    """A Unix socket that only this user can reach; it is gone when it is closed.

    Args:
        path: where it is; its folder is made where it is missing.

    Raises:
        ConfigurationError: others can write into the folder, another process listens there, or this
          system can't tell who connects.
    """

    def __init__(self, path: Path) -> None:
        if not _shows_peers():
            raise ConfigurationError("this system does not tell who connects: use the port alone")
        self.path = path
        _own_folder(path.parent)
        self._lock = _locked(path.with_name(f"{path.name}.lock"))
        # the lock is ours, so that what is left there is of a process that has ended
        path.unlink(missing_ok=True)
        self.socket = _bound(path)

    def close(self) -> None:
        """Close the socket, and remove its file."""
        self.socket.close()
        self.path.unlink(missing_ok=True)
        os.close(self._lock)


def _own_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigurationError(f"{folder} has to be of this user alone: chmod 700")


def _locked(path: Path) -> int:
    lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise ConfigurationError(f"another process serves at {path.with_suffix('')}") from None
    return lock


def _bound(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # until it is renamed nobody can find it, so that nobody connects before its mode is set
    waiting = path.with_name(f"{path.name}.new")
    waiting.unlink(missing_ok=True)
    try:
        listening.bind(str(waiting))
        waiting.chmod(0o600)
        waiting.rename(path)
    except OSError as error:
        listening.close()
        raise ConfigurationError(f"no socket at {path}: {error.strerror}") from None
    return listening


def peer_uid(connection: socket.socket) -> int:
    """Return the user of the process at the other end of a Unix socket.

    Args:
        connection: the socket.

    Raises:
        OSError: the system does not show it.
    """
    if hasattr(socket, "SO_PEERCRED"):
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, uid, _ = _CREDENTIALS.unpack(found)
        return int(uid)
    found = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _MAC_CREDENTIALS.size)
    if len(found) != _MAC_CREDENTIALS.size:
        raise OSError("the system shows no user of a connection")
    version, uid, *_ = _MAC_CREDENTIALS.unpack(found)
    if version != _MAC_VERSION:
        raise OSError("the system shows a connection's user in another form")
    return int(uid)


def _shows_peers() -> bool:
    return hasattr(socket, "SO_PEERCRED") or sys.platform == "darwin"


def read_token(path: Path, *, make: bool = False) -> str:
    """Read a token from its file.

    Args:
        path: the file.
        make: whether it is made, with a random token, where it is missing.

    Raises:
        ConfigurationError: there is none, others can read it, or it is too short.
    """
    if make and not path.exists():
        _own_folder(path.parent)
        made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(made, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32))
    try:
        mode = path.stat().st_mode
        token = path.read_text("utf-8").strip()
    except (OSError, ValueError):
        raise ConfigurationError(f"the token in {path} can't be read") from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigurationError(f"others can read the token in {path}: chmod 600")
    if len(token) < MIN_TOKEN_CHARS:
        raise ConfigurationError(f"the token in {path} needs {MIN_TOKEN_CHARS} characters")
    return token
