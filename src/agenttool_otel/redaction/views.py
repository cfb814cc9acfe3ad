"""Other readings of the same text, each with a map back to the original bytes.

A token with a zero-width space inside, in full-width letters, wrapped over two lines or percent-encoded is the same
token for whoever reads it. Detectors look at these readings too, and what they find is removed from the original.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache

from agenttool_otel.redaction.types import Span

__all__ = ["View", "joined_view", "normalised_view", "percent_view"]

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e007f"
)
_SHORT = 8
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_HAS_INVISIBLE = re.compile(f"[{_INVISIBLE}]")
_PERCENT = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
_BREAK = re.compile(rb"(?:[\r\n]|\\[rn\r\n])(?:[ \t\r\n]|\\[rnt]|> ?|\| ?|# ?)*")


class View:
    """One reading: its bytes, and where each of them came from."""

    __slots__ = ("_at", "_pieces", "data", "lowered", "name")

    def __init__(self, name: str, data: bytes, pieces: list[tuple[int, int, int, int]]) -> None:
        """Keep a reading.

        Args:
            name: which reading.
            data: its bytes.
            pieces: (at, source, made, taken): from byte ``at`` on, ``made`` bytes of the reading stand for ``taken``
                bytes of the original from ``source`` on, again and again.
        """
        self.name = name
        self.data = data
        self.lowered = data.lower()
        self._pieces = pieces
        self._at = [piece[0] for piece in pieces]

    def source(self, span: Span) -> Span:
        """The same span in the original."""
        at, source, made, taken = self._pieces[bisect_right(self._at, span.start) - 1]
        start = source + (span.start - at) // made * taken
        at, source, made, taken = self._pieces[bisect_right(self._at, span.end - 1) - 1]
        return Span(start, source + ((span.end - 1 - at) // made + 1) * taken, span.kind, span.rule)

    def changed(self, span: Span) -> bool:
        """Whether the reading differs from the original within the span."""
        where = self.source(span)
        return where.end - where.start != span.end - span.start or bool(self._crosses(span))

    def _crosses(self, span: Span) -> int:
        return bisect_right(self._at, span.end - 1) - bisect_right(self._at, span.start)


def _assemble(name: str, parts: Iterable[tuple[bytes, int, int, int]]) -> View | None:
    """Put a reading together from (bytes, source position, made, taken); empty bytes leave something out."""
    chunks: list[bytes] = []
    pieces: list[tuple[int, int, int, int]] = []
    at = 0
    for chunk, source, made, taken in parts:
        if chunk:
            chunks.append(chunk)
            pieces.append((at, source, made, taken))
            at += len(chunk)
    return View(name, b"".join(chunks), pieces) if pieces else None


def normalised_view(text: str) -> View | None:
    """NFKC without invisible characters; None where that changes nothing.

    Args:
        text: any text. Only runs outside ASCII cost anything.
    """
    if text.isascii() or (unicodedata.is_normalized("NFKC", text) and _HAS_INVISIBLE.search(text) is None):
        return None
    return _assemble("normalised", _normalised(text))


def _normalised(text: str) -> Iterator[tuple[bytes, int, int, int]]:
    source = 0
    at = 0
    for run in _FOREIGN.finditer(text):
        if run.start() > at:
            yield text[at : run.start()].encode(), source, 1, 1
            source += run.start() - at
        piece = run.group()
        if _plain_run(piece) if len(piece) <= _SHORT else _is_plain(piece):
            raw = piece.encode("utf-8", "surrogatepass")
            yield raw, source, 1, 1
            source += len(raw)
        else:
            for made, unit, size in _folded_run(piece) if len(piece) <= _SHORT else _fold(piece):
                yield made, source, unit, size
                source += size * (len(made) // unit if made else 1)
        at = run.end()
    if at < len(text):
        yield text[at:].encode(), source, 1, 1


def _is_plain(run: str) -> bool:
    return unicodedata.is_normalized("NFKC", run) and _HAS_INVISIBLE.search(run) is None


_plain_run = lru_cache(maxsize=4096)(_is_plain)


def _fold(run: str) -> Iterator[tuple[bytes, int, int]]:
    """Plain forms of characters: (bytes, bytes per character, bytes that each took), neighbours of a kind together."""
    parts: list[bytes] = []
    unit = taken = 0
    for char in run:
        made, size = _folded(char)
        if parts and len(made) == unit and size == taken:
            parts.append(made)
            continue
        if parts:
            yield b"".join(parts), unit, taken
            parts = []
        if made:
            parts, unit, taken = [made], len(made), size
        else:
            yield b"", 1, size
    if parts:
        yield b"".join(parts), unit, taken


@lru_cache(maxsize=4096)
def _folded_run(run: str) -> tuple[tuple[bytes, int, int], ...]:
    return tuple(_fold(run))


@lru_cache(maxsize=4096)
def _folded(char: str) -> tuple[bytes, int]:
    """A character's plain form, and how many bytes it took before."""
    plain = "" if _HAS_INVISIBLE.match(char) else unicodedata.normalize("NFKC", char)
    return plain.encode("utf-8", "surrogatepass"), len(char.encode("utf-8", "surrogatepass"))


def percent_view(data: bytes) -> View | None:
    """Percent-encoded bytes decoded, one level; None where there are none."""
    if b"%" not in data or _PERCENT.search(data) is None:
        return None
    return _assemble("percent", _decoded(data))


def _decoded(data: bytes) -> Iterator[tuple[bytes, int, int, int]]:
    at = 0
    for run in _PERCENT.finditer(data):
        if run.start() > at:
            yield data[at : run.start()], at, 1, 1
        yield bytes.fromhex(run.group().replace(b"%", b"").decode()), run.start(), 1, 3
        at = run.end()
    if at < len(data):
        yield data[at:], at, 1, 1


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
    return _assemble("joined", ((chunk, source + start, made, taken) for chunk, source, made, taken in _joined(part)))


def _joined(data: bytes) -> Iterator[tuple[bytes, int, int, int]]:
    at = 0
    for match in _BREAK.finditer(data):
        if match.start() > at:
            yield data[at : match.start()], at, 1, 1
        at = match.end()
    if at < len(data):
        yield data[at:], at, 1, 1
