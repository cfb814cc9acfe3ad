"""Which places a rehearsed command must not read: keys and credentials by the table of the path reader.

Below the roots each name is looked at. Of a home directory the table's places are looked up, and the names in it; of
``/etc`` all that not everybody may read. A secret elsewhere, or under another name, has to be named by the caller.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from agenttool_otel.enforcement.rehearsal.failures import RehearsalUnavailable
from agenttool_otel.readers.paths.sensitive import (
    holds_secrets,
    names_a_secret,
    secret_places,
)

WALK_LIMIT: Final = 400_000
"""Most names that are looked at below the roots."""
_SYSTEM: Final = "/etc"


class _Listing(NamedTuple):
    """A directory, as it was when it was listed."""

    version: tuple[int, int, int]
    directories: tuple[str, ...]
    secrets: tuple[str, ...]
    foreign: str  # the name of an entry whose owner is another user or group; empty if none is


class SecretWalk:
    """Finds the secrets of a host, and remembers directories that have not changed since.

    Args:
        limit: most names that are looked at below the roots.
    """

    def __init__(self, limit: int = WALK_LIMIT) -> None:
        self._limit = limit
        self._known: dict[str, _Listing] = {}

    def below(self, root: str, skipped: Sequence[str]) -> Iterator[str]:
        """Yield the secrets below a root.

        Args:
            root: the root, with no symbolic link in it.
            skipped: directories that are hidden whole.

        Raises:
            RehearsalUnavailable: there are more names than are looked at, a directory can be
                entered but not listed, or a file belongs to a user that the sandbox does not know.
        """
        seen = 0
        pending = [root]
        while pending:
            path = pending.pop()
            if path in skipped:
                continue
            listing = self._listing(path, root)
            if listing.foreign and os.geteuid() != 0:
                # an overlay can't copy the file: EOVERFLOW, where the command alone would succeed
                raise RehearsalUnavailable(f"another user or group owns {listing.foreign}")
            seen += len(listing.directories) + len(listing.secrets) + 1
            if seen > self._limit:
                raise RehearsalUnavailable(
                    f"{root} has more than {self._limit:,} directories; secrets may be among them"
                )
            yield from listing.secrets
            pending.extend(listing.directories)

    def _listing(self, path: str, root: str) -> _Listing:
        status = os.lstat(path)
        version = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        known = self._known.get(path)
        if known is not None and known.version == version:
            return known
        listing = _list(path, root, version)
        if len(self._known) > self._limit:
            self._known.clear()
        self._known[path] = listing
        return listing


def _list(path: str, root: str, version: tuple[int, int, int]) -> _Listing:
    directories: list[str] = []
    secrets: list[str] = []
    foreign = ""
    try:
        entries = list(os.scandir(path))
    except PermissionError:
        raise RehearsalUnavailable(f"{path} can't be listed; secrets may be in it") from None
    uid, gid = os.geteuid(), os.getegid()
    for entry in entries:
        is_directory = entry.is_dir(follow_symlinks=False)
        if uid != 0 and not foreign:
            status = entry.stat(follow_symlinks=False)
            if (status.st_uid, status.st_gid) != (uid, gid):
                foreign = entry.path
        if is_directory:
            found = secrets if holds_secrets(entry.path, root, directory=True) else directories
            found.append(entry.path)
        elif _may_be_secret(entry.name) and holds_secrets(entry.path, root):
            secrets.append(entry.path)
    return _Listing(version, tuple(directories), tuple(secrets), foreign)


@lru_cache(maxsize=65_536)
def _may_be_secret(name: str) -> bool:
    # "config.json" is the end of ".docker/config.json"
    return _ends().fullmatch(name.casefold()) is not None or names_a_secret(name)


@cache
def _ends() -> re.Pattern[str]:
    """Return a pattern of the last names of the table's places."""
    names = {place.rpartition("/")[2] for place in secret_places()}
    return re.compile("|".join(map(translate, sorted(names))))


def secrets_of_home(home: Path) -> Iterator[str]:
    """Yield the keys and credentials of a home directory: what the table has, and by the names in it."""
    for place in secret_places():
        for path in home.glob(place):
            yield os.fspath(path)
    try:
        with os.scandir(home) as entries:
            for entry in entries:
                if entry.is_file() and _may_be_secret(entry.name):
                    yield entry.path
    except OSError:  # no such directory, or none that this user may read
        return


def secrets_of_system(top: str = _SYSTEM) -> Iterator[str]:
    """Yield what of ``/etc`` not everybody may read: hashes of passwords, keys of hosts."""
    for folder, directories, files in os.walk(top):
        for name in list(directories):
            path = os.path.join(folder, name)
            if not _is_public(path, stat.S_IROTH | stat.S_IXOTH):
                directories.remove(name)
                yield path
        for name in files:
            path = os.path.join(folder, name)
            if not _is_public(path, stat.S_IROTH):
                yield path


def _is_public(path: str, needed: int) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return True
    # the mode of a symbolic link means nothing; what it leads to is looked at where it is
    return stat.S_ISLNK(status.st_mode) or status.st_mode & needed == needed


def unix_sockets() -> Iterator[str]:
    """Yield the paths of this host's Unix sockets, which a read-only mount does not close."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    for line in lines[1:]:
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and fields[7].startswith("/"):
            yield fields[7]
