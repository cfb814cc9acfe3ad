"""Other readings of the same text, each with a map back to the original bytes.

A token with a zero-width space inside, in full-width letters, wrapped over two lines or percent-encoded is the same
token for whoever reads it. Detectors look at these readings too, and what they find is removed from the original.
"""

from __future__ import annotations

import html
import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache

from agenttool_otel.redaction.types import Span

__all__ = [
    "View",
    "concatenated_view",
    "escaped_view",
    "html_view",
    "joined_view",
    "line_start",
    "narrowed_view",
    "needs_normalising",
    "normalised_view",
    "percent_view",
    "uncoloured_view",
    "unwrapped_view",
    "without_breaks",
    "wrapped_ends",
]

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e007f"
)
_RUNS = re.compile(r"(?P<ascii>[\x00-\x7f]+)|[^\x00-\x7f]+")
_HAS_INVISIBLE = re.compile(f"[{_INVISIBLE}]")
_MOST_FORMS = 8192
_BLOCK = 2048
_PERCENT = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
_HEXADECIMAL = re.compile(rb"(?:\\x[0-9A-Fa-f]{2})+")
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
# of printable ASCII, so that each is one byte
_REFERENCE = re.compile(
    rb"&(?:#(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])|#[xX](?:[2-6][0-9A-Fa-f]|7[0-9A-Ea-e])|quot|apos|amp|lt|gt);"
)
_SOFT_BREAK = re.compile(rb"=\r?\n")
_LINE_END = re.compile(rb"\r?\n|\\r\\n|\\n|\r")
_MOST_LINES = 16
_BREAK = re.compile(rb"(?:[\r\n]|\\[rn\r\n])(?:[ \t\r\n]++|\\[rnt]|> ?|\| ?|# ?)*+")


class View:
    """One reading: its bytes, and where each of them came from."""

    __slots__ = ("_locate", "data", "joins", "lowered", "name")

    def __init__(
        self, name: str, data: bytes, locate: Callable[[int], tuple[int, int]], *, joins: bool = False
    ) -> None:
        """Keep a reading.

        Args:
            name: which reading.
            data: its bytes.
            locate: first byte, and one past the last, of what one byte of the reading stands for in the original. Asked
                only where something was found, because in most texts nothing is.
            joins: whether it puts together what was apart, so that only finds across a joint count.
        """
        self.name = name
        self.joins = joins
        self.data = data
        self.lowered = data.lower()
        self._locate = locate

    def source(self, span: Span) -> Span:
        """The same span in the original."""
        return Span(self._locate(span.start)[0], self._locate(span.end - 1)[1], span.kind, span.rule)

    def changed(self, span: Span) -> bool:
        """Whether something was left out within the span."""
        where = self.source(span)
        return where.end - where.start != span.end - span.start


class _Pieces:
    """Where the bytes of a reading came from, piece by piece.

    From byte ``at`` on, ``made`` bytes of the reading stand for ``taken`` bytes of the original from ``start`` on, and
    so forth. Arrays, because an adversary's text has a piece for each of its characters.
    """

    __slots__ = ("at", "made", "start", "taken")

    def __init__(self) -> None:
        self.at: array[int] = array("q")
        self.start: array[int] = array("q")
        self.made: array[int] = array("q")
        self.taken: array[int] = array("q")

    def add(self, at: int, start: int, made: int, taken: int) -> None:
        """Append a piece that begins behind the last one."""
        self.at.append(at)
        self.start.append(start)
        self.made.append(made)
        self.taken.append(taken)

    def source(self, position: int) -> tuple[int, int]:
        """First byte, and one past the last, of what one byte of the reading stands for."""
        index = bisect_right(self.at, position) - 1
        taken = self.taken[index]
        start = self.start[index] + (position - self.at[index]) // self.made[index] * taken
        return start, start + taken


def needs_normalising(text: str) -> bool:
    """Whether NFKC or the loss of invisible characters changes a text."""
    return not text.isascii() and not (unicodedata.is_normalized("NFKC", text) and _HAS_INVISIBLE.search(text) is None)


def normalised_view(text: str) -> View | None:
    """NFKC of each character, without invisible ones; None where that changes nothing or leaves nothing.

    Args:
        text: any text. ASCII costs next to nothing.
    """
    if not needs_normalising(text):
        return None
    plain = text.translate(_PLAIN)
    return View("normalised", plain.encode("utf-8", "surrogatepass"), _Normalised(text).source) if plain else None


