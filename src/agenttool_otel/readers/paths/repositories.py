"""Whether a place belongs to a bare repository: git takes any directory of such a layout
for one.
"""

from __future__ import annotations

import os
from typing import Final

from agenttool_otel.readers.paths.sensitive import fold_name

_LAYOUT: Final = frozenset(("HEAD", "objects", "refs"))
"""What git looks for: with the last of them a directory becomes a repository, whose configuration
git obeys.
"""

_READ: Final = _LAYOUT | frozenset(
    (
        "config",
        "config.worktree",
        "hooks",
        "info",
        "index",
        "packed-refs",
        "commondir",
        "gitdir",
        "modules",
        "worktrees",
    )
)
"""What git reads there; a checkout may lie in the same directory, under names of its own."""

_FOLDED: Final = {name.casefold(): name for name in _READ}
_MAX_PARENTS: Final = 64


def in_bare_repository(path: str) -> bool:
    """Return whether a place lies in a bare repository, or whether something there would make it one.

    ``path`` is absolute and normalised.
    """
    place = path
    for _ in range(_MAX_PARENTS):
        folder, _, name = place.rpartition("/")
        made = _FOLDED.get(fold_name(name))
        if made is not None and all(
            os.path.lexists(f"{folder}/{part}") for part in sorted(_LAYOUT - {made})
        ):
            return True
        if not folder:
            return False
        place = folder
    return False
