"""The phases of the standard's execution pipeline, once, as a generator without I/O of its own.

It yields steps (decide, ask, execute, wait ...) and receives their results; ``drivers`` performs
or awaits them. Two opposite rules hold side by side: up to the tool's body everything fails closed
(``permission``, ``endings``), from the body on everything fails silent (``body``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import Link

from agenttool_otel.approvals.service import Approvals
from agenttool_otel.call.approval_requests import Questions
from agenttool_otel.call.delivery import Delivery
from agenttool_otel.call.drivers import Steps
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.pending.paused import PausedCalls
from agenttool_otel.call.pending.required import RequiredActions
from agenttool_otel.call.pending.serialized import rehearsed_layer
from agenttool_otel.call.phases.effects import Rehearsing
from agenttool_otel.call.phases.execute import Body, finish
from agenttool_otel.call.phases.hooks import HookRunner
from agenttool_otel.call.phases.in_place import hand_over
from agenttool_otel.call.phases.inputs import Inputs
from agenttool_otel.call.phases.permission import Permission, tool_input
from agenttool_otel.call.phases.refusals import Refusals, Refused
from agenttool_otel.call.phases.reporting import Reporting
from agenttool_otel.call.phases.schedule import Schedule
from agenttool_otel.call.recording.reporter import Reporter
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.running.handle import CallHandle
from agenttool_otel.call.scheduling.gate import DEFAULT_LOCK_TIMEOUT, Gate
from agenttool_otel.call.services import Services
from agenttool_otel.call.steps import Attempt, Call
from agenttool_otel.call.target import Target
from agenttool_otel.catalog.entry import restrictions
from agenttool_otel.catalog.filters import Conditions, not_loaded
from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.sessions import Session, SessionBook
from agenttool_otel.facts.classified import IntentCheck
from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.hooks import Hooks
from agenttool_otel.names import (
    AbortReason,
    ApprovalStatus,
    Attr,
    CancelOutcome,
    ContextOrigin,
    ErrorClass,
    Event,
    InvocationStatus,
    Lifecycle,
    Outcome,
    Ownership,
    ProgressStatus,
    ResultStatus,
)
from agenttool_otel.results.errors.mapper import ErrorMapper
from agenttool_otel.values.ids import new_id

if TYPE_CHECKING:  # loaded where decisions are recorded, or calls rehearsed
    from agenttool_otel.call.rehearsal import RehearsedBody
    from agenttool_otel.evidence.record import DecisionRecorder

_LIFECYCLE_ERRORS = {
    Lifecycle.DRAFT: ErrorClass.BLOCKED_TOOL,
    Lifecycle.DISABLED: ErrorClass.BLOCKED_TOOL,
    Lifecycle.RETIRED: ErrorClass.BLOCKED_TOOL,
    Lifecycle.REQUIRES_SETUP: ErrorClass.SETUP_REQUIRED,
    Lifecycle.DEFERRED: ErrorClass.SCHEMA_NOT_LOADED,
}


_NOTHING_STATED = Conditions()
"""What a tool's restrictions are compared with where no surface states what is there."""

_LAST_STEPS = {
    InvocationStatus.SUCCEEDED: ProgressStatus.COMPLETED,
    InvocationStatus.CANCELED: ProgressStatus.CANCELED,
}

_ENDING: Final = frozenset(
    {ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED, ApprovalStatus.CANCELED}
)
"""States of a request after which its call has ended: it can't be claimed any more."""

# a call that ends while it is being canceled: the request is answered with cancel_failed
_ENDED_KEPT: Final = 1024


