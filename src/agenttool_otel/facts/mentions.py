"""What a user's sentence takes a number or a word for, so that what was written of one thing vouches
for no other.

"Find the 3 best restaurants, then share file 7" names a file 7 and no file 3; "tell #team all about
it" names a channel ``team`` and none called ``all``. A short number, an amount, a date and a common
word name something only beside a noun of its kind; a long number does wherever it stands, unless
the sentence says that it is of another kind.

It is lexical and English (``data/mentions.toml``): whoever says it otherwise is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from agenttool_otel.facts.argument_names import snake
from agenttool_otel.facts.intent import is_action, stem_of
from agenttool_otel.facts.tokens import lower_exactly
from agenttool_otel.values.tables import load_table

_WORD: Final = re.compile(r"[#@]?[^\s,;:!?()\[\]{}<>\"“”„`]+|[,;:!?()\n]")
_QUOTED: Final = re.compile(r"(?<!\w)(['\"`‘“„«])([^'\"`‘’“”„«»\n]{1,128})['\"`’”“»](?!\w)")
_DIGIT: Final = re.compile(r"\d")
_LETTER: Final = re.compile(r"[^\W\d_]")
_AMOUNT: Final = re.compile(r"[^\d]*\d+([.,:/\-]\d+)+[^\d]*|\d*[$€£¥%]\d*")
_DATE: Final = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
_SHORT: Final = 5
_NEAR: Final = 4
_MAX_CHARS: Final = 20_000
_CLAIMED: Final = re.compile(r"(?<![\w.,:/-])\d{1,5}(?![\w/:-]|[.,]\d)")
_LEADING: Final = re.compile(r"[^\W\d_]+|#")
_BEFORE: Final = 60
_MAX_CLAIMS: Final = 500
_MAX_WEAK: Final = 256
ANY_KIND: Final = "*"
"""Stands for a noun where a text says of a number only that it is an id, or that something is to be
done with it.
"""

_NAMED: Final = "\4"
_PAIR: Final = "\5"
_OTHERWISE: Final = "\6"


def typed(noun: str, word: str) -> str:
    """Return the token of a word that is said to be something: ``file`` and ``7``."""
    return f"{_NAMED}{noun}\0{word}"


def is_number(text: str) -> bool:
    """Return whether a text is a number, an amount, a date or a time, and no letter is in it."""
    return _DIGIT.search(text) is not None and _LETTER.search(text) is None


def is_weak_number(text: str) -> bool:
    """Return whether a number is said in so many senses that it names nothing by itself."""
    digits = "".join(char for char in text if char.isdigit())
    if len(digits) <= _SHORT:
        return True
    return _AMOUNT.fullmatch(text) is not None or _DATE.fullmatch(digits) is not None


def is_plain_words(text: str) -> bool:
    """Return whether a text is ordinary words alone."""
    if not text:
        return False
    words = [word.strip("'’-").replace("-", "") for word in text.split()]
    return all(word.isalpha() for word in words)


def tokens_of_mentions(text: str) -> Iterator[str]:
    """Return what a user's text says about its numbers and words, as tokens.

    Args:
        text: what the user said.
    """
    text = text[:_MAX_CHARS]
    for match in _QUOTED.finditer(text):
        yield f"{_NAMED}{_joined(match[2])}"
    words = list(_words(text))
    for at, word in enumerate(words):
        if not word or not word[-1:].isalnum():
            continue
        if is_number(word):
            yield from _of_number(words, at)
        else:
            yield from _of_word(words, at)
    for word, following in pairwise(words):
        yield _pair(word, following)


def _pair(word: str, following: str) -> str:
    return _PAIR + _joined(f"{word} {following}")


def _of_number(words: Sequence[str], at: int) -> Iterator[str]:
    table = _table()
    number = words[at].lstrip("#@")
    if words[at] != number:  # "#7" names an issue, an order and the like
        for noun in table.hash:
            yield typed(noun, number)
        return
    if _is_counted(words, at):
        yield _OTHERWISE + number
        return
    nouns = list(_nouns_before(words, at))
    for noun in nouns:
        yield typed(noun, number)
    if not table.kinds.keys().isdisjoint(nouns):
        yield _OTHERWISE + number


def _is_counted(words: Sequence[str], at: int) -> bool:
    """Return whether a number counts what stands behind it: 100 euros, 3 best."""
    if at + 1 >= len(words):
        return False
    behind = words[at + 1]
    low = behind.lower()
    # "file 7 immediately" counts nothing
    return behind.isalpha() and low not in _table().behind and not low.endswith("ly")


def _of_word(words: Sequence[str], at: int) -> Iterator[str]:
    table = _table()
    word = words[at]
    bare = _joined(word.lstrip("#@"))
    if word[0] in "#@":
        for noun in table.hash if word[0] == "#" else table.at:
            yield typed(noun, bare)
        return
    for noun in _nouns_before(words, at):
        yield typed(noun, bare)
    if at + 1 < len(words) and words[at + 1].isalpha():
        # "the team channel" names a channel
        yield typed(stem_of(words[at + 1].lower()), bare)
    if not word[0].isupper() or bare in table.common:
        return
    begins = at == 0 or words[at - 1] in (".", "!", "?", "\n", ":")
    shouted = word.isupper() and len(word) > 1
    # what only begins a sentence, or is shouted, names what is written in the same way alone
    yield _NAMED + (word if begins or shouted else bare)


def _nouns_before(words: Sequence[str], at: int) -> Iterator[str]:
    """Return the stems of the nouns that a number or name stands behind, the nearest first: file
    menu.pdf (7).
    """
    table = _table()
    for word in reversed(words[max(0, at - 2 * _NEAR) : at]):
        low = word.lower()
        if word in (",", "(", ")", ":") or low in table.fillers or low in table.joins:
            continue
        if is_number(word):
            continue  # files 3, 5 and 7
        if not word[-1:].isalnum():
            return
        if word.isalpha():
            yield stem_of(low)
            return
        # a name that stands between: file menu.pdf (7)


def tokens_of_claims(text: str) -> Iterator[str]:
    """Return what a text of anybody's says of short numbers, as tokens; widely, for they accuse.

    Each of the words before a number is taken for what it is: "share file 3", "the one with id 3".
    Where there are too many numbers for that, all of them count.

    Args:
        text: what a tool gave.
    """
    numbering = _table().numbering
    seen: set[tuple[str, ...]] = set()
    for match in _CLAIMED.finditer(text):
        number = match[0]
        before = text[max(0, match.start() - _BEFORE) : match.start()]
        words = _LEADING.findall(before.lower())[-_NEAR:]
        claim = (number, *words)
        if claim in seen:
            continue
        seen.add(claim)
        if len(seen) > _MAX_CLAIMS:
            yield typed(ANY_KIND, number)
            continue
        for word in words:
            yield typed(stem_of(word), number)
        # "id 3" and "share 3" are of any kind
        if words and (not numbering.isdisjoint(words[-2:]) or is_action(words[-1])):
            yield typed(ANY_KIND, number)


def _words(text: str) -> Iterator[str]:
    """Return the words of a text, and what ends a clause."""
    for word in _WORD.findall(text):
        bare = word.strip("'’.*_~").removesuffix("'s").removesuffix("’s")
        yield bare or word
        ends = word.rstrip("'’*_~").endswith(".")
        if ends and bare.lower() not in _table().fillers:  # no. 12
            yield "."


def _joined(text: str) -> str:
    return " ".join(lower_exactly(text).split())


def vouching_tokens(value: str, nouns: Sequence[str]) -> list[list[str]] | None:
    """Return what the user has to have written for a weak value to be vouched for: all tokens of one
    of the lists.

    ``None`` where the value is not weak, so that its having been written is enough.

    Args:
        value: one argument's value.
        nouns: what the argument names, by stem.
    """
    text = value.strip().lstrip("#@") if len(value) < _MAX_WEAK else ""
    if not text:
        return None
    if is_number(text):
        return [[typed(noun, text)] for noun in nouns]
    if not is_plain_words(text):
        return None
    words = _joined(text).split()
    whole = " ".join(words)
    ways = [[typed(noun, whole)] for noun in nouns]
    ways.append([_NAMED + whole])
    ways.append([_NAMED + text])
    if len(words) > 1:
        ways += _ways_of_several(words, nouns)
    return ways


def _ways_of_several(words: Sequence[str], nouns: Sequence[str]) -> Iterator[list[str]]:
    """Return in which ways the user may have named what several words name."""
    telling = [word for word in words if word not in _table().common]
    pairs = [_PAIR + f"{word} {following}" for word, following in pairwise(words)]
    yield [_NAMED + word for word in telling] or ["\0"]
    if len(telling) > 1:
        yield pairs
    for noun in nouns:
        yield [typed(noun, words[-1]), *pairs]


def otherwise(number: str) -> str:
    """Return the token for that the user named a long number as something of a kind, or
    counted with it.
    """
    return _OTHERWISE + number


@lru_cache(maxsize=4096)
def nouns_of(name: str, tool: str = "") -> tuple[str, ...]:
    """Return the stems of the nouns for what an argument names, with those for the same kind.

    Args:
        name: the argument's.
        tool: the tool's name, by which an argument called ``id`` or ``title`` is told.
    """
    table = _table()
    words = _telling_words(name) or _telling_words(tool)
    stems = [stem_of(word) for word in words]
    found = dict.fromkeys(stems)
    for stem in stems:
        found.update(dict.fromkeys(table.kinds.get(stem, ())))
    is_generic = table.generic.issuperset(snake(name).split("_"))
    if is_generic and found.keys().isdisjoint(table.kinds):
        # "to" of "pay" is an account
        found.update(dict.fromkeys(table.kinds["account"]))
    return tuple(found)


def _telling_words(name: str) -> list[str]:
    """Return the words of a name that say what it names."""
    generic = _table().generic
    return [word for word in snake(name).split("_") if word and word not in generic]


class _Table(NamedTuple):
    """The words of ``data/mentions.toml``."""

    numbering: frozenset[str]
    fillers: frozenset[str]
    joins: frozenset[str]
    behind: frozenset[str]
    common: frozenset[str]
    generic: frozenset[str]
    hash: tuple[str, ...]  # stems
    at: tuple[str, ...]
    kinds: dict[str, tuple[str, ...]]  # by stem, the stems of the same kind


@cache
def _table() -> _Table:
    data = load_table("agenttool_otel.facts", "data/mentions.toml")
    kinds: dict[str, tuple[str, ...]] = {}
    for group in data["kinds"]:
        same = tuple(map(stem_of, group))
        for stem in same:
            known = kinds.get(stem, ())
            kinds[stem] = tuple(dict.fromkeys(known + same))
    return _Table(
        numbering=frozenset(data["numbering"]),
        fillers=frozenset(data["fillers"]),
        joins=frozenset(data["joins"]),
        behind=frozenset(data["behind"]),
        common=frozenset(data["common"]),
        generic=frozenset(data["generic"]),
        hash=tuple(map(stem_of, data["hash"])),
        at=tuple(map(stem_of, data["at"])),
        kinds=kinds,
    )
