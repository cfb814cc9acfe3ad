"""Where names and values begin and end in text, as far as their quotes, brackets and white
space tell.
"""

from __future__ import annotations

import re
from typing import Final

_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-" + bytes(
    range(128, 256)
)
_REST = re.compile(rb"[^\s\"'`<>]*")
_NEXT_NAME = re.compile(rb"[&;,](?=\s*[A-Za-z_][\w.\- ]{0,40}[=:])")
_TAIL = b",;)]}&\\"
_SPACES = (b" ", b"\n", b"\t", b"\r")
_LINE = 512
_PHRASE = re.compile(rb"[a-z]{2,10}(?:[ -][a-z]{2,10}){2,9}")
_IN_NAME: Final = tuple(byte in _NAME_BYTES for byte in range(256))
_LIMIT: Final = 4096


def is_open(data: bytes, at: int) -> bool:
    """Whether a double quote is open there, as far as its line tells."""
    first = max(0, at - _LINE)
    start = data.rfind(b"\n", first, at) + 1
    if not start and first:
        return False  # the line is too long to tell
    line = data[start:at]
    return (line.count(b'"') - line.count(b'\\"')) % 2 == 1


def is_name(data: bytes, first: int, opener: bytes) -> bool:
    """Whether a quoted text is itself the name of what follows."""
    end = closing(data, first, opener)
    return data[end + len(opener) : end + len(opener) + 3].lstrip()[:1] in (b":", b"=")


def name_start_of(data: bytes, start: int) -> int:
    """Where the whole name around a keyword starts."""
    if not start or not _IN_NAME[data[start - 1]]:
        return start
    window = data[max(0, start - 64) : start]
    name_start = start - len(window) + len(window.rstrip(_NAME_BYTES))
    if 0 < name_start < start and data[name_start - 1] == 92 and data[name_start] in b"nrt":
        name_start += 1  # the n of an escaped line break is not part of the name
    return name_start


def closing(data: bytes, first: int, opener: bytes) -> int:
    """Where a quoted value ends: at its closing quote, at the end of the line, or at a bound."""
    limit = min(len(data), first + _LIMIT)
    newline = data.find(b"\n", first, limit)
    if newline >= 0:
        limit = newline
    at = first
    while True:
        at = data.find(opener, at, limit)
        if at < 0:
            return limit
        if len(opener) > 1 or not _escaped(data, at, first):
            return at
        at += 1


def _escaped(data: bytes, at: int, first: int) -> bool:
    back = at
    while back > first and data[back - 1] == 92:
        back -= 1
    return (at - back) % 2 == 1


def whole(data: bytes, first: int, last: int) -> int:
    """End of an unquoted password: up to white space or the next name, without closing
    punctuation.
    """
    if data[last : last + 1] in _SPACES and b"\\" not in data[first:last]:
        return last
    rest = _REST.match(data, last, min(len(data), first + _LIMIT))
    end = rest.end() if rest is not None else last
    following = _NEXT_NAME.search(data, first, end + 64)
    if following is not None and following.start() < end:
        end = following.start()
    escape = data.find(b"\\n", first, end)
    if escape > first:
        end = escape
    while end > last and data[end - 1] in _TAIL:
        end -= 1
    while end > first and data[end - 1] in b",;\\":
        end -= 1
    return end


def sentence(data: bytes, first: int, last: int) -> int:
    """End of an unquoted passphrase: the whole line, where that is nothing but words."""
    newline = data.find(b"\n", first, first + 256)
    line = data[first : newline if newline >= 0 else first + 256].rstrip()
    return first + len(line) if _PHRASE.fullmatch(line) else last


def called(data: bytes, end: int) -> bool:
    """Whether an unquoted value goes on as a call, an index or a template."""
    return data[end : end + 1] in (b"(", b"[", b"{", b")")
