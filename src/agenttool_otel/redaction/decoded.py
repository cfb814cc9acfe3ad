"""Readings with encoded characters decoded: percent encoding, escapes of string literals, references of HTML."""

from __future__ import annotations

import html
import re

from agenttool_otel.redaction.views import Pieces, View, pieces_around

__all__ = ["escaped_view", "html_view", "percent_view"]

_PERCENT = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
# by far most stand alone
_ONE = {b"%%%02x" % code: bytes((code,)) for code in range(256)} | {
    b"%%%02X" % code: bytes((code,)) for code in range(256)
}
_HEXADECIMAL = re.compile(rb"(?:\\x[0-9A-Fa-f]{2})+")
# of printable ASCII, so that each is one byte
_REFERENCE = re.compile(
    rb"&(?:#(?:3[2-9]|[4-9]\d|1[01]\d|12[0-6])|#[xX](?:[2-6][0-9A-Fa-f]|7[0-9A-Ea-e])|quot|apos|amp|lt|gt);"
)


def _bytes_of(match: re.Match[bytes]) -> bytes:
    found = match.group()
    return _ONE.get(found) or bytes.fromhex(found.replace(b"%", b"").decode())


def percent_view(data: bytes) -> View | None:
    """Percent-encoded bytes decoded, one level; None where there are none."""
    if b"%" not in data or _PERCENT.search(data) is None:
        return None
    plain = _PERCENT.sub(_bytes_of, data)
    return View("percent", plain, _Percent(data).source)


class _Percent:
    """The map of a percent-decoded reading, made when it is asked for."""

    __slots__ = ("_data", "_pieces")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pieces: Pieces | None = None

    def source(self, position: int) -> tuple[int, int]:
        """As ``Pieces.source``."""
        if self._pieces is None:
            self._pieces = pieces_around(self._data, _PERCENT, 3)
        return self._pieces.source(position)


def html_view(data: bytes) -> View | None:
    """Character references of HTML decoded, as far as they stand for ASCII; None where there are none.

    Args:
        data: the text.
    """
    if b"&" not in data or _REFERENCE.search(data) is None:
        return None
    pieces = Pieces()
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


def escaped_view(data: bytes) -> View | None:
    r"""``\xHH`` decoded, as string literals of programs have it; None where there are none.

    Args:
        data: the text.
    """
    if b"\\x" not in data or _HEXADECIMAL.search(data) is None:
        return None
    plain = _HEXADECIMAL.sub(lambda match: bytes.fromhex(match.group().replace(b"\\x", b"").decode()), data)
    return View("escaped", plain, pieces_around(data, _HEXADECIMAL, 4).source)
