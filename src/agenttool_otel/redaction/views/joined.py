"""Readings that put together what was apart: lines, string literals, elements of HTML, colours,
zero bytes, events.

A token may be wrapped over lines, concatenated or shown in pieces. Where something is found across
a joint, it is one.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from agenttool_otel.redaction.patterns import LONG_PATTERNS
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.views.views import Around, Reading, View
from agenttool_otel.redaction.work import spend

_LINE_END = re.compile(rb"\r?\n|\\r\\n|\\n|\r")
_EVENT = re.compile(rb"(?m)^data:[ ]?([^\r\n]+)")
_MEMBER = re.compile(rb'"(\w{1,64})"\s*:\s*"((?:[^"\\]++|\\.)*+)"')
_MOST_LINES = 16
_BREAK = re.compile(rb"(?:\r|\n|\\[rn\r\n])(?:[ \t\r\n]++|\\[rnt]|> ?|\| ?|# ?)*+")


def joined_view(data: bytes, start: int = 0, end: int | None = None) -> View | None:
    """Line breaks (real, escaped, with continuation marks) taken out; None where there are none."""
    part = data[start:end]
    if b"\n" not in part and b"\\n" not in part and b"\\r" not in part and b"\r" not in part:
        return None
    spend(2 + (len(part) >> 8))
    if not (joined := without_breaks(part)):
        return None
    pieces = Around(part, _BREAK, 0)

    def locate(position: int) -> tuple[int, int]:
        first, last = pieces.source(position)
        return start + first, start + last

    return View("joined", joined, locate, joins=True)


def without_breaks(data: bytes) -> bytes:
    """A text without its line breaks (real, escaped, with continuation marks)."""
    return _BREAK.sub(b"", data)


def line_start(data: bytes, first: int, place: int) -> int:
    """Where the line of a place begins, by a break or by an escaped one, but not before
    ``first``.
    """
    start = first
    for match in _LINE_END.finditer(data, first, place):
        start = match.end()
    return start


def wrapped_ends(data: bytes, place: int, end: int) -> list[int]:
    """Where a token may end that begins at a place and goes on over breaks: at the end of each next
    line.

    A line that has white space in it is the last one. None at all where the place's own line goes
    on with white space, as tokens have none.
    """
    found: list[int] = []
    at = place
    for count, match in enumerate(_LINE_END.finditer(data, place, end)):
        line = data[at : match.start()].strip(b" \t>|#\\")
        if count:
            found.append(match.start())
        if b" " in line or b"\t" in line or len(found) >= _MOST_LINES:
            return found
        at = match.end()
    return [*found, min(end, len(data))] if at < end else found


# "ab" + "cd", 'ab' . 'cd', 'ab' || 'cd', and literals on two lines with nothing else between them
_CONCATENATION: Final = re.compile(LONG_PATTERNS["joined"]["concatenation"].encode())
# colours of a terminal, as they are or as a program's string literal has them
_COLOUR: Final = re.compile(rb"(?:\x1b|\\x1[bB]|\\u001[bB]|\\033|\\e)\[[0-9;]{0,16}[A-Za-z]")
_MARKS: Final = (b'"', b"'", b"<")

concatenated_view: Final = Reading("concatenated", _CONCATENATION, _MARKS, tokens_only=True)
"""String literals put together as a program would (``"ab" + "cd"``)."""

narrowed_view: Final = Reading("narrowed", re.compile(rb"\0+"), (b"\0",))
"""The text without zero bytes, as UTF-16 that was read as ASCII has them."""

uncoloured_view: Final = Reading("uncoloured", _COLOUR, (b"[",))
"""The text without a terminal's colours."""

unwrapped_view: Final = Reading("unwrapped", re.compile(rb"=\r?\n"), (b"=\n", b"=\r\n"))
"""The soft line breaks of quoted-printable text (RFC 2045, 6.7) taken out."""


class EventView(View):
    """What server-sent events hold one after the other under the same name, as one text."""

    __slots__ = ("_starts", "_where")

    def __init__(self, data: bytes, where: list[tuple[int, int]]) -> None:
        self._where = where
        self._starts = list(accumulate((last - first for first, last in where), initial=0))
        joined = b"".join(data[first:last] for first, last in where)
        super().__init__("events", joined, self._place, joins=True)

    def _place(self, position: int) -> tuple[int, int]:
        index = bisect_right(self._starts, position) - 1
        at = self._where[index][0] + position - self._starts[index]
        return at, at + 1

    def sources(self, span: Span) -> list[Span]:
        """The part of the find in each event, so that what stands between them stays."""
        parts = []
        for index in range(
            bisect_right(self._starts, span.start) - 1, bisect_left(self._starts, span.end)
        ):
            first, begin = self._where[index][0], self._starts[index]
            start, end = max(span.start, begin), min(span.end, self._starts[index + 1])
            if start < end:
                parts.append(Span(first + start - begin, first + end - begin, span.kind, span.rule))
        return parts


def event_views(data: bytes) -> Iterator[View]:
    """The texts that server-sent events carry in pieces: by the name of a JSON member, or the lines
    themselves.
    """
    if data.count(b"data:") < 2:
        return
    places: dict[bytes, list[tuple[int, int]]] = {}
    for event in _EVENT.finditer(data):
        first, last = event.span(1)
        if data[first : first + 1] in (b"{", b"["):
            for member in _MEMBER.finditer(data, first, last):
                places.setdefault(member.group(1), []).append(member.span(2))
        else:
            places.setdefault(b"", []).append((first, last))
    for where in places.values():
        # an id that each event repeats is no text
        if len({data[first:last] for first, last in where}) > 1:
            yield EventView(data, where)
