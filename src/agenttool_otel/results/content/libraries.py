"""Objects of libraries as Python data: data frames, series, arrays, tables, scalars, images, small
classes of fields.

One table holds for each class what its content is, how it is written line by line, and its size in
bytes. It is used at every depth: a data frame in a list is shown as the data frame alone. Methods
of library objects are run, so these classes are known by identity, found in ``sys.modules`` and
never imported.

What is missing (``NaT``, ``pd.NA``, a masked cell) is missing, and labels are kept: the index of a
frame becomes columns, that of a series its ``index``, unless it is the plain count that pandas
makes by itself.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from agenttool_otel.values.conversion import numpy_item
from agenttool_otel.values.inspection import class_name, field_value, instance_dict

_BATCH_ROWS: Final = 1000
_PREVIEW_ROWS: Final = 20
_MAX_ITEMS: Final = 1000
_MAX_PIXELS: Final = 1 << 24


class View(NamedTuple):
    """How much of an object is wanted, and in which form."""

    whole: bool = False  # all rows and items; else the first ones
    # rows as objects, so that each cell has its name; else as lists below ``columns``
    records: bool = False

    @property
    def rows(self) -> int | None:
        """The most rows of a table."""
        return None if self.whole else _PREVIEW_ROWS

    @property
    def items(self) -> int | None:
        """The most items of an array, and columns of a table."""
        return None if self.whole else _MAX_ITEMS


class LibraryType(NamedTuple):
    """How objects of one class are read; what a class does not have is ``None``."""

    # content as Python data, whose parts may be objects of libraries again
    data: Callable[[Any, View], Any]
    lines: Callable[[Any], Iterator[Any]] | None = None  # what its lines are, one after the other
    held_bytes: Callable[[Any], int] | None = None  # bytes in memory
    # whether ``data`` of the whole has all that an object of exactly this library holds
    is_complete: Callable[[Any], bool] = lambda value: True


class Items:
    """Items that are made as they are asked for: the rows of a large frame never exist at once."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Any]:
        return self._make()


def library_type(value: Any) -> LibraryType | None:
    """Return how an object of a library is read; ``None`` for any other value."""
    cls = type(value)
    if cls in _PLAIN:
        return None
    try:
        if cls not in _known:
            _known[cls] = _find_type(cls)
        return _known[cls]
    except Exception:  # a metaclass may make its classes unhashable
        return _find_type(cls)


def is_complete(value: Any, known: LibraryType) -> bool:
    """Return whether the whole data of an object is all that it holds: a subclass of others may
    hold more.
    """
    if known is _NAMED_TUPLE or known is _ATTRS_CLASS:
        return known.is_complete(value)
    return class_name(type(value)).partition(".")[0] in _PACKAGES and known.is_complete(value)


def lines_of(value: Any, known: LibraryType, write: Callable[[Any], Any]) -> Iterator[str]:
    """Yield the lines of an object as JSON text, many at a time."""
    lines = known.lines(value) if known.lines is not None else iter(())
    while batch := list(islice(lines, _BATCH_ROWS)):
        texts: list[str] = []
        for line in batch:
            text = json.dumps(write(line), ensure_ascii=False, separators=(",", ":"))
            texts.append(f"{text}\n")
        yield "".join(texts)


def encode_image(image: Any) -> bytes | None:
    """Return a Pillow image as PNG, or ``None`` for one that is too large or can't be
    encoded so.
    """
    if image.width * image.height > _MAX_PIXELS:
        return None
    target = io.BytesIO()
    try:
        image.save(target, format="PNG")
    except (OSError, ValueError):
        return None
    return target.getvalue()


# --- tables ---------------------------------------------------------------------------------------


def _table(
    kind: str,
    names: list[Any],
    rows: Callable[[int | None], Iterator[list[Any]]],
    total: int,
    view: View,
) -> Any:
    """Return a table of any library: ``rows`` gives its first rows, or all."""
    cut = view.items
    shown = names if cut is None else names[:cut]
    keys = _unique(names)

    def items() -> Iterator[Any]:
        for row in rows(view.rows):
            if view.records:
                yield dict(zip(keys, row, strict=True))
            else:
                yield row[:cut]

    data = {
        "kind": kind,
        "columns": shown,
        "rows": Items(items),
        "total_rows": total,
    }
    if len(shown) < len(names):
        data["total_columns"] = len(names)
    return data


