"""Any Python value as bounded JSON data, for policies, records and telemetry.

``to_json_value`` never raises, never recurses, never consumes an iterator and never runs a value's
own ``__str__``, ``__repr__``, ``__iter__`` or serialiser. What JSON can't express becomes a tagged
object:

- not a number, infinities: ``{"$float": "nan" | "inf" | "-inf"}``
- bytes: ``{"$bytes": base64}``, above 1 KiB ``{"$bytes": {"length", "sha256"}}``
- an object that contains itself: ``{"$ref": "cycle"}``
- anything past a limit: ``{"$truncated": "depth" | "nodes" | "chars"}``
- an object of an unknown class: ``{"$type": "module.Class"}``

Sets become sorted lists, enum members their values, paths, UUIDs, decimals and fractions strings,
dates and times ISO 8601, time spans seconds, dataclasses and pydantic models objects with their
Python field names. Lone surrogates are escaped. Tags are for reading; where two values must never
look alike, use ``canonical_bytes`` and ``digest``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from pathlib import PurePath
from typing import Any, Final, NoReturn, TypeAlias
from uuid import UUID

from agenttool_otel.values.inspection import (
    CONTAINERS,
    SEQUENCES,
    Kind,
    class_name,
    holds_more,
    kind_of,
    mapping_items,
    plain_fraction,
    sequence_items,
    time_text,
)
from agenttool_otel.values.unicode import escape_surrogates

JsonLike: TypeAlias = "bool | int | float | str | list[JsonLike] | dict[str, JsonLike] | None"
"""Plain JSON data, without NaN and lone surrogates."""

DEFAULT_MAX_DEPTH: Final = 64
DEFAULT_MAX_NODES: Final = 100_000
DEFAULT_MAX_CHARS: Final = 1_000_000
MAX_INLINE_BYTES: Final = 1024
# more digits than Python converts to text by default is no number for a policy
_MAX_INT_BITS: Final = 4096
_QUICK_INT: Final = 1 << 62
_QUICK_CHARS: Final = 4096
QUICK_ITEMS: Final = 32
_NO_LIMIT: Final = 1 << 62
_UNREAD: Final = CONTAINERS | {Kind.OPAQUE, Kind.NUMPY_SCALAR}


def to_json_value(
    value: Any,
    *,
    max_depth: int = DEFAULT_MAX_DEPTH,
    max_nodes: int = DEFAULT_MAX_NODES,
    max_chars: int = DEFAULT_MAX_CHARS,
    converter: type[Converter] | None = None,
) -> JsonLike:
    """Return a bounded copy of a value as plain JSON data; see the module's text for what becomes
    of what.
    """
    try:
        quick = quick_object(value) if type(value) is dict else None
        if quick is not None:
            return quick
        return (converter or Converter)(max_depth, max_nodes, max_chars).convert(value)
    except Exception as error:  # for example a dict that another thread changes meanwhile
        return {"$type": class_name(type(value)), "$error": class_name(type(error))}


def to_whole_json(value: Any, make: type[Converter] | None = None) -> tuple[JsonLike, bool]:
    """Return a value as plain JSON data of whatever size, and whether the data is all that the
    value holds.

    It is not where a tag stands for what could not be read (an object of an unknown class, an
    iterator, long bytes, nesting past the limit), or where a value has state beside what its kind
    shows (an attribute of a ``str`` subclass).
    """
    try:
        converter = (make or Converter)(DEFAULT_MAX_DEPTH, _NO_LIMIT, _NO_LIMIT, watch=True)
        data = converter.convert(value)
    except Exception as error:
        return {"$type": class_name(type(value)), "$error": class_name(type(error))}, False
    return data, converter.whole


def quick_object(value: dict[Any, Any]) -> dict[str, JsonLike] | None:
    """Copy a small object of plain ASCII data, the usual arguments of a tool; ``None`` if it holds
    anything else.
    """
    if len(value) > QUICK_ITEMS:
        return None
    out: dict[str, JsonLike] = {}
    for key, item in value.items():
        if type(key) is not str or not key.isascii():
            return None
        kind = type(item)
        if kind is str:
            quick = len(item) <= _QUICK_CHARS and item.isascii()
        elif kind is int:
            quick = -_QUICK_INT < item < _QUICK_INT
        elif kind is list:
            item = item[:]
            quick = _is_quick_list(item)
        else:
            quick = item is None or kind is bool or (kind is float and isfinite(item))
        if not quick:
            return None
        out[key] = item
    return out


def _is_quick_list(items: list[Any]) -> bool:
    """Return whether a list is as plain: ``["a.txt", "b.txt"]``."""
    if len(items) > QUICK_ITEMS:
        return False
    for item in items:
        kind = type(item)
        if kind is str:
            quick = len(item) <= _QUICK_CHARS and item.isascii()
        elif kind is int:
            quick = -_QUICK_INT < item < _QUICK_INT
        else:
            quick = item is None or kind is bool
        if not quick:
            return False
    return True


class _Frame:
    """A container that is being converted.

    Its source is held while it is open: what is made of a library's object would go, and another
    take its id.
    """

    __slots__ = ("is_set", "out", "pending", "source")

    def __init__(
        self,
        pending: list[Any],
        out: list[JsonLike] | dict[str, JsonLike],
        source: Any,
        *,
        is_set: bool,
    ) -> None:
        self.pending = pending  # the children still to come, the next at the end
        self.out = out  # the container under construction
        self.source = source
        self.is_set = is_set

    def finish(self) -> None:
        # a set has no order of its own, and the same set must be the same list each time
        if self.is_set and isinstance(self.out, list):
            self.out.sort(key=_sort_key)


class Converter:
    """One conversion with its budgets; an explicit stack instead of recursion."""

    def __init__(
        self, max_depth: int, max_nodes: int, max_chars: int, *, watch: bool = False
    ) -> None:
        self._max_depth = max_depth
        self._nodes = max_nodes
        self._chars = max_chars
        self._watch = watch
        # whether nothing was left out; unread state is looked for only when watching
        self.whole = True

    def convert(self, value: Any) -> JsonLike:
        root: list[JsonLike] = []
        stack = [_Frame([value], root, None, is_set=False)]
        open_ids: set[int] = set()
        while stack:
            frame = stack[-1]
            if not frame.pending:
                stack.pop()
                open_ids.discard(id(frame.source))
                frame.finish()
                continue
            entry = frame.pending.pop()
            out = frame.out
            if isinstance(out, dict):
                key, item = entry
                # the name first: a key counts before its value does
                name = self._key(key, out)
                out[name] = self._converted(item, stack, open_ids)
            else:
                out.append(self._converted(entry, stack, open_ids))
            if self._nodes < 0:
                frame.pending.clear()
        return root[0]

    def _converted(self, value: Any, stack: list[_Frame], open_ids: set[int]) -> JsonLike:
        """Convert a leaf; of a container return the empty form, and put it on the stack."""
        self._nodes -= 1
        if self._nodes < 0:
            self.whole = False
            return {"$truncated": "nodes"}
        value, kind = self._opened(value)
        if self._watch and self.whole:
            self.whole = not holds_more(value, kind)
        if kind not in CONTAINERS:
            return self._leaf(value, kind)
        if id(value) in open_ids:
            return {"$ref": "cycle"}
        if len(stack) > self._max_depth:
            self.whole = False
            return {"$truncated": "depth"}
        frame = self._frame(value, kind)
        open_ids.add(id(value))
        stack.append(frame)
        return frame.out

    def _frame(self, value: Any, kind: Kind) -> _Frame:
        if kind in SEQUENCES:
            items = sequence_items(value, self._nodes + 1)
            items.reverse()
            return _Frame(items, [], value, is_set=kind is Kind.SET)
        pairs = self._items(value, kind)
        pairs.reverse()
        return _Frame(pairs, {}, value, is_set=False)

    def _opened(self, value: Any) -> tuple[Any, Kind]:
        """Return what is converted in the place of a value, and its kind."""
        kind = kind_of(value)
        if kind is Kind.ENUM:
            value = object.__getattribute__(value, "_value_")
            kind = kind_of(value)
        return value, kind

    def _items(self, value: Any, kind: Kind) -> list[tuple[Any, Any]]:
        return mapping_items(value, kind, self._nodes + 1)

    def _leaf(self, value: Any, kind: Kind) -> JsonLike:
        try:
            return self._leaf_unguarded(value, kind)
        except Exception as error:
            self.whole = False
            return {"$type": class_name(type(value)), "$error": class_name(type(error))}

    def _leaf_unguarded(self, value: Any, kind: Kind) -> JsonLike:
        if kind is Kind.NONE:
            return None
        if kind is Kind.TEXT:
            return self._text(value if type(value) is str else str.__str__(value))
        if kind is Kind.BOOL:
            return bool(value)
        if kind is Kind.INT:
            return self._whole_number(int.__int__(value))
        if kind is Kind.FLOAT:
            real = float.__float__(value)
            return real if isfinite(real) else {"$float": float.__repr__(real)}
        if kind is Kind.BYTES:
            if memoryview(value).nbytes > MAX_INLINE_BYTES:
                self.whole = False
            return bytes_tag(value)
        if kind is Kind.NUMPY_SCALAR:
            item = numpy_item(value)
            if kind_of(item) in _UNREAD:
                return self._unread(value)
            return self._leaf(item, kind_of(item))
        return self._scalar(value, kind)

    def _whole_number(self, number: int) -> JsonLike:
        if number.bit_length() <= _MAX_INT_BITS:
            return number
        self.whole = False
        return {"$truncated": "int", "bits": number.bit_length()}

    def _scalar(self, value: Any, kind: Kind) -> JsonLike:
        text = scalar_text(value, kind)
        if text is None:
            return self._unread(value)
        if isinstance(text, str):
            return self._text(text)
        return text  # a time span in seconds

    def _unread(self, value: object) -> JsonLike:
        self.whole = False
        return {"$type": class_name(type(value))}

    def _container_key(self, key: Any) -> JsonLike:
        return self._unread(key)

    def _text(self, text: str) -> JsonLike:
        if len(text) > self._chars:
            self.whole = False
            return {"$truncated": "chars", "chars": len(text)}
        self._chars -= len(text)
        return self._plain(text)

    def _plain(self, text: str) -> str:
        return escape_surrogates(text)

    def _key(self, key: Any, out: dict[str, JsonLike]) -> str:
        key, kind = self._opened(key)
        if kind is Kind.TEXT:
            name = self._plain(str.__str__(key))
            if len(name) > self._chars:
                self.whole = False
                name = f"$truncated:{len(name)}"
            self._chars -= len(name)
        elif kind in (Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.NONE):
            leaf = self._leaf(key, kind)
            name = json.dumps(leaf)
        else:
            leaf = self._leaf(key, kind) if kind not in CONTAINERS else self._container_key(key)
            name = leaf if isinstance(leaf, str) else json.dumps(leaf, sort_keys=True)
        unique = name
        count = 1
        # 1 and "1" are two keys in Python and one in JSON: neither may hide the other
        while unique in out:
            count += 1
            unique = f"{name}${count}"
        return unique


def _sort_key(value: JsonLike) -> tuple[str, str]:
    # {1, "1"}: of each type apart
    if isinstance(value, str):
        return "str", value
    return type(value).__name__, json.dumps(value, sort_keys=True)


def bytes_tag(value: bytes | bytearray | memoryview) -> dict[str, JsonLike]:
    """Return the tag of a bytes-like value: its base64 form when short, else its length and
    SHA-256.
    """
    view = memoryview(value)
    if not view.contiguous:
        view = memoryview(view.tobytes())
    if view.nbytes <= MAX_INLINE_BYTES:
        return {"$bytes": base64.b64encode(view).decode("ascii")}
    return {"$bytes": {"length": view.nbytes, "sha256": hashlib.sha256(view).hexdigest()}}


def numpy_item(value: Any) -> Any:
    """Return numpy's scalar as Python's value; a time of a unit that Python lacks as its ISO 8601
    text.
    """
    if value.dtype.kind not in "mM":
        item = value.item()
        return float(value) if type(item) is type(value) else item  # a longdouble is its own item
    item = value.item()
    if type(item) is not int:
        return item
    if value.dtype.kind == "M":
        return str(value)  # a count of nanoseconds
    # "3 years" has no length
    return value.astype("timedelta64[us]").item() if _is_fine(value) else str(value)


def _is_fine(value: Any) -> bool:
    return value.dtype.str[4:-1] in ("ns", "ps", "fs", "as")


def scalar_text(value: Any, kind: Kind) -> str | float | None:
    """Return the text of a path, UUID, decimal, fraction, time, range or complex number; ``None``
    for what has none.
    """
    if kind is Kind.PATH:
        return PurePath.__str__(value)
    if kind is Kind.UUID:
        return UUID.__str__(value)
    if kind is Kind.DECIMAL:
        return Decimal.__str__(value)
    if kind is Kind.FRACTION:
        return Fraction.__str__(plain_fraction(value))
    if kind is Kind.TIME:
        return time_text(value)
    if kind is Kind.RANGE:
        bits = max(int.bit_length(value.start), int.bit_length(value.stop))
        return range.__repr__(value) if bits < _MAX_INT_BITS else None
    if kind is Kind.COMPLEX:
        return complex.__repr__(value)
    return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("an object has the same key twice")
    return result


_decoder: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)


def loads_unique(text: str) -> Any:
    """Parse JSON that has no key twice and no NaN."""
    return _decoder.decode(text)
