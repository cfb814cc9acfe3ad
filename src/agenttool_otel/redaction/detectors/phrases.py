"""Secrets in sentences: recovery phrases of wallets, and "the password is ..."."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from mnemonic import Mnemonic

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.patterns import LONG_PATTERNS, find_all, occurs
from agenttool_otel.redaction.plausibility import has_digit, is_code, is_template
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words
from agenttool_otel.redaction.work import spend

_LONG_PATTERNS: Final = LONG_PATTERNS["phrases"]
_SAID = _LONG_PATTERNS["said"]
# words that say it less clearly: only what has letters and digits counts behind them
_SAID_VAGUELY = _LONG_PATTERNS["said_vaguely"]
_ANY_SAID = "(?i)" + "|".join(f"(?:{said.removeprefix('(?i)')})" for said in (_SAID, _SAID_VAGUELY))
_SEED = _LONG_PATTERNS["seed"]
_WORDS_IN_A_ROW = r"\b[a-z]{3,8}(?:[\s,;|]{1,4}(?:\d{1,2}[.):]?[ \t]{1,3})?[a-z]{3,8}){11,}\b"
_WORD: Final = re.compile(rb"[a-z]+")
_VAGUE: Final = re.compile(rb"(?i)(?:pass|pw)\b")
_MIXED: Final = re.compile(rb"(?=.*[A-Za-z].*\d|.*\d.*[A-Za-z]).{6,}")
_COUNTS: Final = (24, 21, 18, 15, 12)
_MOST_CHECKS: Final = 2000


@lru_cache(maxsize=1)
def _wallet_words() -> dict[bytes, int]:
    """The English words of BIP-39, which other wallets use, too, and the number that each
    stands for.
    """
    return {word.encode(): number for number, word in enumerate(Mnemonic("english").wordlist)}


def is_word_list(words: Sequence[bytes]) -> bool:
    """Whether words could be a wallet's recovery phrase: a fitting count, all but one of the
    wallets' list.
    """
    known = _wallet_words()
    return (
        len(words) in _COUNTS
        and sum(word not in known for word in words) <= 1
        and len(set(words)) * 3 >= len(words) * 2
        and not _is_sorted(words)
    )


def _is_sorted(words: Sequence[Any]) -> bool:
    """Whether words or their numbers are in order, as in a part of the list itself."""
    return list(words) in (sorted(words), sorted(words, reverse=True))


def _checksum_holds(numbers: Sequence[int]) -> bool:
    """Whether the last bits of a phrase are the checksum of the others (BIP-39)."""
    bits = "".join(f"{number:011b}" for number in numbers)
    size = len(bits) * 32 // 33
    digest = hashlib.sha256(int(bits[:size], 2).to_bytes(size // 8, "big")).digest()
    return bits[size:] == f"{digest[0]:08b}"[: len(bits) - size]


def _runs(numbers: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return for each word how many from there on are of the list, and how many are in its order or
    against it.
    """
    size = len(numbers)
    known, rising, falling = [0] * (size + 1), [1] * size, [1] * size
    for at in range(size - 1, -1, -1):
        number = numbers[at]
        known[at] = 0 if number < 0 else known[at + 1] + 1
        if at + 1 < size:
            after = numbers[at + 1]
            rising[at] = rising[at + 1] + 1 if number <= after else 1
            falling[at] = falling[at + 1] + 1 if number >= after else 1
    return known, list(map(max, rising, falling))


def _phrases_of(data: bytes, first: int, last: int) -> Iterable[Span]:
    """Recovery phrases among words that follow each other: all of them, or those whose
    checksum holds.
    """
    words = list(_WORD.finditer(data, first, last))
    if is_word_list([word.group() for word in words]):
        yield Span(first, last, "seed_phrase", "phrase:words")
        return
    spend(len(words) >> 3)
    numbers = [_wallet_words().get(word.group(), -1) for word in words]
    known, ordered = _runs(numbers)
    at = checks = 0
    while at + _COUNTS[-1] <= len(numbers):
        if known[at] < _COUNTS[-1]:
            at += known[at] + 1
            continue
        step = 1
        for count in _COUNTS:
            if known[at] >= count > ordered[at]:
                window = numbers[at : at + count]
                spend(1)
                checks += 1
                if checks > _MOST_CHECKS:  # nothing that people write; and work must stay bounded
                    yield Span(words[at].start(), last, "seed_phrase", "phrase:words")
                    return
                if _checksum_holds(window):
                    yield Span(
                        words[at].start(),
                        words[at + count - 1].end(),
                        "seed_phrase",
                        "phrase:words",
                    )
                    step = count
                    break
        at += step


def find_in_phrases(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of phrases and of what a sentence calls a password."""
    if occurs(_ANY_SAID, data):
        yield from _spoken(data, _SAID)
        yield from _spoken(data, _SAID_VAGUELY, vague=True)
    if (
        b"seed" in lowered
        or b"mnemonic" in lowered
        or b"phrase" in lowered
        or b"recovery" in lowered
    ):
        for match in find_all(_SEED, data):
            yield Span(match.start(1), match.end(1), "seed_phrase", "phrase:named")
    if data.count(b" ") + data.count(b"\n") >= 11:
        for match in find_all(_WORDS_IN_A_ROW, data):
            yield from _phrases_of(data, match.start(), match.end())


def _spoken(data: bytes, pattern: str, *, vague: bool = False) -> Iterable[Span]:
    for match in find_all(pattern, data):
        if match.start(1) >= 0:
            start = match.end(1)
            end = data.find(match.group(1), start, start + 256)
            if end < 0 or b"\n" in data[start:end]:
                continue
            value = data[start:end]
        else:
            start, end = match.start(2), match.end(2)
            value = data[start:end].rstrip(b".,;:!?)")
            end = start + len(value)
            if (vague or _VAGUE.match(data, match.start())) and not _MIXED.fullmatch(value):
                continue
            if not has_digit(value) and reads_like_words(value):
                continue
        if len(value) >= 3 and not is_template(value) and (has_digit(value) or not is_code(value)):
            yield Span(start, end, "password", "phrase:said")


DETECTOR: Final = BuiltIn(find=find_in_phrases, between_words=True)
