"""What a user's sentence takes a number or a word for, so that what was written of a thing vouches
for no other.

"Find the 3 best restaurants, then share file 7" names a file 7 and no file 3; "tell #team all about
it" names a channel ``team`` and none called ``all``. A short number, an amount, a date and a common
word name something only beside a noun of its kind; a long number does wherever it stands, unless
the sentence names it as of another kind.

It is lexical and English (``data/mentions.toml``): what is named in other words is asked about.
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
"""Stands for a noun where a text names a number only as an id, or as what to do something with."""

_NO_BREAKS: Final = frozenset({",", "(", ")", ":"})
"""Marks between a noun and its number."""

_NAMED: Final = "\4"
_PAIR: Final = "\5"
_OTHERWISE: Final = "\6"


def typed(noun: str, word: str) -> str:
    """Return the token of a word that is named as a thing of a kind: ``file`` and ``7``."""
    return f"{_NAMED}{noun}\0{word}"


def is_number(text: str) -> bool:
    """Return whether a text is a number, an amount, a date or a time, and no letter is in it."""
    return _DIGIT.search(text) is not None and _LETTER.search(text) is None


def is_weak_number(text: str) -> bool:
    """Return whether a number has so many senses that it names nothing by itself."""
    digits = "".join(filter(str.isdigit, text))
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
    """Return the tokens of what a user's text takes its numbers and words for.

    Args:
        text: the user's text.
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
        pair = _joined(f"{word} {following}")
        yield _PAIR + pair


# what a number or a word at a position is taken for, as tokens


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
    following = _word_behind(words, at)
    if not following:
        return False
    # "file 7 immediately" counts nothing
    return following not in _table().behind and not following.endswith("ly")


def _word_behind(words: Sequence[str], at: int) -> str:
    """Return the word that stands behind another, in lower case; empty where none does."""
    if at + 1 >= len(words):
        return ""
    following = words[at + 1]
    return following.lower() if following.isalpha() else ""


def _of_word(words: Sequence[str], at: int) -> Iterator[str]:
    table = _table()
    word = words[at]
    bare = _joined(word.lstrip("#@"))
    sigils = {"#": table.hash, "@": table.at}
    if word[0] in sigils:
        for noun in sigils[word[0]]:
            yield typed(noun, bare)
        return
    for noun in _nouns_before(words, at):
        yield typed(noun, bare)
    following = _word_behind(words, at)
    if following:
        # "the team channel" names a channel
        yield typed(stem_of(following), bare)
    if not word[0].isupper() or bare in table.common:
        return
    begins = at == 0 or words[at - 1] in (".", "!", "?", "\n", ":")
    shouted = word.isupper() and len(word) > 1
    if begins or shouted:
        # "Reports are due", "READ THIS": their capitals may mean nothing, so the same spelling is
        # needed
        yield _NAMED + word
    else:
        yield _NAMED + bare


def _nouns_before(words: Sequence[str], at: int) -> Iterator[str]:
    """Return the stems of the nouns that a number or name stands behind, the nearest first: file
    menu.pdf (7).
    """
    table = _table()
    start = max(0, at - 2 * _NEAR)
    for word in reversed(words[start:at]):
        low = word.lower()
        if word in _NO_BREAKS or low in table.fillers or low in table.joins:
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
    """Return the tokens of what free text takes short numbers for; widely, for they accuse.

    Each of the words before a number is taken for what it is: "share file 3", "the one with id 3".
    Where there are too many numbers for that, all of them count.

    Args:
        text: a text of a tool's output.
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
        if not words:
            continue
        # "id 3" and "share 3" are of any kind
        if is_action(words[-1]) or not numbering.isdisjoint(words[-2:]):
            yield typed(ANY_KIND, number)


def _words(text: str) -> Iterator[str]:
    """Return the words of a text, and what ends a clause."""
    fillers = _table().fillers
    for word in _WORD.findall(text):
        bare = word.strip("'’.*_~").removesuffix("'s").removesuffix("’s")
        yield bare or word
        has_stop = word.rstrip("'’*_~").endswith(".")
        if has_stop and bare.lower() not in fillers:  # no. 12
            yield "."


def _joined(text: str) -> str:
    return " ".join(lower_exactly(text).split())


def vouching_tokens(value: str, nouns: Sequence[str]) -> list[list[str]] | None:
    """Return what the user has to have written for a weak value to be vouched for: all tokens of
    any of the lists.

    ``None`` where the value is not weak, so that its having been written is enough.

    Args:
        value: an argument's value.
        nouns: what the argument names, by stem.
    """
    if len(value) >= _MAX_WEAK:
        return None
    text = value.strip().lstrip("#@")
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
    distinctive = [word for word in words if word not in _table().common]
    pairs = [_PAIR + f"{word} {following}" for word, following in pairwise(words)]
    if distinctive:
        yield [_NAMED + word for word in distinctive]
    if len(distinctive) > 1:
        yield pairs
    for noun in nouns:
        yield [typed(noun, words[-1]), *pairs]


def otherwise(number: str) -> str:
    """Return the token of a long number that the user named as a thing of a kind, or counted
    with.
    """
    return _OTHERWISE + number


@lru_cache(maxsize=4096)
def nouns_of(name: str, tool: str = "") -> tuple[str, ...]:
    """Return the stems of the nouns for what an argument names, with those for the same kind.

    Args:
        name: the argument's.
        tool: the tool's name, whose words count where the argument is called ``id`` or ``title``.
    """
    table = _table()
    words = _words_for_kind(name) or _words_for_kind(tool)
    stems = [stem_of(word) for word in words]
    nouns = list(stems)
    for stem in stems:
        nouns += table.kinds.get(stem, ())
    is_generic = table.generic.issuperset(snake(name).split("_"))
    if is_generic and table.kinds.keys().isdisjoint(nouns):
        # "to" of "pay" is an account
        nouns += table.kinds["account"]
    return tuple(dict.fromkeys(nouns))


def _words_for_kind(name: str) -> list[str]:
    """Return the words of a name for the kind of what it names: ``file`` of ``file_id``."""
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
