"""How one value is copied: whether its class reads its content as its builtin base does, what its
copy is made of.

``snapshot`` walks; here is what it does at each step. Nothing here runs a value's own code, except
the hash of what lies in a set or is a key, and the ``__str__`` and ``__format__`` of a text enum's
member, to see that they agree.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from pathlib import Path, PosixPath, PurePath, PurePosixPath, PureWindowsPath, WindowsPath
from types import MappingProxyType, MemberDescriptorType
from typing import Any, Final, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from agenttool_otel.values.inspection import (
    Kind,
    class_name,
    instance_dict,
    kind_of,
    microseconds,
    plain_fraction,
)


class NotCopyable(ValueError):
    """A value is shown by its content and can't be copied, so that it must not run as if it
    had been.
    """


class Shell(NamedTuple):
    """A copy under construction."""

    # the empty copy, which can be pointed to before it is full; ``None`` for what is only made at
    # the end
    made: Any
    parts: list[Any]  # what it holds, read once
    finish: Callable[[list[Any]], Any]  # fills the copy, or makes it, from the copies of the parts


_mro = type.__dict__["__mro__"].__get__
_names_of = type.__dict__["__dict__"].__get__
_LIBRARIES: Final = frozenset({"numpy", "pandas", "pendulum", "freezegun"})
_MAPPINGS: Final = (OrderedDict, defaultdict, Counter, dict)
_PATHS: Final = (PosixPath, WindowsPath, Path, PurePosixPath, PureWindowsPath, PurePath)
_SCALARS: Final[dict[Kind, tuple[type, ...]]] = {
    Kind.TEXT: (str,),
    Kind.INT: (int,),
    Kind.FLOAT: (float,),
    Kind.BYTES: (bytes,),
    Kind.PATH: _PATHS,
    Kind.UUID: (UUID,),
    Kind.DECIMAL: (Decimal,),
    Kind.FRACTION: (Fraction,),
    Kind.TIME: (datetime, date, time, timedelta),
}
# Making, pickling and looking at an instance in a debugger read nothing that a tool would take for
# its content.
_HARMLESS: Final = frozenset(
    {
        "__class_getitem__",
        "__copy__",
        "__deepcopy__",
        "__doc__",
        "__getnewargs__",
        "__getstate__",
        "__init__",
        "__init_subclass__",
        "__module__",
        "__new__",
        "__reduce__",
        "__reduce_ex__",
        "__setstate__",
        "__sizeof__",
        "__slots__",
        "__weakref__",
    }
)
_factory: Final[Any] = defaultdict.__dict__["default_factory"].__get__
_set_factory: Final[Any] = defaultdict.__dict__["default_factory"].__set__
_tuplegetter: Final = type(NamedTuple("_Sample", [("x", int)]).x)  # type: ignore[attr-defined]
_faithful: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def reads_as(cls: type, base: type) -> bool:
    """Return whether a subclass leaves it to its builtin base how its content is read."""
    if cls is base:
        return True
    try:
        known = _faithful.get(cls)
        if known is None:
            known = _is_library(cls) or _reads_as(cls, base)
            _faithful[cls] = known
    except Exception:  # a metaclass may make its classes unhashable
        return False
    return known


def _reads_as(cls: type, base: type) -> bool:
    readers = frozenset(chain.from_iterable(_names_of(part) for part in _mro(base))) - _HARMLESS
    if base in (*_MAPPINGS, list, tuple, set, frozenset):
        readers = (readers | {"__missing__"}) - {"__repr__"}
    for part in _mro(cls):
        if part is base:
            return True
        for name, value in _names_of(part).items():
            # a named tuple's fields are of this class, and read the tuple
            if name in readers and type(value) is not _tuplegetter:
                return False
    return False


def _is_library(cls: type) -> bool:
    """Return whether a class is, by identity, one of a library that is known to read as its
    base does.
    """
    module, _, name = class_name(cls).rpartition(".")
    if module.partition(".")[0] not in _LIBRARIES:
        return False
    # by identity: a class can be given the name DataFrame and __module__ = "pandas"
    return getattr(sys.modules.get(module), name, None) is cls


def plain_copy(value: Any, kind: Kind) -> Any:
    """Return what stands for a value without parts: itself where it can't change, a copy, or its
    base type's value.
    """
    if kind is Kind.ENUM:
        return _member(value)
    if kind is Kind.BYTES and type(value) is not bytes:
        return _buffer(value)
    bases = _SCALARS.get(kind)
    if bases is None:
        return value
    mro = _mro(type(value))
    base = next(base for base in bases if base in mro)
    if reads_as(type(value), base):
        return value
    # class Path(str) with a __str__ of its own: the tool gets the text that was decided
    return _as_base(value, kind, base)


def _as_base(value: Any, kind: Kind, base: Any) -> Any:
    if kind is Kind.TEXT:
        return str.__str__(value)
    if kind is Kind.INT:
        return int.__int__(value)
    if kind is Kind.FLOAT:
        return float.__float__(value)
    if kind is Kind.PATH:
        return base(PurePath.__str__(value))
    if kind is Kind.UUID:
        return UUID(int=object.__getattribute__(value, "int"))
    if kind is Kind.DECIMAL:
        return Decimal(Decimal.__str__(value))
    if kind is Kind.FRACTION:
        return plain_fraction(value)
    if kind is Kind.BYTES:
        return bytes(memoryview(value))
    if base is timedelta:
        return timedelta(microseconds=microseconds(value))
    if base is date:
        return date.fromordinal(date.toordinal(value))
    clock = {
        name: getattr(base, name).__get__(value)
        for name in ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
    }
    if base is time:
        return time(**clock)
    day = date.fromordinal(datetime.toordinal(value))
    return datetime(day.year, day.month, day.day, **clock)


_CONTENTS: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, bytes.__bytes__),
    (Decimal, Decimal),
    (Fraction, plain_fraction),
)


def _member(value: Any) -> Any:
    shown = object.__getattribute__(value, "_value_")
    mro = _mro(type(value))
    for base, read in _CONTENTS:
        if base not in mro:
            continue
        if kind_of(shown) in (Kind.OPAQUE, Kind.NONE) or read(value) != shown:
            raise NotCopyable("an enum member whose value is not its content")
    if not _reads_plainly(type(value), _MEMBER_READERS):
        raise NotCopyable("an enum member that reads as something else than its value")
    # class Name(str, Enum) with a __str__ that returns "/etc/shadow"
    if str in mro and not _is_its_text(value):
        raise NotCopyable("an enum member that reads as something else than its value")
    return value


def _is_its_text(member: Any) -> bool:
    """Return whether a text member's text, as f-strings take it, is its value or what Enum makes of
    its name.
    """
    name = f"{type(member).__name__}.{object.__getattribute__(member, '_name_')}"
    return {str(member), format(member, "")} <= {str.__str__(member), name}


_plain: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
_READERS: Final = frozenset({"__getattribute__"})
_MEMBER_READERS: Final = frozenset({"__getattribute__", "value", "_value_", "__fspath__"})


def _reads_plainly(cls: type, readers: frozenset[str]) -> bool:
    """Return whether a class of Python code leaves it to Python how its instances' attributes
    are read.
    """
    if (known := _plain.get(cls)) is None:
        parts = [part for part in _mro(cls) if part.__module__ not in {"builtins", "enum"}]
        known = _plain[cls] = all(readers.isdisjoint(_names_of(part)) for part in parts)
    return known


def _buffer(value: Any) -> Any:
    if type(value) is not memoryview:
        return bytearray(memoryview(value))
    copied = memoryview(bytearray(value.tobytes()))
    if value.format != "B" or value.ndim != 1:
        copied = copied.cast(value.format, value.shape)  # type: ignore[call-overload]
    return copied.toreadonly() if value.readonly else copied


def shell_of(source: Any, kind: Kind) -> Shell | None:
    """Read a container once, and return what its copy is made of; ``None`` for what is a copy of
    itself.
    """
    if kind is Kind.MAPPING:
        return _mapping_shell(source)
    if kind is Kind.SEQUENCE:
        return _sequence_shell(source)
    if kind is Kind.SET:
        return _set_shell(source)
    return _instance(source, type(source))


def _mapping_shell(source: Any) -> Shell:
    cls = type(source)
    mro = _mro(cls)
    if dict in mro:
        return _mapping(source, cls, mro)
    if cls is UserDict:
        return _wrapper(UserDict(), source)
    # a mappingproxy
    return Shell(None, list(chain.from_iterable(list(source.items()))), _proxy)


def _sequence_shell(source: Any) -> Shell | None:
    cls: Any = type(source)
    mro = _mro(cls)
    if list in mro:
        grown = list.__new__(cls) if reads_as(cls, list) else []
        items = list(list.__iter__(source))
        return _with_state(Shell(grown, items, _filled(list.extend, grown, list)), source)
    if tuple in mro:
        return _frozen(source, cls, tuple)
    if cls is deque:
        queue: deque[Any] = deque(maxlen=source.maxlen)
        return Shell(queue, list(source), _filled(deque.extend, queue, deque))
    return _wrapper(UserList(), source)


def _set_shell(source: Any) -> Shell | None:
    cls: Any = type(source)
    if frozenset in _mro(cls):
        return _frozen(source, cls, frozenset)
    members = set.__new__(cls) if reads_as(cls, set) else set()
    items = list(set.__iter__(source))
    return _with_state(Shell(members, items, _filled(set.update, members, set)), source)


def _mapping(source: Any, cls: Any, mro: tuple[type, ...]) -> Shell:
    base: Any = next(base for base in _MAPPINGS if base in mro)
    made = base.__new__(cls) if reads_as(cls, base) else {}
    if base is defaultdict and type(made) is cls:
        _set_factory(made, _factory(source))
    put = OrderedDict.__setitem__ if isinstance(made, OrderedDict) else dict.__setitem__
    parts = [part for item in list(dict.items(source)) for part in item]

    def finish(copies: list[Any]) -> Any:
        for key, item in zip(copies[::2], copies[1::2], strict=True):
            put(made, key, item)
        if 2 * dict.__len__(made) != len(parts):
            raise NotCopyable("two keys are one")
        return made

    return _with_state(Shell(made, parts, finish), source)


def _frozen(source: Any, cls: Any, base: Any) -> Shell | None:
    parts = list(base.__iter__(source))
    if not parts and cls is base:
        return None
    if not cls.__flags__ & _SUBCLASSABLE:
        return None  # os.stat_result and its like: made by C alone, of numbers and texts
    faithful = reads_as(cls, base)

    def finish(copies: list[Any]) -> Any:
        made = base.__new__(cls, copies) if faithful else base(copies)
        if base.__len__(made) != len(parts):
            raise NotCopyable("two members are one")
        return made

    return Shell(None, parts, finish)


_SUBCLASSABLE: Final = 1 << 10  # Py_TPFLAGS_BASETYPE: every class that Python code made has it


def _filled(
    fill: Callable[..., None], made: Any, base: type[Collection[Any]]
) -> Callable[[list[Any]], Any]:
    def finish(copies: list[Any]) -> Any:
        fill(made, copies)
        if base.__len__(made) != len(copies):
            raise NotCopyable("two members are one")
        return made

    return finish


def _proxy(copies: list[Any]) -> Any:
    return MappingProxyType(dict(zip(copies[::2], copies[1::2], strict=True)))


def _wrapper(made: Any, source: Any) -> Shell:
    """Copy a UserDict or UserList, whose content is its ``data``."""

    def finish(copies: list[Any]) -> Any:
        made.data = copies[0]
        return made

    return Shell(made, [instance_dict(source).get("data")], finish)


def _with_state(shell: Shell, source: Any) -> Shell:
    """Let a copy of the same class have copies of the attributes as well."""
    state = instance_dict(source)
    if not state or type(shell.made) is not type(source):
        return shell

    def finish(copies: list[Any]) -> Any:
        made = shell.finish(copies[:-1])
        instance_dict(made).update(copies[-1])
        return made

    return Shell(shell.made, [*shell.parts, state], finish)


def _instance(source: Any, cls: Any) -> Shell:
    """Copy a dataclass or model: its slots and its ``__dict__``, past its own ``__init__`` and
    ``__setattr__``.
    """
    if not _reads_plainly(cls, _READERS):
        raise NotCopyable("a dataclass or model with a __getattribute__ of its own")
    try:
        made = object.__new__(cls)
    except TypeError:
        raise NotCopyable("a dataclass or model that is laid out like a builtin") from None
    slots = list(_slots_of(source, cls))
    state = instance_dict(source)

    def finish(copies: list[Any]) -> Any:
        for (descriptor, _), item in zip(slots, copies, strict=False):
            descriptor.__set__(made, item)
        if state:
            instance_dict(made).update(copies[-1])
        return made

    parts: list[Any] = [item for _, item in slots]
    if state:
        parts.append(state)
    return Shell(made, parts, finish)


def _slots_of(source: Any, cls: type) -> Iterator[tuple[Any, Any]]:
    """Yield the slots that hold something, each with what it holds."""
    for base in _mro(cls):
        for descriptor in _names_of(base).values():
            if type(descriptor) is not MemberDescriptorType:
                continue
            try:
                yield descriptor, descriptor.__get__(source)
            except AttributeError:  # an empty slot
                continue
