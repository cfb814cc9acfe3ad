"""Credentials that stand at a known place, or apart from their name: the statements of ``statements.toml``.

``IDENTIFIED BY '...'``, ``HTTPBasicAuth('user', '...')``; ``- name: DB_PASSWORD`` with ``value: ...`` on the next line,
``<property name="password">...</property>``; and all values of a Kubernetes Secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from agenttool_otel.redaction.detectors.keywords import KeywordIndex
from agenttool_otel.redaction.keys import classify, fits_class, is_service, kind_of_key
from agenttool_otel.redaction.patterns import MatchLike, find_all
from agenttool_otel.redaction.plausibility import has_digit, is_template, plausible_token
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words
from agenttool_otel.values.tables import load_table, row_of

_FREQUENT: Final = frozenset((
    b" ", b" set ", b": >", b": |", b"api", b"arg ", b"auth", b"code", b"credential", b"data ", b"element", b"env ",
    b"get secret", b"login", b"net ", b"output ", b"pass", b"password", b"password ", b"pin", b"pw", b"secret",
    b"token", b"user", b"user ", b"value",
))  # fmt: skip
"""Keywords that any text is full of: they are asked for one by one."""
_MACROS: Final = (
    ("<T>", r"\\{0,3}[\"']([^\"'\r\n\\]{1,256})\\{0,3}[\"']"),
    ("<Q>", r"\\{0,3}[\"']"),
    ("<N>", r"([A-Za-z_][\w.:\-]{1,63})"),
)
_MIXED: Final = re.compile(rb"[A-Za-z].*\d|\d.*[A-Za-z]")
_MANIFEST: Final = r"(?m)^(?:data|stringData):[ \t]*\r?\n((?:[ \t]+[^\r\n]*(?:\r?\n|\z))+)"
_KIND_SECRET: Final = re.compile(rb"(?m)^kind:[ \t]*[\"']?Secret[\"']?[ \t]*(?:#.*)?\r?$")
_DOCUMENT_START: Final = re.compile(rb"(?m)^(?=---)")
_MANIFEST_VALUE: Final = re.compile(rb"(?m)^[ \t]+[\w.\-]+:[ \t]+[\"']?([^\s\"'|>][^\r\n\"']*)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One place where a credential stands."""

    id: str  # stable name
    keywords: tuple[bytes, ...]  # lower-case literals, one of which occurs in every match
    pattern: str  # RE2; group 1 is what has to go, or the name of what group 2 or 3 holds
    kind: str = "password"  # low-cardinality kind
    prefilter: str = ""  # RE2; what a text has in it where a match could stand; empty: the keywords
    likely: bool = False  # whether the value itself must look machine-made
    mixed: bool = False  # whether it must have letters and digits, or letters that don't read like words
    named: bool = False  # whether group 1 is a name


@lru_cache(maxsize=1)
def load_statements() -> tuple[Statement, ...]:
    """The statements of ``statements.toml``, with their macros expanded."""
    return tuple(_statement(row) for row in load_table(__package__, "statements.toml")["statement"])


def _statement(row: dict[str, Any]) -> Statement:
    pattern = re.sub(r"(?:^|\n)\s*", "", row["pattern"])
    for macro, meaning in _MACROS:
        pattern = pattern.replace(macro, meaning)
    return row_of(Statement, {**row, "pattern": pattern})


@lru_cache(maxsize=2)
def _keywords(named: bool) -> KeywordIndex:
    words = (word for item in load_statements() if item.named is named for word in item.keywords)
    return KeywordIndex(words, frequent=_FREQUENT)


def find_in_statements(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of values at known places, without their quotes."""
    for statement, match in _matches(data, lowered, named=False):
        start, end = match.span(1)
        if _fits(statement, data[start:end]):
            yield Span(start, end, statement.kind, "statement:" + statement.id)


def find_in_pairs(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of values that stand apart from their name, and of those of a Kubernetes Secret."""
    for _, match in _matches(data, lowered, named=True):
        start, end = match.span(2)
        if start < 0:
            start, end = match.span(3)
        name, value = match.group(1).decode(), data[start:end]
        found = classify(name)
        if fits_class(found, value, service=is_service(name)):
            yield Span(start, end, kind_of_key(found), "pair:" + found.value)
    if b"kind: secret" in lowered:
        yield from _manifests(data)


def _matches(data: bytes, lowered: bytes, *, named: bool) -> Iterator[tuple[Statement, MatchLike]]:
    present = _keywords(named).hits(lowered).keys()
    for statement in load_statements():
        if statement.named is named and not present.isdisjoint(statement.keywords):
            for match in find_all(statement.pattern, data):
                yield statement, match


def _fits(statement: Statement, value: bytes) -> bool:
    if is_template(value):
        return False
    letters = value.translate(None, b" -")
    if statement.mixed and (reads_like_words(letters) if letters.isalpha() else not _MIXED.search(value)):
        return False
    return not statement.likely or (has_digit(value) and plausible_token(value, least=6, quoted=True))


def _manifests(data: bytes) -> Iterable[Span]:
    """All values of a Kubernetes Secret in YAML."""
    first = 0
    for document in _DOCUMENT_START.split(data):
        if _KIND_SECRET.search(document) is not None:
            for block in find_all(_MANIFEST, document):
                start = first + block.start(1)
                for line in _MANIFEST_VALUE.finditer(block.group(1)):
                    if not is_template(line.group(1)):
                        yield Span(start + line.start(1), start + line.end(1), "credential", "kubernetes:secret")
        first += len(document)