def _unique(names: Iterable[Any]) -> list[str]:
    """Return names as keys of an object: two columns of one name must not hide each other."""
    found: dict[str, None] = {}
    for name in names:
        plain = str(name)
        if type(name) in (tuple, list):  # ("north", 2026), a column of two levels
            plain = " / ".join(map(str, name))
        unique = plain
        count = 1
        while unique in found:
            count += 1
            unique = f"{plain}${count}"
        found[unique] = None
    return list(found)


def _label(name: Any) -> Any:
    """Return a column's name; with several levels the name of each."""
    return list(name) if type(name) is tuple else str(name)


def _is_plain(index: Any) -> bool:
    """Return whether an index only counts rows, as pandas makes it by itself."""
    count = getattr(sys.modules["pandas"], "RangeIndex", None)
    if type(index) is not count or index.name is not None:
        return False
    return bool(index.start == 0 and index.step == 1)


def _index_names(frame: Any) -> list[str]:
    """Return the names that the levels of an index have as columns; none for a plain one."""
    if _is_plain(frame.index):
        return []
    taken = {str(name) for name in frame.columns}
    if frame.index.nlevels == 1 and frame.index.name is None and "index" not in taken:
        return ["index"]
    names: list[str] = []
    for level, name in enumerate(frame.index.names):
        # as pandas' reset_index calls them
        names.append(f"level_{level}" if name is None else str(name))
    return names


def _frame_rows(frame: Any, most: int | None) -> Iterator[list[Any]]:
    labelled = not _is_plain(frame.index)
    several = frame.index.nlevels > 1
    total = len(frame)
    if most is not None:
        total = min(most, total)
    for start in range(0, total, _BATCH_ROWS):
        end = min(start + _BATCH_ROWS, total)
        part = frame.iloc[start:end]
        for row in part.itertuples(index=labelled, name=None):
            if labelled and several:
                labels, *cells = row
                yield [*labels, *cells]
            else:
                yield list(row)


def _frame_data(frame: Any, view: View) -> Any:
    index = _index_names(frame)
    names = [*index, *map(_label, frame.columns)]
    data = _table("dataframe", names, lambda most: _frame_rows(frame, most), len(frame), view)
    if index:
        data["index"] = index
    if any(name is not None for name in frame.columns.names):
        data["column_levels"] = list(frame.columns.names)
    if frame.attrs:
        data["attrs"] = dict(frame.attrs)
    return data


def _frame_lines(frame: Any) -> Iterator[Any]:
    keys = _unique([*_index_names(frame), *map(_label, frame.columns)])
    for row in _frame_rows(frame, None):
        yield dict(zip(keys, row, strict=True))


def _frame_bytes(frame: Any) -> int:
    return int(frame.memory_usage(index=not _is_plain(frame.index), deep=False).sum())


def _no_categories(*values: Any) -> bool:
    """Whether no column has categories, which may hold words that no cell has."""
    return all(str(value) != "category" for value in values)


def _kinds(index: Any) -> list[Any]:
    if index.nlevels == 1:
        return [index.dtype]
    return list(index.dtypes)


def _frame_is_complete(frame: Any) -> bool:
    return _no_categories(
        *frame.dtypes,
        *_kinds(frame.index),
        *_kinds(frame.columns),
    )


def _series_is_complete(series: Any) -> bool:
    return _no_categories(series.dtype, *_kinds(series.index))


def _index_is_complete(index: Any) -> bool:
    return _no_categories(*_kinds(index))


def _arrow_rows(table: Any, most: int | None) -> Iterator[list[Any]]:
    total = table.num_rows
    if most is not None:
        total = min(most, total)
    for start in range(0, total, _BATCH_ROWS):
        length = min(_BATCH_ROWS, total - start)
        part = table.slice(start, length)
        columns = [column.to_pylist() for column in part.columns]
        for row in zip(*columns, strict=True):
            yield list(row)


