"""Which files below a directory are keys and credentials, by the table and the names of the path reader."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.readers.paths.sensitive import holds_secrets, names_a_secret, secret_places

WALK_LIMIT: Final = 400_000
"""Most names that are looked at below the roots."""


class SecretsUnknown(Exception):
    """A walk could not look everywhere; its text has the reason."""


class _Listing(NamedTuple):
    """A directory, as it was when it was listed."""

    version: tuple[int, int, int]
    directories: tuple[str, ...]
    secrets: tuple[str, ...]
    problem: str  # why an overlay can't hold it as it is; empty if it can


class SecretWalk:
    """Finds the secrets of a host, and remembers directories that have not changed since.

    Args:
        limit: most names that are looked at below the roots.
    """

    def __init__(self, limit: int = WALK_LIMIT) -> None:
        self._limit = limit
        self._known: dict[str, _Listing] = {}

    def below(
        self, root: str, skipped: Sequence[str] = (), *, for_overlay: bool = False
    ) -> Iterator[str]:
        """Yield the secrets below a root, and each directory that can't be listed.

        Args:
            root: the root, with no symbolic link in it.
            skipped: directories that are hidden whole.
            for_overlay: raise where a directory can't be listed, or an entry is another user's.

        Raises:
            SecretsUnknown: there are more names than are looked at, or what ``for_overlay`` has.
        """
        seen = 0
        pending = [root]
        while pending:
            path = pending.pop()
            if path in skipped:
                continue
            listing = self._listing(path, root)
            if for_overlay and listing.problem:
                raise SecretsUnknown(listing.problem)
            seen += len(listing.directories) + len(listing.secrets) + 1
            if seen > self._limit:
                raise SecretsUnknown(
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
    try:
        entries = list(os.scandir(path))
    except PermissionError:
        return _Listing(version, (), (path,), f"{path} can't be listed; secrets may be in it")
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            found = secrets if holds_secrets(entry.path, root, directory=True) else directories
            found.append(entry.path)
        elif may_be_secret(entry.name) and holds_secrets(entry.path, root):
            secrets.append(entry.path)
    return _Listing(version, tuple(directories), tuple(secrets), _foreign(entries))


def _foreign(entries: Sequence[os.DirEntry[str]]) -> str:
    """Return which entry has another owner: an overlay can't copy it up, but for root (EOVERFLOW)."""
    ours = os.geteuid(), os.getegid()
    if ours[0] == 0:
        return ""
    for entry in entries:
        status = entry.stat(follow_symlinks=False)
        if (status.st_uid, status.st_gid) != ours:
            return f"another user or group owns {entry.path}"
    return ""


@lru_cache(maxsize=65_536)
def may_be_secret(name: str) -> bool:
    """Return whether a file of this name can be a secret; where it lies decides."""
    # "config.json" is the end of ".docker/config.json"
    return _ends().fullmatch(name.casefold()) is not None or names_a_secret(name)


@cache
def _ends() -> re.Pattern[str]:
    """Return a pattern of the last names of the table's places."""
    names = {place.rpartition("/")[2] for place in secret_places()}
    return re.compile("|".join(map(translate, sorted(names))))


_walk: Final = SecretWalk()


def secrets_below(roots: Sequence[Path], profile: str) -> tuple[Path, ...]:
    """Return the keys and credentials below some roots, each looked for anew where a directory has changed.

    Args:
        roots: absolute directories.
        profile: what is to be held, for the error.

    Raises:
        SandboxUnavailable: a walk could not look everywhere.
    """
    try:
        return tuple(Path(path) for root in roots for path in _walk.below(os.path.realpath(root)))
    except (SecretsUnknown, OSError) as error:
        raise SandboxUnavailable(str(error), profile=profile) from error
