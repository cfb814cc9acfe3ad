"""The state directory of rehearsals: layers, their locks, and what is on its way out.

    layers/<id>/lock          held while a command can write into the layer, or somebody commits it
               /layer.json    roots, when it was opened
               /sealed.json   the manifest; from here on the layer is kept
               /result.json   what is kept beside it: the result of the call that made it
               /commit.json   a commit has begun; from here on it is finished
               /<n>/upper     what the commands wrote over root n
    trash/                    removed as soon as somebody has time

The lock is one of ``flock``: the sandbox inherits it, so it ends when the last process inside has ended, and not
before, however the process that opened the layer ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from agenttool_otel.enforcement.rehearsal.failures import (
    LayerBusy,
    RehearsalUnavailable,
    UnknownLayer,
)
from agenttool_otel.values.ids import new_id

_ID: Final = re.compile(r"lay_[0-9a-f]{32}")


def default_directory() -> Path:
    """Return where layers are by default: in the user's state directory.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/
    """
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base, "agenttool", "rehearsals")


class StateDirectory:
    """The directory that holds the layers of one user.

    Args:
        path: the directory; made if it is not there.

    Raises:
        RehearsalUnavailable: it can't be made, or others may read or write in it.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path = path.resolve(strict=True)
            _check_private(self.path)
            self._layers = self.path / "layers"
            self._trash = self.path / "trash"
            for folder in (self._layers, self._trash):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise RehearsalUnavailable(f"the state directory can't be used: {error}") from error

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from opening and removing layers while the block runs."""
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def new_layer(self) -> tuple[Path, int]:
        """Make a layer's directory, and return it with the descriptor of its lock, which is held."""
        with self.alone():
            path = self._layers / new_id("lay")
            path.mkdir(mode=0o700)
            return path, _locked(path)

    def layer(self, layer_id: str) -> Path:
        """Return the directory of a layer.

        Raises:
            UnknownLayer: there is none.
        """
        path = self._layers / layer_id
        if _ID.fullmatch(layer_id) is None or not path.is_dir():
            raise UnknownLayer(f"there is no layer {layer_id}")
        return path

    def layer_ids(self) -> list[str]:
        """Return the ids of all layers, oldest first."""
        return sorted(name for name in os.listdir(self._layers) if _ID.fullmatch(name))

    @contextmanager
    def holding(self, layer_id: str) -> Iterator[Path]:
        """Hold the lock of a layer while the block runs.

        Raises:
            UnknownLayer: there is no such layer, or there is none any more.
            LayerBusy: another process holds it.
        """
        path = self.layer(layer_id)
        try:
            descriptor = _locked(path)
        except FileNotFoundError:
            raise UnknownLayer(f"there is no layer {layer_id}") from None
        except BlockingIOError:
            raise LayerBusy(f"another process holds the layer {layer_id}") from None
        try:
            # it may have been removed between the two lines above
            if not path.is_dir():
                raise UnknownLayer(f"there is no layer {layer_id}")
            yield path
        finally:
            os.close(descriptor)

    def remove(self, path: Path) -> None:
        """Remove a layer whose lock is held: out of sight at once, and then from the disk."""
        with self.alone():
            place = self._trash / path.name
            if path.is_dir():
                os.rename(path, place)
        _remove_tree(place)

    def empty_trash(self) -> None:
        """Remove what a process that was killed had begun to remove."""
        for name in os.listdir(self._trash):
            _remove_tree(self._trash / name)


def write_document(path: Path, document: Any) -> None:
    """Write a JSON file so that it is there whole, and on the disk, or not at all."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with open(descriptor, "w", encoding="ascii") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(descriptor)
    os.replace(name, path)


def read_document(path: Path) -> Any:
    """Return what a JSON file holds, or ``None`` if it is not there."""
    try:
        return json.loads(path.read_text("ascii"))
    except FileNotFoundError:
        return None


def _check_private(path: Path) -> None:
    status = os.lstat(path)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise RehearsalUnavailable(f"others may look into the state directory {path}: chmod 700")


def _locked(path: Path) -> int:
    descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_tree(path: Path) -> None:
    """Remove a layer from the disk; what another process removes meanwhile is no error."""
    # an overlay's work directory has mode 0, and commands may have closed theirs
    if os.geteuid() != 0 and path.is_dir():
        _open_directories(path)
    shutil.rmtree(path, ignore_errors=True)


def _open_directories(top: Path) -> None:
    pending = [os.fspath(top)]
    while pending:
        path = pending.pop()
        try:
            os.chmod(path, 0o700)
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError:
            continue
