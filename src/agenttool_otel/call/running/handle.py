"""The handle of a call that goes on: its body looks into it, and a request to stop the
call goes through it.

A request, what became of it and the call's own end are separate facts: a function that nobody can
stop goes on, and then the cancellation has failed, whatever its caller got.
"""

from __future__ import annotations

import concurrent.futures
import time
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

from agenttool_otel.names import (
    AbortReason,
    Attr,
    CancelOutcome,
    Event,
    InvocationStatus,
    ProgressStatus,
)
from agenttool_otel.records.base import utc_of
from agenttool_otel.values.forks import new_lock

if TYPE_CHECKING:  # a program that only cancels calls pays for no records
    from agenttool_otel.records import ExternalMapping, ToolProgress


@dataclass(slots=True)
class CancelState:
    """A request to cancel and what became of it; it changes while the call goes on.

    Attributes:
        invocation_id: the call.
        reason: why, redacted.
        abort_reason: the standard's word for it.
        requested_at: seconds since the epoch.
        acknowledged_at: when the call took the request, if it has.
        outcome: ``canceled`` when the call ended for it, ``cancel_failed`` when it ended otherwise
            or goes on where nobody waits for it any more; ``None`` while that is open.
    """

    invocation_id: str
    reason: str = ""
    abort_reason: str = AbortReason.USER_INTERRUPTION.value
    requested_at: float = field(default_factory=time.time)
    acknowledged_at: float | None = None
    outcome: CancelOutcome | None = None


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call that goes on in this process; ``governor.cancel(invocation_id, reason)`` stops it.

    Attributes:
        invocation_id: the call.
        tool_id: its tool.
        tool_name: the name that models call.
        status: its state: ``running``, or ``queued`` or ``awaiting_approval`` before that.
        planned_at: when it was made.
        started_at: when its body started; ``None`` before.
        native_call_id: the model's or framework's id of the call.
        actor_id: who called.
        tenant: the actor's tenant.
        session_id: in which session.
    """

    invocation_id: str
    tool_id: str
    tool_name: str
    status: InvocationStatus
    planned_at: datetime
    started_at: datetime | None = None
    native_call_id: str | None = None
    actor_id: str = ""
    tenant: str | None = None
    session_id: str | None = None


class HandledCall(Protocol):
    """The members of an Invocation that its handle reads or writes."""

    id: str
    native_call_id: str | None
    created_ns: int
    cancellation: CancelState | None
    executor: concurrent.futures.Executor | None
    reported: int

    @property
    def spec(self) -> Any:
        """Its tool, as ToolSpec."""

    @property
    def context(self) -> Any:
        """Who calls, as AgentContext."""

    @property
    def outcome(self) -> Any:
        """How far it came, as CallOutcome."""


class HasHandle(Protocol):
    """A call that goes on; of one on the straight way there is an Invocation once it is asked for."""

    id: str

    @property
    def executor(self) -> concurrent.futures.Executor | None:
        """Where its body runs, where that is not here."""

    @property
    def whole(self) -> HandledCall:
        """The call with all that there is of it, its Invocation."""


class Reports(Protocol):
    """Records what happens to a running call; its ``Reporter``, which takes the Invocation."""

    every_step: bool
    """Whether the steps that every call has are recorded, too."""

    def emit(self, call: Any, name: str, attributes: dict[str, Any]) -> None:
        """Emit an event."""

    def map(self, call: Any, mappings: list[ExternalMapping]) -> None:
        """Add native ids to the call, redacted."""

    def progress(self, call: Any, sequence: int, facts: dict[str, Any]) -> None:
        """Emit one progress record."""

    def lost(self, error: Exception) -> None:
        """Count a report that could not be made."""


# one for all calls: it is held for some assignments, and a lock a call costs more
_mutex: Final = new_lock()


class CallHandle:
    """A call, as its own body sees it; ``current_call()`` gives it.

    Attributes:
        invocation_id: the call.
        deadline: when its time is over, on the clock of ``time.monotonic()``; ``None`` without a
          limit.
        inside: who decides what the body reports to do, with the call, what it runs and its session;
          only while the body runs in this process.
        left_behind: whether the body goes on after its call ended; then the body's end is the end of
          its progress.
        cancellation: the request to stop, if there is one.
    """

    __slots__ = (
        "__weakref__",
        "_given",
        "_stop",
        "cancellation",
        "children",
        "deadline",
        "held_back",
        "inside",
        "invocation_id",
        "left_behind",
        "locks",
        "next_report",
        "parent",
        "reporter",
    )

    def __init__(self, call: HasHandle, reporter: Reports) -> None:
        self._given = call
        self.invocation_id = call.id
        self.reporter = reporter
        self.inside: tuple[Any, ...] | None = None
        self.deadline: float | None = None
        self.cancellation: CancelState | None = None
        self.children: weakref.WeakSet[CallHandle] | None = None
        self.parent = running_body.get()
        if self.parent is not None:
            self.parent.adopt(self)
        self.locks: frozenset[str] = frozenset()
        self.next_report = 0.0
        self.held_back: dict[str, Any] | None = None
        self.left_behind = False
        self._stop: Callable[[], Any] | None = None

    @property
    def _call(self) -> HandledCall:
        return self._given.whole

    @property
    def canceled(self) -> bool:
        """Whether the call was asked to stop; reading this acknowledges the request."""
        if self.cancellation is None:
            return False
        self.acknowledge()
        return True

    def raise_if_canceled(self) -> None:
        """Stop here if the call was asked to stop.

        Raises:
            concurrent.futures.CancelledError: it was.
        """
        if self.canceled:
            raise concurrent.futures.CancelledError(f"{self.invocation_id} was canceled")

    def map(self, mapping: ExternalMapping) -> None:
        """Add a native id that is known only while the call goes on; it is redacted.

        Args:
            mapping: the ids, for example a ``CliMapping`` with the exit code.
        """
        self.reporter.map(self._call, [mapping])

    def describe(self) -> RunningCall:
        """Return what is known of the call from outside; nothing of its arguments."""
        call, context = self._call, self._call.context
        started_ns = call.outcome.started_ns
        return RunningCall(
            invocation_id=call.id,
            tool_id=call.spec.tool_id,
            tool_name=call.spec.name,
            status=call.outcome.status,
            planned_at=utc_of(call.created_ns),
            started_at=utc_of(started_ns) if started_ns else None,
            native_call_id=call.native_call_id,
            actor_id=context.actor,
            tenant=context.tenant,
            session_id=context.session_id,
        )

    # --- who wants it stopped, and what became of that --------------------------------------------

    def request(self, state: CancelState) -> CancelState:
        """Ask the call to stop; the first request stands.

        Args:
            state: the request.
        """
        call = self._call
        with _mutex:
            if self.cancellation is not None:
                return self.cancellation
            self.cancellation = call.cancellation = state
            stop = self._stop
        self.reporter.emit(
            self._call, Event.CANCEL_REQUESTED, {Attr.ABORT_REASON: state.abort_reason}
        )
        if stop is not None:
            stop()
        self._request_of_children(state)
        return state

    def adopt(self, child: CallHandle) -> None:
        """Note a call that is made in this one's body: who stops this one stops it, too.

        Args:
            child: the call.
        """
        with _mutex:
            if self.children is None:
                self.children = weakref.WeakSet()
            self.children.add(child)

    def leave_parent(self) -> None:
        """Note that this call has ended: a request to stop the one around it concerns it no
        more.
        """
        with _mutex:
            if self.parent is not None and self.parent.children is not None:
                self.parent.children.discard(self)

    def runs_on(self, executor: concurrent.futures.Executor) -> bool:
        """Return whether this call's body, or that of a call around it, runs on an executor.

        Args:
            executor: where it may run.
        """
        return self._given.executor is executor or (
            self.parent is not None and self.parent.runs_on(executor)
        )

    def _request_of_children(self, state: CancelState) -> None:
        with _mutex:
            children = list(self.children or ())
        for child in children:
            child.request(CancelState(child.invocation_id, state.reason, state.abort_reason))

    def acknowledge(self) -> None:
        """Note that the call has taken the request."""
        state = self.cancellation
        if state is not None and state.acknowledged_at is None:
            state.acknowledged_at = time.time()
            self.reporter.emit(
                self._call, Event.CANCEL_ACKNOWLEDGED, {Attr.ABORT_REASON: state.abort_reason}
            )

    def settle(self, outcome: CancelOutcome) -> None:
        """Note what became of the request.

        Args:
            outcome: whether the call ended for it.
        """
        state = self.cancellation
        if state is None or state.outcome is not None:
            return
        state.outcome = outcome
        if outcome is CancelOutcome.CANCELED:
            self.acknowledge()
        else:
            self.reporter.emit(
                self._call, Event.CANCEL_FAILED, {Attr.ABORT_REASON: state.abort_reason}
            )

    def stop_with(self, stop: Callable[[], Any] | None) -> None:
        """Set how the call can be stopped from now on; a request that came before does it now.

        Args:
            stop: asks for it, in the thread that requests it; ``None`` where only the body
              can.
        """
        with _mutex:
            self._stop = stop
            late = self.cancellation is not None
        if late and stop is not None:
            stop()

    def leave_behind(self, body: concurrent.futures.Future[Any]) -> None:
        """Report that nobody waits for the body any more, and later how it ended.

        Args:
            body: what goes on.
        """
        self.request(CancelState(self.invocation_id, "its time is over", AbortReason.TIMEOUT.value))
        self.settle(CancelOutcome.CANCEL_FAILED)
        self.left_behind = True
        self.report_status(ProgressStatus.BACKGROUNDED)
        body.add_done_callback(self._ended_late)

    def _ended_late(self, body: concurrent.futures.Future[Any]) -> None:
        error = None if body.cancelled() else body.exception()
        if body.cancelled() or isinstance(error, concurrent.futures.CancelledError):
            self.report_status(ProgressStatus.CANCELED)
        else:
            self.report_status(ProgressStatus.COMPLETED if error is None else ProgressStatus.FAILED)

    # --- progress ---------------------------------------------------------------------------------

    def report_status(self, status: ProgressStatus) -> None:
        """Report a step that every call has, where a listener wants these.

        Args:
            status: the step.
        """
        if self.reporter.every_step or any(map(_wants_steps, progress_listeners.get())):
            self.flush()
            self.report({"status": status})

    def report(self, facts: dict[str, Any], pause: float = 0.0) -> int | None:
        """Report progress, or hold it back where the last report is younger than the pause.

        Args:
            facts: fields of the progress record.
            pause: seconds.

        Returns:
            Its number within the call, from 0; ``None`` where it is held back.
        """
        now = time.monotonic()
        call = self._call
        with _mutex:
            if pause and now < self.next_report:
                self.held_back = facts
                return None
            self.held_back, self.next_report = None, now + pause
            sequence = call.reported
            call.reported += 1
        self.reporter.progress(call, sequence, facts)
        return sequence

    def flush(self) -> None:
        """Report what was held back last."""
        if self.held_back is not None:
            self.report(self.held_back)


Listeners = tuple[tuple[Callable[["ToolProgress"], Any], bool], ...]
"""Functions that get progress, and whether each wants the steps that every call has."""

progress_listeners: ContextVar[Listeners] = ContextVar("agenttool_progress", default=())
_wants_steps = itemgetter(1)

running_body: ContextVar[CallHandle | None] = ContextVar("agenttool_call", default=None)
"""The handle of the call in whose body this is; the drivers set it."""


def current_call() -> CallHandle | None:
    """Return the handle of the governed call in whose body this is, or ``None`` outside one."""
    return running_body.get()