def _arrow_table(table: Any, view: View) -> Any:
    names = list(table.schema.names)
    return _table("table", names, lambda most: _arrow_rows(table, most), table.num_rows, view)


def _arrow_lines(table: Any) -> Iterator[Any]:
    keys = _unique(table.schema.names)
    for row in _arrow_rows(table, None):
        yield dict(zip(keys, row, strict=True))


def _polars_rows(frame: Any, most: int | None) -> Iterator[list[Any]]:
    part = frame if most is None else frame.head(most)
    return map(list, part.iter_rows())


def _polars_frame(frame: Any, view: View) -> Any:
    names = list(frame.columns)
    return _table("dataframe", names, lambda most: _polars_rows(frame, most), frame.height, view)


def _polars_lines(frame: Any) -> Iterator[Any]:
    return iter(frame.iter_rows(named=True))


# --- series and arrays ----------------------------------------------------------------------------


def _array(kind: str, dtype: Any, shape: Sequence[int], items: Any, **more: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        **more,
        "dtype": str(dtype),
        "shape": list(shape),
        "data": items,
    }


def _batches(values: Any, most: int | None, read: Callable[[Any], list[Any]]) -> Items:
    """Return the first items of something that can be sliced, or all, some at a time."""
    total = len(values)
    if most is not None:
        total = min(most, total)

    def items() -> Iterator[Any]:
        for start in range(0, total, _BATCH_ROWS):
            end = min(start + _BATCH_ROWS, total)
            yield from read(values[start:end])

    return Items(items)


def _listed(values: Any) -> list[Any]:
    found: list[Any] = values.tolist()
    return found


def _series_data(series: Any, view: View) -> Any:
    named = {} if series.name is None else {"name": _label(series.name)}
    items = _batches(series.array, view.items, _listed)
    data = _array("series", series.dtype, series.shape, items, **named)
    if view.records and not _is_plain(series.index):
        keys = _unique(map(_label, series.index))
        data["data"] = dict(zip(keys, series.tolist(), strict=True))
    elif not _is_plain(series.index):
        data["index"] = _batches(series.index, view.items, _listed)
        if any(name is not None for name in series.index.names):
            data["index_names"] = list(series.index.names)
    if series.attrs:
        data["attrs"] = dict(series.attrs)
    return data


def _series_lines(series: Any) -> Iterator[Any]:
    if _is_plain(series.index):
        return iter(_batches(series.array, None, _listed))
    name = series.name
    if name is None:
        name = "value"
    return _frame_lines(series.to_frame(name))


def _index_data(index: Any, view: View) -> Any:
    named: dict[str, Any] = {}
    if any(name is not None for name in index.names):
        if index.nlevels > 1:
            named["names"] = list(index.names)
        else:
            named["name"] = _label(index.name)
    items = _batches(index, view.items, _listed)
    return _array("index", index.dtype, index.shape, items, **named)


def _pandas_array(array: Any, view: View) -> Any:
    return _array("array", array.dtype, array.shape, _batches(array, view.items, _listed))


def _ndarray_data(array: Any, view: View) -> Any:
    fields = {} if array.dtype.names is None else {"fields": list(array.dtype.names)}
    if array.ndim == 0:
        return _array("ndarray", array.dtype, [], _numbers(array), **fields)
    if view.records and fields and array.ndim == 1:
        # numpy.array([(1, "a")], dtype=[("id", int), ("name", "U9")])
        rows: list[Any] = []
        for row in array[: view.items].tolist():
            rows.append(dict(zip(fields["fields"], row, strict=True)))
        return _array("ndarray", array.dtype, array.shape, rows)
    flat = array
    if not view.whole and array.size > _MAX_ITEMS:
        flat = array.reshape(-1)
    items = _batches(flat, view.items, _numbers)
    return _array("ndarray", array.dtype, array.shape, items, **fields)


def _numbers(array: Any) -> Any:
    """Return numpy's items as Python's: times finer than a microsecond would come as counts of
    nanoseconds.
    """
    if array.dtype.kind not in "mM":
        return array.tolist()
    plain = [numpy_item(item) for item in array.reshape(-1)]
    if array.ndim == 0:
        return plain[0]
    return _nested(plain, array.shape)


