"""JSON pointers (RFC 6901): their tokens, which overlap, and which parts of an input changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final

from agenttool_otel.values.canonical import canonical_bytes
from agenttool_otel.values.conversion import JsonLike, to_json_value
from agenttool_otel.values.unicode import has_surrogate

_MAX_POINTERS: Final = 1000


def escape_token(token: str) -> str:
    """Return a key as a reference token of a JSON pointer (RFC 6901 section 3)."""
    # "~" first: "/" becomes "~1", whose "~" must stay
    escaped = token.replace("~", "~0")
    return escaped.replace("/", "~1")


def unescape_token(token: str) -> str:
    """Return the key that a reference token of a JSON pointer stands for."""
    # "~01" is "~1", not "/"
    unescaped = token.replace("~1", "/")
    return unescaped.replace("~0", "~")


def overlap(first: str, second: str) -> bool:
    """Return whether one JSON pointer names a part of what the other names: ``/a`` and ``/a/b``,
    not ``/a`` and ``/ab``.
    """
    first += "/"
    second += "/"
    return first.startswith(second) or second.startswith(first)


_ABSENT: Final[Any] = object()
"""Marks a member that one side does not have."""

_Pair = tuple[str, JsonLike, JsonLike]
"""A pointer, and what stands there on each side."""


def changed_pointers(a: Any, b: Any, *, limit: int = _MAX_POINTERS) -> list[str]:
    """Return the pointers of what was added, removed or replaced between two values, in document
    order.

    An empty list means equal canonical bytes; ``[""]`` means a change of the whole, or one that a
    pointer can't show (for example past the limits of ``to_json_value``).
    """
    if canonical_bytes(a) == canonical_bytes(b):
        return []
    found: list[str] = []
    whole = ("", to_json_value(a), to_json_value(b))
    stack: list[_Pair] = [whole]
    while stack:
        if len(found) >= limit:
            return [*found[: limit - 1], ""]
        pointer, left, right = stack.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            members = list(_members(pointer, left, right))
            stack += reversed(members)
        elif isinstance(left, list) and isinstance(right, list):
            items = list(_items(pointer, left, right))
            stack += reversed(items)
        elif _differ(left, right):
            found.append(pointer)
    return found or [""]


def _differ(left: JsonLike, right: JsonLike) -> bool:
    if type(left) is not type(right):  # 1 == True
        return True
    return left != right


def _members(
    pointer: str, left: dict[str, JsonLike], right: dict[str, JsonLike]
) -> Iterator[_Pair]:
    for key in {**left, **right}:
        member = f"{pointer}/{escape_token(key)}"
        old = left.get(key, _ABSENT)
        new = right.get(key, _ABSENT)
        yield member, old, new


def _items(pointer: str, left: list[JsonLike], right: list[JsonLike]) -> Iterator[_Pair]:
    pairs = zip_longest(left, right, fillvalue=_ABSENT)
    for index, (old, new) in enumerate(pairs):
        yield f"{pointer}/{index}", old, new


def surrogate_place(document: Any) -> str | None:
    """Return the JSON pointer of a text with a lone surrogate in a document, ``None`` where there
    is none.
    """
    stack: list[tuple[str, Any]] = [("", document)]
    while stack:
        pointer, value = stack.pop()
        if isinstance(value, str):
            if has_surrogate(value):
                return pointer
        elif isinstance(value, dict):
            for name, item in value.items():
                token = escape_token(str(name))
                stack.append((f"{pointer}/{token}", item))
        elif isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                stack.append((f"{pointer}/{index}", item))
    return None
