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
from typing import Any, Final

from agenttool_otel.facts.tokens import normalize_text
from agenttool_otel.values.pointers import escape_token

_KEY: Final = secrets.token_bytes(32)
"""Of this process, where nobody gives another."""

_MAX_TARGETS: Final = 500
_MAX_CHARS: Final = 1_024
"""Longer texts are content; they reach nobody."""

_ADDRESS: Final = re.compile(r"[^\s@,;<>]+@[^\s@,;<>]+\.[^\s@,;<>]+")
_IBAN: Final = re.compile(r"[a-z]{2}\d{2}[0-9a-z]{10,30}")


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
    stack: list[tuple[str, str, Any]] = [("", "", arguments)]
    steps = 0
    while stack and steps < _MAX_TARGETS:
        steps += 1
        pointer, name, value = stack.pop()
        if isinstance(value, Mapping):
            for member, child in value.items():
                place = f"{pointer}/{escape_token(str(member))}"
                stack.append((place, str(member), child))
        elif isinstance(value, list | tuple):
            for index, child in enumerate(value):
                stack.append((f"{pointer}/{index}", name, child))
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            token = _token(tool_id, name, str(value))
            if token is not None:
                yield pointer, _digest(token, key)


def _token(tool_id: str, name: str, value: str) -> str | None:
    """Return what a value is compared by, ``None`` for what reaches nobody."""
    text = " ".join(normalize_text(value[: _MAX_CHARS + 1]).split())
    if not text or len(text) > _MAX_CHARS:
        return None
    # DE89 3704 0044 0532 0130 00
    joined = text.replace(" ", "")
    if _ADDRESS.fullmatch(text) or _IBAN.fullmatch(joined):
        return f"\0{joined}"
    return f"{tool_id}\0{name}\0{text}"


def _digest(token: str, key: bytes) -> bytes:
    data = token.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=12, key=key, person=b"target").digest()
