"""Random texts that a regular expression describes, each choice as likely as the others."""

from __future__ import annotations

import functools
import random
import string
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

_PRINTED: Final = frozenset(chr(code) for code in range(32, 127))
_MORE: Final = 30
_CATEGORIES: Final = {
    codes.CATEGORY_DIGIT: frozenset(string.digits),
    codes.CATEGORY_SPACE: frozenset(" "),
    codes.CATEGORY_WORD: frozenset(string.ascii_letters + string.digits + "_"),
    codes.CATEGORY_NOT_SPACE: _PRINTED - {" "},
}


def pattern_text(pattern: str, source: random.Random) -> str:
    """Make a text; repetitions are the shortest that there may be, or up to 30 longer.

    Args:
        pattern: the regular expression.
        source: the chance.
    """
    return "".join(_piece(*item, source) for item in _parsed(pattern))


@functools.cache
def _parsed(pattern: str) -> Any:
    return parser.parse(pattern)


def _piece(code: Any, value: Any, source: random.Random) -> str:
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.ANY:
        return source.choice(string.ascii_letters)
    if code is codes.IN:
        return source.choice(_class(tuple(value)))
    if code is codes.AT:
        return ""
    if code is codes.BRANCH:
        return "".join(_piece(*item, source) for item in source.choice(value[1]))
    if code is codes.SUBPATTERN:
        return "".join(_piece(*item, source) for item in value[3])
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        least, most, items = value
        count = source.randint(least, max(least, min(int(most), least + _MORE)))
        return "".join(_piece(*item, source) for _ in range(count) for item in items)
    raise AssertionError(f"{code} in a pattern")


@functools.cache
def _class(items: tuple[Any, ...]) -> list[str]:
    chars: set[str] = set()
    negated = False
    for code, value in items:
        if code is codes.NEGATE:
            negated = True
        elif code is codes.LITERAL:
            chars.add(chr(value))
        elif code is codes.RANGE:
            chars.update(map(chr, range(value[0], value[1] + 1)))
        else:
            chars |= _CATEGORIES[value]
    return sorted(_PRINTED - chars if negated else chars)
