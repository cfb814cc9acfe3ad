"""Readings with encoded characters decoded: percent encoding, escapes of string literals,
references of HTML.
"""

from __future__ import annotations

import html
import re
from typing import Final

from agenttool_otel.redaction.views.views import Reading

_PERCENT: Final = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
_HEXADECIMAL: Final = re.compile(rb"(?:\\x[0-9A-Fa-f]{2})+")

# references to printable ASCII, so that each stands for one byte
_DECIMAL: Final = r"3[2-9]|[4-9]\d|1[01]\d|12[0-6]"
"""32 to 126."""
_HEX: Final = r"[2-6][0-9A-Fa-f]|7[0-9A-Ea-e]"
"""20 to 7e."""
_NAMES: Final = "quot|apos|amp|lt|gt"
_REFERENCE: Final = re.compile(f"&(?:#(?:{_DECIMAL})|#[xX](?:{_HEX})|{_NAMES});".encode())


def _single_bytes() -> dict[bytes, bytes]:
    """The byte that each percent-encoded one stands for, in either case."""
    found = {}
    for code in range(256):
        plain = bytes((code,))
        found[b"%%%02x" % code] = plain
        found[b"%%%02X" % code] = plain
    return found


_SINGLE: Final = _single_bytes()
"""By far most percent-encoded bytes stand alone."""


def _percent_decoded(match: re.Match[bytes]) -> bytes:
    encoded = match.group()
    single = _SINGLE.get(encoded)
    if single is not None:
        return single
    digits = encoded.replace(b"%", b"")
    return bytes.fromhex(digits.decode())


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits = match.group().replace(b"\\x", b"")
    return bytes.fromhex(digits.decode())


def _dereferenced(match: re.Match[bytes]) -> bytes:
    reference = match.group().decode()
    return html.unescape(reference).encode()


percent_view: Final = Reading(
    name="percent",
    pattern=_PERCENT,
    marks=(b"%",),
    plain=_percent_decoded,
    taken=len("%41"),
)
"""Percent-encoded bytes decoded, one level."""

escaped_view: Final = Reading(
    name="escaped",
    pattern=_HEXADECIMAL,
    marks=(b"\\x",),
    plain=_unescaped,
    taken=len(r"\x41"),
)
r"""``\xHH`` decoded, as string literals of programs have it."""

html_view: Final = Reading(
    name="html",
    pattern=_REFERENCE,
    marks=(b"&",),
    plain=_dereferenced,
    taken=None,
)
"""Character references of HTML decoded, as far as they stand for ASCII."""
