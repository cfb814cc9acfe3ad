"""Media types from the first bytes of a payload, and file extensions for them.

Only formats that a tool is likely to return are known; everything else is
``application/octet-stream``. The table follows the formats' published signatures (WHATWG MIME
Sniffing, and the formats' own specifications).
"""

from __future__ import annotations

import mimetypes
from typing import Any, Final

from agenttool_otel.names import ContentType
from agenttool_otel.values.tables import load_table

TEXT: Final = "text/plain"
OCTETS: Final = "application/octet-stream"
SNIFF_BYTES: Final = 4096
"""How many leading bytes ``sniff`` looks at."""

_TABLE: Final[dict[str, Any]] = load_table(__package__, "media.toml")
_SIGNATURES: Final[tuple[tuple[int, bytes, str], ...]] = tuple(
    (offset, magic.encode("latin-1"), kind) for offset, magic, kind in _TABLE["signatures"]
)
_RIFF_BOUND: Final = frozenset({"image/webp", "audio/wav", "video/x-msvideo"})
_EXTENSIONS: Final[dict[str, str]] = _TABLE["extensions"]
_TEXT_CONTROLS: Final = bytes({9, 10, 12, 13, 27})
_CONTROLS: Final = bytes(byte for byte in range(32) if byte not in _TEXT_CONTROLS)


def sniff(head: bytes | bytearray | memoryview) -> str:
    """Return the media type of a payload by its first bytes."""
    start = bytes(head[:SNIFF_BYTES])
    for offset, magic, media_type in _SIGNATURES:
        if start[offset : offset + len(magic)] == magic and (
            media_type not in _RIFF_BOUND or start.startswith(b"RIFF")
        ):
            # "BM" and MPEG sync words are two bytes: readable text that begins so is text.
            if len(magic) == 2 and is_text(start):
                continue
            return media_type
    if not is_text(start):
        return OCTETS
    lead = start.lstrip()[:256].lower()
    if lead.startswith((b"<svg", b"<?xml")) and b"<svg" in start[:2048].lower():
        return "image/svg+xml"
    if lead.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return TEXT


def is_text(head: bytes) -> bool:
    """Tell whether bytes are UTF-8 text; a character that the end cuts in two does not count
    against it.
    """
    if head.translate(None, _CONTROLS) != head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3 and error.reason == "unexpected end of data"
    return True


def content_class(media_type: str) -> ContentType:
    """Return the content class of a payload of a media type."""
    family = media_type.partition("/")[0]
    if family in ("image", "audio", "video"):
        return ContentType(family)
    if media_type == "text/x-diff":
        return ContentType.DIFF
    return ContentType.TEXT if family == "text" else ContentType.FILE


def extension_of(media_type: str) -> str:
    """Return the file extension for a media type, with its dot; ``.bin`` where none is known."""
    base = media_type.partition(";")[0].strip().lower()
    return _EXTENSIONS.get(base) or mimetypes.guess_extension(base) or ".bin"
