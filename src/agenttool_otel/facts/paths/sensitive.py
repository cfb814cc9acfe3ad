"""Which places deserve care: keys, credentials, what programs obey, what the system needs.

The lists are data (``facts/data/sensitive_paths.json``). Names are compared the way the most forgiving file system
would: without case, without invisible characters, in compatibility normalisation, without a stream suffix and without
trailing dots and blanks; so ``.GIT``, ``.g\\u200cit``, ``.git::$INDEX_ALLOCATION`` and ``GIT~1`` are all ``.git``.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fnmatch import translate
from functools import cache, lru_cache

from agenttool_otel.facts.lettering import load_data, strip_invisible
from agenttool_otel.names import PathClass

__all__ = ["fold_name", "sensitive_class"]


@dataclass(frozen=True, slots=True)
class _Lists:
    rank: dict[str, int]
    components: dict[str, str]
    sequences: dict[str, tuple[tuple[tuple[str, ...], str], ...]]  # by last component
    names: dict[str, str]
    patterns: tuple[tuple[re.Pattern[str], str], ...]
    harmless: frozenset[str]
    system: tuple[tuple[str, ...], ...]


@cache
def _lists() -> _Lists:
    data = load_data("sensitive_paths")
    rank = {name: index for index, name in enumerate(data["order"])}
    components: dict[str, str] = {}
    sequences: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    names: dict[str, str] = {}
    # The first class in order wins, so the lists are read from the last.
    for kind in reversed(data["order"]):
        for entry in data["components"].get(kind, ()):
            pieces = tuple(entry.split("/"))
            if len(pieces) == 1:
                components[entry] = kind
            else:
                sequences.setdefault(pieces[-1], []).append((pieces, kind))
        for entry in data["names"].get(kind, ()):
            names[entry] = kind
    patterns = tuple(
        (re.compile("|".join(translate(pattern) for pattern in entries)), kind)
        for kind, entries in data["patterns"].items()
    )
    return _Lists(
        rank=rank,
        components=components,
        sequences={last: tuple(found) for last, found in sequences.items()},
        names=names,
        patterns=patterns,
        harmless=frozenset(data["harmless"]),
        system=tuple(tuple(entry.strip("/").split("/")) for entry in data["system"]),
    )


def fold_name(name: str) -> str:
    """Return a component as the most forgiving file system compares it.

    Args:
        name: one component.
    """
    if not name.isascii():
        name = unicodedata.normalize("NFKC", strip_invisible(unicodedata.normalize("NFKC", name)))
    name = name.casefold()
    if ":" in name:
        name = name.partition(":")[0] or name
    stripped = name.rstrip(". ")
    return stripped or name


@lru_cache(maxsize=2048)
def _class_of(parts: tuple[str, ...], inner: int) -> str | None:
    lists = _lists()
    folded = [fold_name(part) for part in parts]
    best: str | None = None

    def offer(kind: str | None) -> None:
        nonlocal best
        if kind is not None and (best is None or lists.rank[kind] < lists.rank[best]):
            best = kind

    for index, name in enumerate(folded):
        kind = lists.components.get(name)
        # A workspace below ~/.cursor/worktrees is not the agent's configuration; one below ~/.ssh still holds keys.
        if kind is not None and (index >= inner or kind in (PathClass.KEY, PathClass.CREDENTIAL)):
            offer(kind)
        for pieces, sequence_kind in lists.sequences.get(name, ()):
            if tuple(folded[max(0, index + 1 - len(pieces)) : index + 1]) == pieces:
                offer(sequence_kind)
        if index >= inner and name.startswith(".") and name not in (".", ".."):
            offer(PathClass.DOTFILE)
    if folded and folded[-1] not in lists.harmless:
        offer(lists.names.get(folded[-1]))
        for pattern, kind in lists.patterns:
            if pattern.match(folded[-1]):
                offer(kind)
    for prefix in lists.system:
        if len(prefix) > inner and tuple(folded[: len(prefix)]) == prefix:
            offer(PathClass.SYSTEM)
    return best


def sensitive_class(path: str, root: str | None) -> str | None:
    """Return the most serious class of a place, or ``None``.

    Args:
        path: absolute path, lexical or resolved.
        root: the root that it lies in; what the root's own path says counts less, because the operator chose it.
    """
    parts = tuple(part for part in path.split("/") if part)
    inner = len([part for part in root.split("/") if part]) if root else 0
    return _class_of(parts, inner)
