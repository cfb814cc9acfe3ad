"""Which places deserve care: keys, credentials, what programs obey, what the system needs.

The lists are data (``data/sensitive_paths.json``). Names are compared the way the most
forgiving file system would: without case, without invisible characters, in compatibility
normalisation, without a stream suffix and without trailing dots and blanks; so ``.GIT``,
``.g\\u200cit``, ``.git::$INDEX_ALLOCATION`` and ``GIT~1`` are all ``.git``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import translate
from functools import cache, lru_cache
from itertools import chain, product
from typing import Final, NamedTuple, TypeAlias

from agenttool_otel.readers.paths.globs import Wild, is_wild, wild
from agenttool_otel.readers.paths.harmless import HARMLESS_NAMES
from agenttool_otel.readers.vocabulary import PathClass
from agenttool_otel.values.tables import load_table
from agenttool_otel.values.unicode import strip_invisible

_MAX_WILD: Final = 16
_PLAIN: Final = re.compile(r"[\w.-]+", re.ASCII)
_ALWAYS: Final = (PathClass.KEY, PathClass.CREDENTIAL)


_Pieces: TypeAlias = tuple[str, ...]  # components of a path


class _Sequence(NamedTuple):
    """Components that stand one after the other, as ``.config/gcloud``."""

    pieces: _Pieces
    kind: str


class _Pattern(NamedTuple):
    """A pattern of names or paths."""

    pattern: re.Pattern[str]
    kind: str


class _Sample(NamedTuple):
    """A name that a pattern of names matches."""

    name: str
    kind: str
    only_ending: bool  # whether the pattern states an ending alone, as "*.pem"


class _Lists(NamedTuple):
    """The tables, with patterns compiled."""

    rank: dict[str, int]
    components: dict[str, str]
    sequences: dict[str, list[_Sequence]]  # by last component
    globs: list[_Pattern]  # of whole paths
    names: dict[str, str]
    patterns: list[_Pattern]
    samples: list[_Sample]
    harmless_names: re.Pattern[str]
    harmless_paths: re.Pattern[str]
    harmless_dotfiles: frozenset[str]
    backups: tuple[str, ...]
    system: tuple[_Pieces, ...]


@cache
def _lists() -> _Lists:
    data = load_table("agenttool_otel.readers.paths", "data/sensitive_paths.json")
    order = data["order"]
    harmless = data["harmless"]
    lists = _Lists(
        rank={name: index for index, name in enumerate(order)},
        components={},
        sequences={},
        globs=[],
        names={},
        patterns=[],
        samples=[],
        harmless_names=re.compile("|".join([*harmless["names"], *HARMLESS_NAMES])),
        harmless_paths=re.compile("|".join(harmless["paths"])),
        harmless_dotfiles=frozenset(harmless["dotfiles"]),
        backups=tuple(data["backup_endings"]),
        system=tuple(map(_components, data["system"])),
    )
    # The first class in order wins, so the lists are read from the last.
    for kind in reversed(order):
        places = data["components"].get(kind, ())
        for entry in places:
            if "*" not in entry:
                _add_place(lists, entry, kind)
        globs = [entry for entry in places if "*" in entry]
        if globs:
            lists.globs.append(_Pattern(_path_pattern(globs), kind))
        lists.names.update(dict.fromkeys(data["names"].get(kind, ()), kind))
    for kind, entries in data["patterns"].items():
        text = "|".join(map(_translated, entries))
        pattern = _Pattern(re.compile(text), kind)
        lists.patterns.append(pattern)
        for entry in entries:
            for alternative in _alternatives(entry):
                lists.samples.append(_sample(alternative, kind))
    return lists


def _components(path: str) -> _Pieces:
    return tuple(path.strip("/").split("/"))


def _add_place(lists: _Lists, entry: str, kind: str) -> None:
    """Add a directory of the table: ``.ssh`` or ``.config/gcloud``."""
    pieces = tuple(entry.split("/"))
    if len(pieces) == 1:
        lists.components[entry] = kind
        return
    ending = lists.sequences.setdefault(pieces[-1], [])
    ending.append(_Sequence(pieces, kind))


def _path_pattern(entries: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds directories anywhere in a path: ``secrets/*.key``. ``*`` stays within
    a name.
    """
    text = "|".join(map(re.escape, entries)).replace(r"\*", "[^/]*")
    return re.compile(f"(?:^|/)(?:{text})(?:/|$)")


def _sample(pattern: str, kind: str) -> _Sample:
    """Return a name that a pattern matches, its class, and whether only the ending counts."""
    # "id_[a-z]*" has the sample "id_-x"
    name = re.sub(r"\[.*?\]", "-", pattern).replace("*", "x").replace("?", "x")
    only_ending = re.fullmatch(r"\*\.[^*?\[.]+", pattern) is not None
    return _Sample(name, kind, only_ending)


