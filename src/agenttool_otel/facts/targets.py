"""Which values of a call's arguments are the same target as in an earlier call, as keyed digests.

An address (it has an ``@``) or an account number (IBAN) names whom a call reaches wherever it
stands; any other value does so only for the same argument of the same tool: "13" of one tool is not
"13" of another.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.facts.tokens import normalize_text
from agenttool_otel.values.pointers import escape_token

_KEY: Final = secrets.token_bytes(32)
"""The key of this process, for where none is given."""

_MAX_TARGETS: Final = 500
_MAX_CHARS: Final = 1_024
"""Longer texts are content, and name no target."""

_MAX_BITS: Final = 4 * _MAX_CHARS
"""Of a number that may have as many digits."""

_ADDRESS: Final = re.compile(r"[^\s@,;<>]+@[^\s@,;<>]+\.[^\s@,;<>]+")
_IBAN: Final = re.compile(r"[a-z]{2}\d{2}[0-9a-z]{10,30}")


class _Place(NamedTuple):
    """A value among the arguments."""

    pointer: str
    name: str  # the key that it stands under; of what lies in a list, the list's
    value: Any


def target_digests(
    tool_id: str,
    arguments: Mapping[str, Any],
    key: bytes = _KEY,
) -> Iterator[tuple[str, bytes]]:
    """Return the JSON pointer and the digest of each value that may be a target; bounded, and never
    raises.

    Args:
        tool_id: the tool; without its id the same argument of any tool counts.
        arguments: the arguments of a call.
        key: of the digests; the process's own where it is not given.
    """
    stack = [_Place("", "", arguments)]
    steps = 0
    while stack and steps < _MAX_TARGETS:
        steps += 1
        place = stack.pop()
        if isinstance(place.value, Mapping | list | tuple):
            stack += _children(place)
            continue
        token = _token(tool_id, place)
        if token is not None:
            yield place.pointer, _digest(token, key)


def _children(place: _Place) -> Iterator[_Place]:
    """Return what lies in an object or a list."""
    if isinstance(place.value, Mapping):
        for key, child in place.value.items():
            name = str(key)
            pointer = f"{place.pointer}/{escape_token(name)}"
            yield _Place(pointer, name, child)
        return
    for index, child in enumerate(place.value):
        pointer = f"{place.pointer}/{index}"
        yield _Place(pointer, place.name, child)


def _token(tool_id: str, place: _Place) -> str | None:
    """Return what a value is compared by, ``None`` for what can't be a target."""
    value = place.value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return None  # Python writes no number of more than 4,300 digits: 10**5000
    # a character more shows that the text is longer
    start = str(value)[: _MAX_CHARS + 1]
    words = normalize_text(start).split()
    text = " ".join(words)
    if not text or len(text) > _MAX_CHARS:
        return None
    # DE89 3704 0044 0532 0130 00
    joined = text.replace(" ", "")
    if _ADDRESS.fullmatch(text) or _IBAN.fullmatch(joined):
        return f"\0{joined}"
    return f"{tool_id}\0{place.name}\0{text}"


def _digest(token: str, key: bytes) -> bytes:
    data = token.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=12, key=key, person=b"target").digest()
