"""A redacted result in the type that its caller expects: what was changed in its data is changed in
a copy of it.

Only values of which the data is all are copied; no code of their classes is run. Where a part
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
    if type(before) is not type(after):  # 1 == True
        return after
    if after == before:
        return value
    if type(before) is list:
        return _list_copy(value, before, after)
    if type(before) is dict:
        return _dict_copy(value, before, after)
    return after


def _list_copy(value: Any, before: list[Any], after: list[Any]) -> Any:
    kind = kind_of(value)
    if kind is Kind.SEQUENCE:
        items = list(_items(value, before, after))
        return _sequence(value, items)
    if kind is Kind.SET and type(value) in (set, frozenset):
        return type(value)(after)
    return after


def _dict_copy(value: Any, before: dict[str, Any], after: dict[str, Any]) -> Any:
    kind = kind_of(value)
    if kind in _MEMBERS:
        members = _members(value, kind, before, after)
        return _MEMBERS[kind](value, members)
    if library_type(value) is None:
        return after
    # {"kind": "dataframe", "columns": ..., "rows": ...}
    make = _LIBRARIES.get(str(before.get("kind")))
    if make is None:
        return after
    return make(value, before, after)


def _members(
    value: Any, kind: Kind, before: dict[str, Any], after: dict[str, Any]
) -> dict[Any, Any]:
    """Return the members of a copy; ``before`` and ``after`` have them in the same order."""
    pairs = mapping_items(value, kind, _NO_LIMIT)
    if not len(pairs) == len(before) == len(after):
        raise ValueError("not the same members")
    found: dict[Any, Any] = {}
    old_members = iter(before.items())
    new_members = iter(after.items())
    for key, item in pairs:
        old_name, was = next(old_members)
        new_name, now = next(new_members)
        # {"AKIA...": 1}: a key that held a secret has another name now
        if new_name != old_name:
            key = new_name
        found[key] = _copy(item, was, now)
    return found


def _items(value: Any, before: list[Any], after: list[Any]) -> Iterator[Any]:
    items = sequence_items(value, _NO_LIMIT)
    for item, was, now in zip(items, before, after, strict=True):
        yield _copy(item, was, now)


def _sequence(value: Any, items: list[Any]) -> Any:
    cls = type(value)
    if cls in (list, tuple):
        return cls(items)
    if issubclass(cls, tuple):
        return tuple.__new__(cls, items)  # a named tuple
    return items


def _mapping(value: Any, members: dict[Any, Any]) -> Any:
    return members


def _dataclass(value: Any, members: dict[Any, Any]) -> Any:
    new = object.__new__(type(value))
    for name, item in members.items():
        object.__setattr__(new, name, item)
    return new


def _model(value: BaseModel, members: dict[Any, Any]) -> Any:
    return BaseModel.model_copy(value, update=members)


_MakeFromMembers = Callable[[Any, dict[Any, Any]], Any]
_MakeFromData = Callable[[Any, dict[str, Any], dict[str, Any]], Any]
_MEMBERS: dict[Kind, _MakeFromMembers] = {
    Kind.MAPPING: _mapping,
    Kind.DATACLASS: _dataclass,
    Kind.MODEL: _model,
}


# --- libraries ------------------------------------------------------------------------------------


def _frame(frame: Any, before: dict[str, Any], after: dict[str, Any]) -> Any:
    if not _same_beside("rows", before, after):
        return after
    levels = len(before.get("index", ()))
    names = list(before["rows"][0])
    pandas = sys.modules["pandas"]
    new = frame.copy()
    for place, name in enumerate(names):
        was = _column(before, name)
        now = _column(after, name)
        if was == now:
            continue
        if place < levels:
            new.index = _index(new.index, place, was, now)
            continue
        column = place - levels
        cells = _mixed(frame.iloc[:, column].tolist(), was, now)
        # a column of numbers may hold texts now
        series = pandas.Series(cells, index=new.index, dtype=object)
        new.isetitem(column, series)
    return new


def _column(table: dict[str, Any], name: str) -> list[Any]:
    return [row[name] for row in table["rows"]]


def _same_beside(name: str, before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Return whether two forms differ in one member at most."""
    others = before.keys() - {name}
    return all(before[other] == after[other] for other in others)


def _series(series: Any, before: dict[str, Any], after: dict[str, Any]) -> Any:
    if not _same_beside("data", before, after):
        return after
    was = before["data"]
    now = after["data"]
    if type(was) is dict:
        # with an index of texts the data is an object, and its keys may be redacted too
        if list(was) != list(now):
            return after
        was = list(was.values())
        now = list(now.values())
    cells = _mixed(series.tolist(), was, now)
    pandas = sys.modules["pandas"]
    return pandas.Series(
        cells,
        index=series.index,
        name=series.name,
        dtype=object,
    )


def _ndarray(array: Any, before: dict[str, Any], after: dict[str, Any]) -> Any:
    is_flat = array.ndim == 1 and array.dtype.names is None
    if not is_flat or not _same_beside("data", before, after):
        return after
    cells = _mixed(array.tolist(), before["data"], after["data"])
    # texts stay texts; a number may have become a placeholder
    kind: type = object
    if array.dtype.kind == "U":
        kind = str
    numpy = sys.modules["numpy"]
    return numpy.array(cells, dtype=kind)


def _index(index: Any, level: int, was: list[Any], now: list[Any]) -> Any:
    pandas = sys.modules["pandas"]
    if index.nlevels == 1:
        labels = _mixed(index.tolist(), was, now)
        return pandas.Index(labels, name=index.name, dtype=object)
    levels = []
    for place in range(index.nlevels):
        levels.append(index.get_level_values(place).tolist())
    levels[level] = _mixed(levels[level], was, now)
    return pandas.MultiIndex.from_arrays(levels, names=index.names)


def _mixed(cells: list[Any], was: list[Any], now: list[Any]) -> list[Any]:
    mixed: list[Any] = []
    for cell, old, new in zip(cells, was, now, strict=True):
        mixed.append(_copy(cell, old, new))
    return mixed


_LIBRARIES: dict[str, _MakeFromData] = {
    "dataframe": _frame,
    "series": _series,
    "ndarray": _ndarray,
}
