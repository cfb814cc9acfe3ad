"""Other readings of the same text, each with a map back to the original bytes.

A token with a zero-width space inside, in full-width letters, wrapped over two lines or
percent-encoded is the same token for a reader. Detectors look at these readings too, and
what they find is removed from the original. Here are the map and Unicode's reading; ``decoded.py``
has the encodings, ``joined.py`` what was apart.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from agenttool_otel.redaction.types import Span

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e007f"
)
_RUNS = re.compile(r"(?P<ascii>[\x00-\x7f]+)|[^\x00-\x7f]+")
_HAS_INVISIBLE = re.compile(f"[{_INVISIBLE}]")
_MOST_FORMS = 8192
_BLOCK = 2048
_LARGE = 16 << 10
_REACH = 512


class View:
    """One reading: its bytes, and where each of them came from."""

    __slots__ = ("_locate", "data", "joins", "lowered", "name")

    def __init__(
        self,
        name: str,
        data: bytes,
        locate: Callable[[int], tuple[int, int]],
        *,
        joins: bool = False,
        lowered: bytes | None = None,
    ) -> None:
        """Keep a reading.

        Args:
            name: what it is called; empty for the text as it is.
            data: its bytes.
            locate: for a byte of the reading, the first byte and one past the last of what it
                stands for in the original.
            joins: whether it puts together what is apart in the original.
            lowered: ``data`` in lower case, for a caller that has it.
        """
        self.name = name
        self.joins = joins
        self.data = data
        self.lowered = data.lower() if lowered is None else lowered
        self._locate = locate

    def source(self, span: Span) -> Span:
        """The same span in the original."""
        start, _ = self._locate(span.start)
        _, end = self._locate(span.end - 1)
        return Span(start, end, span.kind, span.rule)

    def sources(self, span: Span) -> list[Span]:
        """What of the original a find takes out: one piece, but in a reading of events several."""
        return [self.source(span)]

    def changed(self, span: Span) -> bool:
        """Whether something was left out within the span."""
        source = self.source(span)
        return source.end - source.start != span.end - span.start


def parts_around(data: bytes, places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of a text within reach of places in order, by whole lines; a text that is not large
    is one part.
    """
    size = len(data)
    whole = [(0, size)]
    if size <= _LARGE:
        return whole
    parts: list[tuple[int, int]] = []
    for begin, end in places:
        first = max(0, begin - _REACH)
        last = min(size, end + _REACH)
        # two secrets on neighbouring lines are in one part
        if parts and first <= parts[-1][1]:
            parts[-1] = (parts[-1][0], last)
        else:
            parts.append((first, last))
    covered = sum(last - first for first, last in parts)
    if covered * 2 > size:
        return whole
    lines: list[tuple[int, int]] = []
    for first, last in parts:
        end = _break_before(data, last) if last < size else last
        lines.append((_break_before(data, first), end))
    return lines


def _break_before(data: bytes, place: int) -> int:
    """The start of the line that a place is in, or of the character, where the line is long."""
    start = data.rfind(b"\n", max(0, place - _REACH), place) + 1
    # 10xxxxxx is not the first byte of a character in UTF-8
    while not start and place and data[place] & 0xC0 == 0x80:
        place -= 1
    return start or place


