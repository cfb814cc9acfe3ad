"""Where a path leads in the file system: each component looked up, each symbolic link followed by
hand.

``os.path.realpath`` does the same walk, but hides what it met on the way: that there was a link,
that a directory could not be read, that a file is a device. ``..`` is applied to where the walk is,
as the kernel does, not to the text; what a reader finds who normalises the text first is asked for
with the normalised text.
"""

from __future__ import annotations

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
    walked: list[str] = []
    seen: list[os.stat_result | None] = []
    links = 0
    steps = 0
    while todo:
        part = todo.pop()
        if part in ("", "."):
            continue
        steps += 1
        if part == "..":
            if walked:
                walked.pop()
                seen.pop()
            continue
        path = "/".join(["", *walked, part])
        current = None
        if not seen or seen[-1] is not None:  # nothing lies below what is not there
            try:
                current = os.lstat(path)
            except (FileNotFoundError, NotADirectoryError):
                current = None
            except (OSError, ValueError):
                # not readable, or a name that is refused: path and existence stay unknown
                return found
        if current is None or not stat.S_ISLNK(current.st_mode):
            walked.append(part)
            seen.append(current)
            continue
        found.symlink = True
        links += 1
        if links > _MAX_LINKS or steps > _MAX_STEPS:
            found.loop = True
            return found
        try:
            target = os.readlink(path)
        except OSError:
            return found
        if walked[:1] == ["proc"] and len(walked) > 1:
            found.magic = True  # /proc/self/fd/3 -> "pipe:[4026]"
        if target.startswith("/"):
            walked.clear()
            seen.clear()
        todo.extend(reversed(target.split("/")))
    _describe(found, walked, seen)
    return found


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
        found.status = status = nearest or os.lstat("/")
    except OSError:
        found.path = found.exists = None
        return
    found.identity = f"{status.st_dev}:{status.st_ino}"
    found.is_directory = found.exists and stat.S_ISDIR(status.st_mode)
