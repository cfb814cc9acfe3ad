"""Which values contracts and policies name: JSON pointers, bare names, ``*``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from agenttool_otel.redaction.keys import normal_name
from agenttool_otel.redaction.types import EVERYTHING, names_everything
from agenttool_otel.values.pointers import escape_token, unescape_token


class Targets(NamedTuple):
    """Parsed pointers."""

    everything: bool  # the whole value goes
    names: frozenset[str]  # bare names, normalised; they match at any depth
    # pointers as tuples of reference tokens; the token ``*`` matches any one
    paths: tuple[tuple[str, ...], ...]

    def names_rule(self, step: str) -> bool:
        """Whether a key is named barely."""
        return bool(self.names) and normal_name(step) in self.names

    def path_rule(self, path: tuple[str, ...]) -> bool:
        """Whether a pointer leads to exactly this path."""
        return any(
            len(want) == len(path)
            and all(w in ("*", step) for w, step in zip(want, path, strict=True))
            for want in self.paths
        )


NO_TARGETS: Final = Targets(False, frozenset(), ())


def targets(pointers: Sequence[str]) -> Targets:
    """Parse pointers."""
    return _targets(tuple(pointers)) if pointers else NO_TARGETS


@lru_cache(maxsize=512)
def _targets(pointers: tuple[str, ...]) -> Targets:
    names: set[str] = set()
    paths: list[tuple[str, ...]] = []
    for raw in pointers:
        pointer = raw.strip().removeprefix("#")
        if pointer in EVERYTHING:
            continue
        if pointer.startswith("/"):
            paths.append(tuple(map(unescape_token, pointer[1:].split("/"))))
        else:
            bare = pointer.removeprefix("$.")
            if "." in bare:
                paths.append(
                    tuple(
                        token
                        for token in bare.replace("[", ".").replace("]", "").split(".")
                        if token
                    )
                )
            names.add(normal_name(bare) or bare)
    return Targets(names_everything(pointers), frozenset(names), tuple(paths))


def has_paths(pointers: Sequence[str]) -> bool:
    """Whether any pointer leads to a place, not to a name at any depth or to the whole value."""
    return bool(targets(pointers).paths)


def pointer_of(path: Sequence[str | int]) -> str:
    """A path as a JSON pointer."""
    return "".join("/" + escape_token(str(step)) for step in path)
