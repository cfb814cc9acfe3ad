"""How large a result is, in bytes, without building what is measured.

Text counts as UTF-8, bytes as they are, structured values as their JSON text, data frames and
arrays as what they hold in memory. Iterators, open files and unknown objects have no size until
they are read, and they are not read for it.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final, NamedTuple

from agenttool_otel.results.content.json_stream import json_pieces, plain_json
from agenttool_otel.results.content.libraries import library_type
from agenttool_otel.results.content.shown import read_json
from agenttool_otel.values.inspection import Kind, kind_of

_CHUNK: Final = 1 << 16
_COUNT_LIMIT: Final = 1 << 20


class Size(NamedTuple):
    """A measured size."""

    bytes: int | None  # bytes, or ``None`` where nothing can be known without reading
    # whether ``bytes`` is the size; if not, it is a lower bound (a container too large to count) or
    # what a library states as held in memory
    exact: bool = True
    chars: int | None = None  # characters, for text


_UNKNOWN: Final = Size(None, False)


def size_of(value: Any) -> int | None:
    """Return the size in bytes, or ``None`` if it is unknown; the cheap form of ``measure`` for the
    call path.
    """
    cls = type(value)
    if cls is str:
        return len(value) if value.isascii() else text_bytes(value)
    if cls is bytes or cls is bytearray:
        return len(value)
    if value is None:
        return 0
    if cls is int or cls is bool:
        return len(str(value))  # ``true`` and ``True`` are as long
    text = plain_json(value)
    if text is not None:
        return text_bytes(text)
    return measure(value).bytes


def measure(value: Any, *, limit: int = _COUNT_LIMIT) -> Size:
    """Return the size of any value; never raises and never reads an iterator or a file."""
    try:
        return _measure(value, limit)
    except KeyboardInterrupt:  # counting a large value takes a while, and may be stopped
        raise
    except BaseException:  # a subclass's own methods may raise anything
        return _UNKNOWN


def _measure(value: Any, limit: int) -> Size:
    kind = kind_of(value)
    if kind is Kind.NONE:
        return Size(0, chars=0)
    if kind is Kind.TEXT:
        return Size(text_bytes(value), chars=str.__len__(value))
    if kind is Kind.BYTES:
        return Size(memoryview(value).nbytes)
    if kind is Kind.PATH:
        return Size(text_bytes(PurePath.__str__(value)))
    known = library_type(value) if kind is Kind.OPAQUE else None
    if known is not None and known.held_bytes is not None:
        return Size(known.held_bytes(value), False)
    if kind is Kind.OPAQUE and known is None:
        return _UNKNOWN
    total = chars = 0
    for piece in json_pieces(value):
        total += text_bytes(piece)
        chars += len(piece)
        if total > limit:
            return Size(total, False, chars)
    return Size(total, chars=chars)


def text_bytes(text: str) -> int:
    """Return the length of a text in UTF-8, counted in pieces; a lone surrogate counts
    three bytes.
    """
    # asked of the class: a subclass may have methods of its own
    length = str.__len__(text)
    if str.isascii(text):
        return length
    if length <= _CHUNK:
        return len(str.encode(text, "utf-8", "surrogatepass"))
    total = 0
    for start in range(0, length, _CHUNK):
        piece = str.__getitem__(text, slice(start, start + _CHUNK))
        total += len(piece.encode("utf-8", "surrogatepass"))
    return total


def is_measured(value: Any, size: int | None) -> bool:
    """Return whether a consumer can get no more out of a value than its size: an iterator in a
    list is measured as one tag.
    """
    if size is None:
        return False
    # arrays and data frames are opaque, and have a size of their own
    if kind_of(value) in (Kind.TEXT, Kind.BYTES, Kind.OPAQUE):
        return True
    _data, whole = read_json(value)
    return whole
