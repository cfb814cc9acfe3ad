"""Which places deserve care: keys, credentials, what programs obey, what the system needs.

The lists are data (``facts/data/sensitive_paths.json``). Names are compared the way the most
forgiving file system would: without case, without invisible characters, in compatibility
normalisation, without a stream suffix and without trailing dots and blanks; so ``.GIT``,
``.g\\u200cit``, ``.git::$INDEX_ALLOCATION`` and ``GIT~1`` are all ``.git``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from fnmatch import translate
from functools import cache, lru_cache
from itertools import chain, product
from typing import Final, NamedTuple

from agenttool_otel.readers.paths.globs import is_wild, wild
from agenttool_otel.readers.vocabulary import PathClass
from agenttool_otel.values.tables import load_table
from agenttool_otel.values.unicode import strip_invisible

_MAX_WILD: Final = 16
_PLAIN: Final = re.compile(r"[\w.-]+", re.ASCII)
_ALWAYS: Final = (PathClass.KEY, PathClass.CREDENTIAL)


class _Lists(NamedTuple):
    rank: dict[str, int]
    components: dict[str, str]
    sequences: dict[str, tuple[tuple[tuple[str, ...], str], ...]]  # by last component
    globs: tuple[tuple[re.Pattern[str], str], ...]  # of whole paths
    names: dict[str, str]
    patterns: tuple[tuple[re.Pattern[str], str], ...]
    # a name for each pattern, its class, and whether only the ending counts
    samples: tuple[tuple[str, str, bool], ...]
    harmless_names: re.Pattern[str]
    harmless_paths: re.Pattern[str]
    harmless_dotfiles: frozenset[str]
    backups: tuple[str, ...]
    system: tuple[tuple[str, ...], ...]


@cache
def _lists() -> _Lists:
    data = load_table("agenttool_otel.readers.paths", "data/sensitive_paths.json")
    rank = {name: index for index, name in enumerate(data["order"])}
    components: dict[str, str] = {}
    sequences: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    globs: list[tuple[re.Pattern[str], str]] = []
    names: dict[str, str] = {}
    # The first class in order wins, so the lists are read from the last.
    for kind in reversed(data["order"]):
        for entry in data["components"].get(kind, ()):
            pieces = tuple(entry.split("/"))
            if "*" in entry:
                text = re.escape(entry).replace(r"\*", "[^/]*")
                globs.append((re.compile(f"(?:^|/){text}(?:/|$)"), kind))
            elif len(pieces) == 1:
                components[entry] = kind
            else:
                sequences.setdefault(pieces[-1], []).append((pieces, kind))
        for entry in data["names"].get(kind, ()):
            names[entry] = kind
    return _Lists(
        rank=rank,
        components=components,
        sequences={last: tuple(found) for last, found in sequences.items()},
        globs=tuple(globs),
        names=names,
        patterns=tuple(
            (re.compile("|".join(map(_translated, entries))), kind)
            for kind, entries in data["patterns"].items()
        ),
        samples=tuple(
            (
                re.sub(r"\[.*?\]", "-", pattern).replace("*", "x").replace("?", "x"),
                kind,
                re.fullmatch(r"\*\.[^*?\[.]+", pattern) is not None,
            )
            for kind, entries in data["patterns"].items()
            for pattern in chain.from_iterable(map(_alternatives, entries))
        ),
        harmless_names=re.compile("|".join(data["harmless"]["names"])),
        harmless_paths=re.compile("|".join(data["harmless"]["paths"])),
        harmless_dotfiles=frozenset(data["harmless"]["dotfiles"]),
        backups=tuple(data["backup_endings"]),
        system=tuple(tuple(entry.strip("/").split("/")) for entry in data["system"]),
    )


def _translated(pattern: str) -> str:
    """Return a pattern of names as a regular expression; ``{a|b}`` is either."""
    return translate(pattern).replace(r"\{", "(?:").replace(r"\|", "|").replace(r"\}", ")")


def _alternatives(pattern: str) -> Iterator[str]:
    pieces = [piece.split("|") for piece in re.split("[{}]", pattern)]
    return map("".join, product(*pieces))


def fold_name(name: str) -> str:
    """Return a component as the most forgiving file system compares it."""
    if not name.isascii():
        name = unicodedata.normalize("NFKC", strip_invisible(unicodedata.normalize("NFKC", name)))
    name = name.casefold()
    if ":" in name:
        name = name.partition(":")[0] or name
    stripped = name.rstrip(". ")
    return stripped or name


@lru_cache(maxsize=2048)
def _class_of(parts: tuple[str, ...], inner: int, directory: bool) -> str | None:
    folded = [fold_name(part) for part in parts]
    worst: list[str | None] = []
    _offer_places(folded, inner, worst)
    # Names below the root only: a root that is called "cookies" is a place to work in. What is a
    # directory is no file of secrets, whatever its name.
    if len(folded) > inner and not directory:
        _offer_names(folded, worst)
    if any(map(is_wild, folded[inner:])):
        _offer_matches(folded[inner:], worst)
    if any(
        len(prefix) > inner and tuple(folded[: len(prefix)]) == prefix for prefix in _lists().system
    ):
        worst.append(PathClass.SYSTEM)
    return _worst_of(filter(None, worst))


def _offer_places(folded: list[str], inner: int, worst: list[str | None]) -> None:
    """Offer the classes of directories on the way, and of files that only their directory tells."""
    lists = _lists()
    for index, name in enumerate(folded):
        kind = lists.components.get(name)
        # A workspace below ~/.cursor/worktrees is not the agent's configuration; one below ~/.ssh
        # still holds keys.
        if kind is not None and (index >= inner or kind in _ALWAYS):
            worst.append(kind)
        for pieces, sequence_kind in lists.sequences.get(name, ()):
            if tuple(folded[max(0, index + 1 - len(pieces)) : index + 1]) == pieces:
                worst.append(sequence_kind)
        inert = index == len(folded) - 1 and name in lists.harmless_dotfiles
        if index >= inner and name.startswith(".") and name not in (".", "..") and not inert:
            worst.append(PathClass.DOTFILE)
    whole = "/".join(folded[inner:])
    for pattern, kind in lists.globs:
        if pattern.search(whole):
            worst.append(kind)


def _offer_names(folded: list[str], worst: list[str | None]) -> None:
    """Offer the classes of a file by its name, or by the name of what it is a backup of."""
    lists = _lists()
    harmless = lists.harmless_paths.fullmatch("/".join(folded)) is not None
    for name in _originals(folded[-1]):
        kinds = [
            lists.names.get(name),
            *(kind for pattern, kind in lists.patterns if pattern.match(name)),
        ]
        spared = harmless or lists.harmless_names.fullmatch(name) is not None
        worst.extend(kind for kind in kinds if not (spared and kind in _ALWAYS))


def _offer_matches(folded: list[str], worst: list[str | None]) -> None:
    """Offer the classes of everything that a path with wildcards could be expanded to."""
    lists = _lists()

    def could_be(pattern: str, name: str) -> bool:
        if not is_wild(pattern):
            return pattern == name
        found = wild(pattern)
        # "*" and "*.json" stand for a whole directory; that is what a tool that lists is for.
        stated = not found.open and (found.literal > 1 or pattern.startswith("."))
        return stated and found.matches.fullmatch(name) is not None

    if sum(map(is_wild, folded)) > _MAX_WILD:
        # more than anybody means; what it could match is not worked out
        worst.append(PathClass.CREDENTIAL)
        return
    for index, pattern in enumerate(folded):
        if is_wild(pattern):
            worst.append(
                _worst_of(
                    kind for name, kind in lists.components.items() if could_be(pattern, name)
                )
            )
        for entries in lists.sequences.values():
            for pieces, kind in entries:
                tail = folded[max(0, index + 1 - len(pieces)) : index + 1]
                if len(tail) == len(pieces) and all(map(could_be, tail, pieces)):
                    worst.append(kind)
    last = folded[-1]
    if is_wild(last):
        worst.append(_worst_of(kind for name, kind in lists.names.items() if could_be(last, name)))
        found = wild(last)
        if found.literal > 2:
            worst.append(
                _worst_of(
                    kind
                    for sample, kind, ending in lists.samples
                    if (ending or not found.open) and found.matches.fullmatch(sample)
                )
            )


def _worst_of(kinds: Iterable[str]) -> str | None:
    return min(kinds, key=_lists().rank.__getitem__, default=None)


def _originals(name: str) -> list[str]:
    """Return a name and those of the files that editors and people make such a copy of."""
    found = [name]
    for _ in range(4):
        last = found[-1]
        if len(last) > 2 and last[0] == last[-1] == "#":
            found.append(last[1:-1])
            continue
        ending = next(
            (ending for ending in _lists().backups if last.endswith(ending) and last != ending),
            None,
        )
        if ending is None:
            break
        found.append(last[: -len(ending)])
        if ending.startswith(".sw") and last.startswith("."):  # vim's ".name.swp"
            found.append(last[1 : -len(ending)])
    return found


def is_harmless_name(name: str) -> bool:
    """Whether a name, as written, is one of what is published, as ``.env.example``; no pattern of
    names is.
    """
    return (
        _PLAIN.fullmatch(name) is not None
        and _lists().harmless_names.fullmatch(name.casefold()) is not None
    )


def sensitive_class(path: str, root: str | None, *, directory: bool = False) -> str | None:
    """Return the most serious class of a place, or ``None``."""
    parts = tuple(filter(None, path.split("/")))
    inner = len(list(filter(None, root.split("/")))) if root else 0
    return _class_of(parts, inner, directory)


@cache
def _secret_names() -> tuple[frozenset[str], re.Pattern[str]]:
    """File names of keys and credentials, and the patterns of such names."""
    lists = _lists()
    names = frozenset(name for name, kind in lists.names.items() if kind in _ALWAYS)
    return names, re.compile(
        "|".join(pattern.pattern for pattern, kind in lists.patterns if kind in _ALWAYS)
    )


def names_a_secret(name: str) -> bool:
    """Return whether a file name alone may be that of a key or a credential; ``sensitive_class``
    says for sure.
    """
    names, patterns = _secret_names()
    folded = fold_name(name)
    return any(known in names or patterns.match(known) is not None for known in _originals(folded))
