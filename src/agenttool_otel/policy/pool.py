"""Idle workers of one bundle, for engines that evaluate somewhere else than in the caller's thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from agenttool_otel.errors import PolicyUnavailable
from agenttool_otel.policy.bundle import Bundle

__all__ = ["Worker", "WorkerPool"]


class Worker(Protocol):
    """What holds a bundle and answers questions about it, one at a time."""

    def stop(self) -> None:
        """End it; it is not used again."""


_Worker = TypeVar("_Worker", bound=Worker)


class WorkerPool(Generic[_Worker]):
    """Lends workers, and makes another when all are lent. Those of an earlier bundle end when they come back.

    Args:
        bundle: the bundle.
        worker: the first worker, which holds it.
        make: makes a worker for a bundle.
    """

    def __init__(self, bundle: Bundle, worker: _Worker, make: Callable[[Bundle], _Worker]) -> None:
        self._lock = threading.Lock()
        self._make = make
        self._bundle = bundle
        self._idle = [worker]
        self._closed = False

    @property
    def bundle(self) -> Bundle:
        """The bundle in use."""
        return self._bundle

    def swap(self, bundle: Bundle, worker: _Worker) -> None:
        """Use another bundle from the next ``lend`` on.

        Args:
            bundle: the new bundle.
            worker: a worker that holds it.
        """
        with self._lock:
            self._bundle = bundle
            old, self._idle = self._idle, [worker]
        for idle in old:
            idle.stop()

    def lend(self) -> tuple[Bundle, _Worker]:
        """Return a worker, and the bundle that it holds; ``give_back`` it, or stop it.

        Raises:
            PolicyUnavailable: the pool is closed.
        """
        with self._lock:
            if self._closed:
                raise PolicyUnavailable("the policy engine is closed")
            bundle = self._bundle
            if self._idle:
                return bundle, self._idle.pop()
        return bundle, self._make(bundle)

    def give_back(self, bundle: Bundle, worker: _Worker) -> None:
        """Keep a worker for the next question, or stop it when its bundle is no longer in use.

        Args:
            bundle: the bundle that it holds.
            worker: the worker.
        """
        with self._lock:
            if bundle is self._bundle and not self._closed:
                self._idle.append(worker)
                return
        worker.stop()

    def close(self) -> None:
        """Stop the workers that are idle; further ``lend`` raises PolicyUnavailable."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.stop()
