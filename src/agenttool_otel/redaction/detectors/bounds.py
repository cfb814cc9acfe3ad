"""The bounds of names and values in text, by their quotes, brackets and white space."""

from __future__ import annotations

import re
import string
from typing import Final

_ASCII_NAME: Final = string.ascii_letters + string.digits + "_.-"
_NAME_BYTES: Final = _ASCII_NAME.encode() + bytes(range(128, 256))
_IN_NAME: Final = tuple(byte in _NAME_BYTES for byte in range(256))
_NEXT_NAME: Final = re.compile(rb"[&;,](?=\s*[A-Za-z_][\w.\- ]{0,40}[=:])")
_NO_SPACE_OR_QUOTE: Final = re.compile(rb"[^\s\"'`<>]*")
_PHRASE: Final = re.compile(rb"[a-z]{2,10}(?:[ -][a-z]{2,10}){2,9}")
_SPACES: Final = (b" ", b"\n", b"\t", b"\r")
_TAIL: Final = b",;)]}&\\"
_SEPARATORS: Final = b",;\\"
_BACKSLASH: Final = 92
_LINE_BYTES: Final = 512
_MOST_NAME_BYTES: Final = 64
_MOST_PHRASE_BYTES: Final = 256
_MOST_VALUE_BYTES: Final = 4096


def is_open(data: bytes, at: int) -> bool:
    """Whether the line has opened a double quote before a place; False in a very long line."""
    first = max(0, at - _LINE_BYTES)
    newline = data.rfind(b"\n", first, at)
    # minified source text of one line
    if newline < 0 and first > 0:
        return False
    line = data[newline + 1 : at]
    # "a \"quoted\" word
    quotes = line.count(b'"')
    escaped = line.count(b'\\"')
    opened = quotes - escaped
    return opened % 2 == 1


def is_name(data: bytes, first: int, opener: bytes) -> bool:
    """Whether a quoted text is itself the name of what follows: ``"password", "user": ...``."""
    behind = closing(data, first, opener) + len(opener)
    following = data[behind : behind + 3]
    sign = following.lstrip()[:1]
    return sign in (b":", b"=")


def name_start_of(data: bytes, start: int) -> int:
    """Where the whole name around a keyword starts."""
    if not start or not _IN_NAME[data[start - 1]]:
        return start
    first = max(0, start - _MOST_NAME_BYTES)
    window = data[first:start]
    # of "export DB_" before the keyword "PASSWORD", "export " is outside of the name
    outside = window.rstrip(_NAME_BYTES)
    name_start = first + len(outside)
    if not 0 < name_start < start:
        return name_start
    # the n of an escaped line break is not part of the name: "a\npassword=x"
    before = data[name_start - 1]
    letter = data[name_start]
    if before == _BACKSLASH and letter in b"nrt":
        return name_start + 1
    return name_start


def closing(data: bytes, first: int, opener: bytes) -> int:
    """Where a quoted value ends: at its closing quote, at the end of the line, or at a bound."""
    limit = min(len(data), first + _MOST_VALUE_BYTES)
    newline = data.find(b"\n", first, limit)
    if newline >= 0:
        limit = newline
    at = first
    while True:
        at = data.find(opener, at, limit)
        if at < 0:
            return limit
        # an opener of several bytes is an escaped quote itself: \"
        if len(opener) > 1:
            return at
        if not _is_escaped(data, at, first):
            return at
        at += 1


def _is_escaped(data: bytes, at: int, first: int) -> bool:
    """Whether an odd number of backslashes stands before a place."""
    back = at
    while back > first and data[back - 1] == _BACKSLASH:
        back -= 1
    # two of them are one backslash of the value: "C:\\"
    backslashes = at - back
    return backslashes % 2 == 1


def whole(data: bytes, first: int, last: int) -> int:
    """End of an unquoted password: up to white space or the next name, without closing
    punctuation.
    """
    is_closed = data[last : last + 1] in _SPACES
    if is_closed and b"\\" not in data[first:last]:
        return last
    end = last
    limit = min(len(data), first + _MOST_VALUE_BYTES)
    rest = _NO_SPACE_OR_QUOTE.match(data, last, limit)
    if rest is not None:
        end = rest.end()
    # password=hunter2&user=bob
    following = _NEXT_NAME.search(data, first, end + _MOST_NAME_BYTES)
    if following is not None and following.start() < end:
        end = following.start()
    # password=hunter2\nuser=bob
    escape = data.find(b"\\n", first, end)
    if escape > first:
        end = escape
    # {"password": hunter2!},
    while end > last and data[end - 1] in _TAIL:
        end -= 1
    while end > first and data[end - 1] in _SEPARATORS:
        end -= 1
    return end


def sentence(data: bytes, first: int, last: int) -> int:
    """End of an unquoted passphrase: the whole line, if that is nothing but words."""
    # passphrase: correct horse battery staple
    limit = first + _MOST_PHRASE_BYTES
    newline = data.find(b"\n", first, limit)
    if newline >= 0:
        limit = newline
    line = data[first:limit].rstrip()
    if _PHRASE.fullmatch(line) is None:
        return last
    return first + len(line)


def called(data: bytes, end: int) -> bool:
    """Whether an unquoted value goes on as a call, an index or a template."""
    return data[end : end + 1] in (b"(", b"[", b"{", b")")
