"""Results as plain JSON data: what ``to_json_value`` makes of a value, with objects of libraries
read at every depth.

A result is for reading, so what is missing is ``null`` (also a float that is not a number), and a
key of several parts is a list (``["north", 2026]``), as JSON text.
"""

from __future__ import annotations

from math import isnan
from typing import Any, Final

from agenttool_otel.results.content.libraries import IMAGE, Items, View, is_complete, library_type
from agenttool_otel.values.conversion import (
    DEFAULT_MAX_CHARS,
    DEFAULT_MAX_DEPTH,
    DEFAULT_MAX_NODES,
    Converter,
    JsonLike,
    to_json_value,
    to_whole_json,
)
from agenttool_otel.values.inspection import Kind, kind_of

_KEY_DEPTH: Final = 4
_KEY_NODES: Final = 64
_KEY_CHARS: Final = 4096
_MAX_IMAGES: Final = 20
NO_LIMIT: Final = 1 << 62
_READ: Final = frozenset({Kind.OPAQUE, Kind.SEQUENCE, Kind.NUMPY_SCALAR})
"""Kinds of which a library's object may be: a named tuple is a sequence, a row of a structured
array a scalar.
"""


def opened(value: Any, view: View) -> Any:
    """Return the content of a library's object as Python data, and any other value as it is."""
    while kind_of(value) in _READ:
        known = library_type(value)
        if known is None:
            return value
        value = known.data(value, view)
        # a list of cells is content: its items are opened when they are reached
        if type(value) in (list, tuple):
            return value
    return value


class Shown(Converter):
    """Converts for ``shown_json``: the first rows and items."""

    view = View()

    def __init__(
        self, max_depth: int, max_nodes: int, max_chars: int, *, watch: bool = False
    ) -> None:
        super().__init__(max_depth, max_nodes, max_chars, watch=watch)
        self.images: list[Any] = []

    def _opened(self, value: Any) -> tuple[Any, Kind]:
        value, kind = super()._opened(value)
        if type(value) is Items:
            return self._made(value), Kind.SEQUENCE
        known = library_type(value) if kind in _READ else None
        if known is None:
            return value, kind
        if known is IMAGE:
            self.images.append(value)
        if self._watch and self.whole:
            self.whole = is_complete(value, known)
        return super()._opened(opened(value, self.view))

    def _made(self, items: Items) -> list[Any]:
        made = []
        for item in items:
            made.append(item)
            if len(made) > self._nodes:
                break
        return made

    def _leaf_unguarded(self, value: Any, kind: Kind) -> JsonLike:
        # pandas writes a missing cell of a column of floats as NaN
        if kind is Kind.FLOAT and isnan(float.__float__(value)):
            return None
        return super()._leaf_unguarded(value, kind)

    def _container_key(self, key: Any) -> JsonLike:
        # a frame's column ("north", 2026) is a key of two parts
        part = type(self)(_KEY_DEPTH, _KEY_NODES, _KEY_CHARS, watch=self._watch)
        found = part.convert(key)
        self.whole = self.whole and part.whole
        return found


class _Whole(Shown):
    """All rows and items."""

    view = View(whole=True)


class _Read(Shown):
    """All rows and items, each cell with the name of its column; named tuples as the lists that
    pointers count in.
    """

    view = View(whole=True, records=True)


class _Captured(Shown):
    """The first rows and items, each cell with the name of its column, by which a redactor
    finds it.
    """

    view = View(records=True)

    def _leaf_unguarded(self, value: Any, kind: Kind) -> JsonLike:
        if kind is Kind.BYTES:
            return "[omitted:bytes]"
        return super()._leaf_unguarded(value, kind)


def shown_json(value: Any) -> JsonLike:
    """Return a result as JSON data for a model: of frames and arrays the first rows."""
    return to_json_value(value, converter=Shown)


def shown_with_images(value: Any) -> tuple[JsonLike, list[Any]]:
    """Return the same, and the images that are in it."""
    converter = Shown(DEFAULT_MAX_DEPTH, DEFAULT_MAX_NODES, DEFAULT_MAX_CHARS)
    data = converter.convert(value)
    return data, converter.images[:_MAX_IMAGES]


def captured_json(value: Any) -> JsonLike:
    """Return a result as JSON data for those who look at the call, once it is redacted."""
    return to_json_value(value, converter=_Captured)


def redactable_json(value: Any) -> JsonLike:
    """Return a result as JSON data in which a redactor finds what there is to find."""
    return to_json_value(value, converter=_Read)


def whole_json(value: Any) -> JsonLike:
    """Return a result as JSON data with all its rows and texts."""
    return to_json_value(value, max_chars=NO_LIMIT, converter=_Whole)


def read_json(value: Any) -> tuple[JsonLike, bool]:
    """Return a result as JSON data of whatever size, and whether that is all of it
    (``to_whole_json``).
    """
    return to_whole_json(value, _Read)
