"""Credentials at a known place of a statement, a call, a command line, a file or a sentence.

``IDENTIFIED BY '...'``, ``HTTPBasicAuth('user', '...')``, ``echo ... | docker login
--password-stdin``. The places are in ``known_places``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from agenttool_otel.redaction.detectors.built_in import BuiltIn
from agenttool_otel.redaction.detectors.encoded import decode_text
from agenttool_otel.redaction.detectors.keywords import KeywordIndex
from agenttool_otel.redaction.detectors.known_places import (
    browsers,
    clouds,
    codes,
    commands,
    databases,
    devices,
    files,
    names_and_values,
    other_languages,
    program_output,
    protocols,
    sentences,
    source_calls,
    wallets,
    windows,
)
from agenttool_otel.redaction.detectors.known_places.statement import Statement
from agenttool_otel.redaction.keys import is_label
from agenttool_otel.redaction.patterns import MatchLike, find_all
from agenttool_otel.redaction.plausibility import has_digit, is_template, plausible_token
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words

STATEMENTS: Final = (
    *databases.STATEMENTS,
    *commands.STATEMENTS,
    *windows.STATEMENTS,
    *source_calls.STATEMENTS,
    *browsers.STATEMENTS,
    *protocols.STATEMENTS,
    *devices.STATEMENTS,
    *clouds.STATEMENTS,
    *files.STATEMENTS,
    *program_output.STATEMENTS,
    *sentences.STATEMENTS,
    *codes.STATEMENTS,
    *wallets.STATEMENTS,
    *other_languages.STATEMENTS,
    *names_and_values.STATEMENTS,
)
"""All places, in the order in which they are looked for."""

_FREQUENT: Final = frozenset(
    (
        b" ",
        b" set ",
        b'("',
        b"('",
        b"-token",
        b": >",
        b": |",
        b"api",
        b"arg ",
        b"auth",
        b"cat ",
        b"code",
        b"credential",
        b"data ",
        b"echo ",
        b"element",
        b"env ",
        b"get secret",
        b"login",
        b"net ",
        b"open(",
        b"output ",
        b"pass",
        b"password",
        b"password ",
        b"pin",
        b"pw",
        b"secret",
        b"token",
        b"user",
        b"user ",
        b"value",
    )
)
"""Keywords that any text is full of: they are asked for one by one."""
_LETTER_AND_DIGIT: Final = re.compile(rb"[A-Za-z].*\d|\d.*[A-Za-z]")


@lru_cache(maxsize=2)
def _by_keyword(named: bool) -> dict[bytes, list[int]]:
    """The places (as indexes of ``STATEMENTS``) of each keyword."""
    found: dict[bytes, list[int]] = {}
    for index, statement in enumerate(STATEMENTS):
        if statement.named is not named:
            continue
        for word in statement.keywords:
            found.setdefault(word.encode(), []).append(index)
    return found


@lru_cache(maxsize=2)
def keyword_index(named: bool) -> KeywordIndex:
    """The index of the keywords of one kind of places; made once, because it takes a while.

    Args:
        named: those with a name beside the value, or those without.
    """
    return KeywordIndex(_by_keyword(named), frequent=_FREQUENT)


def matches(data: bytes, lowered: bytes, *, named: bool) -> Iterator[tuple[Statement, MatchLike]]:
    """All matches of one kind of places.

    Args:
        data: the text.
        lowered: the same in lower case.
        named: the places with a name beside the value, or those without.
    """
    by_keyword = _by_keyword(named)
    present: set[int] = set()
    for word in keyword_index(named).hits(lowered):
        present.update(by_keyword[word])
    for index in sorted(present):
        statement = STATEMENTS[index]
        for match in find_all(statement.pattern, data):
            yield statement, match


def fits(statement: Statement, value: bytes) -> bool:
    """Whether what stands at a place looks as a credential there has to look."""
    # echo aHVudGVyMg== | base64 -d
    if statement.decoded:
        value = decode_text(value) or value
    if is_template(value) or is_label(value):
        return False
    if statement.mixed and not _is_mixed(value):
        return False
    if statement.likely:
        return has_digit(value) and plausible_token(value, least=6, quoted=True)
    return True


def _is_mixed(value: bytes) -> bool:
    """Whether a value has letters and digits, or letters that do not read like words."""
    # "abcd efgh ijkl mnop" of an app password
    letters = value.translate(None, b" -")
    if letters.isalpha():
        return not reads_like_words(letters)
    return _LETTER_AND_DIGIT.search(value) is not None


def find_in_statements(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of values at known places, without their quotes."""
    for statement, match in matches(data, lowered, named=False):
        start, end = match.span(1)
        if fits(statement, data[start:end]):
            yield Span(start, end, statement.kind, "statement:" + statement.id)


DETECTOR: Final = BuiltIn(find=find_in_statements)
