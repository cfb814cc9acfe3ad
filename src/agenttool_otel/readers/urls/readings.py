"""How different programs read the same URL.

A permission check that reads a URL in one way protects a client that reads it in another from
nothing. So a URL is read as a browser does (WHATWG, through Ada), as Python's own clients do (RFC
3986, then IDNA and the C library's habits with numbers), and as old parsers did, which looked for
``@`` beyond the authority's end. Where they see different hosts, that is a fact of its own.
"""

from __future__ import annotations

import re
import socket
import unicodedata
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import ada_url
import idna

from agenttool_otel.readers.urls.addresses import canonical_address

_AUTHORITY: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[/\\]*", re.ASCII)
_USER_HIDES: Final = re.compile(r"%(?:25)*(?:[01][0-9a-f]|7f|2f|5c|3f|23)", re.IGNORECASE)
"""Control characters and separators, encoded: who decodes before splitting sees another host."""

_END_OF_AUTHORITY: Final = re.compile(r"[/\\?#]")


class BrowserReading(NamedTuple):
    """A URL as a browser reads it."""

    scheme: str  # lower case, without the colon
    host: str  # ASCII; IPv6 in brackets; empty when the scheme has none
    port: str  # as written, empty for the scheme's default
    path: str  # percent-encoded
    query: str  # with its question mark
    fragment: str  # with its number sign
    special: bool  # a scheme that browsers treat specially (WHATWG URL, special schemes)


def browser_reading(text: str) -> BrowserReading | None:
    """Return a URL as a browser reads it, or ``None`` when a browser refuses it."""
    try:
        url = ada_url.URL(text)
        return BrowserReading(
            scheme=url.protocol.rstrip(":"),
            host=url.hostname,
            port=url.port,
            path=url.pathname,
            query=url.search,
            fragment=url.hash,
            special=url.scheme_type != ada_url.SchemeType.NOT_SPECIAL,
        )
    except ValueError:  # UnicodeError is one too
        return None


def readers_disagree(text: str, browser: BrowserReading) -> bool:
    """Return whether some reader would go to another host than a browser does."""
    if not browser.special or browser.scheme == "file":
        return False
    wanted = browser.host.strip("[]").rstrip(".")
    if _python_host(text) != wanted or _old_idna_differs(text, wanted):
        return True
    if _old_reader_sees_other(text) or _zeros_count(text):
        return True
    user = authority(text).rpartition("@")[0]
    return _USER_HIDES.search(user) is not None


def authority(text: str) -> str:
    """Return the text between the slashes after the scheme and the end of the authority."""
    match = _AUTHORITY.match(text)
    rest = text[match.end() :] if match else text
    return _END_OF_AUTHORITY.split(rest, maxsplit=1)[0]


def _split(text: str) -> tuple[str | None, bool]:
    """Return the host as Python's own reader sees it, and whether the port is a number that
    it takes.
    """
    try:
        parts = urlsplit(text)
        _ = parts.port
        return parts.hostname, True
    except ValueError:
        return None, False


def _python_host(text: str) -> str | None:
    host, port_ok = _split(text)
    if not host or not port_ok:
        return None
    if (address := canonical_address(host)) is not None:
        return str(address)
    host = host.rstrip(".")
    if not host.isascii():
        try:
            host = idna.encode(host, uts46=True).decode("ascii").lower()
        except UnicodeError:
            return None
    if host and host[-1] in "0123456789abcdefABCDEFxX" and host[0].isdigit():
        try:  # what getaddrinfo makes of 127.1, 0x7f000001 and 2130706433
            return socket.inet_ntoa(socket.inet_aton(host))
        except (OSError, ValueError):
            return host
    return host


def _old_reader_sees_other(text: str) -> bool:
    match = _AUTHORITY.match(text)
    rest = text[match.end() :] if match else text
    head = rest.partition("/")[0]
    true_end = _END_OF_AUTHORITY.split(rest, maxsplit=1)[0]
    return "@" in head[len(true_end) :] or true_end.count("@") > 1


def _zeros_count(text: str) -> bool:
    """Return whether leading zeros make a number another one for who reads it in base ten (Go,
    Java, curl once).
    """
    host, _ = _split(text)
    if not host:
        return False
    pieces = unicodedata.normalize("NFKC", host).rstrip(".").split(".")
    if not all(piece.isdecimal() for piece in pieces):
        return False
    # One digit is the same in base eight and ten: 010.0.0.1, but not 07.0.0.1
    return any(piece.startswith("0") and len(piece.lstrip("0")) > 1 for piece in pieces)


def _old_idna_differs(text: str, wanted: str) -> bool:
    """Return whether IDNA 2003, which Python's sockets use, maps the host to another name than
    IDNA 2008.
    """
    host, _ = _split(text)
    if host is None or host.isascii():
        return False
    try:
        return host.rstrip(".").encode("idna").decode("ascii").lower() != wanted
    except UnicodeError:
        return False
