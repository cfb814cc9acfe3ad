"""The phases of the standard's execution pipeline, once, as a generator without I/O of its own.

It yields effects (decide, ask, execute, wait ...) and receives their results; ``drivers`` performs or awaits them. Two
opposite rules hold side by side: up to the tool's body everything fails closed (``permission``, ``endings``), from the
body on everything fails silent (``body``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from opentelemetry.trace import Link

from agenttool_otel.approvals.service import Approvals
from agenttool_otel.context import AgentContext
from agenttool_otel.delivery import Delivery
from agenttool_otel.drivers import Steps
from agenttool_otel.effects import Attempt, Decide, FinishClaim, RunBlocking
from agenttool_otel.facts.environment import FactEnvironment
from agenttool_otel.hooks import Hooks
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import (
    AbortReason,
    ApprovalStatus,
    Attr,
    ErrorClass,
    Event,
    InvocationStatus,
    Lifecycle,
    Outcome,
    Ownership,
    ResultStatus,
)
from agenttool_otel.pipeline.body import Body
from agenttool_otel.pipeline.custom import RequiredActions
from agenttool_otel.pipeline.document import policy_input
from agenttool_otel.pipeline.endings import Endings, Refused
from agenttool_otel.pipeline.hooking import HookRunner
from agenttool_otel.pipeline.inputs import Inputs
from agenttool_otel.pipeline.paused import PausedCalls
from agenttool_otel.pipeline.permission import Permission
from agenttool_otel.pipeline.target import Target
from agenttool_otel.policy.types import Verdict
from agenttool_otel.questions import Questions
from agenttool_otel.recorder import Recorder
from agenttool_otel.results.control_flow import control_flow
from agenttool_otel.results.errors import ErrorMapper
from agenttool_otel.sessions import Session, SessionBook

__all__ = ["Pipeline"]

_LIFECYCLE_ERRORS = {
    Lifecycle.DRAFT: ErrorClass.BLOCKED_TOOL,
    Lifecycle.DISABLED: ErrorClass.BLOCKED_TOOL,
    Lifecycle.RETIRED: ErrorClass.BLOCKED_TOOL,
    Lifecycle.REQUIRES_SETUP: ErrorClass.SETUP_REQUIRED,
    Lifecycle.DEFERRED: ErrorClass.SCHEMA_NOT_LOADED,
}


class Pipeline:
    """Walks calls through the phases.

    Args:
        recorder: telemetry.
        sessions: counters and provenance.
        environment: makes the fact environment of a context and session.
        questions: makes approval requests.
        delivery: redaction and persistence of results.
        errors: maps exceptions to the standard's errors.
        clean: redacts a text.
        known_tools: facts of the governed tools by name, for alternatives.
        hooks: the hook registry, or ``None``.
        approvals: whose store keeps the calls of custom tools; without one they wait in memory.

    Attributes:
        paused: the calls of this process that wait for an answer.
        required: the calls of custom tools that wait for a result.
    """

    __slots__ = ("_body", "_endings", "_inputs", "_permission", "_recorder", "_sessions", "paused", "required")

    def __init__(
        self,
        *,
        recorder: Recorder,
        sessions: SessionBook,
        environment: Callable[[AgentContext, Session], FactEnvironment],
        questions: Questions,
        delivery: Delivery,
        errors: ErrorMapper,
        clean: Callable[[str], str],
        known_tools: Callable[[], Mapping[str, Mapping[str, Any]]],
        hooks: Hooks | None = None,
        approvals: Approvals | None = None,
    ) -> None:
        self._recorder = recorder
        self._sessions = sessions
        self._endings = Endings(recorder, clean)
        self._inputs = Inputs(self._endings, recorder)
        runner = HookRunner(hooks, recorder, self._endings, self._inputs) if hooks is not None else None
        self._permission = Permission(
            self._endings, self._inputs, recorder, questions, environment, runner, known_tools
        )
        self.paused = PausedCalls()
        self.required = RequiredActions(
            approvals=approvals, lost=partial(recorder.telemetry.losses.note, "required_action")
        )
        self._body = Body(self._endings, recorder, delivery, errors, runner)

    def run(self, call: Invocation, target: Target, links: tuple[Link, ...] = ()) -> Steps:
        """Walk one call through all phases.

        Args:
            call: the call, planned.
            target: what it runs.
            links: spans that this call continues.

        Returns:
            The generator; it returns the invocation, and raises nothing but GeneratorExit thrown into it.
        """
        session = self._sessions.of(call.context)
        return (yield from self._recorded(call, self._whole(call, target, session), links))

    def _whole(self, call: Invocation, target: Target, session: Session) -> Generator[Any, Any, None]:
        """Admit the call, then run its body or hand it over."""
        if (yield from self._admitted(call, target, session)):
            if call.spec.ownership == Ownership.CUSTOM:
                yield from self._hand_over(call)
            else:
                yield from self._body.run(call, target, session)

    def _recorded(self, call: Invocation, steps: Generator[Any, Any, None], links: tuple[Link, ...]) -> Steps:
        """Take steps within the call's span, which ends whatever happens; what is thrown in is a cancellation."""
        self._recorder.begin(call, links)
        try:
            yield from steps
        except GeneratorExit as signal:
            self._endings.cancel(call, signal)
            raise
        except BaseException as signal:
            self._endings.cancel(call, signal)
            call.exception = signal
        finally:
            self._recorder.end(call)
        return call

    def _hand_over(self, call: Invocation) -> Generator[Any, Any, None]:
        """Let a permitted call of a custom tool wait for its result: a pause, no error."""
        call.enter(InvocationStatus.NEEDS_INPUT)
        call.outcome = Outcome.PENDING
        call.result_status = ResultStatus.PENDING
        self._recorder.arguments(call)
        required = self.required
        try:
            kept: bool = yield RunBlocking(partial(required.keep, call), partial(required.akeep, call))
        except GeneratorExit:
            raise
        except BaseException:
            if call.claim is not None:  # canceled before anybody could know of it, so nobody will ever end it
                yield FinishClaim(call.claim, ResultStatus.CANCELED)
            raise
        if kept:
            return
        call.outcome = Outcome.NOT_EXECUTED
        call.fail(
            ErrorClass.RATE_LIMITED, "too many calls wait for results", InvocationStatus.BLOCKED, ResultStatus.FAILED
        )
        if call.claim is not None:
            yield FinishClaim(call.claim, ResultStatus.FAILED)
        self._sessions.of(call.context).give_back(call.spec.declaration.tool_id)

    def complete(self, call: Invocation, attempt: Attempt, links: tuple[Link, ...] = ()) -> Steps:
        """Settle a call that ran elsewhere: post hooks, redaction, persistence and a terminal span.

        Args:
            call: the call in its second part.
            attempt: what its executor reports.
            links: the span of its first part.
        """
        session = self._sessions.of(call.context)
        return (yield from self._recorded(call, self._body.complete(call, session, attempt), links))

    def interrupt(self, call: Invocation, reason: str, links: tuple[Link, ...] = ()) -> Steps:
        """End a call that waits, as canceled.

        Args:
            call: the call, taken out of its waiting.
            reason: why, redacted.
            links: the span of its first part.
        """
        recorder = self._recorder
        recorder.begin(call, links)
        try:
            call.outcome = Outcome.NOT_EXECUTED
            call.abort_reason = AbortReason.USER_INTERRUPTION.value
            recorder.emit(call, Event.CANCEL_REQUESTED, {Attr.ABORT_REASON: call.abort_reason})
            if call.approval_status == ApprovalStatus.CANCELED:
                recorder.pending(-1)
            call.fail(ErrorClass.CANCELED, f"interrupted: {reason}", InvocationStatus.CANCELED, ResultStatus.CANCELED)
            if call.claim is not None:
                yield FinishClaim(call.claim, ResultStatus.CANCELED)
        finally:
            recorder.end(call)
        return call

    def preflight(self, call: Invocation, target: Target) -> Steps:
        """Decide a call that nobody will run: no span, no counter, no ask, no hook.

        Args:
            call: the call, made with ``preflight=True``.
            target: what it would run.
        """
        session = self._sessions.of(call.context)
        try:
            self._available(call)
            self._inputs.parse(call, target)
            self._permission.establish(call, session)
            verdict: Verdict = yield Decide(policy_input(call, session))
            self._permission.suggest(call, verdict)
            call.decide(verdict)
        except Refused:
            pass
        except Exception as bug:
            self._endings.bug(call, bug)
        return call

    def _admitted(self, call: Invocation, target: Target, session: Session) -> Generator[Any, Any, bool]:
        """Walk the phases before the body; whatever goes wrong in them is a denial."""
        recorder = self._recorder
        try:
            recorder.verbose(call, Event.INVOCATION_PLANNED)
            self._available(call)
            recorder.verbose(call, Event.INVOCATION_SELECTED)
            self._inputs.parse(call, target)
            recorder.verbose(call, Event.INVOCATION_ARGUMENTS_READY)
            if call.context.user_text:
                session.hear(call.context.user_text)
            if call.ticket is not None:
                self._permission.resume(call, target, session)
            yield from self._permission.resolve(call, target, session)
        except Refused:
            if call.outcome is Outcome.PENDING:
                self.paused.keep(call, target)
            return False
        except Exception as bug:
            if control_flow(bug):
                self._endings.pause(call, bug)
            else:
                self._endings.bug(call, bug)
            return False
        return True

    def _available(self, call: Invocation) -> None:
        call.enter(InvocationStatus.SELECTED)
        if call.spec.unknown:
            message = "no tool of that name is on the surface"
            self._endings.refuse(call, ErrorClass.UNKNOWN_TOOL, message, InvocationStatus.BLOCKED, ResultStatus.FAILED)
        lifecycle = call.spec.declaration.lifecycle
        error_class = _LIFECYCLE_ERRORS.get(lifecycle)
        if error_class is not None:
            message = f"the tool is {lifecycle.value}"
            self._endings.refuse(call, error_class, message, InvocationStatus.BLOCKED, ResultStatus.FAILED)
