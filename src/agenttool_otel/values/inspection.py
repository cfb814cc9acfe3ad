"""What a Python value is, found out without running a line of its own code.

A value that reaches policy or telemetry is hostile until shown otherwise: its ``__str__`` may
raise, its ``__iter__`` may never end, its ``__class__`` may lie. So classes are classified by their
method resolution order alone, and contents are read through the base types' own methods.
"""

from __future__ import annotations

import sys
from collections import OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Iterator
from dataclasses import Field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, auto
from fractions import Fraction
from inspect import unwrap
from itertools import islice
from pathlib import PurePath
from types import (
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
)
from typing import Any, Final
from uuid import UUID
from weakref import WeakKeyDictionary
from zoneinfo import ZoneInfo

from pydantic import BaseModel, SecretBytes, SecretStr


class Kind(Enum):
    """How a value is represented."""

    NONE = auto()
    """``None``."""
    BOOL = auto()
    """``True`` or ``False``."""
    INT = auto()
    """A whole number."""
    FLOAT = auto()
    """A floating point number."""
    TEXT = auto()
    """Text."""
    BYTES = auto()
    """Bytes."""
    MAPPING = auto()
    """Keys and values."""
    SEQUENCE = auto()
    """Items in an order."""
    SET = auto()
    """Items without an order."""
    DATACLASS = auto()
    """A dataclass, by its fields."""
    MODEL = auto()
    """A pydantic model, by its fields."""
    ENUM = auto()
    """A member of an enumeration, by its value."""
    TIME = auto()
    """A date, a time or a duration."""
    PATH = auto()
    """A path of a file system."""
    UUID = auto()
    """A UUID."""
    DECIMAL = auto()
    """A ``Decimal``."""
    FRACTION = auto()
    """A ``Fraction``."""
    COMPLEX = auto()
    """A complex number."""
    RANGE = auto()
    """A ``range``."""
    SECRET = auto()
    """pydantic's ``SecretStr`` or ``SecretBytes``, whose value is never read."""
    NUMPY_SCALAR = auto()
    """One number of numpy."""
    OPAQUE = auto()
    """Anything else: only the name of its class is shown."""


_TYPES: Final[dict[Kind, tuple[type, ...]]] = {
    Kind.NONE: (type(None),),
    Kind.BOOL: (bool,),
    Kind.INT: (int,),
    Kind.FLOAT: (float,),
    Kind.TEXT: (str,),
    Kind.BYTES: (bytes, bytearray, memoryview),
    Kind.MAPPING: (dict, OrderedDict, defaultdict, MappingProxyType, UserDict),
    Kind.SEQUENCE: (list, tuple, deque, UserList),
    Kind.SET: (set, frozenset),
    Kind.RANGE: (range,),
    Kind.COMPLEX: (complex,),
    Kind.UUID: (UUID,),
    Kind.DECIMAL: (Decimal,),
    Kind.FRACTION: (Fraction,),
    Kind.SECRET: (SecretStr, SecretBytes),
}
_EXACT: Final = {cls: kind for kind, classes in _TYPES.items() for cls in classes}
_PLAIN_BASES: Final = (
    *(bool, int, float, str, bytes, bytearray, dict, list, tuple, set, frozenset),
    *(UUID, Decimal, Fraction),
)
# Order matters: an enum member may be an int as well, and bool is an int.
_BASES: Final[tuple[tuple[type, Kind], ...]] = (
    (Enum, Kind.ENUM),
    (BaseModel, Kind.MODEL),
    *((base, _EXACT[base]) for base in _PLAIN_BASES),
    *((base, Kind.TIME) for base in (datetime, date, time, timedelta)),
    (PurePath, Kind.PATH),
)
SEQUENCES: Final = frozenset({Kind.SEQUENCE, Kind.SET})
"""The kinds that hold items; the other containers hold pairs."""

CONTAINERS: Final = SEQUENCES | {Kind.MAPPING, Kind.DATACLASS, Kind.MODEL}
"""The kinds that hold other values."""

_MISSING: Final = (("pandas", "NaT"), ("pandas", "NA"), ("numpy.ma", "masked"))
"""What libraries put where there is no value: some of these are times or arrays by their class."""

