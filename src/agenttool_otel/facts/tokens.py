"""Text as the tokens by which a value is recognised again: addresses, URLs, hosts, paths, numbers, ids and words.

Both sides, what was seen and what is asked about, go through the same function, so the cuts need not be right, only the
same. All patterns are linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from agenttool_otel.values.unicode import strip_invisible

MAX_TEXT_CHARS: Final = 2_000_000
_MAX_CHUNK: Final = 2048
_MAX_LINE: Final = 256
_MAX_NODES: Final = 20_000

_CHUNK: Final = re.compile(r"""[^\s<>"'`(){}\[\],;|*]+""")
_LEFT: Final = ":!?=&#…。，、；：！？"
_RIGHT: Final = _LEFT + ".-_~"
_DIGITS: Final = re.compile(r"[0-9](?:[ \-.()/]?[0-9]){5,33}")
_IBAN: Final = re.compile(
    r"[0-9]{2}(?<=[a-z]{2}[0-9]{2})(?<![^\W_][a-z]{2}[0-9]{2})"
    r"(?=([ -]?[a-z0-9]{4}(?:[ -]?\d{4}){1,6}(?:[ -]?[a-z0-9]{1,4})?)(?![a-z0-9]))"
)
"""Found by its check digits: few places have digits. One may begin inside another."""

_CLOCK: Final = re.compile(r"\d+(?::\d+)+")
_HOST: Final = re.compile(r"(?:[\w-]{1,63}\.)+[a-z][\w-]{1,62}")
_ID: Final = re.compile(r"[\w.:-]{6,}")
_DIGIT: Final = re.compile(r"[0-9]")
_LETTER: Final = re.compile(r"[a-z]")
_NOT_ALNUM: Final = re.compile(r"[^0-9a-z]+")


class Strong(NamedTuple):
    """A token that says by itself where something goes or what it is about."""

    token: str  # the normalised token
    parts: tuple[str, ...] = ()  # tokens that stand for it when it was never seen as a whole, such as a URL's host
    link: bool = False  # whether a reader could follow it
    tail: str = ""  # of a link: what it carries beyond the host


@dataclass(slots=True)
class Tokens:
    """The tokens of a text."""

    whole: str | None  # the normalised text, when it is short enough to be recognised as one
    lines: set[str]  # its normalised lines, when there are several
    strong: dict[str, Strong]  # tokens with a form of their own
    words: set[str]  # all other chunks
    complete: bool  # whether the whole text was read

    def all(self) -> Iterable[str]:
        """Return every token that stands for a piece of this text."""
        found = set(self.words) | self.lines
        if self.whole is not None:
            found.add(self.whole)
        for strong in self.strong.values():
            found.add(strong.token)
            found.update(strong.parts)
        return found


