"""Writing to a store that may hang, from a caller that must not: a worker thread, a short queue and
a deadline.

The producer stays in the caller's thread, with its context and its exceptions. What is counted
against the deadline is only the time that the caller waits for the store.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

from agenttool_otel.errors import PersistenceError
from agenttool_otel.results.stores.types import PayloadStore, PersistedRef
from agenttool_otel.values.forks import new_lock

_T = TypeVar("_T")
_QUEUED_PIECES: Final = 4
_PIECE_BYTES: Final = 1 << 18
_MAX_HANGING_WORKERS: Final = 8
_POLL_S: Final = 0.5


class StoreTimeout(PersistenceError):
    """The store did not answer in time."""


class _Abandoned(Exception):
    """Ends a worker whose caller has gone."""


class Upload:
    """One payload on its way to a store.

    A worker that the store keeps beyond the deadline is left behind: it ends when the store lets go
    of it, and its payload is discarded. When many are left behind at once, new uploads fail at once
    instead of adding to them.
    """

    def __init__(
        self, store: PayloadStore, media_type: str, *, deadline_s: float, **options: Any
    ) -> None:
        self._left_s = deadline_s
        self._buffer = bytearray()
        self._queue: queue.Queue[bytes | None] = queue.Queue(_QUEUED_PIECES)
        self._gone = threading.Event()
        self._stored = _start(lambda: self._store(store, media_type, options), "agenttool-upload")

    def write(self, data: bytes) -> None:
        """Pass bytes on."""
        if len(self._buffer) + len(data) < _PIECE_BYTES:
            self._buffer += data  # many small writes make one hand-over
            return
        self._flush()
        view = memoryview(data)
        for start in range(0, view.nbytes, _PIECE_BYTES):
            self._put(bytes(view[start : start + _PIECE_BYTES]))

    def commit(self) -> PersistedRef:
        """End the upload, and return the reference."""
        self._flush()
        self._put(None)
        try:
            _wait(self._stored, self._left_s)
        except StoreTimeout:
            self.abort()
            raise
        if (error := self._stored.exception()) is not None:
            raise _as_persistence_error(error)
        return self._stored.result()

    def abort(self) -> None:
        """Give up: the store discards what it has. Does not wait."""
        self._gone.set()

    def _flush(self) -> None:
        if self._buffer:
            data, self._buffer = bytes(self._buffer), bytearray()
            self._put(data)

    def _put(self, item: bytes | None) -> None:
        while True:
            if self._stored.done():
                raise _as_persistence_error(self._stored.exception())
            started = time.monotonic()
            try:
                self._queue.put(item, timeout=min(_POLL_S, max(0.001, self._left_s)))
                return
            except queue.Full:
                if time.monotonic() - started >= self._left_s:
                    self.abort()
                    _leave_behind(self._stored)
                    raise StoreTimeout("the store did not answer in time") from None
            finally:
                self._left_s -= time.monotonic() - started

    def _store(self, store: PayloadStore, media_type: str, options: dict[str, Any]) -> PersistedRef:
        ref: PersistedRef | None = store.put_stream(self._pieces(), media_type, **options)
        if ref is None:
            raise PersistenceError("the store gave no reference")
        # finished after its caller had left: nobody will ever know the reference
        if self._gone.is_set():
            with suppress(PersistenceError):
                store.delete(ref.uri)
        return ref

    def _pieces(self) -> Iterator[bytes]:
        while not self._gone.is_set():
            with suppress(queue.Empty):
                if (item := self._queue.get(timeout=_POLL_S)) is None:
                    return
                yield item
        raise _Abandoned


def call_with_deadline(function: Callable[[], _T], deadline_s: float) -> _T:
    """Return what a function returns, or stop waiting for it."""
    future = _start(function, "agenttool-store")
    _wait(future, deadline_s)
    return future.result()


def _start(function: Callable[[], _T], name: str) -> Future[_T]:
    """Run a function in a thread of its own; one that hangs does not keep the process from
    ending.
    """
    with _hanging_lock:
        if _hanging >= _MAX_HANGING_WORKERS:
            raise StoreTimeout("the store hangs")
    future: Future[_T] = Future()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def _wait(future: Future[Any], timeout_s: float) -> None:
    try:
        future.exception(max(0.0, timeout_s))
    except TimeoutError:
        _leave_behind(future)
        raise StoreTimeout("the store did not answer in time") from None


_hanging = 0
_hanging_lock = new_lock()


def _leave_behind(future: Future[Any]) -> None:
    _count_hanging(1)
    future.add_done_callback(lambda _: _count_hanging(-1))


def _count_hanging(change: int) -> None:
    global _hanging
    with _hanging_lock:
        _hanging += change


def _as_persistence_error(error: BaseException | None) -> PersistenceError:
    if isinstance(error, PersistenceError):
        return error
    if error is None:
        return PersistenceError("the store stopped reading")
    wrapped = PersistenceError(f"the store failed: {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped
