"""What a pattern with wildcards could match: a file tool that expands ``.en*`` reads ``.env``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_WILD: Final = re.compile(r"[*?\[{]")
_TOKEN: Final = re.compile(
    r"(?P<stars>\*+)|(?P<one>\?)|(?P<set>\[[!^]?\]?[^\]]*\])|(?P<brace>[{},])|(?P<letter>.)", re.S
)
_IN_SET: Final = re.compile(r"(.)(?:-(.))?", re.S)
_MAX_STARS: Final = 8
"""More of them are read as one, which matches more: a pattern may not cost much to compare."""


class Wild(NamedTuple):
    """A component with wildcards."""

    matches: re.Pattern[str]  # finds out whether a name is one of those that it stands for
    literal: int  # how many letters it states
    open: bool  # begins with a star, which leaves out dot names and narrows the others little


def is_wild(name: str) -> bool:
    """Return whether a component has wildcards of a shell, of Python's ``glob`` or of
    ``ripgrep``.
    """
    return _WILD.search(name) is not None


@lru_cache(maxsize=256)
def wild(name: str) -> Wild:
    """Return what a component with wildcards stands for."""
    balanced = name.count("{") == name.count("}")
    text: list[str] = []
    depth = 0
    literal = 0
    stars = 0
    for match in _TOKEN.finditer(name):
        part = match[0]
        if match["stars"]:
            text.append(".*")
            stars += 1
            if stars > _MAX_STARS:
                break
        elif match["one"]:
            text.append(".")
        elif match["set"]:
            text.append(_set(part))
            literal += 1
        elif match["brace"] and balanced and (depth or part == "{"):
            depth += _DEPTHS[part]
            text.append(_BRACES[part])
        else:
            text.append(re.escape(part))
            literal += 1
    try:
        pattern = re.compile("".join(text), re.DOTALL)
    except re.error:  # braces in a wrong order, as in "}{", and sets that go down, as in "[z-a]"
        pattern = re.compile(".*", re.DOTALL)
    return Wild(pattern, literal, name.startswith("*"))


_DEPTHS: Final = {"{": 1, "}": -1, ",": 0}
_BRACES: Final = {"{": "(?:", "}": ")", ",": "|"}
"""``{a,b}`` as a regular expression."""


def _set(part: str) -> str:
    """Return ``[a-z]`` or ``[!a-z]`` as a regular expression."""
    if "\\" in part:  # a mark of the shell, a letter to Python
        return "."
    inside = part[1:-1]
    negation = ""
    if inside.startswith(("!", "^")):
        negation = "^"
        inside = inside[1:]
    letters = ""
    for low, high in _IN_SET.findall(inside):
        letters += re.escape(low)
        if high:
            letters += "-" + re.escape(high)
    return f"[{negation}{letters}]"
