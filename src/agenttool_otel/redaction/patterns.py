"""Regular expressions over bytes: google-re2, which takes linear time, or Python's own where it
can't be imported.

All matching is done on the UTF-8 bytes of a text: google-re2's wrapper encodes a ``str`` anew for
each call and converts every offset, which is slow for one match and quadratic for a loop with
positions. ``re2.Set`` isn't used anywhere: on token-like text its automaton runs out of states and
becomes slower by four orders of magnitude.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol, cast

from agenttool_otel.redaction.work import spend

MATCH: Final = 10
"""Units of work of a match."""


class MatchLike(Protocol):
    """What is used of a match, of either kind."""

    def span(self, group: int = 0, /) -> tuple[int, int]:
        """Start and end of a group; (-1, -1) when it took no part."""

    def start(self, group: int = 0, /) -> int:
        """First byte of a group; -1 when it took no part."""

    def end(self, group: int = 0, /) -> int:
        """One past the last byte of a group."""

    def group(self, group: int = 0, /) -> Any:
        """The bytes of a group, or None."""


class Matcher(Protocol):
    """A compiled pattern, of either kind."""

    def search(self, data: bytes, /) -> MatchLike | None:
        """First match or None."""

    def finditer(self, data: bytes, pos: int = 0, /) -> Iterator[MatchLike]:
        """All matches that don't overlap."""


# all that is not ASCII, within a class: characters for RE2, bytes for Python
_NOT_ASCII = rb"\x{80}-\x{10ffff}"


@lru_cache(maxsize=1)
def _re2() -> Any:
    try:
        import re2
    except ImportError:
        warnings.warn(
            "google-re2 can't be imported: redaction uses Python's re", RuntimeWarning, stacklevel=2
        )
        return None
    return re2


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Matcher:
    """Compile a pattern of the common subset of RE2 and Python syntax, once."""
    if (re2 := _re2()) is not None:
        options = re2.Options()
        options.log_errors = False
        options.max_mem = 64 << 20
        try:
            return cast(Matcher, re2.compile(pattern, options))
        except re2.error as error:
            raise ValueError(f"not a valid RE2 pattern: {error}") from None
    try:
        return cast(
            Matcher,
            re.compile(pattern.encode().replace(rb"\z", rb"\Z").replace(_NOT_ASCII, rb"\x80-\xff")),
        )
    except re.error as error:
        raise ValueError(f"not a valid pattern: {error}") from None


def find_all(pattern: str, data: bytes, each: int = MATCH) -> Iterator[MatchLike]:
    """All matches that don't overlap; each costs some units of work, by what is asked about it."""
    spend(2 + (len(data) >> 10))
    for match in compile_pattern(pattern).finditer(data):
        spend(each)
        yield match


def occurs(pattern: str, data: bytes) -> bool:
    """Whether there is any match."""
    spend(2 + (len(data) >> 10))
    return compile_pattern(pattern).search(data) is not None


def spans_of(match: MatchLike, groups: int) -> Sequence[tuple[int, int]]:
    """(start, end) of the match and of its groups, in one step.

    Asking google-re2's match for one group at a time costs more than the match itself; what it
    holds is read where it is there, and asked for politely where it isn't.
    """
    held = getattr(match, "regs", None) or getattr(match, "_spans", None)
    if held is not None and len(held) == groups + 1:
        return cast("Sequence[tuple[int, int]]", held)
    return [match.span(group) for group in range(groups + 1)]
