"""JSON inside a string: structure is understood, and only the literals that hold secrets are replaced.

Parsing and dumping again would change numbers, spacing and repeated names; here everything else
stays byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction.types import Path

_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SIGNS: Final = r"(?P<open>[\[{])|(?P<close>[\]}])|(?P<comma>,)|(?P<colon>:)"
_OTHER: Final = r"[^\s\[\]{},:\"]++"
"""A number, ``true``, ``false`` or ``null``."""
_TOKEN: Final = re.compile(
    rf"\s*+(?:(?P<string>{_STRING})|{_SIGNS}|(?P<other>{_OTHER}))",
    re.DOTALL,
)


class Literal(NamedTuple):
    """One scalar of a JSON text."""

    start: int
    end: int
    path: Path


def loads(text: str) -> Any:
    """Parse; None for anything that isn't a JSON object or array (also when it is too deep or has
    huge numbers).
    """
    stripped = text.lstrip()
    # "[INFO] started", which no parser has to look at
    if stripped[:1] not in ("{", "[") or stripped[-1:].isalnum():
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # 5,000 digits; [[[[... 2,000 deep
        return None
    return value if type(value) in (dict, list) else None


class _Position:
    """The place of a reader in the structure of a JSON text."""

    def __init__(self) -> None:
        self._steps: list[str | int | None] = []
        self._kinds: list[str] = []
        self.expects_key = False

    @property
    def path(self) -> Path:
        """The keys and indexes that lead here."""
        return tuple(step for step in self._steps if step is not None)

    def open(self, bracket: str) -> None:
        """Go into an object or an array."""
        self._kinds.append(bracket)
        self.expects_key = bracket == "{"
        self._steps.append(None if self.expects_key else 0)

    def close(self) -> None:
        """Leave it."""
        self._kinds.pop()
        self._steps.pop()
        self.expects_key = False

    def next_member(self) -> None:
        """Go on behind a comma."""
        if self._kinds[-1] == "{":
            self.expects_key = True
            return
        index = self._steps[-1]
        self._steps[-1] = index + 1 if type(index) is int else 0

    def set_key(self, literal: str) -> None:
        """Take the key of the member that follows."""
        self._steps[-1] = json.loads(literal)
        self.expects_key = False


def literals(text: str, wanted: Callable[[Path], bool]) -> list[Literal]:
    """Positions of scalar values in a text.

    Args:
        text: what is known to be valid JSON.
        wanted: whether the value at a path is asked for.
    """
    found: list[Literal] = []
    position = _Position()
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "open":
            position.open(match.group("open"))
        elif kind == "close":
            position.close()
        elif kind == "comma":
            position.next_member()
        elif kind == "string" and position.expects_key:
            position.set_key(match.group("string"))
        elif kind in ("string", "other"):
            path = position.path
            if wanted(path):
                found.append(Literal(match.start(kind), match.end(kind), path))
    return found