def _nested(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    for size in reversed(shape[1:]):
        rows: list[Any] = []
        if size:
            for start in range(0, len(items), size):
                rows.append(items[start : start + size])
        items = rows
    return items


def _ndarray_lines(array: Any) -> Iterator[Any]:
    # numpy.array(3) has no dimension, and so nothing to iterate
    if array.ndim == 0:
        array = array.reshape(1)
    return iter(_batches(array, None, _numbers))


def _void_data(value: Any, view: View) -> Any:
    """A row of a structured array, with the names of its fields."""
    if value.dtype.names is None:
        return value.item()
    return dict(zip(value.dtype.names, value.item(), strict=True))


def _arrow_items(values: Any) -> list[Any]:
    found: list[Any] = values.to_pylist()
    return found


def _arrow_array(array: Any, view: View) -> Any:
    items = _batches(array, view.items, _arrow_items)
    return _array("arrow_array", array.type, [len(array)], items)


def _arrow_array_lines(array: Any) -> Iterator[Any]:
    return iter(_batches(array, None, _arrow_items))


def _arrow_scalar(scalar: Any, view: View) -> Any:
    return scalar.as_py()


def _polars_items(values: Any) -> list[Any]:
    found: list[Any] = values.to_list()
    return found


def _polars_series(series: Any, view: View) -> Any:
    named = {"name": series.name} if series.name else {}
    items = _batches(series, view.items, _polars_items)
    return _array("series", series.dtype, [len(series)], items, **named)


# --- other ----------------------------------------------------------------------------------------


def _image_data(image: Any, view: View) -> Any:
    return {
        "kind": "image",
        "width": image.width,
        "height": image.height,
        "mode": str(image.mode),
    }


def _image_bytes(image: Any) -> int:
    return int(image.width * image.height * len(image.getbands()))


def _process_data(process: Any, view: View) -> Any:
    return {
        "exit_code": process.returncode,
        "stdout": _decoded(process.stdout),
        "stderr": _decoded(process.stderr),
    }


def _decoded(output: Any) -> Any:
    if type(output) is bytes:
        return output.decode("utf-8", "backslashreplace")
    return output


def _attrs_data(value: Any, view: View) -> Any:
    """The fields of a class that attrs made, read from the instance itself."""
    for base in type(value).__mro__:
        if _ATTRS not in base.__dict__:
            continue
        found: dict[str, Any] = {}
        for field in base.__dict__[_ATTRS]:
            item = field_value(value, field.name, _MISSING)
            if item is not _MISSING:
                found[field.name] = item
        return found
    return {}


def _namespace_data(value: Any, view: View) -> Any:
    return dict(instance_dict(value))


def _tuple_data(value: Any, view: View) -> Any:
    """A named tuple, with the names of its fields."""
    items = list(tuple.__iter__(value))
    # JSON pointers count in it, as in any tuple
    if view.records:
        return items
    return dict(zip(type(value)._fields, items, strict=True))


def _has_no_attributes(value: Any) -> bool:
    """Return whether a named tuple is no subclass whose instances have attributes beside it."""
    return not instance_dict(value)


def _has_only_fields(value: Any) -> bool:
    fields = _attrs_data(value, View())
    return bool(instance_dict(value).keys() <= fields.keys())


def _text(value: Any, view: View) -> Any:
    return str(value)


def _nbytes(value: Any) -> int:
    return int(value.nbytes)


def _memory_usage(values: Any) -> int:
    return int(values.memory_usage(deep=False))


def _estimated_size(values: Any) -> int:
    return int(values.estimated_size())


_ATTRS: Final = "__attrs_attrs__"
_MISSING: Final = object()
_PLAIN: Final = frozenset(
    {str, int, float, bool, bytes, list, tuple, dict, set, frozenset, type(None)}
)
_PACKAGES: Final = frozenset({"pandas", "numpy", "pyarrow", "polars", "PIL", "types", "subprocess"})


def _is_never_complete(value: Any) -> bool:
    """Return ``False``: what a mask hides, or an extension type keeps, is not in the data."""
    return False


IMAGE: Final = LibraryType(
    _image_data,
    held_bytes=_image_bytes,
    is_complete=_is_never_complete,
)
"""Images of Pillow: shown and stored as PNG."""

_ARROW_TABLE: Final = LibraryType(
    _arrow_table,
    lines=_arrow_lines,
    held_bytes=_nbytes,
)
_ARROW_ARRAY: Final = LibraryType(
    _arrow_array,
    lines=_arrow_array_lines,
    held_bytes=_nbytes,
)
_NAMED_TUPLE: Final = LibraryType(
    _tuple_data,
    is_complete=_has_no_attributes,
)
_ATTRS_CLASS: Final = LibraryType(
    _attrs_data,
    is_complete=_has_only_fields,
)
_TABLE: Final[tuple[tuple[str, str, LibraryType], ...]] = (
    (
        "pandas",
        "DataFrame",
        LibraryType(
            _frame_data,
            lines=_frame_lines,
            held_bytes=_frame_bytes,
            is_complete=_frame_is_complete,
        ),
    ),
    (
        "pandas",
        "Series",
        LibraryType(
            _series_data,
            lines=_series_lines,
            held_bytes=_memory_usage,
            is_complete=_series_is_complete,
        ),
    ),
    (
        "pandas",
        "Index",
        LibraryType(
            _index_data,
            held_bytes=_memory_usage,
            is_complete=_index_is_complete,
        ),
    ),
    (
        "pandas.api.extensions",
        "ExtensionArray",
        LibraryType(
            _pandas_array,
            held_bytes=_nbytes,
            is_complete=_is_never_complete,
        ),
    ),
    ("pandas", "Period", LibraryType(_text)),
    ("pandas", "Interval", LibraryType(_text)),
    # before ndarray, of which it is a subclass
    (
        "numpy.ma",
        "MaskedArray",
        LibraryType(
            _ndarray_data,
            lines=_ndarray_lines,
            held_bytes=_nbytes,
            is_complete=_is_never_complete,
        ),
    ),
    (
        "numpy",
        "ndarray",
        LibraryType(
            _ndarray_data,
            lines=_ndarray_lines,
            held_bytes=_nbytes,
        ),
    ),
    ("numpy", "void", LibraryType(_void_data)),
    ("pyarrow", "Table", _ARROW_TABLE),
    ("pyarrow", "RecordBatch", _ARROW_TABLE),
    ("pyarrow", "ChunkedArray", _ARROW_ARRAY),
    ("pyarrow", "Array", _ARROW_ARRAY),
    ("pyarrow", "Scalar", LibraryType(_arrow_scalar)),
    (
        "polars",
        "DataFrame",
        LibraryType(
            _polars_frame,
            lines=_polars_lines,
            held_bytes=_estimated_size,
        ),
    ),
    (
        "polars",
        "Series",
        LibraryType(
            _polars_series,
            held_bytes=_estimated_size,
        ),
    ),
    ("PIL.Image", "Image", IMAGE),
    ("types", "SimpleNamespace", LibraryType(_namespace_data)),
    ("subprocess", "CompletedProcess", LibraryType(_process_data)),
)
_known: WeakKeyDictionary[type, LibraryType | None] = WeakKeyDictionary()


def _find_type(cls: type) -> LibraryType | None:
    # a metaclass may have an ``__mro__`` of its own
    mro = type.__dict__["__mro__"].__get__(cls)
    if tuple in mro:
        return _NAMED_TUPLE if _is_named(mro) else None
    for module, name, known in _TABLE:
        loaded = getattr(sys.modules.get(module), name, None)
        if isinstance(loaded, type) and loaded in mro:
            return known
    for base in mro:
        if _ATTRS in base.__dict__:
            return _ATTRS_CLASS
    return None


def _is_named(mro: tuple[type, ...]) -> bool:
    for base in mro:
        names = base.__dict__.get("_fields", _MISSING)
        if names is _MISSING:
            continue
        return type(names) is tuple and all(type(name) is str for name in names)
    return False
