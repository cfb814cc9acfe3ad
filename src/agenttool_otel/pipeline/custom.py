"""Calls that wait for a result: a custom tool is permitted here and runs elsewhere (openboa, "Custom tools").

They wait in the memory of this process: what a caller holds is an invocation id, and the id alone says nothing about a
call that another process permitted. When the process ends, its waiting calls end with it; a claimed approval among them
is then reported as interrupted by the approval store.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agenttool_otel.errors import InvocationConflict, InvocationNotFound
from agenttool_otel.invocation import Invocation

__all__ = ["RequiredAction", "RequiredActions", "continued"]


@dataclass(frozen=True, slots=True)
class RequiredAction:
    """A call that the host has to run.

    Attributes:
        invocation_id: what to complete it with.
        tool_id: the tool.
        tool_name: the name that models call.
        arguments: the JSON arguments it was permitted with.
        native_call_id: the model's or framework's id of the call.
        since: since when it waits.
    """

    invocation_id: str
    tool_id: str
    tool_name: str
    arguments: dict[str, Any] = field(repr=False)
    native_call_id: str | None
    since: datetime


class RequiredActions:
    """The waiting calls of one Governor; each is taken once, by a result or by an interrupt.

    Args:
        limit: how many may wait; nothing that waits is forgotten, so further ones are refused.
        remembered: how many ended ones are told from ids that were never there.
    """

    def __init__(self, limit: int = 10_000, remembered: int = 10_000) -> None:
        self._waiting: dict[str, Invocation] = {}
        self._ended: OrderedDict[str, str] = OrderedDict()
        self._limit = limit
        self._remembered = remembered
        self._lock = threading.Lock()

    def keep(self, call: Invocation) -> bool:
        """Let a call wait.

        Args:
            call: the call, permitted.

        Returns:
            Whether there was room for it.
        """
        with self._lock:
            if len(self._waiting) >= self._limit:
                return False
            self._waiting[call.id] = call
            return True

    def look(self, invocation_id: str) -> Invocation:
        """Return a waiting call and let it wait on.

        Args:
            invocation_id: the invocation.

        Raises:
            InvocationNotFound: no such call waits.
            InvocationConflict: it was completed or interrupted already.
        """
        with self._lock:
            call = self._waiting.get(invocation_id)
            ended = self._ended.get(invocation_id)
        if call is not None:
            return call
        if ended is not None:
            raise InvocationConflict(f"the call was {ended} already")
        raise InvocationNotFound("no call of that id waits for a result in this process")

    def take(self, invocation_id: str, how: str) -> Invocation:
        """Return a waiting call and end its waiting; of several takers one gets it.

        Args:
            invocation_id: the invocation.
            how: completed or interrupted.

        Raises:
            InvocationNotFound: no such call waits.
            InvocationConflict: it was completed or interrupted already.
        """
        with self._lock:
            call = self._waiting.pop(invocation_id, None)
            if call is not None:
                self._ended[invocation_id] = how
                if len(self._ended) > self._remembered:
                    self._ended.popitem(last=False)
                return call
        self.look(invocation_id)
        raise InvocationNotFound("no call of that id waits for a result in this process")

    def __iter__(self) -> Any:
        return iter(self.list())

    def list(self) -> Sequence[RequiredAction]:
        """Return what waits, oldest first."""
        with self._lock:
            calls = list(self._waiting.values())
        return [
            RequiredAction(
                invocation_id=call.id,
                tool_id=call.spec.tool_id,
                tool_name=call.spec.name,
                arguments=call.call_input(),
                native_call_id=call.native_call_id,
                since=datetime.fromtimestamp(call.transitions[-1][1] / 1e9, UTC),
            )
            for call in calls
        ]


def continued(call: Invocation) -> Invocation:
    """Return the same invocation for its second part: another span and result, the same id, decisions and records.

    The first part's envelope was handed out and must not change any more.

    Args:
        call: the waiting call.
    """
    _ = call.decision_id  # made when first asked for; both parts must tell the same one
    second = copy.copy(call)
    second.__dict__.pop("result_id", None)
    second.transitions = list(call.transitions)
    second.resumed = True
    second.t0 = time.perf_counter()
    second.ended_ns = None
    return second
