"""A result as data that redaction can read, or the knowledge that it can't be read: no obligation is met unseen.

An iterator, an open file, an object of the caller's own, a data frame, binary content: nobody knows what they hold
without consuming or running them. Redaction that is obliged withholds them; inside a container, a tag stands for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agenttool_otel.records.conversion import to_whole_json
from agenttool_otel.records.inspection import Kind, kind_of

__all__ = ["Reading", "is_measured", "read"]

_CONTAINERS = frozenset({Kind.MAPPING, Kind.SEQUENCE, Kind.SET, Kind.DATACLASS, Kind.MODEL})


def _as_it_is(data: Any) -> Any:
    return data


def _encoded(data: Any) -> Any:
    return data.encode("utf-8") if type(data) is str else data


@dataclass(frozen=True, slots=True)
class Reading:
    """What of a value can be read.

    Attributes:
        data: plain JSON data or a text.
        whole: whether that is all of the value; if not, only the data may be passed on.
        restore: makes what a caller expects of cleaned data: bytes again, where they were bytes.
    """

    data: Any
    whole: bool = True
    restore: Callable[[Any], Any] = _as_it_is


def read(value: Any) -> Reading | None:
    """Read a value without running its code; ``None`` for one of which nothing but its class can be known.

    Args:
        value: what a tool returned.
    """
    if type(value) is str:
        return Reading(value)
    kind = kind_of(value)
    if kind is Kind.BYTES:
        try:
            return Reading(bytes(value).decode("utf-8"), restore=_encoded)
        except UnicodeDecodeError:
            return None  # an image, an archive: a text redactor sees nothing in it
    data, whole = to_whole_json(value)
    if not whole and kind is not Kind.TEXT and kind not in _CONTAINERS:
        return None
    return Reading(data, whole)


def is_measured(value: Any, size: int | None) -> bool:
    """Tell whether a consumer can get no more out of a value than its size says: an iterator in a list is one tag.

    Args:
        value: what a tool returned.
        size: its measured size.
    """
    if size is None:
        return False
    kind = kind_of(value)
    # arrays and data frames are opaque, but say how much they hold
    return kind in (Kind.TEXT, Kind.BYTES, Kind.OPAQUE) or to_whole_json(value)[1]
