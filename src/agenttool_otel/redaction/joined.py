"""Readings that put together what was apart: lines, string literals, elements of HTML, colours, zero bytes.

A token may be wrapped over lines, concatenated or shown in pieces. Where something is found across a joint, it is one.
"""

from __future__ import annotations

import re

from agenttool_otel.redaction.views import Around, View

__all__ = [
    "concatenated_view",
    "joined_view",
    "line_start",
    "narrowed_view",
    "uncoloured_view",
    "unwrapped_view",
    "without_breaks",
    "wrapped_ends",
]

# "ab" + "cd", 'ab' . 'cd', 'ab' || 'cd', and literals on two lines with nothing else between them
_CONCATENATION = re.compile(
    rb"(?:\"(?:[ \t]*(?:[+.&~]|\|\|)[ \t]*_?\s*|[ \t]*\\?\r?\n\s*(?:(?:[+.&~]|\|\|)\s*)?|[ \t]+)\""
    rb"|'(?:[ \t]*(?:[+.&~]|\|\|)[ \t]*_?\s*|[ \t]*\\?\r?\n\s*(?:(?:[+.&~]|\|\|)\s*)?|[ \t]+)'"
    # and elements of HTML that show a text in pieces
    rb"|(?:</?(?:wbr|br|span|b|i|em|strong|mark|code|font)\b[^<>]{0,200}>)+)"
)
# colours of a terminal, as they are or as a program's string literal has them
_COLOUR = re.compile(rb"(?:\x1b|\\x1[bB]|\\u001[bB]|\\033|\\e)\[[0-9;]{0,16}[A-Za-z]")
_ZERO = re.compile(rb"\0+")
_SOFT_BREAK = re.compile(rb"=\r?\n")
_LINE_END = re.compile(rb"\r?\n|\\r\\n|\\n|\r")
_MOST_LINES = 16
_BREAK = re.compile(rb"(?:[\r\n]|\\[rn\r\n])(?:[ \t\r\n]++|\\[rnt]|> ?|\| ?|# ?)*+")


def joined_view(data: bytes, start: int = 0, end: int | None = None) -> View | None:
    """Line breaks (real, escaped, with continuation marks) taken out; None where there are none.

    Args:
        data: the text.
        start: first byte of the part that is read.
        end: one past its last byte.
    """
    part = data[start:end]
    if b"\n" not in part and b"\\n" not in part and b"\\r" not in part and b"\r" not in part:
        return None
    joined = without_breaks(part)
    if not joined:
        return None
    pieces = Around(part, _BREAK, 0)

    def locate(position: int) -> tuple[int, int]:
        first, last = pieces.source(position)
        return start + first, start + last

    return View("joined", joined, locate, joins=True)


def without_breaks(data: bytes) -> bytes:
    """A text without its line breaks (real, escaped, with continuation marks).

    Args:
        data: the text.
    """
    return _BREAK.sub(b"", data)


def line_start(data: bytes, first: int, place: int) -> int:
    """Where the line of a place begins, by a break or by an escaped one, but not before ``first``.

    Args:
        data: the text.
        first: first byte that is looked at.
        place: a byte of the line.
    """
    start = first
    for match in _LINE_END.finditer(data, first, place):
        start = match.end()
    return start


def wrapped_ends(data: bytes, place: int, end: int) -> list[int]:
    """Where a token may end that begins at a place and goes on over breaks: at the end of each next line.

    A line that has white space in it is the last one. None at all where the place's own line goes on with white space,
    as tokens have none.

    Args:
        data: the text.
        place: where the token begins.
        end: one past the last byte that is looked at.
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
    return [*found, min(end, len(data))]


def concatenated_view(data: bytes) -> View | None:
    """String literals put together as a program would (``"ab" + "cd"``); None where there are none.

    Args:
        data: the text.
    """
    if b'"' not in data and b"'" not in data and b"<" not in data:
        return None
    if _CONCATENATION.search(data) is None:
        return None
    return View("concatenated", _CONCATENATION.sub(b"", data), Around(data, _CONCATENATION, 0).source, joins=True)


def narrowed_view(data: bytes) -> View | None:
    """The text without zero bytes, as UTF-16 that was read as ASCII has them; None where there are none.

    Args:
        data: the text.
    """
    if b"\0" not in data:
        return None
    return View("narrowed", data.replace(b"\0", b""), Around(data, _ZERO, 0).source, joins=True)


def uncoloured_view(data: bytes) -> View | None:
    """The text without a terminal's colours; None where there are none.

    Args:
        data: the text.
    """
    if b"[" not in data or _COLOUR.search(data) is None:
        return None
    return View("uncoloured", _COLOUR.sub(b"", data), Around(data, _COLOUR, 0).source, joins=True)


def unwrapped_view(data: bytes) -> View | None:
    """The soft line breaks of quoted-printable text (RFC 2045, 6.7) taken out; None where there are none.

    Args:
        data: the text.
    """
    if b"=\n" not in data and b"=\r\n" not in data:
        return None
    return View("unwrapped", _SOFT_BREAK.sub(b"", data), Around(data, _SOFT_BREAK, 0).source, joins=True)
