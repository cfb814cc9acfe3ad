"""Calls that wait for an answer in this process: what they would run, with the very objects they were given.

Another process resumes from the sealed JSON arguments of the store; this one can give a method its instance and a
function the arguments that have no JSON form. Forgetting an entry only means the former.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

from agenttool_otel.invocation import Invocation
from agenttool_otel.pipeline.target import Target

__all__ = ["PausedCall", "PausedCalls"]


class PausedCall(NamedTuple):
    """One waiting call.

    Attributes:
        target: what it would run.
        args: the positional arguments it was given.
        kwargs: the keyword arguments it was given.
    """

    target: Target
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class PausedCalls:
    """The waiting calls of one Governor, the oldest forgotten first.

    Args:
        limit: how many are kept.
    """

    def __init__(self, limit: int = 1024) -> None:
        self._calls: OrderedDict[str, PausedCall] = OrderedDict()
        self._limit = limit
        self._lock = threading.Lock()

    def keep(self, call: Invocation, target: Target) -> None:
        """Remember a call that was just paused.

        Args:
            call: the call.
            target: what it would run.
        """
        with self._lock:
            self._calls[call.id] = PausedCall(target, call.call_args, call.call_kwargs)
            if len(self._calls) > self._limit:
                self._calls.popitem(last=False)

    def look(self, invocation_id: str) -> PausedCall | None:
        """Return a waiting call and let it wait on.

        Args:
            invocation_id: the invocation.
        """
        with self._lock:
            return self._calls.get(invocation_id)

    def put_back(self, invocation_id: str, paused: PausedCall) -> None:
        """Let a call that was taken wait on, unless it waits again already.

        Args:
            invocation_id: the invocation.
            paused: what was taken.
        """
        with self._lock:
            self._calls.setdefault(invocation_id, paused)

    def take(self, invocation_id: str) -> PausedCall | None:
        """Return a waiting call and forget it.

        Args:
            invocation_id: the invocation.
        """
        with self._lock:
            return self._calls.pop(invocation_id, None)
