"""The phases of the standard's execution pipeline, once, as a generator without I/O of its own.

It yields effects (decide, ask, execute, wait ...) and receives their results; ``drivers`` performs or awaits them.
Two opposite rules hold side by side. Up to the tool's body everything fails closed: whatever goes wrong ends in a
denial with a typed error. From the body on everything fails silent: the tool's value or exception is delivered
whatever happens to telemetry, redaction bookkeeping or persistence, unless a policy obliges otherwise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from opentelemetry.trace import Link

from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.context import AgentContext
from agenttool_otel.delivery import Delivery
from agenttool_otel.drivers import Steps
from agenttool_otel.effects import Ask, Attempt, Decide, Execute, FinishClaim, RunBlocking, Sleep, TakeClaim
from agenttool_otel.errors import ApprovalError
from agenttool_otel.facts.environment import FactEnvironment
from agenttool_otel.facts.types import EMPTY_FACTS
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import (
    SCHEMA_VERSION,
    ApprovalStatus,
    Attr,
    Behavior,
    DecisionSource,
    ErrorClass,
    Event,
    FailClosedCause,
    InvocationStatus,
    Lifecycle,
    MutationSource,
    Outcome,
    Phase,
    PolicyMode,
    ReasonType,
    ResultStatus,
)
from agenttool_otel.policy.types import PolicyInput, Verdict
from agenttool_otel.questions import Questions
from agenttool_otel.recorder import Recorder
from agenttool_otel.records import InputMutation
from agenttool_otel.records.values import changed_pointers, digest, to_json_value
from agenttool_otel.results.control_flow import cancellation, control_flow
from agenttool_otel.results.errors import ErrorMapper
from agenttool_otel.results.retry import RetryPolicy
from agenttool_otel.sessions import Session, SessionBook

__all__ = ["Pipeline", "Target"]

_MAX_ROUNDS = 4
"""How often an input may be changed and decided again before the call is denied."""

_LIFECYCLE_ERRORS = {
    Lifecycle.DRAFT: ErrorClass.BLOCKED_TOOL,
    Lifecycle.DISABLED: ErrorClass.BLOCKED_TOOL,
    Lifecycle.RETIRED: ErrorClass.BLOCKED_TOOL,
    Lifecycle.REQUIRES_SETUP: ErrorClass.SETUP_REQUIRED,
    Lifecycle.DEFERRED: ErrorClass.SCHEMA_NOT_LOADED,
}


@dataclass(slots=True)
class Target:
    """What a call runs, and how its arguments get there.

    Attributes:
        function: the callable, bound to its instance.
        bind: fills ``model_input`` and ``bound`` of a call; raises TypeError or ValueError for arguments that don't fit.
        rebind: puts a changed JSON input into the call; raises ValueError when it can't be used.
        is_async: whether the callable returns an awaitable.
        streams: whether it returns an iterator whose items are the result.
        unwrap: takes what a model would see out of the return value; the whole value where not given.
    """

    function: Callable[..., Any]
    bind: Callable[[Invocation], None]
    rebind: Callable[[Invocation, dict[str, Any], dict[str, Any]], None]
    is_async: bool = False
    streams: bool = False
    unwrap: Callable[[Any], Any] | None = None


class _Refused(Exception):
    """Ends the phases before the body; the invocation already says why."""


class Pipeline:
    """Walks calls through the phases.

    Args:
        recorder: telemetry.
        sessions: counters and provenance.
        environment: makes the fact environment of a context and session.
        questions: makes approval requests.
        delivery: redaction and persistence of results.
        errors: maps exceptions to the standard's errors.
        hooks: the hook runner, or ``None``.
        clean: redacts a text.
    """

    def __init__(
        self,
        *,
        recorder: Recorder,
        sessions: SessionBook,
        environment: Callable[[Any, Session], FactEnvironment],
        questions: Questions,
        delivery: Delivery,
        errors: ErrorMapper,
        hooks: Any = None,
        clean: Callable[[str], str] | None = None,
    ) -> None:
        self._recorder = recorder
        self._sessions = sessions
        self._environment = environment
        self._questions = questions
        self._delivery = delivery
        self._errors = errors
        self._hooks = hooks
        self._clean = clean

    # --- the whole call ---------------------------------------------------------------------------------------------

    def run(self, call: Invocation, target: Target, links: tuple[Link, ...] = ()) -> Steps:
        """Walk one call through all phases.

        Args:
            call: the call, planned.
            target: what it runs.
            links: spans that this call continues.

        Returns:
            The generator; it returns the invocation, and raises nothing but what was thrown into it.
        """
        session = self._sessions.of(call.context)
        self._recorder.begin(call, links)
        try:
            try:
                yield from self._admit(call, target, session)
            except _Refused:
                pass
            except Exception as bug:
                if control_flow(bug):
                    self._paused(call, bug)
                else:
                    self._bug(call, bug)
            else:
                yield from self._perform(call, target, session)
        except GeneratorExit as signal:
            self._canceled(call, signal)
            raise
        except BaseException as signal:
            self._canceled(call, signal)
            call.exception = signal
        finally:
            self._recorder.end(call)
        return call

    def preflight(self, call: Invocation, target: Target) -> Steps:
        """Decide a call that nobody will run: no span, no counter, no ask, no hook with effects.

        Args:
            call: the call, made with ``preflight=True``.
            target: what it would run.
        """
        session = self._sessions.of(call.context)
        try:
            self._parse(call, target)
            self._establish(call, session)
            verdict: Verdict = yield Decide(self._document(call, session))
            call.decide(verdict)
        except _Refused:
            pass
        except Exception as bug:
            self._bug(call, bug)
        return call

    # --- before the body: fail closed -------------------------------------------------------------------------------

    def _admit(self, call: Invocation, target: Target, session: Session) -> Generator[Any, Any, None]:
        recorder = self._recorder
        recorder.verbose(call, Event.INVOCATION_PLANNED)
        self._resolve(call)
        self._parse(call, target)
        recorder.verbose(call, Event.INVOCATION_ARGUMENTS_READY)
        if call.context.user_text:
            session.hear(call.context.user_text)
        if self._hooks is not None:
            yield from self._hooks.before(call, target, self)
        yield from self._permit(call, target, session)
        yield from self._claim(call, session)

    def _resolve(self, call: Invocation) -> None:
        call.enter(InvocationStatus.SELECTED)
        self._recorder.verbose(call, Event.INVOCATION_SELECTED)
        lifecycle = call.spec.declaration.lifecycle
        error_class = _LIFECYCLE_ERRORS.get(lifecycle)
        if error_class is not None:
            self.refuse(
                call, error_class, f"the tool is {lifecycle.value}", InvocationStatus.BLOCKED, ResultStatus.FAILED
            )

    def _parse(self, call: Invocation, target: Target) -> None:
        spec = call.spec
        try:
            target.bind(call)
        except (TypeError, ValueError) as error:
            self._invalid(call, Phase.PARSE_SCHEMA, str(error) if type(error) is TypeError else "not readable")
        if not call.validated and not spec.check.is_valid(call.model_input):
            problems = [
                (pointer, keyword)
                for pointer, keyword in spec.check.problems(call.model_input)
                if not self._accepted_as_python(call, pointer)
            ]
            if problems:
                told = ", ".join(f"{pointer or '/'} fails {keyword!r}" for pointer, keyword in problems)
                self._invalid(call, Phase.PARSE_SCHEMA, told)
        if not call.validated:
            defaults = spec.parameters.defaults if spec.parameters is not None else None
            call.observable_input = {**defaults, **call.model_input} if defaults else call.model_input
        call.permission_input = call.observable_input
        if spec.validate is not None:
            self.validate(call)
        call.enter(InvocationStatus.ARGUMENTS_READY)

    def _accepted_as_python(self, call: Invocation, pointer: str) -> bool:
        """A Python caller may pass what the annotation names (a model, a Path), whatever its JSON form looks like."""
        name = pointer.split("/", 2)[1].replace("~1", "/").replace("~0", "~") if pointer else ""
        parameters = call.spec.parameters
        if parameters is None or name not in call.bound:
            return False
        return parameters.accepts(name, call.bound[name])

    def validate(self, call: Invocation) -> None:
        """Run the developer's own value check.

        Args:
            call: the call.
        """
        check = call.spec.validate
        if check is None:
            return
        try:
            check(call.permission_input)
        except Exception as error:
            self.refuse(
                call,
                ErrorClass.INVALID_ARGUMENTS,
                self._text(error),
                InvocationStatus.VALIDATION_FAILED,
                ResultStatus.FAILED,
            )

    def _establish(self, call: Invocation, session: Session) -> None:
        plan = call.spec.facts
        if plan is None:
            call.facts = EMPTY_FACTS
        else:
            call.facts = plan.establish(call.permission_input, self._environment(call.context, session))

    def _permit(self, call: Invocation, target: Target, session: Session) -> Generator[Any, Any, None]:
        for _ in range(_MAX_ROUNDS):
            self._establish(call, session)
            verdict: Verdict = yield Decide(self._document(call, session))
            if self._hooks is not None:
                verdict = yield from self._hooks.decided(call, verdict)
            call.decide(verdict)
            self._recorder.decided(call, verdict)
            if verdict.mode is PolicyMode.SHADOW:
                return
            if verdict.behavior is Behavior.DENY:
                self.deny(call, verdict, session)
            if verdict.updated_input is not None and verdict.updated_input != call.permission_input:
                self.mutate(call, target, verdict.updated_input, MutationSource.RUNTIME, verdict.rule_ref, "policy")
                continue
            if verdict.behavior is Behavior.ALLOW and not (call.resumed and call.approval is None):
                return
            if call.approval is not None and call.approval["status"] == ApprovalStatus.APPROVED:
                return
            yield from self._ask(call, target, verdict, session)
        self._give_up(call, session)

    def _claim(self, call: Invocation, session: Session) -> Generator[Any, Any, None]:
        """Take the one right to run what was approved; whoever can't have it does not run."""
        request, verdict = call.request, call.verdict
        if request is None or verdict is None or call.approval is None or call.approval["granted"]:
            return
        try:
            call.claim = yield TakeClaim(request, digest(call.permission_input), verdict.revision, call.spec.digest)
        except ApprovalError as error:
            session.denied()
            call.approval_status = str(getattr(error, "reason", "") or ApprovalStatus.CANCELED)
            self.refuse(
                call,
                ErrorClass.APPROVAL_REJECTED,
                f"the approval can't be used: {error}",
                InvocationStatus.DENIED,
                ResultStatus.REJECTED,
            )
        call.approval_status = ApprovalStatus.CONSUMED.value

    def _ask(self, call: Invocation, target: Target, verdict: Verdict, session: Session) -> Generator[Any, Any, None]:
        """Ask for an approval; whatever was answered is decided again, so that a deny still wins."""
        call.enter(InvocationStatus.AWAITING_APPROVAL)
        session.asked()
        request = call.request = self._questions.make(call, verdict)
        self._recorder.emit(call, Event.APPROVAL_REQUESTED, {Attr.APPROVAL_ID: request.request_id})
        asked_at = time.perf_counter()
        try:
            answer: ApprovalAnswer | None = yield Ask(request, call.permission_input, stored_context(call.context))
        except ApprovalError as error:
            self.refuse(
                call,
                ErrorClass.POLICY_BLOCKED,
                f"the approval request could not be stored: {error}",
                InvocationStatus.DENIED,
                ResultStatus.DENIED,
            )
        if answer is None:
            call.approval_status = ApprovalStatus.PENDING.value
            call.outcome = Outcome.PENDING
            call.result_status = ResultStatus.PENDING
            raise _Refused
        self.answered(call, answer, waited=time.perf_counter() - asked_at)
        if not answer.approved:
            session.denied()
            self.reject(call, answer)
        if answer.edited_input is not None and answer.edited_input != call.permission_input:
            self.mutate(
                call,
                target,
                answer.edited_input,
                MutationSource.PERMISSION_PROMPT,
                request.request_id,
                "edited by the approver",
            )
        call.enter(InvocationStatus.APPROVED)

    def answered(self, call: Invocation, answer: ApprovalAnswer, *, waited: float) -> None:
        """Take an answer into the call and tell it.

        Args:
            call: the call.
            answer: the answer.
            waited: seconds between question and answer.
        """
        status = ApprovalStatus.APPROVED if answer.approved else ApprovalStatus.REJECTED
        call.approval_status = status.value
        call.approval = {
            "request_id": call.request.request_id if call.request is not None else "",
            "status": status.value,
            "answered_by": answer.answered_by or None,
            "roles": list(answer.roles),
            "granted": False,
        }
        self._recorder.emit(call, Event.APPROVAL_ANSWERED, {Attr.APPROVAL_STATUS: status.value})
        telemetry = self._recorder.telemetry
        telemetry.measure(telemetry.instruments.approval_wait, waited, {Attr.APPROVAL_STATUS: status.value})

    def _document(self, call: Invocation, session: Session) -> PolicyInput:
        spec, context = call.spec, call.context
        tool = spec.policy_tool
        if not spec.safety.static:
            tool = {**tool, **spec.safety_facts(call.permission_input, call.facts)}
        return {
            "schema_version": SCHEMA_VERSION,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "invocation": {
                "id": call.id,
                "native_call_id": call.native_call_id,
                "attempt": len(call.decisions) + 1,
                "resumed": call.resumed,
                "preflight": call.preflight,
            },
            "tool": tool,  # type: ignore[typeddict-item]
            "permission_profile": spec.policy_profile,  # type: ignore[typeddict-item]
            "input": call.permission_input,
            "facts": call.facts,
            "actor": context.policy_actor,  # type: ignore[typeddict-item]
            "session": {
                "id": context.session_id,
                "mode": context.mode,
                "interactive": context.interactive,
                "roots": list(context.roots),
                "counters": session.counters(spec.declaration.tool_id),  # type: ignore[typeddict-item]
                "labels": dict(context.labels),
            },
            "approval": call.approval,
            "hooks": call.hints,
            "evaluation": context.evaluation,  # type: ignore[typeddict-item]
        }

    # --- the ways to end without running ----------------------------------------------------------------------------

    def refuse(
        self,
        call: Invocation,
        error_class: ErrorClass,
        message: str,
        status: InvocationStatus,
        result: ResultStatus,
        **details: Any,
    ) -> None:
        """End the call before its body.

        Args:
            call: the call.
            error_class: class of the taxonomy.
            message: for people; no content.
            status: terminal state.
            result: state of the result.
            details: further fields of the error record.
        """
        call.fail(error_class, message, status, result, **details)
        raise _Refused

    def _invalid(self, call: Invocation, phase: Phase, message: str) -> None:
        self._recorder.verbose(call, Event.INVOCATION_VALIDATION_FAILED, **{Attr.PHASE: phase.value})
        self.refuse(
            call,
            ErrorClass.SCHEMA_VALIDATION_FAILED,
            message,
            InvocationStatus.SCHEMA_PARSE_FAILED,
            ResultStatus.FAILED,
        )

    def deny(self, call: Invocation, verdict: Verdict, session: Session) -> None:
        """End the call with a denial.

        Args:
            call: the call.
            verdict: the denying verdict.
            session: counts it.
        """
        session.denied()
        if call.approval is not None and call.approval["status"] == ApprovalStatus.REJECTED:
            error_class, result = ErrorClass.APPROVAL_REJECTED, ResultStatus.REJECTED
        elif verdict.fail_closed is not None:
            error_class, result = ErrorClass.POLICY_BLOCKED, ResultStatus.DENIED
        elif verdict.source is DecisionSource.HOOK:
            error_class, result = ErrorClass.HOOK_BLOCKED, ResultStatus.DENIED
        else:
            error_class, result = ErrorClass.PERMISSION_DENIED, ResultStatus.DENIED
        message = verdict.message or "the policy denies this call"
        self.refuse(call, error_class, message, InvocationStatus.DENIED, result)

    def reject(self, call: Invocation, answer: ApprovalAnswer) -> None:
        """End the call because somebody said no.

        Args:
            call: the call.
            answer: what they said.
        """
        said = self._redact(answer.reason) if answer.reason else "no reason given"
        self.refuse(
            call,
            ErrorClass.APPROVAL_REJECTED,
            f"approval was rejected: {said}",
            InvocationStatus.DENIED,
            ResultStatus.REJECTED,
        )

    def _give_up(self, call: Invocation, session: Session) -> None:
        verdict = fail_closed("the input kept changing between decisions", FailClosedCause.NO_DECISION)
        call.decide(verdict)
        self._recorder.decided(call, verdict)
        self.deny(call, verdict, session)

    def _bug(self, call: Invocation, bug: Exception) -> None:
        """A failure of this package before the body is a denial, told by its type alone."""
        verdict = fail_closed(f"internal error: {type(bug).__name__}", FailClosedCause.INTERNAL)
        call.decide(verdict)
        self._recorder.decided(call, verdict)
        self._recorder.telemetry.losses.note("pipeline", bug)
        call.fail(ErrorClass.POLICY_BLOCKED, verdict.message, InvocationStatus.DENIED, ResultStatus.DENIED)

    def _paused(self, call: Invocation, signal: Exception) -> None:
        """A framework's own pause, raised while an approver was asked: no error, and passed through untouched."""
        call.exception = signal
        call.approval_status = ApprovalStatus.PENDING.value
        call.outcome = Outcome.PENDING
        call.result_status = ResultStatus.PENDING

    def _canceled(self, call: Invocation, signal: BaseException) -> None:
        call.fail(
            ErrorClass.CANCELED,
            "canceled",
            InvocationStatus.CANCELED,
            ResultStatus.CANCELED,
            native_error_ref=type(signal).__name__,
        )

    # --- changed inputs ---------------------------------------------------------------------------------------------

    def mutate(
        self,
        call: Invocation,
        target: Target,
        updated: dict[str, Any],
        source: MutationSource,
        source_ref: str,
        reason: str,
    ) -> None:
        """Replace the permission input, record who did it, and validate it like a model's.

        Args:
            call: the call.
            target: what it runs.
            updated: the new JSON arguments.
            source: kind of author.
            source_ref: the author.
            reason: why.
        """
        before, after = call.permission_input, to_json_value(updated)
        if not isinstance(after, dict):
            self.refuse(
                call,
                ErrorClass.INPUT_MUTATION_FAILED,
                "the changed input is not an object",
                InvocationStatus.VALIDATION_FAILED,
                ResultStatus.FAILED,
            )
        changed = changed_pointers(before, after)
        mutation = InputMutation(
            invocation_id=call.id,
            source_type=source,
            source_ref=source_ref or None,
            from_input_ref=digest(before),
            to_input_ref=digest(after),
            changed_fields=changed,
            reason=reason,
        )
        call.mutations.append(mutation)
        self._recorder.emit(
            call,
            Event.INPUT_MUTATED,
            {
                Attr.MUTATION_ID: mutation.mutation_id,
                Attr.MUTATION_SOURCE: source.value,
                Attr.MUTATION_SOURCE_REF: source_ref,
                Attr.MUTATION_CHANGED_FIELDS: changed[:64],
                Attr.MUTATION_DIGEST_FROM: mutation.from_input_ref or "",
                Attr.MUTATION_DIGEST_TO: mutation.to_input_ref or "",
            },
        )
        spec = call.spec
        if not spec.check.is_valid(after):
            told = ", ".join(f"{pointer or '/'} fails {keyword!r}" for pointer, keyword in spec.check.problems(after))
            self.refuse(
                call,
                ErrorClass.INPUT_MUTATION_FAILED,
                f"the changed input does not fit the schema: {told}",
                InvocationStatus.VALIDATION_FAILED,
                ResultStatus.FAILED,
            )
        call.permission_input = after
        try:
            target.rebind(call, before, after)
        except ValueError as error:
            self.refuse(
                call,
                ErrorClass.INPUT_MUTATION_FAILED,
                f"the changed input can't be used: {type(error).__name__}",
                InvocationStatus.VALIDATION_FAILED,
                ResultStatus.FAILED,
            )
        self.validate(call)

    # --- the body, and after it: fail silent ------------------------------------------------------------------------

    def _perform(self, call: Invocation, target: Target, session: Session) -> Generator[Any, Any, None]:
        execution = call.spec.execution
        self._recorder.arguments(call)
        self._recorder.verbose(call, Event.INVOCATION_QUEUED)
        timeout = execution.timeout_ms / 1000 if execution.timeout_ms else None
        retry = RetryPolicy.of(execution) if execution.supports_retries and not target.streams else None
        effect = Execute(target.function, call.call_args, call.call_kwargs, target.is_async, timeout)
        call.outcome = Outcome.EXECUTED
        call.started_ns = time.time_ns()
        call.enter(InvocationStatus.RUNNING)
        if not self._recorder.captures:
            self._recorder.verbose(call, Event.INVOCATION_STARTED)
        while True:
            call.attempts += 1
            attempt: Attempt = yield effect
            if retry is None or attempt.exception is None or isinstance(attempt.exception, asyncio.CancelledError):
                break
            delay = retry.next_delay(call.attempts, self._errors.classify(attempt.exception))
            if delay is None or control_flow(attempt.exception):
                break
            self._recorder.emit(
                call,
                Event.INVOCATION_RETRIED,
                {Attr.ATTEMPT_NUMBER: call.attempts, Attr.ATTEMPT_DELAY: delay},
            )
            yield Sleep(delay)
        try:
            if attempt.exception is not None or attempt.timed_out:
                self._failed(call, attempt)
            else:
                call.value = attempt.value
                call.delivered = attempt.value if target.unwrap is None else target.unwrap(attempt.value)
                call.items = attempt.items
                call.size = attempt.size if attempt.items is not None else self._delivery.size(call.delivered)
                call.result_status = ResultStatus.SUCCEEDED
                call.enter(InvocationStatus.SUCCEEDED)
                if attempt.abandoned:
                    call.result_status = ResultStatus.PARTIAL_SUCCEEDED
            session.ran(call.spec.declaration.tool_id, call.size)
            if call.ran and call.spec.safety.open_world is not False and call.context.session_id:
                session.saw(call.spec.declaration.tool_id, attempt.value, open_world=True)
            if self._hooks is not None:
                yield from self._hooks.after(call, self)
            if call.ran and not target.streams:
                store = self._delivery.prepare(call, self._recorder)
                if store is not None:
                    yield RunBlocking(store)
            self._recorder.result(call)
            if call.claim is not None:
                yield FinishClaim(call.claim, call.result_status)
        except Exception as bug:
            self._recorder.telemetry.losses.note("result", bug)
            if call.ran and self._delivery.obliged(call):
                self._delivery.withhold(call)

    def _failed(self, call: Invocation, attempt: Attempt) -> None:
        error = call.exception = attempt.exception
        if attempt.timed_out or error is None:
            call.fail(
                ErrorClass.TIMEOUT,
                f"the tool did not end within {call.spec.execution.timeout_ms} ms",
                InvocationStatus.TIMED_OUT,
                ResultStatus.TIMED_OUT,
            )
            call.exception = None
            return
        if control_flow(error):
            call.enter(InvocationStatus.NEEDS_INPUT)
            call.result_status = ResultStatus.PENDING
            return
        if cancellation(error) is not None:
            self._canceled(call, error)
            return
        call.error = self._errors.classify(error, redact=self._clean)
        timed_out = call.error.error_class is ErrorClass.TIMEOUT
        call.result_status = ResultStatus.TIMED_OUT if timed_out else ResultStatus.FAILED
        call.enter(InvocationStatus.TIMED_OUT if timed_out else InvocationStatus.FAILED)
        self._recorder.exception(call)

    def _redact(self, text: str) -> str:
        return self._clean(text) if self._clean is not None else ""

    def _text(self, error: BaseException) -> str:
        """An exception's message, redacted; a ``__str__`` that raises costs the message, nothing else."""
        try:
            return self._redact(str(error)) or type(error).__name__
        except Exception:
            return type(error).__name__


def stored_context(context: AgentContext) -> dict[str, Any]:
    """Return the facts of a context that a resuming process needs, as JSON data.

    Args:
        context: the context of the call.
    """
    return {
        "actor": context.actor,
        "tenant": context.tenant,
        "roles": list(context.roles),
        "session_id": context.session_id,
        "agent_name": context.agent_name,
        "mode": context.mode,
        "roots": list(context.roots),
        "labels": dict(context.labels),
    }


def fail_closed(message: str, cause: FailClosedCause) -> Verdict:
    """Make the verdict of a decision that could not be had.

    Args:
        message: why, without content.
        cause: the word for it in telemetry.
    """
    return Verdict(
        Behavior.DENY,
        source=DecisionSource.ERROR,
        reason_type=ReasonType.POLICY,
        message=message,
        fail_closed=cause,
    )
