"""A result as a stream: its media type and its bytes in pieces, redacted, read once, never whole in
memory.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Any, Final

from agenttool_otel.errors import PersistenceError
from agenttool_otel.results.content.json_stream import json_pieces
from agenttool_otel.results.content.libraries import IMAGE, encode_image, library_type, lines_of
from agenttool_otel.results.content.media import OCTETS, SNIFF_BYTES, TEXT, sniff
from agenttool_otel.results.content.shown import whole_json
from agenttool_otel.results.transform import CleanText, CleanValue, Transform
from agenttool_otel.values.inspection import Kind, kind_of
from agenttool_otel.values.unicode import escape_surrogates

_CHARS: Final = 1 << 17
_BYTES: Final = 1 << 18


@dataclass(slots=True)
class Source:
    """A stream of text or bytes."""

    media_type: str  # media type of the whole
    pieces: Iterator[str] | Iterator[bytes]  # text (to be encoded as UTF-8) or bytes; read once
    is_text: bool  # whether the pieces are text
    _cleaner: CleanText | CleanValue | None = None

    @property
    def changed(self) -> bool:
        """Whether redaction changed anything, once the pieces are read."""
        return self._cleaner is not None and self._cleaner.changed


def source_of(value: Any, transform: Transform | None = None) -> Source:
    """Return the stream of a result.

    Text stays text; bytes that are text are read as text; a path is the file that it names;
    structured values become JSON text, data frames and Arrow tables one JSON object a line, images
    PNG. Iterators and open files are not read: they belong to the caller that the tool gave them to.
    """
    kind = kind_of(value)
    if kind is Kind.TEXT:
        text = value if type(value) is str else str.__str__(value)
        return _text_source(_slices(text), _text_type(text[:SNIFF_BYTES]), transform)
    if kind is Kind.BYTES:
        view = (
            memoryview(value).cast("B")
            if memoryview(value).contiguous
            else memoryview(bytes(value))
        )
        return _bytes_source(_views(view), bytes(view[:SNIFF_BYTES]), transform)
    if kind is Kind.PATH:
        blocks = _file_blocks(PurePath.__str__(value))
        head = next(blocks, b"")
        return _bytes_source(chain((head,), blocks), head, transform)
    if kind is Kind.OPAQUE:
        known = library_type(value)
        if known is IMAGE:
            return Source("image/png", iter([encode_image(value) or b""]), False)
        if known is not None and known.lines is not None:
            return _text_source(
                lines_of(value, known, whole_json), "application/x-ndjson", transform
            )
    if transform is None:
        return Source("application/json", json_pieces(value), True)
    cleaner = CleanValue(transform.value)
    return Source("application/json", json_pieces(value, cleaner.at), True, cleaner)


def _text_source(pieces: Iterator[str], media_type: str, transform: Transform | None) -> Source:
    if transform is None:
        return Source(media_type, pieces, True)
    cleaner = CleanText(transform.text)
    return Source(media_type, cleaner.pieces(pieces), True, cleaner)


def _bytes_source(blocks: Iterator[bytes], head: bytes, transform: Transform | None) -> Source:
    media_type = sniff(head)
    if media_type.startswith("text/") or media_type == "image/svg+xml":
        return _text_source(_decoded(blocks), media_type, transform)
    if media_type != OCTETS or transform is None:
        # A known binary format holds no text that a text redactor could read, and must not be
        # damaged by it.
        return Source(media_type, blocks, False)
    cleaner = CleanText(transform.text)
    text = cleaner.pieces(block.decode("latin-1") for block in blocks)
    return Source(
        media_type, (piece.encode("latin-1", "backslashreplace") for piece in text), False, cleaner
    )


def _text_type(head: str) -> str:
    if head.startswith("diff --git ") or (
        head.startswith("--- ") and "\n+++ " in head and "\n@@ " in head
    ):
        return "text/x-diff"
    return TEXT


def _slices(text: str) -> Iterator[str]:
    for start in range(0, len(text), _CHARS):
        yield escape_surrogates(text[start : start + _CHARS])


def _views(view: memoryview) -> Iterator[bytes]:
    for start in range(0, view.nbytes, _BYTES):
        yield bytes(view[start : start + _BYTES])


def _decoded(blocks: Iterator[bytes]) -> Iterator[str]:
    # A head that is text does not make all of it text: what is not UTF-8 is written as escapes.
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    for block in blocks:
        if text := decoder.decode(block):
            yield text
    if text := decoder.decode(b"", True):
        yield text


def _file_blocks(path: str) -> Iterator[bytes]:
    try:
        # Without O_NONBLOCK, opening a named pipe that nobody writes to would wait for ever.
        descriptor = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        )
    except (OSError, ValueError) as error:
        raise PersistenceError(f"can't read the file: {type(error).__name__}") from None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise PersistenceError("not a regular file")
        try:
            while block := file.read(_BYTES):
                yield block
        except OSError as error:
            raise PersistenceError(f"can't read the file: {type(error).__name__}") from None
