"""Calls that wait for an answer in this process: what they would run, with the very objects they
were given.

Another process resumes from the sealed JSON arguments of the store; this one can give a method its
instance and a function the arguments that have no JSON form. Forgetting an entry only means the
former.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.target import Target
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.values.forks import new_lock


class PausedCall(NamedTuple):
    """One waiting call."""

    spec: ToolSpec  # its tool
    target: Target  # what it would run
    args: tuple[Any, ...]  # the positional arguments it was given
    kwargs: dict[str, Any]  # the keyword arguments it was given


class PausedCalls:
    """The waiting calls of one Governor, the oldest forgotten first."""

    def __init__(self, limit: int = 1024) -> None:
        self._calls: OrderedDict[str, PausedCall] = OrderedDict()
        self._limit = limit
        self._lock = new_lock()

    def keep(self, call: Invocation, target: Target) -> None:
        """Remember a call that was just paused."""
        with self._lock:
            self._calls[call.id] = PausedCall(call.spec, target, call.call_args, call.call_kwargs)
            if len(self._calls) > self._limit:
                self._calls.popitem(last=False)

    def look(self, invocation_id: str) -> PausedCall | None:
        """Return a waiting call and let it wait on."""
        with self._lock:
            return self._calls.get(invocation_id)

    def put_back(self, invocation_id: str, paused: PausedCall) -> None:
        """Let a call that was taken wait on, unless it waits again already."""
        with self._lock:
            self._calls.setdefault(invocation_id, paused)

    def take(self, invocation_id: str) -> PausedCall | None:
        """Return a waiting call and forget it."""
        with self._lock:
            return self._calls.pop(invocation_id, None)
