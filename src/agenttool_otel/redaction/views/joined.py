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

from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.views.views import Around, Reading, View
from agenttool_otel.redaction.work import spend

_LINE_END: Final = re.compile(rb"\r?\n|\\r\\n|\\n|\r")
_BREAK: Final = re.compile(rb"(?:\r|\n|\\[rn\r\n])(?:[ \t\r\n]++|\\[rnt]|> ?|\| ?|# ?)*+")
"""A line break, real or escaped, with the marks that continue a line: ``> `` of mail, ``# ``."""
_BREAK_MARKS: Final = (b"\n", b"\\n", b"\\r", b"\r")
_EVENT: Final = re.compile(rb"(?m)^data:[ ]?([^\r\n]+)")
_MEMBER: Final = re.compile(rb'"(\w{1,64})"\s*:\s*"((?:[^"\\]++|\\.)*+)"')
_MOST_LINES: Final = 16


def joined_view(data: bytes, start: int = 0, end: int | None = None) -> View | None:
    """Line breaks (real, escaped, with continuation marks) taken out; None where there are none."""
    part = data[start:end]
    if not any(mark in part for mark in _BREAK_MARKS):
        return None
    spend(2 + (len(part) >> 8))
    joined = without_breaks(part)
    if not joined:
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
    is_own_line = True
    for match in _LINE_END.finditer(data, place, end):
        line = data[at : match.start()].strip(b" \t>|#\\")
        if not is_own_line:
            found.append(match.start())
        if b" " in line or b"\t" in line or len(found) >= _MOST_LINES:
            return found
        at = match.end()
        is_own_line = False
    if at < end:
        found.append(min(end, len(data)))
    return found


# "ab" + "cd", 'ab' . 'cd', 'ab' || 'cd' and, of Visual Basic, "ab" & _ with "cd" on the next line
_OPERATOR: Final = r"[ \t]*(?:[+.&~]|\|\|)[ \t]*_?\s*"
# literals on two lines with nothing but an operator between them
_LINE_BETWEEN: Final = r"[ \t]*\\?\r?\n\s*(?:(?:[+.&~]|\|\|)\s*)?"
_BETWEEN: Final = rf"(?:{_OPERATOR}|{_LINE_BETWEEN}|[ \t]+)"
# AKIA<b>IOSF</b>, a long token with <wbr> in it
_ELEMENT: Final = r"</?(?:wbr|br|span|b|i|em|strong|mark|code|font)\b[^<>]{0,200}>"
# each alternative begins with one literal, by which Python finds where to look at all
_CONCATENATION: Final = re.compile(f"(?:\"{_BETWEEN}\"|'{_BETWEEN}'|{_ELEMENT})".encode())
# colours of a terminal, as they are or as a program's string literal has them
_ESCAPE: Final = rb"(?:\x1b|\\x1[bB]|\\u001[bB]|\\033|\\e)"
_COLOUR: Final = re.compile(_ESCAPE + rb"\[[0-9;]{0,16}[A-Za-z]")

concatenated_view: Final = Reading(
    name="concatenated",
    pattern=_CONCATENATION,
    marks=(b'"', b"'", b"<"),
    tokens_only=True,
)
"""String literals put together as a program would (``"ab" + "cd"``)."""

narrowed_view: Final = Reading(
    name="narrowed",
    pattern=re.compile(rb"\0+"),
    marks=(b"\0",),
)
"""The text without zero bytes, as UTF-16 that was read as ASCII has them."""

uncoloured_view: Final = Reading(
    name="uncoloured",
    pattern=_COLOUR,
    marks=(b"[",),
)
"""The text without a terminal's colours."""

unwrapped_view: Final = Reading(
    name="unwrapped",
    pattern=re.compile(rb"=\r?\n"),
    marks=(b"=\n", b"=\r\n"),
)
"""The soft line breaks of quoted-printable text (RFC 2045, 6.7) taken out."""


class EventView(View):
    """What server-sent events hold one after the other under the same name, as one text."""

    __slots__ = ("_parts", "_starts")

    def __init__(self, data: bytes, parts: list[tuple[int, int]]) -> None:
        """Put the parts together.

        Args:
            data: the original.
            parts: start and end of each part, in order.
        """
        self._parts = parts
        sizes = (last - first for first, last in parts)
        self._starts = list(accumulate(sizes, initial=0))
        joined = b"".join(data[first:last] for first, last in parts)
        super().__init__("events", joined, self._place, joins=True)

    def _part_of(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1

    def _place(self, position: int) -> tuple[int, int]:
        index = self._part_of(position)
        begin = self._parts[index][0]
        at = begin + position - self._starts[index]
        return at, at + 1

    def sources(self, span: Span) -> list[Span]:
        """The part of the find in each event, so that what stands between them stays."""
        found = []
        first_part = self._part_of(span.start)
        for index in range(first_part, bisect_left(self._starts, span.end)):
            begin = self._starts[index]
            start = max(span.start, begin)
            end = min(span.end, self._starts[index + 1])
            if start >= end:
                continue
            shift = self._parts[index][0] - begin
            found.append(span._replace(start=start + shift, end=end + shift))
        return found


def event_views(data: bytes) -> Iterator[View]:
    """The texts that server-sent events carry in pieces: by the name of a JSON member, or the lines
    themselves.
    """
    if data.count(b"data:") < 2:
        return
    places: dict[bytes, list[tuple[int, int]]] = {}
    for event in _EVENT.finditer(data):
        first, last = event.span(1)
        if data[first : first + 1] not in (b"{", b"["):
            places.setdefault(b"", []).append((first, last))
            continue
        for member in _MEMBER.finditer(data, first, last):
            name = member.group(1)
            places.setdefault(name, []).append(member.span(2))
    for parts in places.values():
        texts = {data[first:last] for first, last in parts}
        # an id that each event repeats is no text
        if len(texts) > 1:
            yield EventView(data, parts)
