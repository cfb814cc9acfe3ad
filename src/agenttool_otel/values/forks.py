"""What a forked child makes anew: a lock that another thread held at the fork stays held there for
ever.

``os.fork`` copies memory and only the thread that called it. So every lock of this package comes
from here, and is free in a child even if the parent held it. Threads and caches of a module are
reset by a function given to ``in_child``.

Source: https://docs.python.org/3/library/os.html#os.register_at_fork
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

_locks: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """Return a lock that is free in a forked child."""
    return _kept(threading.Lock())


def new_rlock() -> threading.RLock:
    """Return a reentrant lock that is free in a forked child."""
    return _kept(threading.RLock())


def new_condition(lock: threading.RLock | None = None) -> threading.Condition:
    """Return a condition that is free, and without waiters, in a forked child.

    Args:
        lock: what it is a condition of; one of its own where not given.
    """
    return _kept(threading.Condition(lock))


class _Slots(threading.BoundedSemaphore):
    def _at_fork_reinit(self) -> None:
        self.__init__(self._initial_value)  # type: ignore[misc, attr-defined]  # who has a slot is not in the child


def new_slots(count: int) -> threading.BoundedSemaphore:
    """Return so many slots for work at the same time, all of them free in a forked child."""
    return _kept(_Slots(count))


class cached_property(functools.cached_property[T]):
    """``functools.cached_property``; CPython 3.11's holds a lock of the class while it computes a
    value.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        if hasattr(self, "lock"):
            _locks.add(self.lock)


def in_child(reset: Callable[[], None]) -> None:
    """Call a function in each forked child, after its locks were freed.

    Args:
        reset: makes anew what the child must not share with its parent; never raises.
    """
    around_fork(after_in_child=reset)


def around_fork(**functions: Callable[[], None]) -> None:
    """Call functions before a fork and after it.

    Args:
        functions: ``before``, ``after_in_parent`` and ``after_in_child``, as for
          ``os.register_at_fork``.
    """
    if hasattr(os, "register_at_fork"):  # there is no fork on Windows
        os.register_at_fork(**functions)


def _kept(lock: T) -> T:
    _locks.add(lock)
    return lock


def _free_locks() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # as logging and concurrent.futures do with theirs


in_child(_free_locks)