_SAFE_ZONES: Final = frozenset({type(None), timezone, ZoneInfo})
_SAFE_ZONE_PACKAGES: Final = frozenset({"pydantic_core", "dateutil", "pytz", "pandas", "pyarrow"})
_mro = type.__dict__["__mro__"].__get__
_module = type.__dict__["__module__"].__get__
_qualname = type.__dict__["__qualname__"].__get__
_kinds: WeakKeyDictionary[type, Kind] = WeakKeyDictionary()


def class_name(cls: type) -> str:
    """Return ``module.QualName`` of a class, read past whatever its metaclass does."""
    try:
        module, qualname = _module(cls), _qualname(cls)
    except Exception:
        return "unknown"
    if type(module) is not str or type(qualname) is not str:
        return "unknown"
    return f"{module}.{qualname}"[:200].encode("ascii", "backslashreplace").decode()


def error_name(error: BaseException) -> str:
    """Return ``module.QualName`` of the nearest class of an exception that its module has under its
    name.

    A class that was made at run time (``type(name, ...)``) may have anything for a name, also a
    secret.
    """
    return next((class_name(base) for base in _mro(type(error)) if _is_written(base)), "unknown")


def short_name(error: BaseException) -> str:
    """Return ``error_name`` without its module."""
    return error_name(error).rpartition(".")[2]


def _is_written(cls: type) -> bool:
    """Whether a module holds the class under its name, or the code of a function there does."""
    try:
        names = _qualname(cls).replace(".<locals>", "").split(".")
        found: Any = sys.modules.get(_module(cls))
        for name in names:
            if isinstance(found, CodeType):
                found = next(
                    part
                    for part in found.co_consts
                    if isinstance(part, CodeType) and part.co_name == name
                )
                continue
            found = vars(found)[name]
            if type(found) is FunctionType:
                found = unwrap(found).__code__
    except Exception:  # what a module holds is other people's, and may be anything
        return False
    return found is cls or isinstance(found, CodeType)


def mro_names(cls: type) -> tuple[str, ...]:
    """Return the qualified names of a class and all its bases, nearest first."""
    return tuple(class_name(base) for base in _mro(cls))


def kind_of(value: object) -> Kind:
    """Classify a value by its class alone; never raises and never runs the value's code."""
    cls = type(value)
    if (exact := _EXACT.get(cls)) is not None:
        return exact
    try:
        if (known := _kinds.get(cls)) is None:
            known = _kinds[cls] = _classify(cls)
    except Exception:  # a metaclass may make its classes unhashable
        return Kind.OPAQUE
    return known


def _classify(cls: type) -> Kind:
    if any(
        type(vars(sys.modules[module]).get(name)) is cls
        for module, name in _MISSING
        if module in sys.modules
    ):
        return Kind.NONE
    mro = _mro(cls)
    for base, kind in _BASES:
        if base in mro:
            return kind
    if any("__dataclass_fields__" in base.__dict__ for base in mro):
        return Kind.DATACLASS
    numpy = sys.modules.get("numpy")
    return (
        Kind.NUMPY_SCALAR
        if numpy is not None and getattr(numpy, "generic", None) in mro
        else Kind.OPAQUE
    )


def time_text(value: Any) -> str | float | None:
    """Return a date or time as ISO 8601 text, a time span in seconds; ``None`` where only user code
    could show.
    """
    mro = _mro(type(value))
    if timedelta in mro:
        return timedelta.total_seconds(value)
    if datetime in mro:
        return datetime.isoformat(value) if _is_safe_zone(datetime.tzinfo.__get__(value)) else None
    if date in mro:
        return date.isoformat(value)
    return time.isoformat(value) if _is_safe_zone(time.tzinfo.__get__(value)) else None


def microseconds(value: Any) -> int:
    """Return a time span as a whole number, read past whatever its class does."""
    days, seconds, rest = (
        getattr(timedelta, name).__get__(value) for name in ("days", "seconds", "microseconds")
    )
    return int((days * 86400 + seconds) * 1_000_000 + rest)


def plain_fraction(value: Any) -> Fraction:
    """Return the fraction that an instance of a subclass holds, read past whatever its
    class does.
    """
    parts = [Fraction.__dict__[name].__get__(value) for name in ("_numerator", "_denominator")]
    # Fraction takes whatever calls itself a rational number
    if any(type(part) is not int for part in parts):
        raise TypeError("a fraction that is not made of integers")
    return Fraction(*parts)


