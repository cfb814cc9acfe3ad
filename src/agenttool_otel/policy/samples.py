"""Made-up policy inputs, for checking one form of an engine against another when a bundle is loaded.

They are built from the contract's types, and their strings mostly are words that the policy itself
compares with, so that they reach many of its branches. The same bundle gets the same inputs each
time.
"""

from __future__ import annotations

import functools
import random
import types
from typing import Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

from agenttool_otel.policy.rego.syntax import Program, literals_of
from agenttool_otel.policy.types import PolicyInput

_hints: Final = functools.cache(get_type_hints)
_MAX_WORD_CHARS: Final = 40
_TEXTS: Final = ("", "a", "x.y", "/etc/passwd", "é", "read_file", "1")


def words_of(program: Program) -> list[str]:
    """Return the string literals of a program, as far as they are short."""
    return sorted(word for word in literals_of(program) if len(word) <= _MAX_WORD_CHARS)


def sample_documents(program: Program, count: int) -> list[PolicyInput]:
    """Make documents that fit the input's schema."""
    maker = _Maker(random.Random(count), [*_TEXTS, *words_of(program)])  # noqa: S311 - nothing secret about it
    return [maker.document() for _ in range(count)]


class _Maker:
    def __init__(self, source: random.Random, words: list[str]) -> None:
        self._random = source
        self._words = words

    def document(self) -> PolicyInput:
        document: PolicyInput = self._value(PolicyInput)
        document["schema_version"] = "0.2.0"
        document["time"] = "2026-01-01T00:00:00Z"
        arguments = self._random.randrange(3)
        document["input"] = {self._word(): self._json(2) for _ in range(arguments)}
        return document

    def _word(self) -> str:
        return self._random.choice(self._words)

    def _value(self, annotation: Any) -> Any:
        if is_typeddict(annotation):
            return self._object(annotation)
        origin = get_origin(annotation)
        args = get_args(annotation)
        if origin in (Union, types.UnionType):
            return self._value(self._random.choice(args))
        if origin is list:
            count = self._random.choice((0, 0, 1, 2))
            return [self._value(args[0]) for _ in range(count)]
        if origin is dict:
            count = self._random.choice((0, 1, 2))
            return {self._word(): self._value(args[1]) for _ in range(count)}
        if annotation is Any:
            return self._json(2)
        if annotation is str:
            return self._word()
        if annotation is bool:
            return self._random.random() < 0.5
        if annotation is int:
            return self._random.choice((0, 1, 2, 10, 1000, 10**9))
        return None

    def _object(self, annotation: Any) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, hint in _hints(annotation).items():
            # "effects" are there in a second decision only
            if name in annotation.__required_keys__ or self._random.random() < 0.5:
                made[name] = self._value(hint)
        return made

    def _json(self, depth: int) -> Any:
        kind = self._random.randrange(7 if depth else 5)
        if kind == 0:
            return None
        if kind == 1:
            return True
        if kind == 2:
            return 3
        if kind == 5:
            return [self._json(depth - 1) for _ in range(2)]
        if kind == 6:
            return {self._word(): self._json(depth - 1)}
        return self._word()
