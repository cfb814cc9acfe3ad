"""What a field of a record should be: a value, or what finds it in another place of the same
situation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from situations import Situation, World

from agenttool_otel.records.base import JsonObject

VERSION = {"schema_version": "0.2.0"}


class Between:
    """Equals each time, as RFC 3339, that lies between two others."""

    def __init__(self, earliest: str | datetime, latest: str | datetime) -> None:
        self._bounds = [_moment(earliest), _moment(latest)]

    def __eq__(self, other: object) -> bool:
        earliest, latest = self._bounds
        return isinstance(other, str) and earliest <= _moment(other) <= latest

    def __repr__(self) -> str:
        return " to ".join(map(str, self._bounds))

    __hash__ = None  # type: ignore[assignment]


def _moment(time: str | datetime) -> datetime:
    return time if isinstance(time, datetime) else datetime.fromisoformat(time)


class Like:
    """Equals each text that a pattern matches."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and re.fullmatch(self._pattern, other) is not None

    def __repr__(self) -> str:
        return self._pattern

    __hash__ = None  # type: ignore[assignment]


class AtMost:
    """Equals each number up to a limit."""

    def __init__(self, limit: float) -> None:
        self._limit = limit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and 0 <= other <= self._limit

    def __repr__(self) -> str:
        return f"at most {self._limit}"

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class View:
    """A record of one situation, and what its fields should be.

    Attributes:
        kind: the record's kind.
        situation: where it is from.
        record: finds it.
        fields: by name of a field its value, or a function that makes it of the situation.
    """

    kind: str
    situation: Situation
    record: Callable[[World], JsonObject]
    fields: Mapping[str, Any]

    def expected(self, field: str) -> Any:
        """Return what a field should be."""
        value = self.fields[field]
        return value(self.situation()) if callable(value) else value


def view(
    kind: str,
    situation: Situation,
    record: Callable[[World], JsonObject] | None = None,
    **fields: Any,
) -> View:
    """Make the view of a record: the last one of its kind where none is named."""
    return View(kind, situation, record or (lambda world: world.record(kind)), fields)


def of(kind: str, field: str, **which: Any) -> Callable[[World], Any]:
    """Return what finds a field of another record."""
    return lambda world: world.record(kind, **which)[field]


def inv(world: World) -> str:
    """Return the id that the caller got with the result."""
    return world.result.invocation_id


def permission(world: World) -> JsonObject:
    """Return the decision that the caller got with the result."""
    return world.result.permission or {}


def envelope(world: World) -> JsonObject:
    """Return the result as the caller got it."""
    return world.result.to_json_object()


def during(world: World) -> Between:
    """Equals the times of the whole situation."""
    return Between(world.began, world.ended)