def normalize_text(text: str) -> str:
    """Return a text without case, invisible characters, compatibility forms and repeated white space."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", strip_invisible(unicodedata.normalize("NFKC", text)))
    return text.casefold()


def tokens_of(text: str) -> Tokens:
    """Return the tokens of a text; never raises."""
    complete = len(text) <= MAX_TEXT_CHARS
    text = normalize_text(text[:MAX_TEXT_CHARS])
    lines: set[str] = set()
    if "\n" in text or "\r" in text:
        for line in text.splitlines():
            short = " ".join(line.split()) if len(line) <= 2 * _MAX_LINE else ""
            if 0 < len(short) <= _MAX_LINE:
                lines.add(short)
    whole = " ".join(text.split()) if len(text) <= 4 * _MAX_LINE else None
    raw_words = set(text.split())
    words = set(filter(str.isalpha, raw_words))
    if len(text) > _MAX_CHUNK:
        words = {word for word in words if len(word) <= _MAX_CHUNK}
    chunks = set(_CHUNK.findall(" ".join(raw_words - words)))
    found = Tokens(whole=whole or None, lines=lines, strong={}, words=words, complete=complete)
    for raw in chunks:
        chunk = raw.lstrip(_LEFT).rstrip(_RIGHT)
        if len(chunk) > _MAX_CHUNK:
            found.complete = False
            chunk = chunk[:_MAX_CHUNK]
        if chunk.isalpha():
            words.add(chunk)
        elif chunk:
            _classify(chunk, found)
    for match in _DIGITS.finditer(text):
        _add(found, Strong(_NOT_ALNUM.sub("", match[0])))
    for match in _IBAN.finditer(text):
        _add(found, Strong(_NOT_ALNUM.sub("", text[match.start() - 2 : match.end(1)])))
    return found


def _add(found: Tokens, strong: Strong) -> None:
    if strong.token:
        found.strong.setdefault(strong.token, strong)


def _classify(chunk: str, found: Tokens) -> None:
    if "%" in chunk:
        chunk = normalize_text(unquote(chunk, errors="replace")).lstrip(_LEFT).rstrip(_RIGHT) or chunk
    if "://" in chunk:
        _link(chunk.partition("://")[2], found)
    elif "@" in chunk:
        address = chunk.removeprefix("mailto:").partition("?")[0]
        # The domain is recorded, but does not stand for the address: millions share one.
        _add(found, Strong(address))
        domain = address.rpartition("@")[2].strip(".")
        if domain:
            found.words.add(domain)
    elif "/" in chunk or "\\" in chunk:
        path = chunk.replace("\\", "/").removeprefix("./").rstrip("/") or "/"
        if _HOST.fullmatch(path.partition("/")[0]):
            _link(path, found)
        else:
            _add(found, Strong(path))
        found.words.add(path.rpartition("/")[2] or path)
    elif "." in chunk and _HOST.fullmatch(chunk):
        _add(found, Strong(chunk.removeprefix("www."), link=chunk.startswith("www.")))
    elif len(chunk) >= 6 and _DIGIT.search(chunk) and _LETTER.search(chunk) and _ID.fullmatch(chunk):
        _add(found, Strong(chunk))
    else:
        found.words.add(chunk)
        if ("=" in chunk or ":" in chunk) and not _CLOCK.fullmatch(chunk):
            found.words.update(piece for piece in re.split("[=:]", chunk) if piece)


def _link(rest: str, found: Tokens) -> None:
    """Take a URL without its scheme, which is not what tells where it goes."""
    rest = rest.partition("#")[0]
    host = re.split(r"[/?\\]", rest, maxsplit=1)[0].rpartition("@")[2].removeprefix("www.")
    tail = rest[re.search(r"[/?\\]|$", rest).start() :].rstrip("/")  # type: ignore[union-attr]
    bare = f"{host}{tail.partition('?')[0].rstrip('/')}"
    parts = tuple(dict.fromkeys(part for part in (bare, host, re.sub(r":\d*$", "", host)) if part))
    _add(found, Strong(f"{host}{tail}", parts, link=True, tail=tail))


def texts_of(value: Any, *, keys: bool) -> tuple[list[str], bool]:
    """Return the texts inside a value, and whether all of it was read.

    Only the builtin kinds of data are looked into, because asking other objects would run their code."""
    texts: list[str] = []
    complete = True
    stack: list[Any] = [value]
    seen: set[int] = set()
    nodes = 0
    while stack:
        nodes += 1
        if nodes > _MAX_NODES:
            return texts, False
        item = stack.pop()
        if isinstance(item, str):
            texts.append(str.__str__(item))
        elif isinstance(item, bytes | bytearray):
            texts.append(bytes(item[:MAX_TEXT_CHARS]).decode("utf-8", "replace"))
        elif item is None or isinstance(item, bool):
            continue
        elif type(item) is int:
            texts.append(str(item) if item.bit_length() <= 1024 else "")
        elif type(item) is float:
            texts.append(repr(item))
        elif type(item) in (dict, list, tuple, set, frozenset):
            if id(item) in seen:
                continue
            seen.add(id(item))
            if type(item) is dict:
                stack.extend(item.values())
                if keys:
                    stack.extend(item.keys())
            else:
                stack.extend(item)
        else:
            complete = False
    return texts, complete
