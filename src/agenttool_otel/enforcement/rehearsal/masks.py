"""Which places a rehearsed command must not read: keys and credentials by the table of the path reader.

Below the roots each name is looked at (``secrets``). Of a home directory the table's places are looked up, and the
names in it; of ``/etc`` all that not everybody may read. A secret elsewhere, or under another name, has to be named by
the caller.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agenttool_otel.enforcement.secrets import may_be_secret
from agenttool_otel.readers.paths.sensitive import secret_places

_SYSTEM: Final = "/etc"


def secrets_of_home(home: Path) -> Iterator[str]:
    """Yield the keys and credentials of a home directory: what the table has, and by the names in it."""
    for place in secret_places():
        for path in home.glob(place):
            yield os.fspath(path)
    try:
        with os.scandir(home) as entries:
            for entry in entries:
                if may_be_secret(entry.name) and os.path.isfile(entry.path):
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
