"""Readings with encoded characters decoded: percent encoding, escapes of string literals,
references of HTML.
"""

from __future__ import annotations

import html
import re
from typing import Final

from agenttool_otel.redaction.patterns import LONG_PATTERNS
from agenttool_otel.redaction.views.views import Reading

_PERCENT: Final = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
# by far most stand alone
_ONE = {b"%%%02x" % code: bytes((code,)) for code in range(256)} | {
    b"%%%02X" % code: bytes((code,)) for code in range(256)
}
_HEXADECIMAL: Final = re.compile(rb"(?:\\x[0-9A-Fa-f]{2})+")
# of printable ASCII, so that each is one byte
_REFERENCE: Final = re.compile(LONG_PATTERNS["decoded"]["reference"].encode())


def _bytes_of(match: re.Match[bytes]) -> bytes:
    found = match.group()
    return _ONE.get(found) or bytes.fromhex(found.replace(b"%", b"").decode())


def _unescaped(match: re.Match[bytes]) -> bytes:
    return bytes.fromhex(match.group().replace(b"\\x", b"").decode())


def _referred_to(match: re.Match[bytes]) -> bytes:
    return html.unescape(match.group().decode()).encode()


percent_view: Final = Reading("percent", _PERCENT, (b"%",), _bytes_of, 3)
"""Percent-encoded bytes decoded, one level."""

escaped_view: Final = Reading("escaped", _HEXADECIMAL, (b"\\x",), _unescaped, 4)
r"""``\xHH`` decoded, as string literals of programs have it."""

html_view: Final = Reading("html", _REFERENCE, (b"&",), _referred_to, None)
"""Character references of HTML decoded, as far as they stand for ASCII."""
