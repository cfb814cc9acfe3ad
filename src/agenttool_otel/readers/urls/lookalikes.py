"""Hosts that imitate others: by look-alike letters, or by carrying the other's name in a place that
misleads.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from agenttool_otel.readers.urls.addresses import hosts_data
from agenttool_otel.values.unicode import is_national, look_alike_table, skeleton

_MAX_LABELS: Final = 6
_LEAST_CONTAINED: Final = 6
"""A shorter allowed host is a part of too many honest names."""


def is_allowed(host: str, allowed: tuple[str, ...]) -> bool:
    """Return whether a host is among the allowed ones."""
    for name in allowed:
        wanted = name.lower().rstrip(".")
        if host == wanted or (wanted.startswith(".") and host.endswith(wanted)):
            return True
    return False


@lru_cache(maxsize=64)
def _known(allowed: tuple[str, ...]) -> tuple[dict[str, str], frozenset[str], tuple[str, ...]]:
    own = tuple(name.lower().strip(".") for name in allowed if name.strip("."))
    names = frozenset(own) | frozenset(hosts_data()["well_known"])
    slips = {slip: name for name in sorted(names) for slip in _slips(name)}
    for genuine in map(skeleton, hosts_data()["own_names"]):
        slips.pop(genuine, None)
    return slips | {skeleton(name): name for name in sorted(names)}, names, own


def _slips(name: str) -> Iterator[str]:
    """What a hand that slips writes for a name: a letter left out, twice, or after the next,
    another ending.
    """
    label, dot, rest = name.partition(".")
    if len(label) < _LEAST_CONTAINED or "." in rest:
        return
    yield from (
        skeleton(f"{label}.{ending}") for ending in ("co", "cm", "om", "con") if rest == "com"
    )
    for index in range(1, len(label)):
        before, letter, after = label[:index], label[index], label[index + 1 :]
        for slip in (
            before + after,
            before + letter + letter + after,
            before + after[:1] + letter + after[1:],
        ):
            yield skeleton(slip + dot + rest)


@lru_cache(maxsize=1024)
def lookalike_of(host: str, unicode_host: str, allowed: tuple[str, ...]) -> str | None:
    """Return the well-known or allowed host that another one imitates, or ``None``.

    A label outside ASCII all of whose letters look like ASCII ones imitates whatever it looks like;
    then the answer is that look, known or not.
    """
    looks, names, own = _known(allowed)
    labels = host.split(".")
    tails = [
        ".".join(labels[index:]) for index in range(max(0, len(labels) - _MAX_LABELS), len(labels))
    ]
    for head in (".".join(labels[:index]) for index in range(len(labels) - 1, 0, -1)):
        # "google.com.br" is a country's own form; "google.com.login.example" is not, whoever lends
        # the rest.
        rest = host[len(head) + 1 :]
        if head in names and not (len(rest) == 2 and head not in own):
            return head
    if any(tail in names for tail in tails):
        return None
    for name in names:
        if name in host and (
            host.startswith(name + "-") or f".{name}." in host or f".{name}-" in host
        ):
            return name
    for name in own:
        if len(name) >= _LEAST_CONTAINED and (host.startswith(name) or host.endswith(name)):
            return name
    seen = unicode_host.split(".")
    for index in range(max(0, len(seen) - _MAX_LABELS), len(seen)):
        if (known := looks.get(skeleton(".".join(seen[index:])))) is not None:
            return known
    return None if unicode_host.isascii() else _ascii_look(seen)


def _ascii_look(labels: list[str]) -> str | None:
    """Return the ASCII name that a name with other letters passes for, unless accents are all that
    differs.
    """
    table = look_alike_table()
    imitates = False
    shown: list[str] = []
    for label in labels:
        look = "".join(_look(character, table) for character in label)
        if not look.isascii():
            return None
        imitates = imitates or any(
            ord(character) in table and not is_national(character) for character in label
        )
        shown.append(look)
    return ".".join(shown) if imitates else None


def _look(character: str, table: dict[int, str]) -> str:
    if ord(character) in table:
        return table[ord(character)]
    bare = "".join(
        c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c)
    )
    return bare.translate(table) if bare else character
