"""Writing to a store that may hang, from a caller that must not: a worker thread, a short queue and a deadline.

The producer stays in the caller's thread, with its context and its exceptions. What is counted against the deadline is
only the time that the caller waits for the store.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

from agenttool_otel.errors import PersistenceError
from agenttool_otel.results.stores.types import PayloadStore, PersistedRef

__all__ = ["StoreTimeout", "Upload", "call_with_deadline"]

_T = TypeVar("_T")
_QUEUED: Final = 4
_PIECE_BYTES: Final = 1 << 18
_MAX_HANGING: Final = 8
_POLL_S: Final = 0.5


class StoreTimeout(PersistenceError):
    """The store did not answer in time."""


class _Abandoned(Exception):
    """Ends a worker whose caller has gone."""


_hanging = 0
_hanging_lock = threading.Lock()


class Upload:
    """One payload on its way to a store.

    A worker that the store keeps beyond the deadline is left behind: it ends when the store lets go of it, and its
    payload is discarded. When many are left behind at once, new uploads fail at once instead of adding to them.

    Args:
        store: where to.
        media_type: media type of the bytes.
        deadline_s: seconds that the caller may wait in all.
        **options: passed to ``put_stream``.

    Raises:
        StoreTimeout: too many workers hang already.
    """

    def __init__(self, store: PayloadStore, media_type: str, *, deadline_s: float, **options: Any) -> None:
        _check_hanging()
        self._left = deadline_s
        self._buffer = bytearray()
        self._queue: queue.Queue[bytes | None] = queue.Queue(_QUEUED)
        self._gone = threading.Event()
        self._done = threading.Event()
        self._ref: PersistedRef | None = None
        self._error: BaseException | None = None
        self._worker = threading.Thread(
            target=self._work, args=(store, media_type, options), name="agenttool-upload", daemon=True
        )
        self._worker.start()

    def write(self, data: bytes) -> None:
        """Pass bytes on.

        Raises:
            PersistenceError: the store failed, or the deadline passed.
        """
        if len(self._buffer) + len(data) < _PIECE_BYTES:
            self._buffer += data  # many small writes make one hand-over
            return
        self._flush()
        view = memoryview(data)
        for start in range(0, view.nbytes, _PIECE_BYTES):
            self._put(bytes(view[start : start + _PIECE_BYTES]))

    def _flush(self) -> None:
        if self._buffer:
            data, self._buffer = bytes(self._buffer), bytearray()
            self._put(data)

    def commit(self) -> PersistedRef:
        """Say that this was all, and return the reference.

        Raises:
            PersistenceError: the store failed, or the deadline passed.
        """
        self._flush()
        self._put(None)
        started = time.monotonic()
        if not self._done.wait(max(0.0, self._left)):
            self._leave()
        self._left -= time.monotonic() - started
        if self._error is not None:
            raise _as_persistence_error(self._error)
        if self._ref is None:
            raise PersistenceError("the store gave no reference")
        return self._ref

    def abort(self) -> None:
        """Give up: the store discards what it has. Does not wait."""
        self._gone.set()

    def _put(self, item: bytes | None) -> None:
        while True:
            if self._done.is_set():
                raise _as_persistence_error(self._error or PersistenceError("the store stopped reading"))
            started = time.monotonic()
            try:
                self._queue.put(item, timeout=min(_POLL_S, max(0.001, self._left)))
            except queue.Full:
                self._left -= time.monotonic() - started
                if self._left <= 0:
                    self._leave()
            else:
                self._left -= time.monotonic() - started
                return

    def _leave(self) -> None:
        self._gone.set()
        _leave_behind(self._worker)
        raise StoreTimeout("the store did not answer in time")

    def _work(self, store: PayloadStore, media_type: str, options: dict[str, Any]) -> None:
        try:
            self._ref = store.put_stream(self._chunks(), media_type, **options)
            if self._gone.is_set():  # finished after its caller had left: nobody will ever know the reference
                with suppress(PersistenceError):
                    store.delete(self._ref.uri)
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    def _chunks(self) -> Iterator[bytes]:
        while True:
            if self._gone.is_set():
                raise _Abandoned
            try:
                item = self._queue.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            if item is None:
                return
            yield item


def call_with_deadline(function: Callable[[], _T], deadline_s: float) -> _T:
    """Return what a function returns, or stop waiting for it.

    Args:
        function: reads from a store; it runs in a thread of its own.
        deadline_s: seconds to wait.

    Raises:
        StoreTimeout: it took longer, or too many others hang.
        Exception: whatever the function raised.
    """
    _check_hanging()
    outcome: list[_T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(function())
        except BaseException as error:
            failure.append(error)

    worker = threading.Thread(target=run, name="agenttool-store", daemon=True)
    worker.start()
    worker.join(deadline_s)
    if worker.is_alive():
        _leave_behind(worker)
        raise StoreTimeout("the store did not answer in time")
    if failure:
        raise failure[0]
    return outcome[0]


def _check_hanging() -> None:
    with _hanging_lock:
        if _hanging >= _MAX_HANGING:
            raise StoreTimeout("the store hangs")


def _leave_behind(worker: threading.Thread) -> None:
    global _hanging
    with _hanging_lock:
        _hanging += 1

    def wait() -> None:
        global _hanging
        worker.join()
        with _hanging_lock:
            _hanging -= 1

    threading.Thread(target=wait, name="agenttool-left-behind", daemon=True).start()


def _as_persistence_error(error: BaseException) -> PersistenceError:
    if isinstance(error, PersistenceError):
        return error
    wrapped = PersistenceError(f"the store failed: {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped
