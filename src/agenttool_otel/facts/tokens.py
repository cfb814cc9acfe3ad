"""Text as the tokens by which a value is recognised again: addresses, URLs, hosts, paths, numbers,
ids and words.

Both sides, what was seen and what is asked about, go through the same function, so the cuts need
not be right, only the same. All patterns are linear in the length of the text.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import re
import unicodedata
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import filterfalse
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from agenttool_otel.values.unicode import strip_invisible

MAX_TEXT_CHARS: Final = 2_000_000
_MAX_CHUNK: Final = 2048
_MAX_LINE: Final = 256
_MAX_NODES: Final = 20_000
_SHORT: Final = 256
_FEW: Final = 32
"""Short texts whose tokens are kept: those of one call, not of a session."""

_LEFT: Final = ":!?=&#…。，、；：！？"
_RIGHT: Final = _LEFT + ".-_~"
_CUTS: Final = bytes.maketrans(b"<>\"'`(){}[],;|*", b" " * 15)
"""Of UTF-8, in which no character holds another's bytes."""

_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_NUMBERS: Final = re.compile(rb"0(?:(?:[ \-.()/]?0){5,33}|0(?<=[a-z]{2}00))")
"""Long ones, and those that an IBAN begins with; with one digit for all, which is found faster."""

_IBAN_HEAD: Final = r"[0-9]{2}(?<=[a-z]{2}[0-9]{2})(?<![^\W_][a-z]{2}[0-9]{2})"
"""The check digits, behind a country's two letters that begin a word: ``de89``."""

_IBAN_BODY: Final = r"[ -]?[a-z0-9]{4}(?:[ -]?\d{4}){1,6}(?:[ -]?[a-z0-9]{1,4})?(?![a-z0-9])"
"""The bank and the account, in groups of four or none: `` 3704 0044 0532 0130 00``."""

_IBAN: Final = re.compile(f"{_IBAN_HEAD}(?=({_IBAN_BODY}))")
"""Found by its check digits, with which a number begins. Another may begin inside of it."""

_PAIR: Final = re.compile("[=:]")
_CLOCK: Final = re.compile(r"\d+(?::\d+)+")
_HOST: Final = re.compile(r"(?:[\w-]{1,63}\.)+[a-zA-Z][\w-]{1,62}")
_MIN_ID: Final = 6
_ID: Final = re.compile(r"[\w.:-]+")
_DIGIT: Final = re.compile(r"[0-9]")
_LETTER: Final = re.compile(r"[a-zA-Z]")
_TAIL: Final = re.compile(r"(?=[/?\\])")
_PORT: Final = re.compile(r":\d*$")
_NOT_ALNUM: Final = re.compile(r"[^0-9a-z]+")


_PLAINS: Final = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    uuid.UUID,
    pathlib.PurePath,
)
_MODULES: Final = ("datetime", "decimal", "uuid", "pathlib")


class Strong(NamedTuple):
    """What belongs to a token that names by itself where something goes or what it is about."""

    # tokens that stand for it when it was never seen as a whole, such as a URL's host
    parts: tuple[str, ...] = ()
    link: bool = False  # whether a reader could follow it
    tail: str = ""  # of a link: what it carries beyond the host


_PLAIN: Final = Strong()
_BARE_LINK: Final = Strong(link=True)


@dataclass(slots=True)
class Tokens:
    """The tokens of a text."""

    whole: str | None  # the normalised text, when it is short enough to be recognised as one
    lines: set[str]  # its normalised lines, when there are several
    strong: dict[str, Strong]  # normalised tokens with a form of their own
    words: set[str]  # all other chunks
    complete: bool  # whether the whole text was read
    given: str  # the text as it stands

    def all(self) -> set[str]:
        """Return every token that stands for a piece of this text."""
        found = self.words | self.lines
        if self.whole is not None:
            found.add(self.whole)
        found.update(self.strong)
        for strong in self.strong.values():
            found.update(strong.parts)
        return found


def normalize_text(text: str) -> str:
    """Return a text without case, invisible characters, compatibility forms and repeated
    white space.
    """
    if not text.isascii():
        # nothing composes with a line's end, and most lines are ASCII
        lines = text.split("\n")
        text = "\n".join(line if line.isascii() else _composed(line) for line in lines)
    return text.casefold()


def _composed(text: str) -> str:
    visible = strip_invisible(unicodedata.normalize("NFKC", text))
    # what stood apart may compose now: e, a zero-width space and an accent
    return unicodedata.normalize("NFKC", visible)


def lower_exactly(text: str) -> str:
    """Return a text in lower case, but for characters whose other case is shared: ß, ς, the Kelvin
    sign.
    """
    if text.isascii():
        return text.lower()
    return _NOT_ASCII.sub(_lower_match, text.translate(_ASCII_LOWER))


def _lower_match(match: re.Match[str]) -> str:
    return "".join(map(_lower_character, match[0]))


def _lower_character(char: str) -> str:
    low = char.lower()
    if low == char or low.upper() == char:
        return low
    return char  # ß, whose capitals are those of ss


_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def exact_form(token: str, *, link: bool = False) -> str:
    """Return the form in which a token may vouch for another: nothing that names something else
    has it.

    Hosts are compared as IDNA 2008 has them, local parts, paths and ids of both cases as they are
    written.
    """
    if "@" in token:
        local, _, host = token.rpartition("@")
        return f"{local}@{_host_form(host)}"
    if link or not token.isascii():
        host, slash, tail = token.partition("/")
        return f"{_host_form(host)}{slash}{tail}"
    if token.isupper() and token.isalnum():
        return token.lower()  # an account number, in capitals or not
    return token


def _host_form(host: str) -> str:
    host = host.rstrip(".")
    if host.isascii():
        return host.lower()
    import idna  # its tables are large, and most hosts are ASCII

    name, colon, port = host.partition(":")
    try:
        encoded = idna.encode(lower_exactly(name), uts46=False)
    except (idna.IDNAError, UnicodeError):
        return host
    return f"{encoded.decode('ascii')}{colon}{port}"


def exact_tokens_of(text: str) -> Mapping[str, list[str]]:
    """Return the exact forms of a text's tokens, by the folded token of each; not to be changed."""
    return _exact_of_short(text) if len(text) <= _SHORT else _exact_tokens_of(text)


def _exact_tokens_of(text: str) -> dict[str, list[str]]:
    tokens = tokens_of(text, fold=_unfolded)
    found: dict[str, list[str]] = {}
    for token, strong in tokens.strong.items():
        found.setdefault(normalize_text(token), []).append(exact_form(token, link=strong.link))
        for part in strong.parts:
            found.setdefault(normalize_text(part), []).append(exact_form(part, link=True))
    plain = [*tokens.words, *tokens.lines]
    if tokens.whole is not None:
        plain.append(tokens.whole)
    for token in plain:
        if _is_cased(token):
            form = exact_form(token)
        else:
            form = lower_exactly(token)
        folded = " ".join(normalize_text(token).split())
        found.setdefault(folded, []).append(form)
    return found


def _is_cased(token: str) -> bool:
    """Return whether a token may mean something else in another case: an address, a path, an id."""
    if _PLACE.search(token):
        return True
    if " " in token:
        return False
    return _DIGIT.search(token) is not None and _LETTER.search(token) is not None


_PLACE: Final = re.compile(r"[@/\\.]")


def _unfolded(text: str) -> str:
    return text


def tokens_of(text: str, *, fold: Callable[[str], str] = normalize_text) -> Tokens:
    """Return the tokens of a text, folded unless ``fold`` is another; never raises.

    They are not to be changed: those of a short text are shared.
    """
    return _tokens_of_short(text, fold) if len(text) <= _SHORT else _tokens_of(text, fold)


def _tokens_of(text: str, fold: Callable[[str], str]) -> Tokens:
    given = text[:MAX_TEXT_CHARS]
    folded = fold(given)
    words = set(_chunks_of(folded))
    others = list(filterfalse(str.isalpha, words))
    words.difference_update(others)
    whole = None
    if len(folded) <= 4 * _MAX_LINE:
        whole = " ".join(folded.split()) or None
    found = Tokens(
        whole=whole,
        lines=_lines_of(folded),
        strong={},
        words=words,
        complete=len(text) <= MAX_TEXT_CHARS,
        given=given,
    )
    for raw in others:
        _add_chunk(raw.lstrip(_LEFT).rstrip(_RIGHT), found, fold)
    if fold is not normalize_text:
        folded = folded.translate(_ASCII_LOWER)  # of an account number
    _add_numbers(folded, found)
    return found


# one call asks four times for those of an argument: a fact, its result's trust, its own words, its marks
_tokens_of_short = lru_cache(maxsize=_FEW)(_tokens_of)
_exact_of_short = lru_cache(maxsize=_FEW)(_exact_tokens_of)


def _lines_of(text: str) -> set[str]:
    """Return the lines of a text that are short enough to be recognised, if it has several."""
    lines: set[str] = set()
    if "\n" not in text and "\r" not in text:
        return lines
    for line in text.splitlines():
        if len(line) > 2 * _MAX_LINE:
            continue
        if line.isprintable() and "  " not in line:
            short = line.strip(" ")  # the same as below, and faster
        else:
            short = " ".join(line.split())
        if 0 < len(short) <= _MAX_LINE:
            lines.add(short)
    return lines


def _chunks_of(text: str) -> list[str]:
    data = text.encode("utf-8", "surrogatepass")
    cut = data.translate(_CUTS)
    return cut.decode("utf-8", "surrogatepass").split()


def _add_chunk(chunk: str, found: Tokens, fold: Callable[[str], str]) -> None:
    if len(chunk) > _MAX_CHUNK:
        found.complete = False
        chunk = chunk[:_MAX_CHUNK]
    if chunk.isalpha() or (len(chunk) < _MIN_ID and chunk.isalnum()):
        found.words.add(chunk)
    elif chunk:
        _classify(chunk, found, fold)


def _add_numbers(text: str, found: Tokens) -> None:
    """Add long numbers and account numbers, also those that are written in groups."""
    shape = text.encode("ascii", "replace").translate(_ZEROS)
    if shape.count(b"0") < _MIN_ID:
        return
    for number in _NUMBERS.finditer(shape):
        start, end = number.span()
        if end - start >= _MIN_ID:
            _add(found, _NOT_ALNUM.sub("", text[start:end]))
        iban = _IBAN.match(text, start)
        if iban is not None:
            _add(found, _NOT_ALNUM.sub("", text[start - 2 : iban.end(1)]))


def _add(found: Tokens, token: str, strong: Strong = _PLAIN) -> None:
    if token and (strong.link or token not in found.strong):
        found.strong[token] = strong


def _classify(chunk: str, found: Tokens, fold: Callable[[str], str]) -> None:
    """Add a chunk as what it looks like: URL, address, path, host, id or word."""
    if "%" in chunk:
        chunk = _unquoted(chunk, fold) or chunk
    if "://" in chunk:
        _link(chunk.partition("://")[2], found)
    elif "@" in chunk:
        _address(chunk, found)
    elif "/" in chunk or "\\" in chunk:
        _path(chunk.replace("\\", "/"), found)
    elif "." in chunk and _HOST.fullmatch(chunk):
        _host(chunk, found)
    elif _is_id(chunk):
        _add(found, chunk)
    else:
        _word(chunk, found)


def _unquoted(chunk: str, fold: Callable[[str], str]) -> str:
    """Return a chunk without percent encoding: ``eve%40example.org``."""
    plain = fold(unquote(chunk, errors="replace"))
    return plain.lstrip(_LEFT).rstrip(_RIGHT)


def _host(chunk: str, found: Tokens) -> None:
    host = chunk.removeprefix("www.")
    if host == chunk:
        _add(found, host)
    else:
        _add(found, host, _BARE_LINK)  # www.example.org is followed as a URL is


def _word(chunk: str, found: Tokens) -> None:
    found.words.add(chunk)
    parts = _PAIR.split(chunk)
    if len(parts) > 1 and not _CLOCK.fullmatch(chunk):
        found.words.update(part for part in parts if part)  # to=eve, but not 10:30


def _is_id(chunk: str) -> bool:
    """Return whether a chunk has digits and letters, as ``ord-4711a``."""
    if len(chunk) < _MIN_ID or not _ID.fullmatch(chunk):
        return False
    return _DIGIT.search(chunk) is not None and _LETTER.search(chunk) is not None


def _address(chunk: str, found: Tokens) -> None:
    address = chunk.removeprefix("mailto:").partition("?")[0]
    _add(found, address)
    # The domain is recorded, but does not stand for the address: millions share one.
    domain = address.rpartition("@")[2].strip(".")
    if domain:
        found.words.add(domain)


def _path(chunk: str, found: Tokens) -> None:
    path = chunk.removeprefix("./").rstrip("/") or "/"
    if _HOST.fullmatch(path.partition("/")[0]):
        _link(path, found)  # example.org/a
    else:
        _add(found, path)
    found.words.add(path.rpartition("/")[2] or path)


def _link(rest: str, found: Tokens) -> None:
    """Add a URL without its scheme: http and https lead to the same place."""
    without_fragment = rest.partition("#")[0]
    authority, *behind = _TAIL.split(without_fragment, maxsplit=1)
    host = authority.rpartition("@")[2].removeprefix("www.")
    tail = "".join(behind).rstrip("/")
    path = tail.partition("?")[0].rstrip("/")
    parts = dict.fromkeys([f"{host}{path}", host, _PORT.sub("", host)])
    parts.pop("", None)
    _add(found, f"{host}{tail}", Strong(tuple(parts), link=True, tail=tail))


def text_of(item: Any) -> str | None:
    """Return the text of a plain value, ``None`` for anything else; runs no code of a class."""
    if isinstance(item, enum.Enum):
        item = object.__getattribute__(item, "_value_")
    if isinstance(item, str):
        return str.__str__(item)
    if isinstance(item, bytes | bytearray):
        return bytes(item[:MAX_TEXT_CHARS]).decode("utf-8", "replace")
    if type(item) is int:
        return str(item) if item.bit_length() <= 1024 else ""
    if type(item) is float:
        return repr(item)
    if not isinstance(item, _PLAINS):
        return None
    # a subclass of another module may have a __str__ of its own
    module = type(item).__module__.partition(".")[0]
    return str(item) if module in _MODULES else None


def texts_of(value: Any, *, keys: bool) -> tuple[list[str], bool]:
    """Return the texts inside a value, and whether all of it was read.

    Only the builtin kinds of data are looked into, because asking other objects would run their
    code.
    """
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
        text = item if type(item) is str else text_of(item)
        if text is not None:
            texts.append(text)
        elif type(item) in _CONTAINERS:
            if id(item) not in seen:
                seen.add(id(item))
                stack.extend(_children(item, keys=keys))
        elif item is not None and not isinstance(item, bool):
            complete = False
    return texts, complete


_CONTAINERS: Final = (dict, list, tuple, set, frozenset)


def _children(item: Any, *, keys: bool) -> Iterator[Any]:
    if type(item) is not dict:
        yield from item
        return
    yield from item.values()
    if keys:
        yield from item
