"""Word lists, and whether letters read like words or like a machine's random choice.

A credential without a digit (``kqvhznwxjrtp``) has the shape of a word, and a word that stands
where a credential could (``token = required``) is none. What separates them is which letters
follow which: in words few of the 676 pairs are frequent, in random letters all are alike. A mixed
case that is not that of ``camelCase`` is a sign of chance, too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from agenttool_otel.values.tables import load_table

_LEAST_LETTERS: Final = 10
_MOST_BYTES: Final = 512
_LETTERS: Final = re.compile(rb"[A-Za-z]+")
_CASED_WORDS: Final = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WORD_LETTERS: Final = 3


@lru_cache(maxsize=1)
def _lists() -> dict[str, str]:
    lists: dict[str, str] = load_table(__package__, "words.toml")
    return lists


def words(name: str) -> frozenset[str]:
    """One list."""
    return frozenset(_lists()[name].split())


def byte_words(name: str) -> frozenset[bytes]:
    """One list, as bytes."""
    return frozenset(_lists()[name].encode().split())


@lru_cache(maxsize=1)
def _table() -> dict[tuple[int, int], int]:
    """Score of each pair of lower-case letters, in bits."""
    rows = load_table(__package__, "letters.toml")["follows"]
    return {
        (ord(first), 97 + place): int(digit) - 4
        for first, row in rows.items()
        for place, digit in enumerate(row)
    }


def reads_like_words(value: bytes) -> bool:
    """Whether the letters of a value could be words, names or abbreviations put together.

    Measured: of random strings of 12 letters 2 % read like words, of 20 letters 0.4 %; of words put
    together to those lengths, 96 % and 98 % do.
    """
    runs = _LETTERS.findall(value[:_MOST_BYTES])
    size = sum(map(len, runs))
    if size < _LEAST_LETTERS:
        return True
    table = _table()
    score = 0
    for run in runs:
        lower = run.lower()
        # "th" is frequent, "qx" is not
        score += sum(map(table.__getitem__, pairwise(lower)))
        # kQvHzN: a capital in each third place is chance, dbPassword is not
        if not (run.islower() or run.isupper()):
            score -= max(0, _WORD_LETTERS * len(_CASED_WORDS.findall(run)) - len(run))
    return score >= 0
