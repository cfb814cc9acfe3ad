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
        if not self.names:
            return False
        return normal_name(step) in self.names

    def path_rule(self, path: tuple[str, ...]) -> bool:
        """Whether a pointer leads to exactly this path."""
        return any(_leads_to(wanted, path) for wanted in self.paths)


def _leads_to(wanted: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Whether a pointer's tokens lead to a path: ``/users/*/pin`` to ``/users/3/pin``."""
    if len(wanted) != len(path):
        return False
    pairs = zip(wanted, path, strict=True)
    return all(token in ("*", step) for token, step in pairs)


NO_TARGETS: Final = Targets(
    everything=False,
    names=frozenset(),
    paths=(),
)


def targets(pointers: Sequence[str]) -> Targets:
    """Parse pointers."""
    if not pointers:
        return NO_TARGETS
    return _targets(tuple(pointers))


@lru_cache(maxsize=512)
def _targets(pointers: tuple[str, ...]) -> Targets:
    names: set[str] = set()
    paths: list[tuple[str, ...]] = []
    for raw in pointers:
        # "#/users/0" is a pointer as the fragment of a URI (RFC 6901, 6)
        pointer = raw.strip().removeprefix("#")
        if pointer in EVERYTHING:
            continue
        if pointer.startswith("/"):
            paths.append(_tokens_of(pointer))
            continue
        bare = pointer.removeprefix("$.")
        # $.users[0].pin of JSONPath is a path, and a name at any depth
        if "." in bare:
            paths.append(_steps_of(bare))
        name = normal_name(bare) or bare
        names.add(name)
    return Targets(
        everything=names_everything(pointers),
        names=frozenset(names),
        paths=tuple(paths),
    )


def _tokens_of(pointer: str) -> tuple[str, ...]:
    """The reference tokens of a JSON pointer: ``/a~1b/0`` has ``a/b`` and ``0``."""
    tokens = pointer[1:].split("/")
    return tuple(map(unescape_token, tokens))


def _steps_of(path: str) -> tuple[str, ...]:
    """The steps of a dotted path: ``users[0].pin`` has ``users``, ``0`` and ``pin``."""
    dotted = path.replace("[", ".")
    dotted = dotted.replace("]", "")
    return tuple(step for step in dotted.split(".") if step)


def has_paths(pointers: Sequence[str]) -> bool:
    """Whether any pointer leads to a place, not to a name at any depth or to the whole value."""
    found = targets(pointers)
    return bool(found.paths)


def pointer_of(path: Sequence[str | int]) -> str:
    """A path as a JSON pointer."""
    tokens = [escape_token(str(step)) for step in path]
    # the whole value is the empty pointer
    return "".join(f"/{token}" for token in tokens)
