"""Secrets in sentences: recovery phrases of wallets, and "the password is ..."."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from mnemonic import Mnemonic

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.patterns import MatchLike, find_all, occurs
from agenttool_otel.redaction.plausibility import has_digit, is_code, is_template
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words
from agenttool_otel.redaction.work import spend

PASSWORDS_AND_PINS: Final = (
    r"password|passwd|passcode|passphrase|pass ?phrase|pwd|pin|pin[ -]?code|otp|cvv|cvc"
)
"""``pass phrase``, ``PIN-Code``"""
SECRETS_AND_KEYS: Final = (
    r"secret|api key|token|psk|(?:pre-?shared|shared|license|encryption|signing|master) key|pw|pass"
)
"""``pre-shared key``"""
CODES: Final = r"verification code|security code|one[ -]time (?:code|password)|login code"
"""``one-time code``"""
NAMES_OF_SECRETS: Final = f"(?:{PASSWORDS_AND_PINS}|{SECRETS_AND_KEYS}|{CODES})"
"""What a sentence calls a secret."""
FOR_WHAT: Final = r"(?: (?:for|of|to|on|in|at|from) [\w@.\- ]{1,40}?)?"
"""Whose it is: ``for db-3``."""
IS_SET_TO: Final = (
    r"(?: (?:is|was)(?: (?:now|set to|still|currently))?:?|\s+(?:set|changed|reset) to:?)"
)
"""What leads to the value: ``is now``, ``changed to:``."""
VALUE: Final = r"""(?:(\\{0,3}["'`])|(?:(?:«|„|“|‹)\s?)?([^\s"'`<>]+))"""
"""The quote that opens a value as group 1, or a bare value as group 2."""
_STATED = rf"(?i)\b{NAMES_OF_SECRETS}{FOR_WHAT}{IS_SET_TO} +{VALUE}"
NETWORK_KEY: Final = r"(?:wpa[23]?|wi-?fi|wlan|network)[ -]?(?:key|schl(?:ü|ue)ssel|code)"
"""``WPA2 key``, ``WLAN-Schlüssel``"""
FOR_ONE_THING: Final = r"(?: (?:for|of|to|on|de|del|für) [\w@.\-]{1,40})?"
"""`` for db-3``"""
VAGUE_NAMES: Final = rf"\b(?:pw|(?-i:[Pp]ass)|clave|{NETWORK_KEY}){FOR_ONE_THING}\s?:"
"""``pw for db-3:``, ``wifi key:``"""
TURKISH_PASSWORD: Final = r"(?:ş|s)ifre(?:si|niz|miz)?:?"
# names that are less clear: only a value with letters and digits counts behind them
_STATED_VAGUELY = rf"""(?i)(?:{VAGUE_NAMES}|{TURKISH_PASSWORD})[ \t]+(?:(\z)|([^\s"'`<>]+))"""
_ANY_STATED = "(?i)" + "|".join(
    f"(?:{pattern.removeprefix('(?i)')})" for pattern in (_STATED, _STATED_VAGUELY)
)
NAMES_OF_PHRASES: Final = (
    r"\b(?:mnemonic|seed ?(?:phrase|words)|recovery[ _-]?(?:phrase|words)|seed|backup phrase"
    r"|secret phrase|wallet phrase)\b"
)
"""What a wallet's recovery phrase is called."""
_SEED = (
    rf"(?i){NAMES_OF_PHRASES}"
    r"""[\w ,]{0,20}["'\\]{0,6}\s{0,3}(?:is|was|:|=|=>|,)\s{0,4}["'`\\\[]{0,6}"""
    r"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})"
)
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
    if len(words) not in _COUNTS:
        return False
    known = _wallet_words()
    unknown = sum(word not in known for word in words)
    if unknown > 1:
        return False
    different = len(set(words))
    return different * 3 >= len(words) * 2 and not _is_sorted(words)


def _is_sorted(words: Sequence[Any]) -> bool:
    """Whether words or their numbers are in order, as in a part of the list itself."""
    rising = sorted(words)
    falling = sorted(words, reverse=True)
    return list(words) in (rising, falling)


def _checksum_holds(numbers: Sequence[int]) -> bool:
    """Whether the last bits of a phrase are the checksum of the others (BIP-39)."""
    # 12 words of 11 bits: 128 bits of entropy, and 4 of the checksum
    bits = "".join(f"{number:011b}" for number in numbers)
    size = len(bits) * 32 // 33
    entropy = int(bits[:size], 2).to_bytes(size // 8, "big")
    digest = hashlib.sha256(entropy).digest()
    checksum = f"{digest[0]:08b}"
    return checksum.startswith(bits[size:])


def _runs(numbers: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return for each word how many from there on are of the list, and how many are in its order or
    against it.
    """
    size = len(numbers)
    known = [0] * (size + 1)
    rising = [1] * size
    falling = [1] * size
    for at in reversed(range(size)):
        number = numbers[at]
        if number >= 0:
            known[at] = known[at + 1] + 1
        if at + 1 == size:
            continue
        after = numbers[at + 1]
        if number <= after:
            rising[at] = rising[at + 1] + 1
        if number >= after:
            falling[at] = falling[at + 1] + 1
    return known, list(map(max, rising, falling))


def _phrases_of(data: bytes, first: int, last: int) -> Iterable[Span]:
    """Recovery phrases among words that follow each other: all of them, or those whose
    checksum holds.
    """
    words = list(_WORD.finditer(data, first, last))
    texts = [word.group() for word in words]
    if is_word_list(texts):
        yield Span(first, last, "seed_phrase", "phrase:words")
        return
    spend(len(words) >> 3)
    wallet_words = _wallet_words()
    numbers = [wallet_words.get(text, -1) for text in texts]
    known, ordered = _runs(numbers)
    checks = 0
    found_up_to = 0
    for at, count in _windows(known, ordered):
        if at < found_up_to:
            continue
        spend(1)
        checks += 1
        if checks > _MOST_CHECKS:
            # nothing that people write; and work must stay bounded
            yield Span(words[at].start(), last, "seed_phrase", "phrase:words")
            return
        if _checksum_holds(numbers[at : at + count]):
            found_up_to = at + count
            end = words[found_up_to - 1].end()
            yield Span(words[at].start(), end, "seed_phrase", "phrase:words")


def _windows(known: Sequence[int], ordered: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where a phrase could begin, and of how many words, the longest first.

    Args:
        known: how many words of the wallets' list follow each other from each place on.
        ordered: how many of these are in the list's own order, as a part of the list itself is.
    """
    for at in range(len(ordered)):
        for count in _COUNTS:
            if known[at] >= count > ordered[at]:
                yield at, count


def find_in_phrases(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of phrases and of what a sentence calls a password."""
    if occurs(_ANY_STATED, data):
        yield from _find_stated(data, _STATED)
        yield from _find_stated(data, _STATED_VAGUELY, vague=True)
    if any(word in lowered for word in (b"seed", b"mnemonic", b"phrase", b"recovery")):
        for match in find_all(_SEED, data):
            yield Span(match.start(1), match.end(1), "seed_phrase", "phrase:named")
    if data.count(b" ") + data.count(b"\n") >= 11:
        for match in find_all(_WORDS_IN_A_ROW, data):
            yield from _phrases_of(data, match.start(), match.end())


def _find_stated(data: bytes, pattern: str, *, vague: bool = False) -> Iterable[Span]:
    """Spans of values that a sentence states.

    Args:
        data: the text.
        pattern: one of the two patterns above.
        vague: whether its names are less clear, so that a bare value needs letters and digits.
    """
    for match in find_all(pattern, data):
        if match.start(1) >= 0:
            bounds = _quoted(data, match)
        else:
            needs_both = vague or _VAGUE.match(data, match.start()) is not None
            bounds = _bare(data, match, needs_both=needs_both)
        if bounds is None:
            continue
        start, end = bounds
        value = data[start:end]
        # "the pin is <pin>", "the password is ''"
        if len(value) < 3 or is_template(value):
            continue
        # the password is config.password
        if is_code(value) and not has_digit(value):
            continue
        yield Span(start, end, "password", "phrase:said")


def _quoted(data: bytes, match: MatchLike) -> tuple[int, int] | None:
    """Where a value in quotes lies, when its quote closes on the same line."""
    start = match.end(1)
    quote = match.group(1)
    end = data.find(quote, start, start + 256)
    if end < 0 or b"\n" in data[start:end]:
        return None
    return start, end


def _bare(data: bytes, match: MatchLike, *, needs_both: bool) -> tuple[int, int] | None:
    """Where a bare value lies, when it isn't a word of the sentence.

    Args:
        data: the text.
        match: what was found.
        needs_both: whether only letters together with digits are a value.
    """
    start, end = match.span(2)
    value = data[start:end].rstrip(b".,;:!?)")
    if needs_both and not _MIXED.fullmatch(value):
        return None
    # the password is required
    if not has_digit(value) and reads_like_words(value):
        return None
    return start, start + len(value)


DETECTOR: Final = BuiltIn(find=find_in_phrases, between_words=True)
