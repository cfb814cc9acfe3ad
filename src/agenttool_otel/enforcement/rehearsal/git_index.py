"""A git index that was only refreshed: ``git diff`` and ``git status`` write down anew when files were changed.

The format is that of gitformat-index(5), versions 2 and 3 with SHA-1.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Final

_HEADER: Final = struct.Struct(">4sII")
_STAT: Final = 40
"""Bytes in front of each entry's id: times, device, inode, mode, owner and size of the file."""
_MODE: Final = slice(24, 28)
_ID_AND_FLAGS: Final = 22
_EXTENDED: Final = 0x4000
_LONGEST: Final = 64 * 1024 * 1024
_CHECKSUM: Final = 20


def is_refreshed(name: str, before: str, after: str) -> bool:
    """Return whether a file is a git index, and says of no file anything new but its times and size.

    Args:
        name: where it is, below the root.
        before: the path of the index as it was.
        after: the path of the index as it is.
    """
    folders, _, base = name.rpartition("/")
    if base != "index" or ".git" not in folders.split("/"):
        return False
    try:
        return _meaning(before) == _meaning(after)
    except (OSError, ValueError, struct.error):
        return False


def _meaning(path: str) -> tuple[bytes, ...]:
    """Return what an index has beside the states of files."""
    if os.path.getsize(path) > _LONGEST:
        raise ValueError("too large")
    with open(path, "rb") as file:
        data = file.read()
    return tuple(_parts(data))


def _parts(data: bytes) -> Iterator[bytes]:
    signature, version, count = _HEADER.unpack_from(data)
    if signature != b"DIRC" or version not in (2, 3):
        raise ValueError("another format")
    yield data[: _HEADER.size]
    start = _HEADER.size
    for _ in range(count):
        fixed = start + _STAT + _ID_AND_FLAGS
        (flags,) = struct.unpack_from(">H", data, fixed - 2)
        if flags & _EXTENDED:
            fixed += 2
        end = data.index(b"\0", fixed)
        yield data[start + _MODE.start : start + _MODE.stop]
        yield data[start + _STAT : end]
        # an entry with its one to eight NULs is a multiple of eight bytes long
        start += (end - start) // 8 * 8 + 8
    yield data[start:-_CHECKSUM]
