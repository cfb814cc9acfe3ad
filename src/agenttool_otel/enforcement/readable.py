"""What may be read: everything but secrets, as a Landlock ruleset that is kept.

Landlock only allows. So a directory with a secret in it is opened up, and each of its entries is
allowed by itself. What is new in such a directory can't be read until the ruleset is built again,
which happens at the next call, because the directory's time has changed.

Names and sizes stay visible; the text of masked files does not. A hard link or a bind mount of a
masked file elsewhere is another path, and readable.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.readers.paths.sensitive import may_hold_secrets, sensitive_class
from agenttool_otel.readers.vocabulary import PathClass
from agenttool_otel.values.forks import new_lock

if TYPE_CHECKING:
    from agenttool_otel.enforcement.landlock import Ruleset

_SECRET: Final = (PathClass.KEY, PathClass.CREDENTIAL)
# the kernel copies the ruleset at each call: 0.4 us a rule, and 12 us to add one
_MOST_RULES: Final = 65536
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 # a place to read from


@dataclass
class Walk:
    """What a walk from ``/`` found.

    Attributes:
        allowed: places of which everything below may be read.
        masked: secrets that were left out.
        stamps: the directories that were opened up, as they were before.
    """

    allowed: list[str] = field(default_factory=list)
    masked: set[str] = field(default_factory=set)
    stamps: dict[str, tuple[int, ...]] = field(default_factory=dict)


def homes() -> list[str]:
    """Return the directories that people's secrets are in."""
    found = {os.path.realpath(os.path.expanduser("~")), "/root"}
    with suppress(OSError):
        found |= {entry.path for entry in os.scandir("/home") if os.path.isdir(entry.path)}
    return sorted(found)


def walk(masked: Iterable[Path] = ()) -> Walk:
    """Return which places may be read.

    Args:
        masked: secrets in addition to the sensitive places of the path reader.

    Raises:
        SandboxUnavailable: there are more places than rules, or a directory can't be listed.
    """
    found = Walk()
    more = {os.path.realpath(path) for path in masked}
    inside = {str(parent) for path in [*more, *homes()] for parent in Path(path).parents}
    opened = inside | set(homes())
    pending = ["/"]
    while pending:
        place = pending.pop()
        pending += _open_up(place, found, opened, more)
        if len(found.allowed) > _MOST_RULES:
            raise _too_many(place)
    return found


def _too_many(place: str) -> SandboxUnavailable:
    reason = f"too many places beside secrets: empty {place}, or take the secret out of it"
    return SandboxUnavailable(reason, profile="read")


def _open_up(place: str, found: Walk, opened: set[str], more: set[str]) -> list[str]:
    """Allow the entries of a directory, and return those that have to be opened up in turn."""
    found.stamps[place] = stamp(place)
    try:
        entries = list(os.scandir(place))
    except PermissionError:
        return []  # what can't be listed is not allowed
    except OSError as error:
        raise SandboxUnavailable(f"{place} can't be listed: {error}", profile="read") from error
    deeper = []
    for entry in entries:
        if entry.is_symlink() or entry.path == "/dev":
            continue  # a link's target has a place of its own
        directory = entry.is_dir(follow_symlinks=False)
        if entry.path in more or _is_secret(entry.path, directory):
            found.masked.add(entry.path)
        elif directory and (entry.path in opened or may_hold_secrets(entry.path)):
            deeper.append(entry.path)
        else:
            found.allowed.append(entry.path)
    return deeper


def _is_secret(path: str, directory: bool) -> bool:
    return sensitive_class(path, None, directory=directory) in _SECRET


def stamp(place: str) -> tuple[int, ...]:
    """Return what changes with a directory's entries; nothing of it where there is none."""
    try:
        state = os.stat(place)
    except OSError:
        return ()
    return state.st_dev, state.st_ino, state.st_mtime_ns, state.st_ctime_ns


@dataclass(frozen=True)
class Readable:
    """A ruleset that was built.

    Attributes:
        ruleset: allows it.
        walk: what it was built from.
    """

    ruleset: Ruleset
    walk: Walk

    def is_current(self) -> bool:
        """Return whether no directory of it has changed."""
        stamps = self.walk.stamps
        return all(stamp(place) == seen for place, seen in stamps.items())

    def masks(self, path: str) -> bool:
        """Return whether a place is a masked secret, or lies below one."""
        whole = os.path.realpath(path)
        return any(place in self.walk.masked for place in [whole, *map(str, Path(whole).parents)])


_built: Final[dict[frozenset[Path], Readable]] = {}
_lock: Final = new_lock()
_MOST_KEPT: Final = 16


def readable(masked: Iterable[Path] = ()) -> Readable:
    """Return the ruleset for some masks, built where there is none that is current.

    Raises:
        SandboxUnavailable: the walk would have to be cut.
        OSError, LandlockError: the kernel takes no ruleset.
    """
    key = frozenset(masked)
    with _lock:
        kept = _built.get(key)
        if kept is not None and kept.is_current():
            return kept
        made = _build(key)
        _built.pop(key, None)
        _built[key] = made
        if len(_built) > _MOST_KEPT:
            del _built[next(iter(_built))]
        return made


def _build(masked: Iterable[Path]) -> Readable:
    from agenttool_otel.enforcement.landlock import Ruleset, reads

    found = walk(masked)
    ruleset = Ruleset(reads())
    ruleset.allow_listing("/")
    for place in _places(found):
        ruleset.allow_reading(place)
    return Readable(ruleset, found)


def _places(found: Walk) -> Iterator[str]:
    from agenttool_otel.enforcement.landlock import DEVICES

    yield from found.allowed
    for place in (*DEVICES, _SHARED_MEMORY):
        if os.path.exists(place):
            yield place
