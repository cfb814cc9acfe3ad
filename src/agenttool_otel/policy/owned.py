"""Native objects that only the thread that made them may use and drop.

The native engine panics when another thread uses it, and prints an unraisable error and leaks when another thread drops
it. Who drops an object last is not in our hands: an exception keeps the frames that it passed, and with them whatever
their variables hold, and may cross threads in a future; a cycle is collected in any thread; ``fork`` and the end of the
interpreter drop what the other threads held. So the object itself stays in a table of its thread, and everything else
holds an ``Owned``, which any thread may drop.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final

__all__ = ["Owned"]

_keys = itertools.count()
_tables: Final[dict[int, dict[int, Any]]] = {}
# never dropped: what threads still hold when the process ends, or in the child of a fork, goes with the process
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_tables))


class _Table:
    """The native objects of one thread; emptied when the thread ends."""

    __slots__ = ("__weakref__", "dropped", "natives", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.natives: dict[int, Any] = {}
        self.dropped: deque[int] = deque()
        _tables[id(self.natives)] = self.natives

    def sweep(self) -> None:
        """Drop what other threads let go of."""
        while self.dropped:
            self.natives.pop(self.dropped.popleft(), None)

    def __del__(
        self, thread: Callable[[], int] = threading.get_ident, tables: dict[int, dict[int, Any]] = _tables
    ) -> None:
        if thread() == self.thread:
            tables.pop(id(self.natives), None)
            self.natives.clear()


class _Local(threading.local):
    def __init__(self) -> None:
        self.table = _Table()


_local = _Local()


class Owned:
    """Stands for a native object of the thread that made it.

    Every attribute is the object's own. An attribute is to be called at once and never kept in a variable: it would
    hold the object.

    Args:
        make: makes the object.
    """

    __slots__ = ("_dropped", "_key", "_table", "_thread")

    def __init__(self, make: Callable[[], Any]) -> None:
        table = _local.table
        table.sweep()
        self._key = next(_keys)
        self._thread = table.thread
        self._table = weakref.ref(table)
        self._dropped = table.dropped
        table.natives[self._key] = make()

    def __getattr__(self, name: str) -> Any:
        table = self._table() if threading.get_ident() == self._thread else None
        if table is None:
            raise RuntimeError("a native object is used in a thread that did not make it")
        return getattr(table.natives[self._key], name)

    def __del__(self, thread: Callable[[], int] = threading.get_ident) -> None:
        table = self._table() if thread() == self._thread else None
        if table is not None:
            table.natives.pop(self._key, None)
        else:
            self._dropped.append(self._key)
