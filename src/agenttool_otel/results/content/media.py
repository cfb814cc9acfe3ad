"""Media types from the first bytes of a payload, and file extensions for them.

Only formats that a tool is likely to return are known; everything else is
``application/octet-stream``. The table follows the formats' published signatures (WHATWG MIME
Sniffing, and the formats' own specifications).
"""

from __future__ import annotations

import mimetypes
from typing import Final, NamedTuple

from agenttool_otel.names import ContentType

TEXT: Final = "text/plain"
OCTETS: Final = "application/octet-stream"
SNIFF_BYTES: Final = 4096
"""How many leading bytes ``sniff`` looks at."""


class Signature(NamedTuple):
    """The bytes by which a format is known."""

    offset: int  # bytes from the start of the payload
    magic: bytes
    media_type: str
    riff: bool = False  # whether the payload is a RIFF file, whose format stands behind its size


# ``image/heic`` before the general ``ftyp``: the first row that fits counts.
SIGNATURES: Final = (
    Signature(0, b"\x89PNG\r\n\x1a\n", "image/png"),
    Signature(0, b"\xff\xd8\xff", "image/jpeg"),
    Signature(0, b"GIF87a", "image/gif"),
    Signature(0, b"GIF89a", "image/gif"),
    Signature(0, b"BM", "image/bmp"),
    Signature(0, b"II*\x00", "image/tiff"),
    Signature(0, b"MM\x00*", "image/tiff"),
    Signature(8, b"WEBP", "image/webp", riff=True),
    Signature(8, b"WAVE", "audio/wav", riff=True),
    Signature(8, b"AVI ", "video/x-msvideo", riff=True),
    Signature(4, b"ftypavif", "image/avif"),
    Signature(4, b"ftypheic", "image/heic"),
    Signature(4, b"ftypmif1", "image/heif"),
    Signature(4, b"ftypM4A ", "audio/mp4"),
    Signature(4, b"ftypqt  ", "video/quicktime"),
    Signature(4, b"ftyp", "video/mp4"),
    Signature(0, b"ID3", "audio/mpeg"),
    Signature(0, b"\xff\xfb", "audio/mpeg"),
    Signature(0, b"\xff\xf3", "audio/mpeg"),
    Signature(0, b"fLaC", "audio/flac"),
    Signature(0, b"OggS", "audio/ogg"),
    Signature(0, b"\x1aE\xdf\xa3", "video/webm"),
    Signature(0, b"%PDF-", "application/pdf"),
    Signature(0, b"PK\x03\x04", "application/zip"),
    Signature(0, b"PK\x05\x06", "application/zip"),
    Signature(0, b"\x1f\x8b", "application/gzip"),
    Signature(0, b"(\xb5/\xfd", "application/zstd"),
    Signature(0, b"SQLite format 3\x00", "application/vnd.sqlite3"),
    Signature(0, b"PAR1", "application/vnd.apache.parquet"),
    Signature(0, b"ARROW1\x00", "application/vnd.apache.arrow.file"),
    Signature(0, b"\x7fELF", "application/x-elf"),
    Signature(0, b"wOF2", "font/woff2"),
)

# Where mimetypes has none, or another than is usual: ``.jpe`` for image/jpeg in some releases.
_EXTENSIONS: Final[dict[str, str]] = {
    "text/plain": ".txt",
    "application/octet-stream": ".bin",
    "application/json": ".json",
    "application/x-ndjson": ".ndjson",
    "text/x-diff": ".diff",
    "text/markdown": ".md",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
}
_TEXT_CONTROLS: Final = bytes({9, 10, 12, 13, 27})
_CONTROLS: Final = bytes(byte for byte in range(32) if byte not in _TEXT_CONTROLS)


def sniff(head: bytes | bytearray | memoryview) -> str:
    """Return the media type of a payload by its first bytes."""
    start = bytes(head[:SNIFF_BYTES])
    readable = is_text(start)
    for signature in SIGNATURES:
        # "BMW is a car" and the two bytes of an MPEG sync word: readable text that begins so is text
        if readable and len(signature.magic) == 2:
            continue
        if _fits(start, signature):
            return signature.media_type
    if not readable:
        return OCTETS
    lead = start.lstrip()[:256].lower()
    # <?xml version="1.0"?> is the start of many formats: SVG is the one with an <svg> soon after
    if lead.startswith((b"<svg", b"<?xml")) and b"<svg" in start[:2048].lower():
        return "image/svg+xml"
    if lead.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return TEXT


def _fits(start: bytes, signature: Signature) -> bool:
    if not start.startswith(signature.magic, signature.offset):
        return False
    # "WEBP" at byte 8 of a text file is a word
    return not signature.riff or start.startswith(b"RIFF")


def is_text(head: bytes) -> bool:
    """Return whether bytes are UTF-8 text; a character that the end cuts in two does not count
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
