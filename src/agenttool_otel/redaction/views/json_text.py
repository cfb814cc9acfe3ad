"""JSON inside a string: structure is understood, and only the literals that hold secrets are replaced.

Parsing and dumping again would change numbers, spacing and repeated names; here everything else
stays byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction.patterns import LONG_PATTERNS

_LONG_PATTERNS: Final = LONG_PATTERNS["json_text"]
_TOKEN = re.compile(_LONG_PATTERNS["token"], re.DOTALL)


class Literal(NamedTuple):
    """One scalar of a JSON text."""

    start: int
    end: int
    path: tuple[str | int, ...]


def loads(text: str) -> Any:
    """Parse; None for anything that isn't a JSON object or array (also when it is too deep or has
    huge numbers).
    """
    stripped = text.lstrip()
    if stripped[:1] not in ("{", "[") or stripped[-1:].isalnum():
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if type(value) in (dict, list) else None


def literals(text: str, wanted: Callable[[tuple[str | int, ...]], bool]) -> list[Literal]:
    """Positions of scalar values in a text that is known to be valid JSON."""
    found: list[Literal] = []
    stack: list[str | int | None] = []
    kinds: list[str] = []
    expect_key = False
    for match in _TOKEN.finditer(text):
        what = match.lastgroup
        if what == "open":
            kinds.append(match.group("open"))
            expect_key = kinds[-1] == "{"
            stack.append(None if expect_key else 0)
        elif what == "close":
            kinds.pop()
            stack.pop()
            expect_key = False
        elif what == "comma":
            if kinds[-1] == "{":
                expect_key = True
            else:
                stack[-1] = stack[-1] + 1 if type(stack[-1]) is int else 0
        elif what == "string" and expect_key:
            stack[-1] = json.loads(match.group("string"))
            expect_key = False
        elif what in ("string", "other"):
            path = tuple(part for part in stack if part is not None)
            if wanted(path):
                found.append(Literal(match.start(what), match.end(what), path))
    return found
