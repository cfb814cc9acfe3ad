"""Base64 (and its URL form) one level deep: a blob whose decoded text holds a secret goes
as a whole.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable

from agenttool_otel.redaction.patterns import find_all
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.work import spend

_BLOB = r"[A-Za-z0-9+/_-]{20,}(?:\r?\n[A-Za-z0-9+/_-]{20,})*(?:\r?\n[A-Za-z0-9+/_-]+)?={0,2}"
_HEX_BLOB = r"(?:\b|\\x|0x)((?:[2-7][0-9a-fA-F]){16,})\b"
_WHOLE = re.compile(rb"\s*[A-Za-z0-9+/_-]{20,}={0,2}\s*")
_PEM = re.compile(rb"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY")
_SPACE = re.compile(rb"[\r\n]+")
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xf4]+")
_BLOB_WORK = 30  # units
_DATA_URL = b";base64,"


def find_encoded(
    data: bytes, lowered: bytes, find_inner: Callable[[bytes, bytes], list[Span]]
) -> Iterable[Span]:
    """Spans of whole blobs."""
    yield from _find_base64(data, lowered, find_inner)
    for match in find_all(_HEX_BLOB, data):
        start, end = match.span(1)
        text = bytes.fromhex(data[start:end].decode())
        if not _printable(text):
            continue
        span = _judge(text, start, end, find_inner)
        if span is not None:
            yield span


def _find_base64(
    data: bytes, lowered: bytes, find_inner: Callable[[bytes, bytes], list[Span]]
) -> Iterable[Span]:
    """Spans of Base64 that holds a secret, or begins as a private key does."""
    for match in find_all(_BLOB, data):
        start, end = match.span()
        if _is_image(data, lowered, start):
            continue
        text = decode_text(data[start:end])
        # some encode twice
        if text is not None and _WHOLE.fullmatch(text):
            text = decode_text(text.strip()) or text
        span = _judge(text, start, end, find_inner)
        if span is None and text is None and _is_private_key(data[start:end]):
            span = Span(start, end, "private_key", "encoded:pem")
        if span is not None:
            yield span


def _is_image(data: bytes, lowered: bytes, start: int) -> bool:
    """Whether a blob stands behind ``data:image/png;base64,``."""
    if not data.endswith(_DATA_URL, 0, start):
        return False
    return b"image/" in lowered[max(0, start - 40) : start]


def _judge(
    text: bytes | None, start: int, end: int, find_inner: Callable[[bytes, bytes], list[Span]]
) -> Span | None:
    if text is None:
        return None
    spend(_BLOB_WORK)
    found = find_inner(text, text.lower())
    if not found:
        return None
    return Span(start, end, found[0].kind, "encoded:" + found[0].rule)


def _is_private_key(blob: bytes) -> bool:
    """Whether base64 begins as a private key does, whatever follows."""
    # "-----BEGIN" in Base64
    if not blob.startswith(b"LS0tLS1CRUdJTi"):
        return False
    head = decode_bytes(blob[:64].translate(_URL_SAFE))
    return head is not None and _PEM.match(head) is not None


def decode_text(blob: bytes) -> bytes | None:
    """The text behind base64; None when it decodes to something else than text."""
    plain = _SPACE.sub(b"", blob).rstrip(b"=")
    if b"-" in plain or b"_" in plain:
        if b"+" in plain or b"/" in plain:
            return None
        plain = plain.translate(_URL_SAFE)
    # most blobs are no text, which the first bytes show, so that an image costs nothing
    head = decode_bytes(plain[:64])
    if head is None or not _printable(_narrow(head[: len(head) // 2 * 2])):
        return None
    if len(plain) % 4 == 1:
        return None
    decoded = decode_bytes(plain)
    if decoded is None:
        return None
    text = _narrow(decoded)
    return text if _printable(text) else None


def _narrow(text: bytes) -> bytes:
    """UTF-16 of ASCII text, as PowerShell's encoded commands are, as that text; other bytes as they
    are.
    """
    if len(text) % 2 or text[1:2] != b"\0" or any(text[1::2]):
        return text
    return text[::2]


_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def decode_bytes(plain: bytes) -> bytes | None:
    """What base64 stands for, whether it is padded or not; None when it is none."""
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _printable(text: bytes) -> bool:
    if len(text) < 8 or _TEXT.fullmatch(text) is None:
        return False
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    # random bytes that happen to be UTF-8 have hardly any letters in a row
    return sum(byte < 128 for byte in text) * 4 >= len(text) * 3
