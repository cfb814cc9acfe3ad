"""Credentials that stand at a known place: the statements of ``statements.toml``.

``IDENTIFIED BY '...'``, ``ConvertTo-SecureString '...'``, ``HTTPBasicAuth('user', '...')``, ``AUTH ...``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Any, Final, NamedTuple

from agenttool_otel.redaction import inert
from agenttool_otel.redaction.keywords import KeywordIndex
from agenttool_otel.redaction.patterns import compile_pattern
from agenttool_otel.redaction.types import Engine, Span

__all__ = ["Statement", "StatementDetector", "load_statements"]

_FREQUENT: Final = frozenset(
    (b"pass", b"password", b"pw", b"secret", b"token", b"api", b"auth", b"net ", b"user ", b"element")
)
_MACROS: Final = (
    ("<T>", r"\\{0,3}[\"']([^\"'\r\n\\]{1,256})\\{0,3}[\"']"),
    ("<Q>", r"\\{0,3}[\"']"),
)


class Statement(NamedTuple):
    """One place where a credential stands.

    Attributes:
        id: stable name.
        kind: low-cardinality kind.
        keywords: lower-case literals, one of which occurs in every match.
        pattern: RE2; group 1 is what has to go.
        likely: whether the value itself must look machine-made.
    """

    id: str
    kind: str
    keywords: tuple[bytes, ...]
    pattern: str
    likely: bool


@lru_cache(maxsize=1)
def load_statements() -> tuple[Statement, ...]:
    """The statements of ``statements.toml``, with their macros expanded."""
    text = resources.files(__package__).joinpath("statements.toml").read_text("utf-8")
    return tuple(_statement(row) for row in tomllib.loads(text)["statement"])


def _statement(row: dict[str, Any]) -> Statement:
    pattern = re.sub(r"(?:^|\n)\s*", "", row["pattern"])
    for macro, meaning in _MACROS:
        pattern = pattern.replace(macro, meaning)
    return Statement(
        id=row["id"],
        kind=row.get("kind", "password"),
        keywords=tuple(word.encode() for word in row["keywords"]),
        pattern=pattern,
        likely=row.get("likely", False),
    )


class StatementDetector:
    """Finds credentials by their place."""

    name = "statements"

    def __init__(self, engine: Engine) -> None:
        self._statements = tuple((item, compile_pattern(item.pattern, engine)) for item in load_statements())
        words = {word for item in load_statements() for word in item.keywords}
        self._keywords = KeywordIndex(words, engine, frequent=_FREQUENT)

    def find(self, data: bytes, lowered: bytes) -> Iterable[Span]:
        """Spans of values, without their quotes."""
        present = self._keywords.hits(lowered).keys()
        for statement, matcher in self._statements:
            if not present.isdisjoint(statement.keywords):
                for match in matcher.finditer(data):
                    start, end = match.span(1)
                    if _fits(statement, data[start:end]):
                        yield Span(start, end, statement.kind, "statement:" + statement.id)


def _fits(statement: Statement, value: bytes) -> bool:
    if inert.is_template(value):
        return False
    return not statement.likely or (inert.has_digit(value) and inert.plausible_token(value, least=6, quoted=True))