def _is_safe_zone(zone: object) -> bool:
    return (
        type(zone) in _SAFE_ZONES or class_name(type(zone)).partition(".")[0] in _SAFE_ZONE_PACKAGES
    )


def sequence_items(value: Any, limit: int) -> list[Any]:
    """Return at most ``limit`` items of a sequence or set, through the base type's own iterator."""
    mro = _mro(type(value))
    for base in (list, tuple, set, frozenset, deque):
        if base in mro:
            return list(islice(base.__iter__(value), limit))
    return sequence_items(instance_dict(value).get("data", []), limit) if UserList in mro else []


def mapping_items(value: Any, kind: Kind, limit: int) -> list[tuple[Any, Any]]:
    """Return at most ``limit`` items of a mapping, or the fields of a dataclass or pydantic model.

    Fields are read from the instance itself: properties, serialisers and ``__getattr__`` are not
    run. Names of fields are the Python ones, not aliases. Private pydantic attributes stay private.
    """
    if kind is Kind.MAPPING:
        return list(islice(_raw_items(value), limit))
    if kind is Kind.MODEL:
        fields = list(dict.items(instance_dict(value)))
        extra = _slot(value, "__pydantic_extra__")
        if type(extra) is dict:
            fields += dict.items(extra)
        return fields[:limit]
    missing = object()
    names = islice(_dataclass_fields(type(value)), limit)
    fields = [(name, field_value(value, name, missing)) for name in names]
    return [(name, item) for name, item in fields if item is not missing]


def parts_of(value: Any, kind: Kind, limit: int) -> list[Any]:
    """Return the items of a sequence or set, the keys and values of another container in turn."""
    if kind in SEQUENCES:
        return sequence_items(value, limit)
    return [part for item in mapping_items(value, kind, limit) for part in item]


def holds_more(value: Any, kind: Kind) -> bool:
    """Return whether an instance has attributes beside what its kind shows of it; never raises.

    Private attributes of pydantic models, attributes of a dataclass that are no fields, and those
    that were put on an instance of a subclass of a builtin type. Slots and C structures of such
    subclasses are not looked into.
    """
    if type(value) in _EXACT or kind in (
        Kind.NONE,
        Kind.ENUM,
        Kind.OPAQUE,
        Kind.SECRET,
        Kind.NUMPY_SCALAR,
    ):
        return False
    if kind is Kind.MODEL:
        return bool(_slot(value, "__pydantic_private__"))
    state = instance_dict(value)
    if kind is Kind.DATACLASS and state:
        return not state.keys() <= set(_dataclass_fields(type(value)))
    return bool(state)


def _raw_items(value: Any) -> Iterator[tuple[Any, Any]]:
    mro = _mro(type(value))
    if dict in mro:
        return iter(dict.items(value))
    if UserDict in mro:
        return iter(dict.items(instance_dict(value).get("data", {})))
    return iter(value.items())  # a mappingproxy; what is behind it is nearly always a dict


def instance_dict(value: Any) -> dict[str, Any]:
    """Return the very ``__dict__`` of an object, past whatever its class does; an empty one where
    it has none.
    """
    try:
        state = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return state if type(state) is dict else {}


def field_value(value: Any, name: str, default: Any = None) -> Any:
    """Return what an instance itself holds under a name, in its ``__dict__`` or in a slot."""
    state = instance_dict(value)
    return state[name] if name in state else _slot(value, name, default)


def _slot(value: Any, name: str, default: Any = None) -> Any:
    for base in _mro(type(value)):
        descriptor = base.__dict__.get(name)
        if type(descriptor) in (MemberDescriptorType, GetSetDescriptorType):
            try:
                return descriptor.__get__(value)
            except AttributeError:
                return default
    return default


def _dataclass_fields(cls: type) -> Iterator[str]:
    for base in _mro(cls):
        fields = base.__dict__.get("__dataclass_fields__")
        if type(fields) is dict:
            for name, field in fields.items():
                # ClassVar and InitVar pseudo-fields are in the table too; only real fields have
                # instance state.
                if type(field) is Field and type(name) is str:
                    yield name
            return


def path_text_of(value: Any) -> str | None:
    """Return the text of a path value, or ``None`` when it is neither text nor a pathlib path.

    Other path-like objects are not asked, because that would run their code.
    """
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    return str(value) if isinstance(value, PurePath) else None