def _translated(pattern: str) -> str:
    """Return a pattern of names as a regular expression; ``{a|b}`` is either."""
    text = translate(pattern)
    text = text.replace(r"\{", "(?:")
    text = text.replace(r"\|", "|")
    return text.replace(r"\}", ")")


def _alternatives(pattern: str) -> Iterator[str]:
    pieces = [piece.split("|") for piece in re.split("[{}]", pattern)]
    return map("".join, product(*pieces))


def fold_name(name: str) -> str:
    """Return a component as the most forgiving file system compares it."""
    if not name.isascii():
        composed = unicodedata.normalize("NFKC", name)
        # what stood apart for an invisible character may compose now
        name = unicodedata.normalize("NFKC", strip_invisible(composed))
    name = name.casefold()
    if ":" in name:
        name = name.partition(":")[0] or name
    stripped = name.rstrip(". ")
    return stripped or name


@lru_cache(maxsize=2048)
def _class_of(parts: tuple[str, ...], inner: int, directory: bool) -> str | None:
    folded = [fold_name(part) for part in parts]
    below = folded[inner:]
    worst: list[str | None] = []
    _offer_places(folded, inner, worst)
    # Names below the root only: a root that is called "cookies" is a place to work in. What is a
    # directory is no file of secrets, whatever its name.
    if below and not directory:
        _offer_names(folded, worst)
    if any(map(is_wild, below)):
        _offer_matches(below, worst)
    if _is_of_system(folded, inner):
        worst.append(PathClass.SYSTEM)
    return _worst_of(filter(None, worst))


def _is_of_system(folded: list[str], inner: int) -> bool:
    for prefix in _lists().system:
        size = len(prefix)
        if size <= inner:
            continue  # a root below /usr is a place to work in
        if _tail(folded, size - 1, size) == prefix:
            return True
    return False


def _offer_places(folded: list[str], inner: int, worst: list[str | None]) -> None:
    """Offer the classes of directories on the way, and of files that have one by their directory."""
    lists = _lists()
    last = len(folded) - 1
    for index, name in enumerate(folded):
        kind = lists.components.get(name)
        # A workspace below ~/.cursor/worktrees is not the agent's configuration; one below ~/.ssh
        # still holds keys.
        if kind is not None and (index >= inner or kind in _ALWAYS):
            worst.append(kind)
        for pieces, sequence_kind in lists.sequences.get(name, ()):
            if _tail(folded, index, len(pieces)) == pieces:
                worst.append(sequence_kind)
        is_inert = index == last and name in lists.harmless_dotfiles
        if index >= inner and _is_hidden(name) and not is_inert:
            worst.append(PathClass.DOTFILE)
    _offer_globs("/".join(folded[inner:]), worst)


def _offer_globs(path: str, worst: list[str | None]) -> None:
    for pattern, kind in _lists().globs:
        if pattern.search(path):
            worst.append(kind)


def _tail(folded: list[str], index: int, size: int) -> _Pieces:
    """Return so many components, the last of which is the one at an index."""
    end = index + 1
    start = max(0, end - size)
    return tuple(folded[start:end])


def _is_hidden(name: str) -> bool:
    return name.startswith(".") and name not in (".", "..")


def _offer_names(folded: list[str], worst: list[str | None]) -> None:
    """Offer the classes of a file by its name, or by the name of what it is a backup of."""
    named = _classes_of_name(folded[-1])
    if not named:
        return  # most names are of no class
    lists = _lists()
    harmless = lists.harmless_paths.fullmatch("/".join(folded)) is not None
    for name, kind in named:
        spared = harmless or lists.harmless_names.fullmatch(name) is not None
        if not (spared and kind in _ALWAYS):
            worst.append(kind)


# a command's file is looked at as a word, and as a place
@lru_cache(maxsize=2048)
def _classes_of_name(last: str) -> list[tuple[str, str]]:
    """Return the classes of a name, and of those that it is a backup of, each with its name."""
    lists = _lists()
    found: list[tuple[str, str]] = []
    for name in _originals(last):
        if name in lists.names:
            found.append((name, lists.names[name]))
        for pattern, kind in lists.patterns:
            if pattern.match(name):
                found.append((name, kind))
    return found


def _offer_matches(folded: list[str], worst: list[str | None]) -> None:
    """Offer the classes of everything that a path with wildcards could be expanded to."""
    if sum(map(is_wild, folded)) > _MAX_WILD:
        # more than anybody means; what it could match is not worked out
        worst.append(PathClass.CREDENTIAL)
        return
    lists = _lists()
    sequences = list(chain.from_iterable(lists.sequences.values()))
    for index, pattern in enumerate(folded):
        if is_wild(pattern):
            match = _worst_match(pattern, lists.components)
            worst.append(match)
        for pieces, kind in sequences:
            tail = _tail(folded, index, len(pieces))
            if len(tail) != len(pieces):
                continue
            # .conf*/gcloud
            if all(map(_could_be, tail, pieces)):
                worst.append(kind)
    last = folded[-1]
    if is_wild(last):
        worst.append(_worst_match(last, lists.names))
        worst.append(_worst_sample(wild(last)))


