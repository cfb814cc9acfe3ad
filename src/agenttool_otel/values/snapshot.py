"""The deep copy that becomes ``call_input``: what runs is what was decided
(standard, "Input contract and mutation boundary").

Everything that ``to_json_value`` shows by its content is copied, down to the bottom and with shared
parts shared, so that it can't be changed any more. The copy is of the same class where that class
reads its content as its builtin base does (named tuples, counters, plain subclasses); a class that
reads it in its own way (a ``dict`` whose ``__getitem__`` answers something else) becomes the base
type, which is what was shown. Values that can't change stay what they are, and so do objects of
other classes: their class is all that is shown of them, and a tool takes them as they are when it
runs.
"""

from __future__ import annotations

from typing import Any, Final

from agenttool_otel.values.copying import NotCopyable, Shell, plain_copy, shell_of
from agenttool_otel.values.inspection import CONTAINERS, kind_of

_ATOMS: Final = frozenset({str, int, bool, float, type(None), bytes})
_MISSING: Final = object()


def snapshot(value: Any) -> Any:
    """Return the deep copy of a value."""
    if type(value) in (dict, list):
        # first copied, then looked at: another thread may change it at any time
        copied = value.copy()
        # {"path": "a.txt"}: nothing in it can be changed
        if type(copied) is list:
            is_flat = _ATOMS.issuperset(map(type, copied))
        else:
            is_flat = _ATOMS.issuperset(map(type, copied.values())) and set(map(type, copied)) <= {
                str
            }
        if is_flat:
            return copied
    try:
        return _Copier().copy(value)
    except NotCopyable:
        raise
    except Exception as error:
        raise NotCopyable(type(error).__name__) from error


class _Copier:
    """Copies without recursion: containers are made empty first and filled from the inside to the
    outside.

    A source is read once, when it is found, and never again: what another thread changes afterwards
    is not seen. Tuples and frozensets can't be filled later; they are made once their items are
    there. Members of sets and keys are whole when they are needed, because they lie deeper.
    """

    def __init__(self) -> None:
        self._memo: dict[int, Any] = {}
        self._shells: dict[int, Shell] = {}
        self._keep: list[Any] = []  # so that no id is used again

    def copy(self, value: Any) -> Any:
        stack: list[tuple[Any, bool]] = [(value, False)]
        while stack:
            source, leaving = stack.pop()
            if leaving:
                self._close(source)
                continue
            if type(source) in _ATOMS or id(source) in self._memo:
                continue
            self._keep.append(source)
            found = self._open(source)
            if found is None:
                continue
            stack.append((source, True))
            for part in found.parts:
                if type(part) not in _ATOMS:
                    stack.append((part, False))
        return self._resolve(value)

    def _close(self, source: Any) -> None:
        self._resolve(source)
        shell = self._shells[id(source)]
        if shell.made is not None:
            shell.finish([self._resolve(part) for part in shell.parts])

    def _open(self, source: Any) -> Shell | None:
        """Read a value once: a container is given back to be filled, of anything else the copy is
        noted.
        """
        kind = kind_of(source)
        if kind not in CONTAINERS:
            self._memo[id(source)] = plain_copy(source, kind)
            return None
        shell = shell_of(source, kind)
        if shell is None:
            self._memo[id(source)] = source
            return None
        self._shells[id(source)] = shell
        self._memo[id(source)] = _MISSING if shell.made is None else shell.made
        return shell

    def _resolve(self, source: Any) -> Any:
        """Return the copy of what was found, making it now if it is one that is made at the end."""
        if type(source) in _ATOMS:
            return source
        made = self._memo[id(source)]
        if made is not _MISSING:
            return made
        stack = [source]
        while stack:
            top = stack[-1]
            shell = self._shells[id(top)]
            copies = [self._copy_of(part) for part in shell.parts]
            waiting = False
            for part, copied in zip(shell.parts, copies, strict=True):
                # ((1, 2), 3): the inner tuple is made before the outer
                if copied is _MISSING:
                    stack.append(part)
                    waiting = True
            if waiting:
                continue
            stack.pop()
            if self._memo[id(top)] is _MISSING:
                self._memo[id(top)] = shell.finish(copies)
        return self._memo[id(source)]

    def _copy_of(self, part: Any) -> Any:
        return part if type(part) in _ATOMS else self._memo[id(part)]
