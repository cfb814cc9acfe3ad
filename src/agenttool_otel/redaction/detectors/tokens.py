"""Documented token formats: the rules of ``rules.toml``, each behind its keywords."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction.detectors.keywords import KeywordIndex
from agenttool_otel.redaction.patterns import MATCH, Matcher, MatchLike, compile_pattern
from agenttool_otel.redaction.plausibility import entropy, has_digit, is_filler, is_stand_in
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words
from agenttool_otel.redaction.work import spend
from agenttool_otel.values.tables import load_table, row_of

_WINDOW: Final = 4096
_BEFORE: Final = 256
_AFTER: Final = 1536


class TokenRule(NamedTuple):
    """One format."""

    id: str  # stable name
    kind: str  # low-cardinality kind
    keywords: tuple[bytes, ...]  # lower-case literals, one of which occurs in every match
    pattern: str  # RE2; group 1 is what has to go
    entropy: float = 0.0  # least entropy of group 1, in bits per byte
    filler: bool = True  # whether matches made of x, stars and alphabets are dropped as examples
    joined: bool = False  # whether it is distinctive enough to be looked for across line breaks
    # whether a match without a digit must not read like words, because names have the same shape
    digit: bool = False


@cache
def load_rules() -> tuple[TokenRule, ...]:
    """The rules of ``rules.toml``, with its macros expanded."""
    table = load_table(__package__, "rules.toml")
    return tuple(_rule(row, table["macros"]) for row in table["rule"])


def _rule(row: dict[str, Any], macros: dict[str, str]) -> TokenRule:
    pattern = row["pattern"]
    for macro, meaning in macros.items():
        pattern = pattern.replace(macro, meaning)
    return row_of(TokenRule, {"kind": row["id"], **row, "pattern": pattern})


@cache
def _examples() -> frozenset[str]:
    rows = load_table(__package__, "examples.toml")["example"]
    return frozenset(digest for row in rows for digest in row["sha256"])


class TokenDetector:
    """Finds documented token formats. A rule is compiled when its keyword is first seen."""

    def __init__(self, *, joined_only: bool = False) -> None:
        """Choose the rules."""
        self._rules = tuple(rule for rule in load_rules() if rule.joined or not joined_only)
        words = {word for rule in self._rules for word in rule.keywords}
        self.keywords = KeywordIndex(words)
        self._by_keyword = {
            word: tuple(i for i, rule in enumerate(self._rules) if word in rule.keywords)
            for word in words
        }

    def active(self, lowered: bytes) -> list[tuple[TokenRule, list[int] | None]]:
        """Rules whose keyword occurs, in their order, and where it does; None: look everywhere."""
        wanted: dict[int, list[int] | None] = {}
        for word, places in self.keywords.hits(lowered).items():
            for index in self._by_keyword[word]:
                before = wanted.get(index, [])
                wanted[index] = None if before is None or places is None else before + places
        return [(self._rules[index], wanted[index]) for index in sorted(wanted)]

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of all known formats."""
        for rule, places in self.active(lowered):
            near = (
                None
                if places is None or len(data) < _WINDOW
                else self._near(rule, data, sorted(places))
            )
            yield from self.apply(rule, data) if near is None else near

    def apply(self, rule: TokenRule, data: bytes) -> Iterator[Span]:
        """Spans of one format."""
        for match in _matches(compile_pattern(rule.pattern), data):
            start, end = match.span(1)
            if start >= 0 and _is_secret(rule, data[start:end]):
                yield Span(start, end, rule.kind, rule.id)

    def _near(self, rule: TokenRule, data: bytes, places: list[int]) -> list[Span] | None:
        """Spans around places; None when a match touches the edge of what was looked at, so that
        all has to be.
        """
        found: list[Span] = []
        size = len(data)
        matcher = compile_pattern(rule.pattern)
        upto = 0
        for place in places:
            if place < upto:
                continue
            start, end = max(upto, place - _BEFORE), min(size, place + _AFTER)
            for match in _matches(matcher, data[start:end]):
                if (match.start() == 0 and start) or (start + match.end() >= end and end < size):
                    return None
                first, last = match.span(1)
                if _is_secret(rule, data[start + first : start + last]):
                    found.append(Span(start + first, start + last, rule.kind, rule.id))
            upto = max(upto, place + 1) if end == size else place + _AFTER - _BEFORE
        return found


def _matches(matcher: Matcher, data: bytes) -> Iterator[MatchLike]:
    """All matches; what ends one may be what the next one begins with."""
    at = 0
    spend(2 + (len(data) >> 10))
    while (match := next(matcher.finditer(data, at), None)) is not None:
        spend(MATCH + (match.end() - match.start()) // 8)
        yield match
        at = match.end(1) if match.start(1) >= 0 else match.end()


@cache
def token_detector(*, joined_only: bool = False) -> TokenDetector:
    """The detector of this process; it is never changed, and its index of keywords takes a while to
    make.
    """
    return TokenDetector(joined_only=joined_only)


def find_tokens(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of all known formats."""
    return token_detector().find(data, lowered)


def _is_secret(rule: TokenRule, value: bytes) -> bool:
    spend(MATCH)
    if rule.filler and (is_filler(value) or (is_stand_in(value) and reads_like_words(value))):
        return False
    if value.endswith(b"EXAMPLE") and rule.id == "aws_access_key":
        return False
    if rule.digit and not has_digit(value) and reads_like_words(value):
        return False
    if hashlib.sha256(value).hexdigest()[:32] in _examples():
        return False
    return not rule.entropy or entropy(value[:1024]) >= rule.entropy
