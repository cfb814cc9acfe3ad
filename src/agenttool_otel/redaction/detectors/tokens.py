"""Documented token formats: the rules of ``token_formats``, each behind its keywords."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.detectors.keywords import KeywordIndex
from agenttool_otel.redaction.detectors.token_formats import TOKEN_RULES, TokenRule
from agenttool_otel.redaction.patterns import MATCH, Matcher, MatchLike, compile_pattern
from agenttool_otel.redaction.plausibility import entropy, has_digit, is_filler, is_stand_in
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words
from agenttool_otel.redaction.work import spend
from agenttool_otel.values.tables import load_table

_WINDOW: Final = 4096
"""Bytes of a text that is looked at as a whole; in a longer one only around the keywords."""
_BEFORE: Final = 256
_AFTER: Final = 1536
_DIGEST_CHARS: Final = 32
_MOST_ENTROPY_BYTES: Final = 1024


@cache
def _examples() -> frozenset[str]:
    """Digests of keys that documentation prints."""
    digests: set[str] = set()
    for row in load_table(__package__, "examples.toml")["example"]:
        digests.update(row["sha256"])
    return frozenset(digests)


class TokenDetector:
    """Finds documented token formats. A rule is compiled when its keyword is first seen."""

    def __init__(self, *, joined_only: bool = False) -> None:
        """Choose the rules.

        Args:
            joined_only: only the rules that are looked for across line breaks, too.
        """
        self._rules: tuple[TokenRule, ...] = TOKEN_RULES
        if joined_only:
            self._rules = tuple(rule for rule in TOKEN_RULES if rule.joined)
        self._by_keyword: dict[bytes, list[int]] = {}
        for index, rule in enumerate(self._rules):
            for word in rule.keywords:
                with_word = self._by_keyword.setdefault(word.encode(), [])
                with_word.append(index)
        self.keywords = KeywordIndex(self._by_keyword)

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of all known formats."""
        is_long = len(data) >= _WINDOW
        for rule, places in self._present(lowered):
            if places is None or not is_long:
                yield from _find_everywhere(rule, data)
                continue
            near = _find_near(rule, data, sorted(places))
            if near is None:
                yield from _find_everywhere(rule, data)
            else:
                yield from near

    def _present(self, lowered: bytes) -> list[tuple[TokenRule, list[int] | None]]:
        """Rules whose keyword occurs, in their order, and where it does; None: look everywhere."""
        hits = self.keywords.hits(lowered)
        wanted: dict[int, list[int] | None] = {}
        for word, places in hits.items():
            # "sk-" is a keyword of several formats, and a format may have several keywords
            for index in self._by_keyword[word]:
                before = wanted.get(index, [])
                if before is None or places is None:
                    wanted[index] = None
                else:
                    wanted[index] = before + places
        present: list[tuple[TokenRule, list[int] | None]] = []
        for index in sorted(wanted):
            rule = self._rules[index]
            present.append((rule, wanted[index]))
        return present


def _find_everywhere(rule: TokenRule, data: bytes) -> Iterator[Span]:
    """Spans of one format in the whole text."""
    matcher = compile_pattern(rule.pattern)
    for match in _matches(matcher, data):
        start, end = match.span(1)
        if start >= 0 and _is_secret(rule, data[start:end]):
            yield _span(rule, start, end)


def _span(rule: TokenRule, start: int, end: int) -> Span:
    """The find of one format."""
    kind = rule.kind or rule.id
    return Span(start, end, kind, rule.id)


def _find_near(rule: TokenRule, data: bytes, places: Sequence[int]) -> list[Span] | None:
    """Spans around places; None when a match reaches the edge of what was looked at, so that
    all has to be.
    """
    found: list[Span] = []
    size = len(data)
    seen_up_to = 0
    for place in places:
        if place < seen_up_to:
            continue
        start = max(seen_up_to, place - _BEFORE)
        end = min(size, place + _AFTER)
        spans = _find_between(rule, data, start, end)
        if spans is None:
            return None
        found.extend(spans)
        if end == size:
            seen_up_to = place + 1
        else:
            # what is to come may begin within reach of the end
            seen_up_to = place + _AFTER - _BEFORE
    return found


def _find_between(rule: TokenRule, data: bytes, start: int, end: int) -> list[Span] | None:
    """Spans between two places; None when a match reaches one that is no end of the text."""
    found: list[Span] = []
    matcher = compile_pattern(rule.pattern)
    for match in _matches(matcher, data[start:end]):
        # a service account's file of 3,000 bytes goes on beyond both
        if start > 0 and match.start() == 0:
            return None
        if end < len(data) and start + match.end() >= end:
            return None
        value_start, value_end = match.span(1)
        value_start += start
        value_end += start
        value = data[value_start:value_end]
        if _is_secret(rule, value):
            found.append(_span(rule, value_start, value_end))
    return found


def _matches(matcher: Matcher, data: bytes) -> Iterator[MatchLike]:
    """All matches; what ends one may be what the next one begins with."""
    # "ghp_...,ghp_...": the comma ends the first, and the second begins behind it
    at = 0
    spend(2 + (len(data) >> 10))
    while (match := next(matcher.finditer(data, at), None)) is not None:
        spend(MATCH + (match.end() - match.start()) // 8)
        yield match
        has_value = match.start(1) >= 0
        at = match.end(1) if has_value else match.end()


@cache
def token_detector(*, joined_only: bool = False) -> TokenDetector:
    """The detector of this process; it is never changed, and its index of keywords takes a while to
    make.

    Args:
        joined_only: only the formats that are looked for across line breaks, too.
    """
    return TokenDetector(joined_only=joined_only)


def find_tokens(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of all known formats."""
    return token_detector().find(data, lowered)


def _is_secret(rule: TokenRule, value: bytes) -> bool:
    """Whether what has a format is a secret: no filler, no documented example, no word."""
    spend(MATCH)
    if rule.filler and is_filler(value):
        return False
    # "ghp_your_token_goes_here"
    if rule.filler and is_stand_in(value) and reads_like_words(value):
        return False
    # AKIAIOSFODNN7EXAMPLE
    if value.endswith(b"EXAMPLE") and rule.id == "aws_access_key":
        return False
    if rule.digit and not has_digit(value) and reads_like_words(value):
        return False
    # a key that a provider's documentation prints
    digest = hashlib.sha256(value).hexdigest()
    if digest[:_DIGEST_CHARS] in _examples():
        return False
    if not rule.entropy:
        return True
    beginning = value[:_MOST_ENTROPY_BYTES]
    return entropy(beginning) >= rule.entropy


DETECTOR: Final = BuiltIn(find=find_tokens)
