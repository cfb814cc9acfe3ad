"""Hosts that imitate others: by look-alike letters, or by carrying the other's name in a place that
misleads.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

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


class _Known(NamedTuple):
    """The hosts that others may imitate."""

    looks: dict[str, str]  # by what they look like, and by slips of the hand
    names: frozenset[str]  # all of them
    longest_first: tuple[str, ...]  # the same: docs.python.org before python.org
    own: tuple[str, ...]  # the allowed ones


@lru_cache(maxsize=64)
def _known(allowed: tuple[str, ...]) -> _Known:
    own: list[str] = []
    for allowed_name in allowed:
        bare = allowed_name.lower().strip(".")
        if bare:
            own.append(bare)
    names = frozenset([*own, *hosts_data()["well_known"]])
    looks: dict[str, str] = {}
    for name in sorted(names):
        for slip in _slips(name):
            looks[slip] = name
    for genuine in hosts_data()["own_names"]:
        looks.pop(skeleton(genuine), None)
    for name in sorted(names):
        looks[skeleton(name)] = name
    longest_first = tuple(sorted(names, key=len, reverse=True))
    return _Known(looks, names, longest_first, tuple(own))


def _slips(name: str) -> Iterator[str]:
    """Return what a hand that slips writes for a name: a letter left out, twice, or after the
    next, another ending.
    """
    label, dot, rest = name.partition(".")
    if len(label) < _LEAST_CONTAINED or "." in rest:
        return
    if rest == "com":
        for ending in ("co", "cm", "om", "con"):
            yield skeleton(f"{label}.{ending}")
    for index in range(1, len(label)):
        before = label[:index]
        letter = label[index]
        after = label[index + 1 :]
        yield skeleton(before + after + dot + rest)
        yield skeleton(before + letter + letter + after + dot + rest)
        yield skeleton(before + after[:1] + letter + after[1:] + dot + rest)


@lru_cache(maxsize=1024)
def lookalike_of(host: str, unicode_host: str, allowed: tuple[str, ...]) -> str | None:
    """Return the well-known or allowed host that another one imitates, or ``None``.

    A label outside ASCII all of whose letters look like ASCII ones imitates whatever it looks like;
    then the answer is that look, known or not.

    Args:
        host: the host in ASCII.
        unicode_host: the same as a person sees it.
        allowed: the allowed hosts.
    """
    known = _known(allowed)
    head = _head_of(host, known)
    if head is not None:
        return head
    # docs.python.org is python.org's own
    if not known.names.isdisjoint(_tails(host)):
        return None
    contained = _contained_in(host, known)
    if contained is not None:
        return contained
    for tail in _tails(unicode_host):
        look = known.looks.get(skeleton(tail))
        if look is not None:
            return look
    if unicode_host.isascii():
        return None
    return _ascii_look(unicode_host.split("."))


def _tails(host: str) -> list[str]:
    """Return the names that a host is or lies below, at most so many labels of it."""
    labels = host.split(".")
    first = max(0, len(labels) - _MAX_LABELS)
    return [".".join(labels[index:]) for index in range(first, len(labels))]


def _head_of(host: str, known: _Known) -> str | None:
    """Return the host that another one begins with, as ``google.com.login.example``."""
    labels = host.split(".")
    for index in range(len(labels) - 1, 0, -1):
        head = ".".join(labels[:index])
        if head not in known.names:
            continue
        rest = host[len(head) + 1 :]
        # "google.com.br" is a country's own form, whatever registry has the rest
        if len(rest) != 2 or head in known.own:
            return head
    return None


def _contained_in(host: str, known: _Known) -> str | None:
    """Return the host that another one holds: ``github.com-login.example``, ``a.github.com.b.c``."""
    for name in known.longest_first:
        if name not in host:
            continue
        # github.com-login.example
        if host.startswith(f"{name}-"):
            return name
        # a.github.com.b.example
        if f".{name}." in host or f".{name}-" in host:
            return name
    for name in known.own:
        if len(name) < _LEAST_CONTAINED:
            continue
        if host.startswith(name) or host.endswith(name):
            return name
    return None


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
        for character in label:
            if ord(character) in table and not is_national(character):
                imitates = True
        shown.append(look)
    if not imitates:
        return None
    return ".".join(shown)


def _look(character: str, table: dict[int, str]) -> str:
    if ord(character) in table:
        return table[ord(character)]
    bare = ""
    for part in unicodedata.normalize("NFKD", character):
        if not unicodedata.combining(part):
            bare += part
    if not bare:
        return character
    return bare.translate(table)
