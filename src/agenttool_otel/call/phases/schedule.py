"""The schedule phase: a call waits for its turn before it is decided, and for its locks before it
runs.

A decision is about the world as it is when the call may run: where a call had to wait after its
decision and the facts have changed meanwhile, it is decided again.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.phases.refusals import Refusals, Refused
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.running.handle import CallHandle
from agenttool_otel.call.scheduler_facts import exclusive, locks_of, settle_modifier
from agenttool_otel.call.scheduling.gate import Gate, LocksNotHad, Place
from agenttool_otel.call.steps import Call
from agenttool_otel.names import (
    ContextModifierPolicy,
    Event,
    InvocationStatus,
    ProgressStatus,
    ResultStatus,
)


class Schedule:
    """Lets calls wait."""

    __slots__ = ("_refusals", "_span", "gate")

    def __init__(self, gate: Gate, span: CallSpan, refusals: Refusals) -> None:
        self.gate = gate
        self._span = span
        self._refusals = refusals

    def queue(self, call: Invocation) -> Generator[Any, Any, None]:
        """Wait for the call's turn, with its facts established."""
        if call.place is not None and call.handle is not None:
            yield from self._wait_for_turn(call, call.place, call.handle)
        self.check(call)

    def _wait_for_turn(
        self, call: Invocation, place: Place, handle: CallHandle
    ) -> Generator[Any, Any, None]:
        self._queued(call)
        # "Concurrency-safe is not the same as read-only" (standard, "Scheduling and concurrency"),
        # and a policy's facts may make one call of a safe tool unsafe
        alone = place.turn.serial or exclusive(call)
        no_locks: frozenset[str] = frozenset()
        try:
            yield Call(self.gate.enter, self.gate.aenter, (handle, place, alone, no_locks))
        except LocksNotHad as error:
            self._refusals.not_let_in(call, f"no turn: {error}")
        if place.owner is None:
            return
        # another call of the batch failed meanwhile, and takes this one with it
        stopped = place.owner.stopped(place, call.id)
        if stopped is not None:
            handle.request(stopped)

    def lock(self, call: Invocation) -> Generator[Any, Any, bool]:
        """Wait for the call's locks, and to be alone if it turned out to need that; return whether it
        had to wait.
        """
        self.check(call)
        handle = call.handle
        place = call.place
        may_wait = place is not None or call.spec.locks or call.spec.exclusive
        if handle is None or not may_wait:
            return False
        upgraded = None
        # let in beside others, and then an approver's edit made it a call that has to be alone
        if place is not None and not place.turn.open.get(place.index) and exclusive(call):
            upgraded = place
        locks = locks_of(call)
        if upgraded is None and locks <= handle.locks:
            return False
        claim = (handle, upgraded, True, locks)
        try:
            waited: bool = yield Call(self.gate.enter, self.gate.aenter, claim)
        except LocksNotHad as error:
            self._refusals.not_let_in(call, f"no lock: {error}")
        self.check(call)
        if waited and place is None:
            self._queued(call)
        return waited

    def unlock(self, call: Invocation) -> None:
        """Give back the call's locks, and keep its place."""
        if call.handle is not None and call.handle.locks:
            self.gate.leave(call.handle, None)

    def check(self, call: Invocation) -> None:
        """End a call that is not to run any more."""
        if call.cancellation is not None:
            self._refusals.cancel(call, None, ResultStatus.SYNTHETIC_ERROR)
            raise Refused

    def leave(self, call: Invocation) -> None:
        """Give back what the call holds."""
        place = call.place
        owner = place.owner if place is not None else None
        # in a batch of an owner, it is the owner that settles the changes of shared context
        if call.modifier is not None and owner is None:
            alone = place is None or exclusive(call)
            settle_modifier(call, ContextModifierPolicy.ALLOW_SERIAL_ONLY, alone=alone)
        if place is not None and owner is not None:
            owner.ended(place)
        handle = call.handle
        if handle is None:
            return
        if place is not None or handle.locks:
            self.gate.leave(handle, place)

    def _queued(self, call: Invocation) -> None:
        call.enter(InvocationStatus.QUEUED)
        if self._span.telemetry.events.wanted(call.span):
            self._span.emit(call, Event.INVOCATION_QUEUED, {})
        if call.handle is not None:
            call.handle.report_status(ProgressStatus.QUEUED)
