"""Which words of a command line name credentials, keys or the environment."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache

from agenttool_otel.facts.shell.tables import sensitive

__all__ = ["names_secret", "searches_secret", "wide_root"]

_GLOB = re.compile(r"[*?\[]")
_MAX_PATH = 4096
_Match = Callable[[str], bool]


def names_secret(path: str, *, glob: bool = False) -> bool:
    """Whether a path names, or a glob can match, something that holds credentials.

    Args:
        path: a path as written, joined to the directory that an earlier ``cd`` of the line names.
        glob: the shell expands ``* ? [`` in it.
    """
    if len(path) > _MAX_PATH:
        return True
    data = sensitive()
    normal = posixpath.normpath(path.replace("\\", "/")) if path else ""
    if data.path.search(path) or (normal != path and data.path.search(normal)):
        return True
    if not glob or not _GLOB.search(path):
        return False
    prefix: list[str] = []
    for component in normal.split("/"):
        if _GLOB.search(component):
            match = _matcher(component)
            for sample in data.samples:
                # A glob at the start of a name does not match a leading dot, unless the dot is written.
                if sample[0] == "." and component[0] != ".":
                    continue
                candidate = "/".join([*prefix, sample])
                if match(sample) and (data.path.search(sample) or data.path.search(candidate)):
                    return True
            if component in ("*", "?*") and _wide("/".join(prefix) or ("/" if path.startswith("/") else "")):
                return True
        prefix.append(component)
    return False


@lru_cache(maxsize=256)
def _compiled(component: str) -> re.Pattern[str] | None:
    try:
        return re.compile(translate(component.replace("[^", "[!")), re.IGNORECASE)
    except re.error:
        return None


def _matcher(component: str) -> _Match:
    # Long runs of stars make a regular expression slow; such a name is taken to match everything.
    if component.count("*") > 6 or len(component) > 128:
        return lambda _name: True
    pattern = _compiled(component)
    if pattern is None:
        return lambda _name: True
    return lambda name: pattern.match(name) is not None


def _wide(directory: str) -> bool:
    return directory.rstrip("/").lower() in sensitive().wide_roots or directory == "/"


def wide_root(path: str) -> bool:
    """Whether reading a directory recursively would read the credentials of a person or the system."""
    normal = posixpath.normpath(path) if path else ""
    if normal.startswith("//"):
        normal = normal[1:]
    parts = normal.split("/")
    home = (len(parts) == 3 and parts[1].lower() in ("home", "users")) or set(parts) == {".."}
    return normal.lower() in sensitive().wide_roots or home


def searches_secret(pattern: str) -> bool:
    """Whether a search pattern looks for credentials."""
    return sensitive().searched.search(pattern[:_MAX_PATH]) is not None