class Pieces:
    """Where the bytes of a reading came from, piece by piece.

    From byte ``at`` on, ``made`` bytes of the reading stand for ``taken`` bytes of the original
    from ``start`` on, and so forth. Arrays, because an adversary's text has a piece for each of its
    characters.
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
    if text.isascii():
        return False
    # full-width letters, or a zero-width space within a token
    if not unicodedata.is_normalized("NFKC", text):
        return True
    return _HAS_INVISIBLE.search(text) is not None


def normalised_view(text: str) -> View | None:
    """NFKC of each character, without invisible ones; None if that changes or leaves nothing."""
    if not needs_normalising(text):
        return None
    plain = text.translate(_PLAIN)
    if not plain:
        return None
    data = plain.encode("utf-8", "surrogatepass")
    return View("normalised", data, _Normalised(text).source)


class _PlainForms(dict[int, str]):
    """Code point to plain form, filled as characters are met, and emptied before it holds
    too many.
    """

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
        self._pieces: dict[int, Pieces] = {}

    def source(self, position: int) -> tuple[int, int]:
        """As ``Pieces.source``."""
        if not self._at:
            self._measure()
        block = bisect_right(self._at, position) - 1
        pieces = self._pieces.get(block)
        if pieces is None:
            first = block * _BLOCK
            pieces = _normal_pieces(self._text[first : first + _BLOCK])
            self._pieces[block] = pieces
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


def _normal_pieces(text: str) -> Pieces:
    pieces = Pieces()
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
    # U+FF47, a full-width g of 3 bytes, is a plain one of 1
    plain = _PLAIN[ord(char)]
    made = len(plain.encode("utf-8", "surrogatepass"))
    taken = len(char.encode("utf-8", "surrogatepass"))
    return made, taken


class Around:
    """The map where matches were replaced and the rest stays, made as far as it is asked for: most
    are never.
    """

    __slots__ = ("_at", "_data", "_matches", "_pieces", "_start", "_taken")

    def __init__(self, data: bytes, pattern: re.Pattern[bytes], taken: int | None) -> None:
        """Keep what the map is made of."""
        self._data = data
        self._matches = pattern.finditer(data)
        self._taken = taken
        self._pieces = Pieces()
        self._at = self._start = 0

    def source(self, position: int) -> tuple[int, int]:
        """As ``Pieces.source``."""
        if position >= self._at:
            self._reach(position)
        return self._pieces.source(position)

    def _reach(self, position: int) -> None:
        """Go on with the map until it has a byte of the reading."""
        pieces, each = self._pieces, self._taken
        ats, starts, mades, takens = (
            pieces.at.append,
            pieces.start.append,
            pieces.made.append,
            pieces.taken.append,
        )
        at, start = self._at, self._start
        # without a call for each piece: an adversary's text has hundreds of thousands
        for match in self._matches:
            first, last = match.span()
            if first > start:
                ats(at)
                starts(start)
                mades(1)
                takens(1)
                at += first - start
            taken = last - first if each is None else each
            if taken:
                ats(at)
                starts(first)
                mades(1)
                takens(taken)
                at += (last - first) // taken
            start = last
            if at > position:
                break
        else:
            if start < len(self._data):
                pieces.add(at, start, 1, 1)
                at += len(self._data) - start
                start = len(self._data)
        self._at, self._start = at, start


class Reading(NamedTuple):
    """A way to read a text: with something else, or nothing, in the place of what a pattern
    matches.
    """

    name: str
    pattern: re.Pattern[bytes]
    marks: tuple[bytes, ...]  # of which each match has one
    plain: bytes | Callable[[re.Match[bytes]], bytes] = b""  # what takes the place of a match
    # of how many bytes of the match each byte of that is made; ``None``: of all of them; 0: there
    # is none, and what was apart is joined
    taken: int | None = 0
    tokens_only: bool = False  # whether nothing but known tokens is looked for

    def __call__(self, data: bytes) -> View | None:
        """The text as it is read; None where that is as it stands."""
        if not self._is_marked(data) or self.pattern.search(data) is None:
            return None
        locate = Around(data, self.pattern, self.taken).source
        return View(self.name, self.pattern.sub(self.plain, data), locate, joins=self.taken == 0)

    def parts(self, data: bytes) -> list[tuple[int, int]]:
        """The parts of a text that are to be read so."""
        matches = self.pattern.finditer(data) if self._is_marked(data) else ()
        return parts_around(data, (match.span() for match in matches))

    def _is_marked(self, data: bytes) -> bool:
        return any(mark in data for mark in self.marks)
