"""The deep copy that becomes ``call_input``: what runs is what was decided (design section 3).

Containers of exact builtin types, dataclasses and pydantic models are copied, down to the bottom and with shared parts
shared; immutable values stay what they are. Objects of other classes can't be copied without running their code and
stay the same objects: a tool that takes such an object takes it as it is when it runs.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from contextlib import suppress
from typing import Any, Final

from agenttool_otel.records.inspection import Kind, kind_of

__all__ = ["snapshot"]

_ATOMS: Final = frozenset({str, int, bool, float, type(None), bytes})
_MISSING: Final = object()


def snapshot(value: Any) -> Any:
    """Return the deep copy of a value; never raises, and a part that can't be copied is kept by reference."""
    if type(value) is dict:
        for item in value.values():
            if type(item) not in _ATOMS:
                break
        else:
            return value.copy()
    try:
        return _Copier().copy(value)
    except Exception:
        return value


class _Copier:
    """Copies without recursion: containers are made empty first and filled when their turn comes.

    Tuples, sets and frozensets can't be filled later. They are made from a list once all their items are ready, which
    a second pass does from the inside to the outside.
    """

    def __init__(self) -> None:
        self._memo: dict[int, Any] = {}
        self._keep: list[Any] = []

    def copy(self, value: Any) -> Any:
        order: list[Any] = []
        todo = [value]
        while todo:
            source = todo.pop()
            if type(source) in _ATOMS or id(source) in self._memo:
                continue
            shell = self._shell(source)
            self._memo[id(source)] = shell
            self._keep.append(source)
            if shell is source:
                continue
            order.append(source)
            todo.extend(_parts(source))
        # Sources found later lie deeper, except for shared parts; immutable containers are therefore resolved on
        # demand, and only cycles through them (which need a mutable link) see the filled mutable shell.
        for source in order:
            self._fill(source)
        return self._resolve(value)

    def _shell(self, source: Any) -> Any:
        cls = type(source)
        if cls in (dict, OrderedDict, list, set, deque):
            return deque(maxlen=source.maxlen) if cls is deque else cls()
        if cls is defaultdict:
            return defaultdict(source.default_factory)
        if cls is bytearray:
            return bytearray(source)
        if cls in (tuple, frozenset):
            return _MISSING if source else source
        kind = kind_of(source)
        if kind in (Kind.DATACLASS, Kind.MODEL):
            with suppress(TypeError):  # abstract, or laid out like a builtin
                return object.__new__(cls)
        return source

    def _resolve(self, source: Any) -> Any:
        if type(source) in _ATOMS:
            return source
        made = self._memo.get(id(source), source)
        if made is not _MISSING:
            return made
        # An iterative post-order over immutable containers only.
        stack = [source]
        while stack:
            top = stack[-1]
            waiting = [part for part in top if type(part) not in _ATOMS and self._memo.get(id(part), part) is _MISSING]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if self._memo[id(top)] is _MISSING:
                self._memo[id(top)] = type(top)(
                    part if type(part) in _ATOMS else self._memo.get(id(part), part) for part in top
                )
        return self._memo[id(source)]

    def _fill(self, source: Any) -> None:
        made = self._memo[id(source)]
        cls = type(source)
        if cls in (dict, OrderedDict, defaultdict):
            for key, item in source.items():
                made[self._resolve(key)] = self._resolve(item)
        elif cls in (list, deque):
            made.extend([self._resolve(item) for item in source])
        elif cls is set:
            made.update(self._resolve(item) for item in source)
        elif made is not _MISSING and cls is not bytearray:
            for name, item in _state(source):
                object.__setattr__(made, name, self._resolve(item))


def _state(source: Any) -> list[tuple[str, Any]]:
    """Return the instance state of a dataclass or model: its slots and its ``__dict__``, which is copied as a dict."""
    found: list[tuple[str, Any]] = []
    for base in type(source).__mro__:
        for name, descriptor in base.__dict__.items():
            if type(descriptor).__name__ == "member_descriptor":
                try:
                    found.append((name, descriptor.__get__(source)))
                except AttributeError:
                    continue
    with suppress(AttributeError):
        found.append(("__dict__", object.__getattribute__(source, "__dict__")))
    return found


def _parts(source: Any) -> list[Any]:
    cls = type(source)
    if cls in (dict, OrderedDict, defaultdict):
        return [part for item in source.items() for part in item]
    if cls in (list, tuple, set, frozenset, deque):
        return list(source)
    if cls is bytearray:
        return []
    return [item for _, item in _state(source)]
