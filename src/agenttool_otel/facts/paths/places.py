"""Where a path lies: in which directory, and whether that is a place which deserves care."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from agenttool_otel.facts.paths.resolve import Resolution, resolve
from agenttool_otel.facts.paths.sensitive import sensitive_class
from agenttool_otel.facts.paths.text import normalize_path
from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.names import PathAccess, PathClass

_RANK: Final = {kind.value: index for index, kind in enumerate(PathClass)}
_NOWHERE: Final = "/\0"
"""What no path lies in: stands for a root that is not absolute or can't be read. A Windows root is never absolute here,
so nothing is inside there."""


def real_root(root: str) -> str:
    """Return where a root really is, or what no path lies in."""
    # Not cached: a root that was swapped for a link must be seen at the very next call.
    return (resolve([], start=root).path if root.startswith("/") else None) or _NOWHERE


def real_roots(env: FactEnvironment) -> tuple[str, ...]:
    """Return where the roots really are, in their order."""
    return tuple(map(real_root, env.roots)) if env.real_roots is None else env.real_roots


@lru_cache(maxsize=256)
def clean(path: str) -> str:
    """Return an absolute path normalised by its text, or what no path lies in."""
    return normalize_path([], start=path) if path.startswith("/") else _NOWHERE


def within(path: str, root: str) -> bool:
    """Return whether a normalised absolute path is a normalised absolute directory or lies below it."""
    if path == root or root == "/":
        return True
    return path.startswith(root) and path[len(root)] == "/"


def sensitive_place(lexical: str, readings: Sequence[Resolution], access: str, env: FactEnvironment) -> str | None:
    """Return the most serious class of any place that a path may lead to, or ``None``."""
    real_paths = {found.path for found in readings if found.path is not None} - {lexical}
    kinds = [_protected(path, readings, access, env) for path in {lexical, *real_paths}]
    root = next((clean(root) for root in env.roots if within(lexical, clean(root))), None)
    directory = bool(readings) and all(found.is_directory for found in readings)
    kinds.append(sensitive_class(lexical, root, directory=directory))
    if real_paths:
        roots = real_roots(env)
        for path in real_paths:
            real = next((real for real in roots if within(path, real)), None)
            kinds.append(sensitive_class(path, real, directory=directory))
    named = [kind for kind in kinds if kind is not None]
    return min(named, key=lambda kind: _RANK.get(kind, -1)) if named else None


def _protected(path: str, readings: Sequence[Resolution], access: str, env: FactEnvironment) -> str | None:
    if not env.protected:
        return None
    folded = path.casefold()
    for place, kind in env.protected:
        named = clean(place)
        if within(folded, named.casefold()):
            return kind
        # Removing, renaming or replacing a directory changes what it holds.
        if access != PathAccess.READ and within(named, path) and path not in map(clean, env.roots):
            return kind
        if not env.touch_file_system:
            continue
        real = resolve([], start=named)
        if real.path is None:
            continue
        if within(folded, real.path.casefold()):
            return kind
        if real.exists and any(found.exists and found.identity == real.identity for found in readings):
            return kind
    return None
