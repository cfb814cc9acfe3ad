"""What is known and could not be stored: outcomes, answers, cancellations. Each is tried again
until the store has it.

One daemon thread for each store, and only while something waits; pauses grow. A store that is
closed, and a process that ends, try for a bounded time. A forked child begins without any: its
parent's are stored by its parent.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Final, NamedTuple

from agenttool_otel.errors import ApprovalError, ApprovalStoreError
from agenttool_otel.values.forks import in_child, new_lock

_logger = logging.getLogger("agenttool_otel.approvals")
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 30.0
EXIT_SECONDS: Final = 5.0
"""How long the end of a process waits at most for all stores together."""

_OUTBOXES: weakref.WeakSet[Outbox] = weakref.WeakSet()


class _Item(NamedTuple):
    what: str  # what is stored, in words
    store: Callable[[], object]  # stores it
    settled: Callable[[], object]  # called once it is stored, or can't be


class Outbox:
    """Stores what could not be stored before.

    Attributes:
        changed: called with 1 when something waits, and with -1 when it does no longer.
    """

    def __init__(self) -> None:
        self.changed: Callable[[int], object] = _ignore
        self._lock = new_lock()
        self._begin()
        _OUTBOXES.add(self)

    def _begin(self) -> None:
        self._items: list[_Item] = []
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._items)

    def keep(
        self, what: str, store: Callable[[], object], settled: Callable[[], object] | None = None
    ) -> None:
        """Try to store something until it is there, or the store answers that it can't be.

        Args:
            what: what it is, for the log.
            store: stores it; raises ApprovalStoreError where that fails and may work later.
            settled: called once it is stored, or can't be.
        """
        with self._lock:
            self._items.append(_Item(what, store, settled or _nothing))
            if self._thread is None:
                self._start()
        _logger.warning(
            "the approval store can't take %s now; it is kept, and stored as soon as it can be",
            what,
        )
        self.changed(1)

    def flush(self, seconds: float) -> bool:
        """Try for some seconds, at once and often; return whether everything is stored."""
        ends = time.monotonic() + seconds
        while self._items:
            self._try_all()
            if not self._items or time.monotonic() >= ends:
                break
            time.sleep(_FIRST_PAUSE_SECONDS)
        return not self._items

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="agenttool-outbox", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no more threads, or the interpreter ends, which tries as well
            self._thread = None

    def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            self._try_all()
            with self._lock:
                if not self._items:
                    self._thread = None
                    return

    def _try_all(self) -> None:
        for item in list(self._items):
            if not _is_settled(item):
                return  # what fails for one fails for all
            with self._lock:
                # another thread stored it, too; it is the same once and twice
                if item not in self._items:
                    continue
                self._items.remove(item)
            item.settled()
            self.changed(-1)


def _is_settled(item: _Item) -> bool:
    try:
        item.store()
    except ApprovalStoreError:
        return False
    except (ApprovalError, ValueError) as error:
        _logger.warning("%s can't be stored: %s", item.what, type(error).__name__)
    return True


def _nothing() -> None:
    pass


def _ignore(change: int) -> None:
    pass


def _at_exit() -> None:
    ends = time.monotonic() + EXIT_SECONDS
    for outbox in list(_OUTBOXES):
        if outbox and not outbox.flush(max(0.0, ends - time.monotonic())):
            _logger.warning(
                "%d outcomes or answers of approvals were not stored before the process ended",
                len(outbox),
            )


def _in_child() -> None:
    for outbox in list(_OUTBOXES):
        outbox._begin()


atexit.register(_at_exit)
in_child(_in_child)