class _PlainForms(dict[int, str]):
    """Code point to plain form, filled as characters are met, and emptied before it holds too many."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = "" if _HAS_INVISIBLE.match(char) else unicodedata.normalize("NFKC", char)
        if len(self) >= _MOST_FORMS:
            self.clear()
        self[code] = plain
        return plain


_PLAIN = _PlainForms()


class _Normalised:
    """The map of a normalised reading, made block by block where it is asked for."""

    __slots__ = ("_at", "_pieces", "_start", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at: array[int] = array("q")
        self._start: array[int] = array("q")
        self._pieces: dict[int, _Pieces] = {}

    def source(self, position: int) -> tuple[int, int]:
        """As ``_Pieces.source``."""
        if not self._at:
            self._measure()
        block = bisect_right(self._at, position) - 1
        pieces = self._pieces.get(block)
        if pieces is None:
            pieces = self._pieces[block] = _normal_pieces(self._text[block * _BLOCK : (block + 1) * _BLOCK])
        start, end = pieces.source(position - self._at[block])
        return self._start[block] + start, self._start[block] + end

    def _measure(self) -> None:
        at = start = 0
        for first in range(0, len(self._text), _BLOCK):
            block = self._text[first : first + _BLOCK]
            self._at.append(at)
            self._start.append(start)
            at += len(block.translate(_PLAIN).encode("utf-8", "surrogatepass"))
            start += len(block.encode("utf-8", "surrogatepass"))


def _normal_pieces(text: str) -> _Pieces:
    pieces = _Pieces()
    at = start = 0
    for run in _RUNS.finditer(text):
        if run.lastgroup == "ascii":
            size = run.end() - run.start()
            pieces.add(at, start, 1, 1)
            at += size
            start += size
            continue
        unit = taken = 0
        for char in run.group():
            made, size = _sizes(char)
            if made and (made != unit or size != taken):
                pieces.add(at, start, made, size)
            # neighbours that were made and taken alike share a piece
            unit, taken = made, size
            at += made
            start += size
    return pieces


@lru_cache(maxsize=4096)
def _sizes(char: str) -> tuple[int, int]:
    """Bytes of a character's plain form, and of itself."""
    return len(_PLAIN[ord(char)].encode("utf-8", "surrogatepass")), len(char.encode("utf-8", "surrogatepass"))


def percent_view(data: bytes) -> View | None:
    """Percent-encoded bytes decoded, one level; None where there are none."""
    if b"%" not in data or _PERCENT.search(data) is None:
        return None
    plain = _PERCENT.sub(lambda match: bytes.fromhex(match.group().replace(b"%", b"").decode()), data)
    return View("percent", plain, _Percent(data).source)


class _Percent:
    """The map of a percent-decoded reading, made when it is asked for."""

    __slots__ = ("_data", "_pieces")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pieces: _Pieces | None = None

    def source(self, position: int) -> tuple[int, int]:
        """As ``_Pieces.source``."""
        if self._pieces is None:
            self._pieces = _pieces_around(self._data, _PERCENT, 3)
        return self._pieces.source(position)


def _pieces_around(data: bytes, pattern: re.Pattern[bytes], taken: int) -> _Pieces:
    """The map where each match became one byte per ``taken`` bytes (0: nothing), and the rest stays."""
    pieces = _Pieces()
    at = start = 0
    for match in pattern.finditer(data):
        first, last = match.span()
        if first > start:
            pieces.add(at, start, 1, 1)
            at += first - start
        if taken:
            pieces.add(at, first, 1, taken)
            at += (last - first) // taken
        start = last
    if start < len(data):
        pieces.add(at, start, 1, 1)
    return pieces


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
    pieces = _pieces_around(part, _BREAK, 0)

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
    pieces = _pieces_around(data, _CONCATENATION, 0)
    return View("concatenated", _CONCATENATION.sub(b"", data), pieces.source, joins=True)


def html_view(data: bytes) -> View | None:
    """Character references of HTML decoded, as far as they stand for ASCII; None where there are none.

    Args:
        data: the text.
    """
    if b"&" not in data or _REFERENCE.search(data) is None:
        return None
    pieces = _Pieces()
    parts: list[bytes] = []
    at = start = 0
    for match in _REFERENCE.finditer(data):
        first, last = match.span()
        if first > start:
            pieces.add(at, start, 1, 1)
            parts.append(data[start:first])
            at += first - start
        parts.append(html.unescape(match.group().decode()).encode())
        pieces.add(at, first, 1, last - first)
        at += 1
        start = last
    if start < len(data):
        pieces.add(at, start, 1, 1)
        parts.append(data[start:])
    return View("html", b"".join(parts), pieces.source)


def narrowed_view(data: bytes) -> View | None:
    """The text without zero bytes, as UTF-16 that was read as ASCII has them; None where there are none.

    Args:
        data: the text.
    """
    if b"\0" not in data:
        return None
    return View("narrowed", data.replace(b"\0", b""), _pieces_around(data, _ZERO, 0).source, joins=True)


def uncoloured_view(data: bytes) -> View | None:
    """The text without a terminal's colours; None where there are none.

    Args:
        data: the text.
    """
    if b"[" not in data or _COLOUR.search(data) is None:
        return None
    return View("uncoloured", _COLOUR.sub(b"", data), _pieces_around(data, _COLOUR, 0).source, joins=True)


def unwrapped_view(data: bytes) -> View | None:
    """The soft line breaks of quoted-printable text (RFC 2045, 6.7) taken out; None where there are none.

    Args:
        data: the text.
    """
    if b"=\n" not in data and b"=\r\n" not in data:
        return None
    return View("unwrapped", _SOFT_BREAK.sub(b"", data), _pieces_around(data, _SOFT_BREAK, 0).source, joins=True)


def escaped_view(data: bytes) -> View | None:
    r"""``\xHH`` decoded, as string literals of programs have it; None where there are none.

    Args:
        data: the text.
    """
    if b"\\x" not in data or _HEXADECIMAL.search(data) is None:
        return None
    plain = _HEXADECIMAL.sub(lambda match: bytes.fromhex(match.group().replace(b"\\x", b"").decode()), data)
    return View("escaped", plain, _pieces_around(data, _HEXADECIMAL, 4).source)
