"""Where a path leads in the file system: each component looked up, each symbolic link followed by
hand.

``os.path.realpath`` does the same walk, but hides what it met on the way: that there was a link,
that a directory could not be read, that a file is a device. ``..`` is applied to where the walk is,
as the kernel does, not to the text; what a reader finds who normalises the text first is asked for
with the normalised text.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import Final

_MAX_LINKS: Final = 40
"""Linux gives up after as many (ELOOP)."""

_MAX_STEPS: Final = 10_000


@dataclass(slots=True)
class Resolution:
    """What the walk found."""

    path: str | None = None  # absolute path without links; ``None`` when it could not be found out
    # whether something is there; ``None`` when that could not be found out
    exists: bool | None = None
    symlink: bool = False  # a component is a symbolic link
    magic: bool = False  # the walk went through a link of ``/proc``, whose text is no path
    loop: bool = False  # too many links
    # of what is there, or of the nearest existing directory when nothing is
    status: os.stat_result | None = None
    identity: str | None = None  # ``device:inode`` of ``status``
    is_directory: bool = False  # whether a directory is there


def resolve(parts: list[str], *, start: str = "/") -> Resolution:
    """Walk from a directory along components; never raises.

    The walk goes on past what is not there, as ``os.path.realpath`` does: a ``..`` behind it leads
    back to what is.
    """
    found = Resolution()
    todo = [*start.split("/"), *parts]
    todo.reverse()
    names: list[str] = []  # the components walked so far, none of them a link
    seen: list[os.stat_result | None] = []  # what is there, for each of the names
    links = 0
    steps = 0
    try:
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            steps += 1
            if part == "..":
                # "/.." is "/"
                del names[-1:]
                del seen[-1:]
                continue
            path = "/".join(["", *names, part])
            status = None
            if not seen or seen[-1] is not None:  # nothing lies below what is not there
                try:
                    status = os.lstat(path)
                except (FileNotFoundError, NotADirectoryError):
                    status = None
            if status is None or not stat.S_ISLNK(status.st_mode):
                names.append(part)
                seen.append(status)
                continue
            found.symlink = True
            links += 1
            found.loop = _is_endless(links, steps)
            todo += _read_link(path, found, names, seen)
    except (OSError, ValueError):
        # a directory that can't be read, or a name that is refused: path and existence stay unknown
        return found
    _describe(found, names, seen)
    return found


def _is_endless(links: int, steps: int) -> bool:
    return links > _MAX_LINKS or steps > _MAX_STEPS


def _read_link(
    path: str,
    found: Resolution,
    names: list[str],
    seen: list[os.stat_result | None],
) -> list[str]:
    """Return the components of a link's target, the first one last.

    Raises:
        OSError: the link can't be read, or there were too many.
    """
    if found.loop:
        raise OSError(errno.ELOOP, "too many links")
    target = os.readlink(path)
    if names[:1] == ["proc"] and len(names) > 1:
        found.magic = True  # /proc/self/fd/3 -> "pipe:[4026]"
    if target.startswith("/"):
        names.clear()
        seen.clear()
    return target.split("/")[::-1]


def _describe(
    found: Resolution,
    walked: list[str],
    seen: list[os.stat_result | None],
) -> None:
    """Note where a walk ended, and what is there."""
    found.path = "/" + "/".join(walked)
    found.exists = not seen or seen[-1] is not None
    # Whatever a tool would make, it would make below the nearest directory that is there.
    while seen and seen[-1] is None:
        seen.pop()
    nearest = seen[-1] if seen else None
    try:
        status = nearest or os.lstat("/")
    except OSError:
        found.path = None
        found.exists = None
        return
    found.status = status
    found.identity = f"{status.st_dev}:{status.st_ino}"
    found.is_directory = found.exists and stat.S_ISDIR(status.st_mode)
