"""The left side of a comparison, cut out of an expression's source, so that its value can be shown where it failed."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`')
_OPERATOR: Final = re.compile(r"(==|!=|<=|>=|<|>|\bin\b)")
_WITH: Final = re.compile(r"\s+with\s+(?:input|data)\b")
_OPEN, _CLOSE = "([{", ")]}"


class Compared(NamedTuple):
    """One comparison."""

    left: str  # source of what is compared
    modifiers: str  # source of its ``with`` modifiers, or an empty text


def compared(text: str) -> Compared | None:
    """Cut a comparison up."""
    # texts may hold anything: they are blanked before anything is looked for, and keep their length
    blank = _STRING.sub(lambda match: "_" * len(match[0]), text)
    if blank.startswith(("some ", "every ", "not ")) or ":=" in blank:
        return None
    found = _WITH.search(blank)
    end = found.start() if found else len(blank)
    depth = 0
    for index, letter in enumerate(blank[:end]):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if depth == 0 and index and _OPERATOR.match(blank, index, end):
            left = text[:index].strip()
            return Compared(left, text[end:].strip()) if left else None
    return None
