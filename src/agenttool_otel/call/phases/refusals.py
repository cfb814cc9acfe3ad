"""The ways in which a call ends without running: each leaves a typed error, a terminal state and a
span.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.context.sessions import Session
from agenttool_otel.errors import UnsupportedEventLoop
from agenttool_otel.names import (
    AbortReason,
    ApprovalStatus,
    Behavior,
    CancelOutcome,
    DecisionSource,
    ErrorClass,
    FailClosedCause,
    InvocationStatus,
    Outcome,
    ReasonType,
    Recoverability,
    ResultStatus,
)
from agenttool_otel.policy.types import Verdict
from agenttool_otel.results.errors.control_flow import cancellation, control_flow
from agenttool_otel.values.inspection import short_name

HOOK_FAILED: Final = "hook_failed"
"""Set in the extra of a hook's verdict where the hook did not object but failed."""

_ABORTED: Final[dict[str, tuple[ErrorClass, ResultStatus]]] = {
    AbortReason.SIBLING_ERROR: (ErrorClass.SIBLING_CANCELED, ResultStatus.SYNTHETIC_ERROR),
    AbortReason.FALLBACK: (ErrorClass.STREAMING_FALLBACK_DISCARDED, ResultStatus.DISCARDED),
}
"""How a call ends for reasons that have words of their own."""


class Refused(Exception):
    """Ends the phases before the body; the invocation holds the reason."""


def fail_closed(message: str, cause: FailClosedCause) -> Verdict:
    """Make the verdict of a decision that could not be had."""
    return Verdict(
        Behavior.DENY,
        source=DecisionSource.ERROR,
        reason_type=ReasonType.POLICY,
        message=message,
        fail_closed=cause,
    )


