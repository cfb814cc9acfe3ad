"""The reviewed list of caches and clocks (``noise.toml``): what programs write beside their work."""

from __future__ import annotations

from functools import cache
from typing import Final

from agenttool_otel.values.tables import load_table

_PACKAGE: Final = "agenttool_otel.enforcement.rehearsal"


@cache
def _lists() -> tuple[frozenset[str], frozenset[str]]:
    components = set()
    paths = set()
    for row in load_table(_PACKAGE, "noise.toml")["noise"]:
        components.add(row.get("component"))
        paths.add(row.get("path"))
    components.discard(None)
    paths.discard(None)
    return frozenset(components), frozenset(paths)


def is_noise(path: str) -> bool:
    """Return whether a change of an absolute path is one that the list has."""
    components, paths = _lists()
    return path in paths or not components.isdisjoint(path.split("/"))
