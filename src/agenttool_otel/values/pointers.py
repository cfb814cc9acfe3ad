"""JSON pointers (RFC 6901): their tokens, which overlap, and which parts of an input changed."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Final

from agenttool_otel.values.canonical import canonical_bytes
from agenttool_otel.values.conversion import JsonLike, to_json_value
from agenttool_otel.values.unicode import has_surrogate

_MAX_POINTERS: Final = 1000


def escape_token(token: str) -> str:
    """Return a key as a reference token of a JSON pointer (RFC 6901 section 3)."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape_token(token: str) -> str:
    """Return the key that a reference token of a JSON pointer stands for."""
    return token.replace("~1", "/").replace("~0", "~")


def overlap(one: str, other: str) -> bool:
    """Tell whether one JSON pointer names a part of what the other names."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def changed_pointers(a: Any, b: Any, *, limit: int = _MAX_POINTERS) -> list[str]:
    """Return the pointers of what was added, removed or replaced between two values, in document
    order.

    An empty list means equal canonical bytes; ``[""]`` means a change of the whole, or one that a
    pointer can't show (for example past the limits of ``to_json_value``).
    """
    if canonical_bytes(a) == canonical_bytes(b):
        return []
    found: list[str] = []
    stack: list[tuple[str, JsonLike, JsonLike]] = [("", to_json_value(a), to_json_value(b))]
    while stack:
        if len(found) >= limit:
            return [*found[: limit - 1], ""]
        pointer, left, right = stack.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            keys = list(left) + [key for key in right if key not in left]
            for key in reversed(keys):
                stack.append(
                    (
                        f"{pointer}/{escape_token(key)}",
                        left.get(key, _ABSENT),
                        right.get(key, _ABSENT),
                    )
                )
        elif isinstance(left, list) and isinstance(right, list):
            pairs = enumerate(zip_longest(left, right, fillvalue=_ABSENT))
            stack.extend(
                (f"{pointer}/{index}", old, new) for index, (old, new) in reversed(list(pairs))
            )
        elif type(left) is not type(right) or left != right:
            found.append(pointer)
    return found or [""]


_ABSENT: Final[Any] = object()
"""Marks a member that one side does not have."""


def surrogate_place(document: Any) -> str | None:
    """Return the JSON pointer of a text with a lone surrogate in a document, ``None`` where there
    is none.
    """
    stack: list[tuple[str, Any]] = [("", document)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, str):
            if has_surrogate(value):
                return place
        elif isinstance(value, dict):
            stack += [(f"{place}/{escape_token(str(name))}", item) for name, item in value.items()]
        elif isinstance(value, (list, tuple)):
            stack += [(f"{place}/{index}", item) for index, item in enumerate(value)]
    return None
