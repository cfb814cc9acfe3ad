"""File systems of a tool's own: where the paths that it is given are on this machine.

A tool that serves a directory as ``/`` is given ``/etc/passwd`` and opens ``/srv/site/etc/passwd``. A
tool that keeps its files in a database opens none.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.values.inspection import path_text_of

NOWHERE: Final = "nowhere"
"""Stands for a directory where paths name no file of this machine."""


class PathBases:
    """The directories that a tool's own paths begin at.

    Args:
        stated: the directory of the tool's ``/``, or directories by the beginnings of its paths;
            ``nowhere`` for those that name no file.

    Raises:
        ConfigurationError: a directory or a beginning is not absolute.
    """

    def __init__(self, stated: str | Mapping[str, str]) -> None:
        by_prefix = {"/": stated} if isinstance(stated, str) else dict(stated)
        self._bases: list[tuple[str, str]] = []
        # the longest first: /memories/ before /
        for prefix in sorted(by_prefix, key=lambda prefix: len(str(prefix)), reverse=True):
            base = by_prefix[prefix]
            if not _is_absolute(prefix):
                raise ConfigurationError(f"path_base: {prefix!r} has to be absolute")
            if base != NOWHERE and not _is_absolute(base):
                raise ConfigurationError(f"path_base: {base!r} has to be absolute, or {NOWHERE!r}")
            self._bases.append((prefix.rstrip("/"), base))

    def place(self, value: Any) -> Any:
        """Return where a path of the tool's is on this machine; ``None`` where it is nowhere.

        Args:
            value: what the tool is given. What is no path is returned as it is.
        """
        given = path_text_of(value)
        if given is None:
            return value
        # "/./memories//a" is a path of /memories/
        parts = [part for part in given.split("/") if part not in ("", ".")]
        path = "/" + "/".join(parts)
        climbs = ".." in parts
        for root, base in self._bases:
            # /memories/../etc/passwd is not taken for a path of /memories/
            if root and climbs:
                continue
            if not f"{path}/".startswith(f"{root}/"):
                continue
            rest = path.removeprefix(root)
            if base != NOWHERE:
                return base.rstrip("/") + "/" + rest.lstrip("/")
            return rest if climbs else None
        return value


def _is_absolute(path: Any) -> bool:
    return isinstance(path, str) and posixpath.isabs(path)
