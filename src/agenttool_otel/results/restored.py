"""A redacted result in the type that its caller expects: what was changed in its data is changed in
a copy of it.

Only values of which the data tells all are copied; no code of their classes is run. Where a part
has another form in the copy than its data has (a number that became a text), the data's form takes
its place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import BaseModel

from agenttool_otel.results.content.libraries import library_type
from agenttool_otel.values.inspection import Kind, kind_of, mapping_items, sequence_items

_NO_LIMIT = 1 << 62


def restored(value: Any, before: Any, after: Any) -> Any:
    """Return a copy of a value in which its data is another; the data itself where no copy can be
    made.

    Args:
        value: what a tool returned; it is left as it is.
        before: its JSON data (``read_json``).
        after: the same, redacted.
    """
    try:
        return _copy(value, before, after)
    except Exception:  # what is put together may have any shape
        return after


def _copy(value: Any, before: Any, after: Any) -> Any:
    if after == before and type(after) is type(before):
        return value
    if type(before) is not type(after):
        return after
    kind = kind_of(value)
    if type(before) is dict and kind in _MEMBERS:
        return _MEMBERS[kind](value, _members(value, kind, before, after))
    if type(before) is list and kind is Kind.SEQUENCE:
        return _sequence(value, list(_items(value, before, after)))
    if type(before) is list and kind is Kind.SET:
        return type(value)(after) if type(value) in (set, frozenset) else after
    if type(before) is dict and library_type(value) is not None:
        make = _LIBRARIES.get(str(before.get("kind")))
        return after if make is None else make(value, before, after)
    return after


def _members(
    value: Any, kind: Kind, before: dict[str, Any], after: dict[str, Any]
) -> dict[Any, Any]:
    pairs = mapping_items(value, kind, _NO_LIMIT)
    if not len(pairs) == len(before) == len(after):
        raise ValueError("not the same members")
    found: dict[Any, Any] = {}
    for (key, item), (old, was), (new, now) in zip(
        pairs, before.items(), after.items(), strict=True
    ):
        found[key if new == old else new] = _copy(item, was, now)
    return found


def _items(value: Any, before: list[Any], after: list[Any]) -> Iterator[Any]:
    for item, was, now in zip(sequence_items(value, _NO_LIMIT), before, after, strict=True):
        yield _copy(item, was, now)


def _sequence(value: Any, items: list[Any]) -> Any:
    cls = type(value)
    if cls in (list, tuple):
        return cls(items)
    return tuple.__new__(cls, items) if issubclass(cls, tuple) else items


def _mapping(value: Any, members: dict[Any, Any]) -> Any:
    return members


def _dataclass(value: Any, members: dict[Any, Any]) -> Any:
    new = object.__new__(type(value))
    for name, item in members.items():
        object.__setattr__(new, name, item)
    return new


def _model(value: BaseModel, members: dict[Any, Any]) -> Any:
    return BaseModel.model_copy(value, update=members)


_MEMBERS: dict[Kind, Callable[[Any, dict[Any, Any]], Any]] = {
    Kind.MAPPING: _mapping,
    Kind.DATACLASS: _dataclass,
    Kind.MODEL: _model,
}


# --- libraries ------------------------------------------------------------------------------------


def _frame(frame: Any, before: dict[str, Any], after: dict[str, Any]) -> Any:
    if any(before[name] != after[name] for name in before if name != "rows"):
        return after
    levels = len(before.get("index", ()))
    names = list(before["rows"][0])
    pandas = sys.modules["pandas"]
    new = frame.copy()
    for place, name in enumerate(names):
        was, now = ([row[name] for row in data["rows"]] for data in (before, after))
        if was == now:
            continue
        if place < levels:
            new.index = _index(new.index, place, was, now)
            continue
        cells = _mixed(frame.iloc[:, place - levels].tolist(), was, now)
        new.isetitem(place - levels, pandas.Series(cells, index=new.index, dtype=object))
    return new


def _series(series: Any, before: dict[str, Any], after: dict[str, Any]) -> Any:
    if any(before[name] != after[name] for name in before if name != "data"):
        return after
    was, now = before["data"], after["data"]
    if type(was) is dict:
        if list(was) != list(now):
            return after
        was, now = list(was.values()), list(now.values())
    cells = _mixed(series.tolist(), was, now)
    return sys.modules["pandas"].Series(cells, index=series.index, name=series.name, dtype=object)


def _ndarray(array: Any, before: dict[str, Any], after: dict[str, Any]) -> Any:
    if (
        array.ndim != 1
        or array.dtype.names is not None
        or any(before[k] != after[k] for k in before if k != "data")
    ):
        return after
    cells = _mixed(array.tolist(), before["data"], after["data"])
    kind = str if array.dtype.kind == "U" else object
    return sys.modules["numpy"].array(cells, dtype=kind)


def _index(index: Any, level: int, was: list[Any], now: list[Any]) -> Any:
    pandas = sys.modules["pandas"]
    if index.nlevels == 1:
        return pandas.Index(_mixed(index.tolist(), was, now), name=index.name, dtype=object)
    levels = [index.get_level_values(place).tolist() for place in range(index.nlevels)]
    levels[level] = _mixed(levels[level], was, now)
    return pandas.MultiIndex.from_arrays(levels, names=index.names)


def _mixed(cells: list[Any], was: list[Any], now: list[Any]) -> list[Any]:
    return [_copy(cell, old, new) for cell, old, new in zip(cells, was, now, strict=True)]


_LIBRARIES: dict[str, Callable[[Any, dict[str, Any], dict[str, Any]], Any]] = {
    "dataframe": _frame,
    "series": _series,
    "ndarray": _ndarray,
}