class Refusals:
    """Ends calls before their body."""

    __slots__ = ("_clean", "_span")

    def __init__(self, span: CallSpan, clean: Callable[[str], str]) -> None:
        self._span = span
        self._clean = clean

    def decide(self, call: Invocation, verdict: Verdict, *, edited: bool = False) -> None:
        """Bring a verdict into force and record it."""
        call.decision.take(verdict, call.now_ns(), edited=edited)
        # a preflight has no call to which an event could belong
        if not call.preflight:
            self._span.record_decision(call, verdict)

    def refuse(
        self,
        call: Invocation,
        error_class: ErrorClass,
        message: str,
        status: InvocationStatus,
        result: ResultStatus = ResultStatus.FAILED,
    ) -> NoReturn:
        """End the call."""
        call.fail(error_class, message, status, result)
        raise Refused

    def invalid(self, call: Invocation, message: str) -> NoReturn:
        """End the call because its arguments don't fit the schema."""
        self.refuse(
            call, ErrorClass.SCHEMA_VALIDATION_FAILED, message, InvocationStatus.SCHEMA_PARSE_FAILED
        )

    def undecidable(self, call: Invocation, message: str) -> NoReturn:
        """End the call because its arguments can't be put before the policy as they are."""
        verdict = fail_closed(message, FailClosedCause.INPUT_INVALID)
        self.decide(call, verdict)
        self.blocked(call, message)

    def blocked(self, call: Invocation, message: str) -> NoReturn:
        """End the call because it can't be decided, or its decision can't be kept or used."""
        self.refuse(
            call, ErrorClass.POLICY_BLOCKED, message, InvocationStatus.DENIED, ResultStatus.DENIED
        )

    def unavailable(self, call: Invocation, message: str) -> NoReturn:
        """End the call because a store can't be used: it was not rejected, and may be sent again."""
        self.decide(call, fail_closed(message, FailClosedCause.STORE_UNAVAILABLE))
        call.fail(ErrorClass.POLICY_BLOCKED, message, InvocationStatus.DENIED, ResultStatus.DENIED)
        if call.outcome.error is not None:
            call.outcome.error.recoverability = Recoverability.RETRY_LATER
        raise Refused

    def overdue(self, call: Invocation) -> NoReturn:
        """End the call because the answer, or its use, came too late: no person rejected it."""
        verdict = Verdict(
            Behavior.DENY,
            source=DecisionSource.TIMEOUT,
            reason_type=ReasonType.PERMISSION_PROMPT_TOOL,
            message="the approval request has expired",
        )
        self.decide(call, verdict)
        call.decision.approval_status = ApprovalStatus.EXPIRED.value
        call.fail(
            ErrorClass.POLICY_BLOCKED, verdict.message, InvocationStatus.DENIED, ResultStatus.DENIED
        )
        # "whether approval is needed again" (standard, "Errors and Retries")
        if call.outcome.error is not None:
            call.outcome.error.recoverability = Recoverability.APPROVAL_NEEDED
            call.outcome.error.retry.approval_required = True
        raise Refused

    def not_let_in(self, call: Invocation, message: str) -> NoReturn:
        """End the call because it got no lock or turn; the same call may be sent again."""
        self.refuse(call, ErrorClass.DEPENDENCY_UNAVAILABLE, message, InvocationStatus.BLOCKED)

    def mutation_failed(self, call: Invocation, message: str) -> NoReturn:
        """End the call because a changed input can't be used."""
        self.refuse(
            call, ErrorClass.INPUT_MUTATION_FAILED, message, InvocationStatus.VALIDATION_FAILED
        )

    def deny(self, call: Invocation, verdict: Verdict, session: Session) -> NoReturn:
        """End the call with a denial."""
        session.count("denials")
        result = ResultStatus.DENIED
        if (
            call.decision.approval is not None
            and call.decision.approval["status"] == ApprovalStatus.REJECTED
        ):
            error_class, result = ErrorClass.APPROVAL_REJECTED, ResultStatus.REJECTED
        elif verdict.fail_closed is not None:
            error_class = ErrorClass.POLICY_BLOCKED
        elif verdict.source is DecisionSource.HOOK:
            error_class = (
                ErrorClass.HOOK_FAILED
                if verdict.extra.get(HOOK_FAILED)
                else ErrorClass.HOOK_BLOCKED
            )
        else:
            error_class = ErrorClass.PERMISSION_DENIED
        message = verdict.message or "the policy denies this call"
        self.refuse(call, error_class, message, InvocationStatus.DENIED, result)

    def deny_undecided(self, call: Invocation, message: str, session: Session) -> NoReturn:
        """End the call with the denial of one for which there is no decision that holds."""
        verdict = fail_closed(message, FailClosedCause.NO_DECISION)
        self.decide(call, verdict)
        self.deny(call, verdict, session)

    def reject(self, call: Invocation, answer: ApprovalAnswer, session: Session) -> NoReturn:
        """End the call because a person rejected it."""
        session.count("denials")
        reason = self.answered(call, answer, Behavior.DENY) or "no reason given"
        self.unapproved(call, f"approval was rejected: {reason}")

    def answered(
        self,
        call: Invocation,
        answer: ApprovalAnswer,
        behavior: Behavior,
        *,
        edited: bool = False,
    ) -> str:
        """Record what a person answered as a decision of its own; return their words, redacted."""
        reason = self.redact(answer.reason, call) if answer.reason else ""
        rule = call.decision.request.rule_ref if call.decision.request is not None else ""
        verdict = Verdict(
            behavior,
            source=DecisionSource.USER,
            reason_type=ReasonType.PERMISSION_PROMPT_TOOL,
            rule_ref=rule,
            extra={"accept_feedback": reason} if reason else {},
        )
        asked = call.decision.verdict
        self.decide(call, verdict, edited=edited)
        # the policy's verdict stays: spans and metrics count an ask apart from a denial
        call.decision.verdict = asked
        return reason

    def unapproved(self, call: Invocation, message: str) -> NoReturn:
        """End the call because it has no approval that can be used."""
        self.refuse(
            call,
            ErrorClass.APPROVAL_REJECTED,
            message,
            InvocationStatus.DENIED,
            ResultStatus.REJECTED,
        )

    def used_already(self, call: Invocation, outcome: ResultStatus | None = None) -> NoReturn:
        """End the call because its approval was used for an earlier run: nobody rejected
        anything.
        """
        call.decision.approval_status = ApprovalStatus.CONSUMED.value
        ended = f", and ended as {outcome.value}" if outcome is not None else ""
        self.blocked(call, f"the approval was used already: the call it covers ran once{ended}")

    def pending(self, call: Invocation) -> NoReturn:
        """Leave the call waiting for an answer: a pause, no error."""
        self.pause(call)
        raise Refused

    def pause(self, call: Invocation, signal: Exception | None = None) -> None:
        """Mark the call as waiting."""
        call.exception = signal
        call.decision.approval_status = ApprovalStatus.PENDING.value
        call.outcome.execution = Outcome.PENDING
        call.outcome.result_status = ResultStatus.PENDING

    def interrupted(self, call: Invocation, error: Exception) -> None:
        """Pause a call whose phase was left by a framework's control flow; any other exception is a
        bug.
        """
        # langgraph's interrupt() in an approver or a hook: the graph resumes the call later
        if control_flow(error):
            self.pause(call, error)
        else:
            self.bug(call, error)

    def bug(self, call: Invocation, bug: Exception) -> None:
        """Turn a failure of this package before the body into a denial, described by its
        type alone.
        """
        # no failure of this package, and its text is fixed
        if isinstance(bug, UnsupportedEventLoop):
            reason = f"no decision: {bug}"
        else:
            reason = f"internal error: {short_name(bug)}"
            self._span.telemetry.losses.note("pipeline", bug)
        verdict = fail_closed(reason, FailClosedCause.INTERNAL)
        self.decide(call, verdict)
        call.fail(
            ErrorClass.POLICY_BLOCKED, verdict.message, InvocationStatus.DENIED, ResultStatus.DENIED
        )

    def stopped(self, call: Invocation, signal: BaseException) -> None:
        """End the call because something was thrown into it; an abandoned generator goes on being
        abandoned.
        """
        self.cancel(call, signal)
        if isinstance(signal, GeneratorExit):
            raise signal
        call.exception = signal

    def cancel(
        self,
        call: Invocation,
        signal: BaseException | None,
        result: ResultStatus = ResultStatus.CANCELED,
    ) -> None:
        """Record that the call was stopped from outside, for the reason that was given with the
        request.
        """
        error_class, message, state = ErrorClass.CANCELED, "canceled", call.cancellation
        if state is not None:
            call.outcome.abort_reason = state.abort_reason
            message = state.reason or message
            error_class, result = _ABORTED.get(state.abort_reason, (error_class, result))
            if call.handle is not None:
                call.handle.settle(CancelOutcome.CANCELED)
        elif signal is not None:  # a known reason was set before
            call.outcome.abort_reason = (
                call.outcome.abort_reason or (cancellation(signal) or AbortReason.UNKNOWN).value
            )
        # canceled while a post hook or a store had its time: the tool was done, the call was not
        call.reopen()
        details = {"native_error_ref": short_name(signal)} if signal is not None else {}
        call.fail(error_class, message, InvocationStatus.CANCELED, result, **details)

    def redact(self, text: str, call: Invocation) -> str:
        """Redact a person's or a tool's text about a call."""
        return self._span.redaction.text_redactor(call, self._clean)(text)

    def message_of(self, error: BaseException, call: Invocation) -> str:
        """Return an exception's redacted message; a ``__str__`` that raises costs the message,
        nothing else.
        """
        try:
            text = str(error)
        except BaseException:  # other people's __str__, which may raise anything
            return short_name(error)
        try:
            return self.redact(text, call) or short_name(error)
        except Exception:
            return short_name(error)