class Pipeline:
    """Walks calls through the phases."""

    def __init__(
        self,
        *,
        services: Services,
        span: CallSpan,
        sessions: SessionBook,
        environment: Callable[[AgentContext, Session], FactEnvironment],
        questions: Questions,
        delivery: Delivery,
        errors: ErrorMapper,
        clean: Callable[[str], str],
        known_tools: Callable[[], Mapping[str, Mapping[str, Any]]],
        before: Callable[[], None],
        hooks: Hooks | None = None,
        approvals: Approvals | None = None,
        require_context: bool = False,
        lock_timeout: float = DEFAULT_LOCK_TIMEOUT,
        decisions: DecisionRecorder | None = None,
        intent_check: IntentCheck | None = None,
    ) -> None:
        self.yielded = span.record_yielded
        self._require_context = require_context
        # looks at the settings before the first decision of each set of tools
        self.before = before
        self.environment = environment  # what facts depend on beside the arguments
        self.decisions = decisions  # records each decision, where that is wanted
        self._services = services
        self.span = span
        self._sessions = sessions
        self._refusals = Refusals(span, clean)
        self._inputs = Inputs(self._refusals, span)
        runner = (
            HookRunner(hooks, span, self._refusals, self._inputs) if hooks is not None else None
        )
        self.reporter = Reporter(span)
        self.running: dict[str, CallHandle] = {}  # the calls that go on, by id
        # ids of the calls that ended last, and of their tools
        self._ended: deque[tuple[str, str]] = deque(maxlen=_ENDED_KEPT)
        self.gate = Gate(lock_timeout)
        self._schedule = Schedule(self.gate, span, self._refusals)
        self._permission = Permission(
            self._refusals,
            self._inputs,
            span,
            questions,
            environment,
            runner,
            known_tools,
            self._schedule,
            before,
            decisions,
            intent_check,
        )
        self.paused = PausedCalls()
        self.required = RequiredActions(
            approvals=approvals, lost=partial(span.telemetry.losses.note, "required_action")
        )
        self._rehearsing = Rehearsing(
            self._refusals, span, self._permission, self._schedule, self.paused
        )
        reporting = Reporting(self._refusals, span, self._permission, self.paused, self._rehearsing)
        self._body = Body(
            self._refusals, span, delivery, errors, runner, self._rehearsing, reporting
        )
        self.inside = self._body.inside
        self.take_outcome = self._body.take_outcome

    def run(
        self,
        call: Invocation,
        target: Target,
        links: tuple[Link, ...] = (),
        services: Services | None = None,
    ) -> Steps:
        """Walk one call through all phases.

        Args:
            call: the call, planned.
            target: what it runs.
            links: spans that this call continues.
            services: who decides and asks, where that is not this pipeline's own.

        Returns:
            The generator; it returns the invocation, and raises nothing but GeneratorExit thrown
            into it.
        """
        call.services = services or self._services
        session = self._sessions.of(call.context)
        if call.ticket is not None:
            # the numbers of its progress go on after those from before the pause
            call.reported = max(call.reported, int(call.ticket.context.get("progress") or 0))
            call.held = []
        self.span.begin(call, links)
        if call.mappings:
            given, call.mappings = call.mappings, []
            self.reporter.map(call, given)
        call.handle = self.running[call.id] = CallHandle(call, self.reporter)
        if not call.outcome.transitions:
            call.outcome.transitions.append((InvocationStatus.PLANNED, call.created_ns))
        settled = False
        try:
            admitted = yield from self._admit(call, target, session)
            if admitted and call.effects is not None:
                yield from self._body.deliver(call, target, session, call.effects.attempt)
            elif admitted and call.spec.ownership == Ownership.CUSTOM:
                yield from self._hand_over(call)
            elif admitted:
                yield from self._body.run(call, target, session)
            if session.shared:
                settled = yield Call(self._settle, None, (call, session))
        except BaseException as signal:
            self._refusals.stopped(call, signal)
        finally:
            self._leave(call)
            self._close(call, session, settled)
        return call

    def _leave(self, call: Invocation) -> None:
        """Give back what the call holds, and settle the change of context that it wants."""
        holds = call.place is not None or (call.handle is not None and call.handle.locks)
        if holds or call.modifier is not None:
            self._schedule.leave(call)

    def _admit(
        self, call: Invocation, target: Target, session: Session
    ) -> Generator[Any, Any, bool]:
        """Walk the phases before the body; return whether it may run.

        Any failure here, a bug of this package included, ends the call as not run.
        """
        try:
            self._prepare(call, target, session)
            if call.place is not None:
                self._permission.establish(call, session)
                yield from self._schedule.queue(call)
            if call.ticket is not None and rehearsed_layer(call):
                yield from self._rehearsing.resume(call, target, session)
            else:
                yield from self._permission.resolve(call, target, session)
            if call.spec.by_reference and (changed := hand_over(call)) is not None:
                yield from finish(call, ResultStatus.DENIED)
                self._refusals.blocked(
                    call, f"/{changed}: changed by the caller since it was decided on"
                )
        except Refused:
            if call.outcome.execution is Outcome.PENDING:
                self.paused.keep(call, target)
            elif rehearsed_layer(call):
                yield from self._rehearsing.ended(call)
            return False
        except Exception as bug:
            self._refusals.interrupted(call, bug)
            return False
        if call.held is not None:
            self.span.release(call)
        return True

    def _settle(self, call: Invocation, session: Session) -> bool:
        """Share with the other processes of a session how a call ended."""
        if call.history_entry is not None:
            call.history_entry.outcome = call.outcome.result_status.value
        session.settle(call.id, call.history_entry)
        return True

    def _close(self, call: Invocation, session: Session, settled: bool) -> None:
        """End the call: nobody can stop it any more, and what it held back is reported."""
        handle, call.handle = call.handle, None
        if call.held is not None:
            self._weigh(call)
        ends = call.held is None and call.outcome.execution is not Outcome.PENDING
        if handle is not None:
            self.running.pop(call.id, None)
            if handle.parent is not None:
                handle.leave_parent()
            if handle.cancellation is not None:
                # a body that never looked, such as a blocking read; settled before, this changes
                # nothing
                handle.settle(CancelOutcome.CANCEL_FAILED)
            if handle.held_back is not None:
                handle.flush()
            if ends and not handle.left_behind:
                handle.report_status(_LAST_STEPS.get(call.outcome.status, ProgressStatus.FAILED))
        if ends:
            self.note_end(call.id, call.spec.tool_id)
        if not settled:
            self._settle(call, session)
        if call.inputs.mutations:
            self.span.redaction.add_edit_note(call)
        self.span.end(call)

    def ended_tool(self, invocation_id: str) -> str | None:
        """Return the tool of a call that ended here lately; ``None`` where none of that id did.

        Args:
            invocation_id: the call.
        """
        for ended_id, tool_id in self._ended:
            if ended_id == invocation_id:
                return tool_id
        return None

    def _weigh(self, call: Invocation) -> None:
        """Record an attempt that ends the call, but not one that was refused: the call waits on,
        or it had ended before.
        """
        status = call.decision.approval_status
        if call.is_attempt:
            is_end = status in _ENDING
        else:
            # LangGraph's model got the refusal, and the graph went on; unless the call ran elsewhere
            is_end = status != ApprovalStatus.CONSUMED
        # claimed, and then too late: the approval is used up
        is_end = is_end or call.claim is not None
        if is_end and self.ended_tool(call.id) is None:
            self.span.release(call)
        else:
            call.outcome.made_result_id = ""  # the other one is that of the call's own result

    def _prepare(self, call: Invocation, target: Target, session: Session) -> None:
        """Walk the phases before the decision; whatever goes wrong in them is a denial."""
        span = self.span
        # a call that goes on was planned, selected and ready before its pause
        every_step = span.every_class and call.ticket is None and not call.replayed
        if every_step:
            span.emit(call, Event.INVOCATION_PLANNED, {})
        self._check_available(call, session)
        if every_step:
            span.emit(call, Event.INVOCATION_SELECTED, {})
        self._inputs.parse(call, target)
        if every_step:
            span.emit(call, Event.INVOCATION_ARGUMENTS_READY, {})
        if call.context.user_text:
            session.record_user_text(call.context.user_text)
        if call.ticket is not None:
            self._permission.resume(call, target, session)

    def _hand_over(self, call: Invocation) -> Generator[Any, Any, None]:
        """Let a permitted call of a custom tool wait for its result: a pause, no error."""
        call.enter(InvocationStatus.NEEDS_INPUT)
        call.outcome.execution = Outcome.PENDING
        call.outcome.result_status = ResultStatus.PENDING
        if call.handle is not None:
            call.handle.report_status(ProgressStatus.WAITING_FOR_INPUT)
        call.waiting_event = new_id("evt")
        self.span.emit(call, Event.RESULT_REQUESTED, {}, event_id=call.waiting_event)
        required = self.required
        try:
            kept: bool = yield Call(required.keep, required.akeep, (call,))
        except GeneratorExit:
            raise
        except BaseException:
            # canceled before anybody could know of it, so nobody will ever end it
            yield from finish(call, ResultStatus.CANCELED)
            raise
        if kept:
            return
        call.outcome.execution = Outcome.NOT_EXECUTED
        call.fail(
            ErrorClass.RATE_LIMITED, "too many calls wait for results", InvocationStatus.BLOCKED
        )
        yield from finish(call, ResultStatus.FAILED)
        self._sessions.of(call.context).give_back(call.spec.tool_id)

    def conclude(
        self, call: Invocation, target: Target, session: Session, attempt: Attempt
    ) -> Steps:
        """Walk a call through the phases after its body, which ran on the straight way.

        Args:
            call: the call, as it was when its body began.
            target: what ran.
            session: its session.
            attempt: what came of it.
        """
        try:
            yield from self._body.conclude(call, target, session, attempt)
        except BaseException as signal:
            self._refusals.stopped(call, signal)
        finally:
            self._leave(call)
            self._close(call, session, settled=False)
        return call

    def note_end(self, call_id: str, tool_id: str) -> None:
        """Remember that a call ended, for a request to stop it that comes too late."""
        self._ended.append((call_id, tool_id))

    def complete(self, call: Invocation, attempt: Attempt, links: tuple[Link, ...] = ()) -> Steps:
        """Finish a call that ran elsewhere: post hooks, redaction, persistence and a terminal span.

        Args:
            call: the call in its second part.
            attempt: what its executor reports.
            links: the span of its first part.
        """
        return self._second_part(call, links, partial(self._body.complete, attempt=attempt))

    def rehearsed(
        self,
        call: Invocation,
        target: Target,
        body: RehearsedBody,
        attempt: Attempt,
        links: tuple[Link, ...] = (),
    ) -> Steps:
        """Settle a call whose host has run it on a layer: decide what it would change, and commit
        that or not.

        Args:
            call: the call in its second part.
            target: what goes on with it once a person has answered.
            body: the sealed layer, and how the commands on it ended.
            attempt: what its executor reports.
            links: the span of its first part.
        """

        def settle(call: Invocation, session: Session) -> Generator[Any, Any, None]:
            # pending is what its first part was
            call.outcome.execution = Outcome.NOT_EXECUTED
            if (yield from self._rehearsing.settle(call, target, session, body, attempt)):
                yield from self._body.deliver(call, target, session, attempt)

        return self._second_part(call, links, settle)

    def _second_part(
        self,
        call: Invocation,
        links: tuple[Link, ...],
        part: Callable[[Invocation, Session], Generator[Any, Any, None]],
    ) -> Steps:
        call.services = self._services
        session = self._sessions.of(call.context)
        settled = False
        self.span.begin(call, links)
        try:
            yield from part(call, session)
            if session.shared:
                settled = yield Call(self._settle, None, (call, session))
        except BaseException as signal:
            self._refusals.stopped(call, signal)
        finally:
            self._close(call, session, settled)
        return call

    def interrupt(self, call: Invocation, reason: str, links: tuple[Link, ...] = ()) -> Steps:
        """End a call that waits, as canceled.

        Args:
            call: the call, taken out of its waiting.
            reason: why, redacted.
            links: the span of its first part.
        """
        call.services = self._services
        session = self._sessions.of(call.context)
        settled = False
        span = self.span
        span.begin(call, links)
        try:
            call.outcome.execution = Outcome.NOT_EXECUTED
            call.outcome.abort_reason = AbortReason.USER_INTERRUPTION.value
            span.emit(call, Event.CANCEL_REQUESTED, {Attr.ABORT_REASON: call.outcome.abort_reason})
            call.fail(
                ErrorClass.CANCELED,
                f"interrupted: {reason}",
                InvocationStatus.CANCELED,
                ResultStatus.CANCELED,
            )
            yield from finish(call, ResultStatus.CANCELED)
            if session.shared:
                settled = yield Call(self._settle, None, (call, session))
        finally:
            self._close(call, session, settled)
        return call

    def unavailable(self, call: Invocation, message: str) -> Steps:
        """End a part of a call that can't go on now because a store fails; the call waits on.

        Args:
            call: the call.
            message: what failed.
        """
        call.services = self._services
        call.held, call.is_attempt = [], True
        session = self._sessions.of(call.context)
        settled = False
        self.span.begin(call, ())
        try:
            with suppress(Refused):
                self._refusals.unavailable(call, message)
            if session.shared:
                settled = yield Call(self._settle, None, (call, session))
        finally:
            self._close(call, session, settled)
        return call

    def preflight(self, call: Invocation, target: Target) -> Steps:
        """Decide a call that nobody will run: no span, no counter, no ask, no hook; a grant is
        looked at, not used.
        """
        call.services = self._services
        session = self._sessions.of(call.context)
        try:
            self._check_available(call, session)
            self._inputs.parse(call, target)
            self._permission.establish(call, session)
            yield from self._permission.foresee(call, target, session)
        except Refused:
            pass
        except Exception as bug:
            self._refusals.bug(call, bug)
        return call

    def _check_available(self, call: Invocation, session: Session) -> None:
        if call.spec.unknown:
            message = "no tool of that name is on the surface"
            self._refusals.refuse(call, ErrorClass.UNKNOWN_TOOL, message, InvocationStatus.BLOCKED)
        if call.spec.refusal:
            self._refusals.refuse(
                call, ErrorClass.BLOCKED_TOOL, call.spec.refusal, InvocationStatus.BLOCKED
            )
        call.enter(InvocationStatus.SELECTED)
        if call.context.surface_in_force is not None or call.ticket is not None:
            self._check_surface(call, session)
        elif call.by_name:
            self._check_name(call, session)
        lifecycle = call.spec.declaration.lifecycle
        error_class = _LIFECYCLE_ERRORS.get(lifecycle)
        # a surface in force has looked, and a call that was asked about was loaded then
        is_loaded = call.context.surface_in_force is not None or call.ticket is not None
        is_loaded = is_loaded or call.spec.tool_id in session.loaded
        if error_class is not None and not (lifecycle is Lifecycle.DEFERRED and is_loaded):
            message = f"the tool is {lifecycle.value}"
            self._refusals.refuse(call, error_class, message, InvocationStatus.BLOCKED)
        if self._require_context and call.context.origin is not ContextOrigin.STATED:
            self._refusals.undecidable(
                call,
                "no context is stated here: call inside agent_context, or wrap a thread's function in carry_context",
            )

    def _check_name(self, call: Invocation, session: Session) -> None:
        """Refuse a call by name of a tool that no surface would show to the model that names it.

        "Do not execute a call whose schema was not visible and validated" (standard, "Deferred
        Loading and Tool Search"); nobody has stated here which gates are open, and what is not
        stated is missing.
        """
        context = call.context
        hidden = _NOTHING_STATED.hides(
            restrictions(call.spec), context.agents, interactive=context.interactive
        )
        if hidden is not None:
            self._refusals.refuse(call, hidden.error_class, hidden.detail, InvocationStatus.BLOCKED)
        if call.spec.interface.should_defer and call.spec.tool_id not in session.loaded:
            message = not_loaded(call.spec.name)
            self._refusals.refuse(
                call, ErrorClass.SCHEMA_NOT_LOADED, message, InvocationStatus.BLOCKED
            )

    def _check_surface(self, call: Invocation, session: Session) -> None:
        """Refuse a call that the surface in force does not have; where it is not here, ask the
        policy again.
        """
        context, tool_id = call.context, call.spec.tool_id
        refusal: tuple[ErrorClass, str] | None = None
        if context.surface_in_force is not None:
            refusal = context.surface_in_force.refusal(tool_id, context)
        elif call.ticket is not None and call.ticket.context.get("surface_in_force"):
            document = tool_input(context, session, call.spec.policy_tool, call.spec.policy_profile)
            if not self._services.decider.visible(document):
                refusal = (
                    ErrorClass.BLOCKED_TOOL,
                    "the tool is hidden by now, and its surface is not here",
                )
        if refusal is not None:
            self._refusals.refuse(call, *refusal, InvocationStatus.BLOCKED)
