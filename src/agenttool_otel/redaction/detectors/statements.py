"""Credentials that stand at a known place, or apart from their name: the statements of
``statements.toml``.

``IDENTIFIED BY '...'``, ``HTTPBasicAuth('user', '...')``; ``- name: DB_PASSWORD`` with ``value:
...`` on the next line, ``<property name="password">...</property>``; and all values of a Kubernetes
Secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction.detectors.encoded import decode_text
from agenttool_otel.redaction.detectors.keywords import KeywordIndex
from agenttool_otel.redaction.keys import classify, fits_class, is_label, is_service, kind_of_key
from agenttool_otel.redaction.patterns import MatchLike, find_all
from agenttool_otel.redaction.plausibility import has_digit, is_code, is_template, plausible_token
from agenttool_otel.redaction.types import Span
from agenttool_otel.redaction.words import reads_like_words
from agenttool_otel.values.tables import load_table, row_of

_TABLE: Final = load_table(__package__, "statements.toml")
_FREQUENT: Final = frozenset(word.encode() for word in _TABLE["frequent"])
"""Keywords that any text is full of: they are asked for one by one."""
_LINES: Final = re.compile(r"(?:^|\n)\s*")
_MIXED: Final = re.compile(rb"[A-Za-z].*\d|\d.*[A-Za-z]")
_MANIFEST: Final = r"(?m)^(?:data|stringData):[ \t]*\r?\n((?:[ \t]+[^\r\n]*(?:\r?\n|\z))+)"
_KIND_SECRET: Final = re.compile(rb"(?m)^kind:[ \t]*[\"']?Secret[\"']?[ \t]*(?:#.*)?\r?$")
_DOCUMENT_START: Final = re.compile(rb"(?m)^(?=---)")
_MANIFEST_VALUE: Final = re.compile(rb"(?m)^[ \t]+[\w.\-]+:[ \t]+[\"']?([^\s\"'|>][^\r\n\"']*)")


class Statement(NamedTuple):
    """One place where a credential stands."""

    id: str  # stable name
    keywords: tuple[bytes, ...]  # lower-case literals, one of which occurs in every match
    pattern: str  # RE2; group 1 is what has to go, or the name of what group 2 or 3 holds
    kind: str = "password"  # low-cardinality kind
    prefilter: str = ""  # RE2; what a text has in it where a match could stand; empty: the keywords
    likely: bool = False  # whether the value itself must look machine-made
    # whether it must have letters and digits, or letters that don't read like words
    mixed: bool = False
    named: bool = False  # whether group 1 is a name
    decoded: bool = False  # whether what the value decodes to must fit


@lru_cache(maxsize=1)
def load_statements() -> tuple[Statement, ...]:
    """The statements of ``statements.toml``, with their macros expanded."""
    return tuple(_statement(row) for row in _TABLE["statement"])


def _statement(row: dict[str, Any]) -> Statement:
    expanded = {field: row.get(field, "") for field in ("pattern", "prefilter")}
    for macro, meaning in _TABLE["macros"].items():
        expanded = {field: text.replace(macro, meaning) for field, text in expanded.items()}
    return row_of(
        Statement, {**row, **{field: _LINES.sub("", text) for field, text in expanded.items()}}
    )


@lru_cache(maxsize=2)
def _by_keyword(named: bool) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for index, item in enumerate(load_statements()):
        for word in item.keywords if item.named is named else ():
            found.setdefault(word, []).append(index)
    return found


@lru_cache(maxsize=2)
def _keywords(named: bool) -> KeywordIndex:
    return KeywordIndex(_by_keyword(named), frequent=_FREQUENT)


def find_in_statements(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of values at known places, without their quotes."""
    for statement, match in _matches(data, lowered, named=False):
        start, end = match.span(1)
        if _fits(statement, data[start:end]):
            yield Span(start, end, statement.kind, "statement:" + statement.id)


def find_in_pairs(data: bytes, lowered: bytes) -> Iterable[Span]:
    """Spans of values that stand apart from their name, and of those of a Kubernetes Secret."""
    for statement, match in _matches(data, lowered, named=True):
        start, end = match.span(2)
        if start < 0:
            start, end = match.span(3)
            if is_code(data[start:end]) and not has_digit(data[start:end]):
                continue
        name, value = match.group(1).decode(), data[start:end]
        found = classify(name)
        if _fits(statement, value) and fits_class(found, value, service=is_service(name)):
            yield Span(start, end, kind_of_key(found), "pair:" + found.value)
    if b"kind: secret" in lowered:
        yield from _manifests(data)


def _matches(data: bytes, lowered: bytes, *, named: bool) -> Iterator[tuple[Statement, MatchLike]]:
    by_keyword = _by_keyword(named)
    present = {index for word in _keywords(named).hits(lowered) for index in by_keyword[word]}
    for statement in map(load_statements().__getitem__, sorted(present)):
        for match in find_all(statement.pattern, data):
            yield statement, match


def _fits(statement: Statement, value: bytes) -> bool:
    value = (decode_text(value) or value) if statement.decoded else value
    if is_template(value) or is_label(value):
        return False
    letters = value.translate(None, b" -")
    if statement.mixed and (
        reads_like_words(letters) if letters.isalpha() else not _MIXED.search(value)
    ):
        return False
    return not statement.likely or (
        has_digit(value) and plausible_token(value, least=6, quoted=True)
    )


def _manifests(data: bytes) -> Iterable[Span]:
    """All values of a Kubernetes Secret in YAML."""
    first = 0
    for document in _DOCUMENT_START.split(data):
        if _KIND_SECRET.search(document) is not None:
            for block in find_all(_MANIFEST, document):
                start = first + block.start(1)
                for line in _MANIFEST_VALUE.finditer(block.group(1)):
                    if not is_template(line.group(1)):
                        yield Span(
                            start + line.start(1),
                            start + line.end(1),
                            "credential",
                            "kubernetes:secret",
                        )
        first += len(document)
