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
    tool_id: str, arguments: Mapping[str, Any], key: bytes = _KEY
) -> Iterator[tuple[str, bytes]]:
    """Return the JSON pointer and the digest of each value that may be a target; bounded, and never
    raises.

    Without a tool's id the same argument of any tool counts.
    """
    stack: list[tuple[str, str, Any]] = [("", "", arguments)]
    steps = 0
    while stack and steps < _MAX_TARGETS:
        steps += 1
        pointer, name, value = stack.pop()
        if isinstance(value, Mapping):
            stack += [
                (f"{pointer}/{escape_token(str(key))}", str(key), child)
                for key, child in value.items()
            ]
        elif isinstance(value, list | tuple):
            stack += [(f"{pointer}/{index}", name, child) for index, child in enumerate(value)]
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            text = " ".join(normalize_text(str(value)[: _MAX_CHARS + 1]).split())
            if 0 < len(text) <= _MAX_CHARS:
                joined = text.replace(" ", "")
                alone = _ADDRESS.fullmatch(text) or _IBAN.fullmatch(joined)
                token = f"\0{joined}" if alone else f"{tool_id}\0{name}\0{text}"
                data = token.encode("utf-8", "surrogatepass")
                yield (
                    pointer,
                    hashlib.blake2b(data, digest_size=12, key=key, person=b"target").digest(),
                )
