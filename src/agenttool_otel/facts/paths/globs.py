"""What a pattern with wildcards could match: a file tool that expands ``.en*`` reads ``.env``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_WILD: Final = re.compile(r"[*?\[{]")
_TOKEN: Final = re.compile(
    r"(?P<stars>\*+)|(?P<one>\?)|(?P<set>\[[!^]?\]?[^\]]*\])|(?P<brace>[{},])|(?P<letter>.)", re.S
)
_MAX_STARS: Final = 8
"""More of them are read as one, which matches more: a pattern may not cost much to compare."""


@dataclass(frozen=True, slots=True)
class Wild:
    """A component with wildcards."""

    matches: re.Pattern[str]  # finds out whether a name is one of those that it stands for
    literal: int  # how many letters it states
    open: bool  # begins with a star, which leaves out dot names and says little about the others


def is_wild(name: str) -> bool:
    """Return whether a component has wildcards of a shell, of Python's ``glob`` or of ``ripgrep``."""
    return _WILD.search(name) is not None


@lru_cache(maxsize=256)
def wild(name: str) -> Wild:
    """Return what a component with wildcards stands for."""
    braces = name.count("{") == name.count("}")
    text: list[str] = []
    depth = literal = stars = 0
    for match in _TOKEN.finditer(name):
        part = match[0]
        if match["stars"]:
            stars += 1
            if stars > _MAX_STARS:
                text.append(".*")
                break
            text.append(".*")
        elif match["one"]:
            text.append(".")
        elif match["set"]:
            text.append(_set(part))
            literal += 1
        elif match["brace"] and braces and (depth or part == "{"):
            depth += {"{": 1, "}": -1, ",": 0}[part]
            text.append({"{": "(?:", "}": ")", ",": "|"}[part])
        else:
            text.append(re.escape(part))
            literal += 1
    try:
        pattern = re.compile("".join(text), re.DOTALL)
    except re.error:  # braces in a wrong order
        pattern = re.compile(".*", re.DOTALL)
    return Wild(pattern, literal, name.startswith("*"))


def _set(part: str) -> str:
    inner = part[1:-1]
    negated = inner[:1] in ("!", "^")
    letters = inner[1:] if negated else inner
    try:
        text = f"[{'^' if negated else ''}{letters.replace(chr(92), '').replace('[', chr(92) + '[')}]"
        re.compile(text)
    except re.error:
        return "."
    return text
