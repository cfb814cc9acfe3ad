"""Readings with encoded characters decoded: percent encoding, escapes of string literals, references of HTML."""

from __future__ import annotations

import html
import re
from typing import Final

from agenttool_otel.redaction.patterns import LONG_PATTERNS
from agenttool_otel.redaction.views.views import Around, View

PERCENT = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
# by far most stand alone
_ONE = {b"%%%02x" % code: bytes((code,)) for code in range(256)} | {
    b"%%%02X" % code: bytes((code,)) for code in range(256)
}
HEXADECIMAL = re.compile(rb"(?:\\x[0-9A-Fa-f]{2})+")
# of printable ASCII, so that each is one byte
_LONG_PATTERNS: Final = LONG_PATTERNS["decoded"]
REFERENCE = re.compile(_LONG_PATTERNS["reference"].encode())


def _bytes_of(match: re.Match[bytes]) -> bytes:
    found = match.group()
    return _ONE.get(found) or bytes.fromhex(found.replace(b"%", b"").decode())


def percent_view(data: bytes) -> View | None:
    """Percent-encoded bytes decoded, one level; None where there are none."""
    if b"%" not in data or PERCENT.search(data) is None:
        return None
    plain = PERCENT.sub(_bytes_of, data)
    return View("percent", plain, Around(data, PERCENT, 3).source)


def html_view(data: bytes) -> View | None:
    """Character references of HTML decoded, as far as they stand for ASCII; None where there are none."""
    if b"&" not in data or REFERENCE.search(data) is None:
        return None
    plain = REFERENCE.sub(lambda match: html.unescape(match.group().decode()).encode(), data)
    return View("html", plain, Around(data, REFERENCE, None).source)


def escaped_view(data: bytes) -> View | None:
    r"""``\xHH`` decoded, as string literals of programs have it; None where there are none."""
    if b"\\x" not in data or HEXADECIMAL.search(data) is None:
        return None
    plain = HEXADECIMAL.sub(lambda match: bytes.fromhex(match.group().replace(b"\\x", b"").decode()), data)
    return View("escaped", plain, Around(data, HEXADECIMAL, 4).source)