def _could_be(pattern: str, name: str) -> bool:
    """Return whether a component may be expanded to a name, and is narrower than "all names"."""
    if not is_wild(pattern):
        return pattern == name
    found = wild(pattern)
    # "*" and "*.json" stand for a whole directory; that is what a tool that lists is for.
    if found.open or not (found.literal > 1 or pattern.startswith(".")):
        return False
    return found.matches.fullmatch(name) is not None


def _worst_match(pattern: str, names: Mapping[str, str]) -> str | None:
    kinds = []
    for name, kind in names.items():
        if _could_be(pattern, name):
            kinds.append(kind)
    return _worst_of(kinds)


def _worst_sample(found: Wild) -> str | None:
    """Return the worst class of the patterns that a pattern has names in common with."""
    if found.literal <= 2:
        return None
    kinds: list[str] = []
    for sample, kind, only_ending in _lists().samples:
        # "*.pem" against "*.pem", but not "*key" against "*_key.txt"
        if (only_ending or not found.open) and found.matches.fullmatch(sample):
            kinds.append(kind)
    return _worst_of(kinds)


def _worst_of(kinds: Iterable[str]) -> str | None:
    return min(kinds, key=_lists().rank.__getitem__, default=None)


def _originals(name: str) -> list[str]:
    """Return a name and those of the files that editors and people make such a copy of."""
    found = [name]
    for _ in range(4):
        last = found[-1]
        # Emacs' "#name#"
        if len(last) > 2 and last[0] == last[-1] == "#":
            found.append(last[1:-1])
            continue
        ending = _backup_ending(last)
        if ending is None:
            break
        found.append(last.removesuffix(ending))
        if ending.startswith(".sw") and last.startswith("."):  # vim's ".name.swp"
            found.append(last[1:].removesuffix(ending))
    return found


def _backup_ending(name: str) -> str | None:
    for ending in _lists().backups:
        if name.endswith(ending) and name != ending:
            return ending
    return None


def is_harmless_name(name: str) -> bool:
    """Return whether a name, as written, is of a file that is published, as ``.env.example``; no
    pattern of names is.
    """
    if _PLAIN.fullmatch(name) is None:
        return False
    return _lists().harmless_names.fullmatch(name.casefold()) is not None


def sensitive_class(
    path: str,
    root: str | None,
    *,
    directory: bool = False,
) -> str | None:
    """Return the most serious class of a place, or ``None``.

    Args:
        path: the place, absolute and normalised.
        root: the root that it lies in; the root's own name does not count.
        directory: whether a directory is there, whose name is none of a file of secrets.
    """
    parts = tuple(filter(None, path.split("/")))
    inner = 0
    if root:
        inner = len(list(filter(None, root.split("/"))))
    return _class_of(parts, inner, directory)


@cache
def _secret_names() -> tuple[frozenset[str], re.Pattern[str]]:
    """Return the file names of keys and credentials, and a pattern for all others of them."""
    lists = _lists()
    names = []
    for name, kind in lists.names.items():
        if kind in _ALWAYS:
            names.append(name)
    patterns = []
    for pattern, kind in lists.patterns:
        if kind in _ALWAYS:
            patterns.append(pattern.pattern)
    return frozenset(names), re.compile("|".join(patterns))


def names_a_secret(name: str) -> bool:
    """Return whether a file name alone may be that of a key or a credential; ``sensitive_class``
    is certain.
    """
    names, patterns = _secret_names()
    originals = _originals(fold_name(name))
    return any(known in names or patterns.match(known) for known in originals)


@cache
def _secret_parents() -> frozenset[_Pieces]:
    found = set()
    for sequence in chain.from_iterable(_lists().sequences.values()):
        if sequence.kind in _ALWAYS:
            # ".local/share/keyrings" lies below ".local" and ".local/share"
            found |= {sequence.pieces[:size] for size in range(1, len(sequence.pieces))}
    return frozenset(found)


def may_hold_secrets(path: str) -> bool:
    """Return whether a directory is one that the table names secret places below, as ``.config``.

    Args:
        path: the directory, absolute and normalised.
    """
    pieces = tuple(map(fold_name, filter(None, path.split("/"))))
    return any(pieces[start:] in _secret_parents() for start in range(len(pieces)))


def holds_secrets(path: str, root: str | None, *, directory: bool = False) -> bool:
    """Return whether a place is of keys or credentials; the arguments are those of
    ``sensitive_class``.
    """
    return sensitive_class(path, root, directory=directory) in _ALWAYS


@cache
def secret_places() -> tuple[str, ...]:
    """Return the table's places of keys and credentials, relative to a home: ``.ssh``,
    ``.docker/config*.json``.
    """
    data = load_table("agenttool_otel.readers.paths", "data/sensitive_paths.json")
    places: list[str] = []
    for kind in _ALWAYS:
        places.extend(data["components"][kind])
    return tuple(places)
