"""File systems of a tool's own: where the paths that it is given are on this machine.

A tool that serves a directory as ``/`` is given ``/etc/passwd`` and opens ``/work/site/etc/passwd``. A
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
        for prefix, base in by_prefix.items():
            if not _is_absolute(prefix) or not (base == NOWHERE or _is_absolute(base)):
                raise ConfigurationError(
                    f"path_base: {prefix!r}: {base!r}: both have to be absolute, or the directory"
                    f" {NOWHERE!r}"
                )
        # the longest first: /memories/ before /
        self._bases = sorted(by_prefix.items(), key=lambda item: len(item[0]), reverse=True)

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
        for prefix, base in self._bases:
            root = prefix.rstrip("/")
            # /memories/../etc/passwd is not taken for a path of /memories/
            if root and (climbs or not f"{path}/".startswith(f"{root}/")):
                continue
            return None if base == NOWHERE and not climbs else _below(base, path[len(root) :])
        return value


def _is_absolute(path: Any) -> bool:
    return isinstance(path, str) and posixpath.isabs(path)


def _below(base: str, path: str) -> str:
    if base == NOWHERE:
        return path
    return base.rstrip("/") + "/" + path.lstrip("/")
