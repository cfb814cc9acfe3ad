"""From the tool's body on: everything fails silent, unless a policy obliges otherwise.

The value or the exception of a tool that was allowed to run is delivered, whatever happens to
telemetry, bookkeeping or persistence.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from agenttool_otel.call.delivery import Delivery
from agenttool_otel.call.envelope import examine
from agenttool_otel.call.invocation import NOT_RUN, Invocation
from agenttool_otel.call.phases.attempts import Arguments, unchanged_arguments
from agenttool_otel.call.phases.effects import Rehearsing
from agenttool_otel.call.phases.holding import held, refusal, remember_refusals
from agenttool_otel.call.phases.hooks import HookRunner
from agenttool_otel.call.phases.in_place import warn_of_changes, watch
from agenttool_otel.call.phases.provenance import StreamWords, record_exception_text, record_output
from agenttool_otel.call.phases.refusals import Refusals
from agenttool_otel.call.phases.reporting import Reporting
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.records import keep_call_input
from agenttool_otel.call.sandbox import Sandbox
from agenttool_otel.call.scheduling.modifiers import ContextModifier
from agenttool_otel.call.steps import Attempt, Call, Execute, finish_claim
from agenttool_otel.call.target import Target
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.sessions import Session
from agenttool_otel.names import (
    AbortReason,
    Attr,
    CancelOutcome,
    ErrorClass,
    Event,
    GenAI,
    InvocationStatus,
    Outcome,
    PolicyMode,
    ProgressStatus,
    ResultStatus,
)
from agenttool_otel.policy.types import Verdict, expired
from agenttool_otel.results.content.native import PLAIN_TYPES, native_failure, native_meta
from agenttool_otel.results.content.size import size_of
from agenttool_otel.results.errors.control_flow import cancellation, control_flow, jump
from agenttool_otel.results.errors.mapper import ErrorMapper
from agenttool_otel.results.errors.retry import RetryPolicy
from agenttool_otel.values.inspection import error_name, short_name


def finish(call: Invocation, outcome: ResultStatus) -> Generator[Any, Any, None]:
    """Record how the run of an approved call ended, if there was a claim to it."""
    if call.claim is not None and call.services is not None:
        yield finish_claim(call.services, call.claim, outcome)


def _unused(*args: Any) -> None:
    raise TypeError("this call runs elsewhere")


_ELSEWHERE = Target(_unused, _unused, _unused)
"""What a call runs whose executor is not in this process."""


@dataclass(slots=True, eq=False)
class Body:
    """Runs the tool and settles what came of it."""

    _refusals: Refusals
    _span: CallSpan
    _delivery: Delivery
    _errors: ErrorMapper
    _hooks: HookRunner | None
    _rehearsing: Rehearsing
    _reporting: Reporting

    def run(self, call: Invocation, target: Target, session: Session) -> Generator[Any, Any, None]:
        """Run the tool and settle its outcome."""
        execution = call.spec.execution
        span = self._span
        rehearsal = call.sandbox.rehearsal if call.sandbox is not None else None
        timeout = execution.timeout_ms / 1000 if execution.timeout_ms else None
        plain = not (target.streams or target.collects or target.in_thread or call.sandbox)
        function = target.function if plain else self._function(call, target, session)
        step = Execute(function, call.call_args, call.call_kwargs, target.is_async, timeout)
        # a stream can't be run again: its first items are with the consumer
        retries = execution.supports_retries and not target.streams
        again = unchanged_arguments(call) if retries else None
        begins = not (rehearsal or call.spec.reports_effects)
        if begins:
            self._begin(call)
        if session.refused_something and call.sandbox is None:
            self._link_refused(call, session)
        if call.handle is not None:
            call.handle.inside = self.inside(call, target, session)
            call.handle.report_status(ProgressStatus.STARTED)
        if span.telemetry.events.sinks:
            self._keep_call_input(call)
        before = watch(call) if call.originals else None
        started = time.perf_counter()
        attempt: Attempt = yield step
        if before:
            guarded(warn_of_changes, call, before)
        if call.sandbox is not None:
            remember_refusals(call, session)
        call.outcome.attempts = 1
        if again is not None:
            attempt = yield from self._retry(call, step, again, attempt)
        call.outcome.run_seconds = time.perf_counter() - started
        if begins:
            yield from self._conclude(call, target, session, attempt)
        else:
            yield from self._conclude_decided(call, target, session, attempt)

    def conclude(
        self, call: Invocation, target: Target, session: Session, attempt: Attempt
    ) -> Generator[Any, Any, None]:
        """Settle a call whose body ran on the straight way."""
        call.outcome.attempts = 1
        yield from self._conclude(call, target, session, attempt)

    def inside(self, call: Any, target: Target, session: Session) -> tuple[Any, ...]:
        """Return what decides on the effects that a body reports."""
        return self._reporting, call, target, session, self._begin

    def _link_refused(self, call: Invocation, session: Session) -> None:
        """Link a call that runs outside to the one that a sandbox refused something."""
        earlier = session.refusal_of(call.spec.tool_id, call.inputs.permission_input)
        if earlier is not None:
            self._span.telemetry.link(call.span, earlier.span)

    def _begin(self, call: Invocation) -> None:
        """Record that the call runs from now on."""
        span = self._span
        if span.redaction.captures:
            span.capture_arguments(call)
        call.outcome.execution = Outcome.EXECUTED
        call.outcome.started_ns = call.now_ns()
        call.enter(InvocationStatus.RUNNING)
        if span.every_class and not span.redaction.captures:
            span.emit(call, Event.INVOCATION_STARTED, {})

    def _conclude_decided(
        self, call: Invocation, target: Target, session: Session, attempt: Attempt
    ) -> Generator[Any, Any, None]:
        """Settle a call that runs only once its effects are allowed: where they are refused, it has not run."""
        rehearsal = call.sandbox.rehearsal if call.sandbox is not None else None
        if call.handle is not None:
            call.handle.inside = None  # what goes on after its time can't be decided any more
        if (yield from self._reporting.ended(call, target, session, attempt)):
            if rehearsal is not None:
                yield Call(rehearsal.end)
            yield from finish(call, call.outcome.result_status)
        elif rehearsal is None:
            if call.outcome.started_ns is None:
                self._begin(call)
            yield from self._conclude(call, target, session, attempt)
        elif (yield from self._rehearsing.settle(call, target, session, rehearsal, attempt)):
            yield from self.deliver(call, target, session, attempt)

    def deliver(
        self, call: Invocation, target: Target, session: Session, attempt: Attempt
    ) -> Generator[Any, Any, None]:
        """Let a rehearsed call happen: commit what its body would change, and settle its result.

        Until here it has not run: nothing outside of its layer has changed.
        """
        self._begin(call)
        call.outcome.attempts = max(1, call.outcome.attempts)
        if call.effects is None or (yield from self._rehearsing.commit(call)):
            yield from self._conclude(call, target, session, attempt)

    def complete(
        self, call: Invocation, session: Session, attempt: Attempt
    ) -> Generator[Any, Any, None]:
        """Settle a call that ran elsewhere, as if it had run here."""
        call.outcome.execution = Outcome.EXECUTED
        call.outcome.started_ns = _handed_over_ns(call)
        call.outcome.attempts = 1
        call.enter(InvocationStatus.RUNNING)
        if self._span.every_class:
            self._span.emit(call, Event.INVOCATION_STARTED, {})
        yield from self._conclude(call, _ELSEWHERE, session, attempt)

    def _conclude(
        self, call: Invocation, target: Target, session: Session, attempt: Attempt
    ) -> Generator[Any, Any, None]:
        """Settle what came of the run, and end the claim to it whatever settling it raises."""
        try:
            yield from self._settle(call, target, session, attempt)
        except Exception as bug:
            self._span.telemetry.losses.note("result", bug)
            if call.value is not NOT_RUN and self._delivery.obliged(call):
                self._delivery.withhold(call)
        except GeneratorExit:
            raise
        except BaseException:
            # a cancellation, while a hook or a store had its time: what was claimed has run
            yield from finish(call, call.outcome.result_status)
            raise
        if call.claim is not None:
            yield from finish(call, call.outcome.result_status)

    def _settle(
        self, call: Invocation, target: Target, session: Session, attempt: Attempt
    ) -> Generator[Any, Any, None]:
        """Take the outcome, then let the session, hooks, stores and the span have their part."""
        if call.tap is not None:
            yield Call(partial(self._end_stream, call))
        guarded(self.take_outcome, call, attempt)
        if is_remembered(call.spec, session, failed=attempt.exception is not None):
            _record_origin(call, session, attempt)
        guarded(take_result, call, target, attempt)
        session.returned(call.spec.tool_id, call.outcome.size)
        if self._hooks is not None:
            yield from self._hooks.after(call)
        if call.tap is not None or not _is_plain(call, self._delivery.keeper.max_inline_chars):
            yield from self._keep(call, target)
        if self._hooks is not None:
            yield from self._hooks.persisted(call)
        if call.value is not NOT_RUN and (
            call.spec.output_check is not None or self._span.telemetry.events.sinks
        ):
            guarded(examine, call)
        if call.outcome.artifact_refs:
            guarded(self._clean_references, call)
        if call.value is not NOT_RUN and type(call.value) not in PLAIN_TYPES:
            guarded(self._keep_native_meta, call)
        guarded(self._span.record_result, call)

    def _keep(self, call: Invocation, target: Target) -> Generator[Any, Any, None]:
        """Meet the obligations of a result, and store what does not go inline."""
        if call.tap is not None and guarded(self._delivery.streamed, call, self._span):
            return
        if (
            call.value is NOT_RUN
            or target.streams
            or _is_plain(call, self._delivery.keeper.max_inline_chars)
        ):
            return
        store = guarded(self._delivery.prepare, call, self._span)
        if store is not None:
            yield Call(store)

    def _keep_call_input(self, call: Invocation) -> None:
        try:
            keep_call_input(call)
        except Exception as bug:
            self._span.telemetry.losses.note("result", bug)

    def _clean_references(self, call: Invocation) -> None:
        """Redact the deliverables that records name: a URI may hold a token."""
        clean = self._span.redaction.redact_object
        shown = [clean(reference) for reference in call.outcome.artifact_refs]
        call.outcome.artifact_refs = [reference for reference in shown if reference]

    def _keep_native_meta(self, call: Invocation) -> None:
        """Keep the ``_meta`` of an MCP result for the mapping of the envelope."""
        meta = native_meta(call.model_value)
        if meta is not None:
            call.native_meta = self._span.redaction.redact_object(meta)

    def _function(self, call: Invocation, target: Target, session: Session) -> Callable[..., Any]:
        """Return what runs: the tool itself, or the tool behind what watches or gathers its
        items.
        """
        function = target.function
        if call.sandbox is not None:
            self._span.record_sandbox(call, call.sandbox)
            return self._held(function, call.sandbox, target)
        if target.streams:
            if _from_outside(call):
                call.item_seen = StreamWords(call, session)
            function = self._delivery.tapped(call, function, self._span, is_async=target.is_async)
        elif target.collects:
            is_async = target.is_async and not target.in_thread
            function = self._delivery.gathered(call, function, self._span, is_async=is_async)
        return _in_thread(function) if target.in_thread else function

    @staticmethod
    def _held(function: Callable[..., Any], sandbox: Sandbox, target: Target) -> Callable[..., Any]:
        inside = held(function, sandbox)
        return _in_thread(inside) if target.in_thread else inside

    def _end_stream(self, call: Invocation) -> None:
        if call.tap is not None:
            call.kept = call.tap.finish()

    def _retry(
        self, call: Invocation, step: Execute, again: Arguments, attempt: Attempt
    ) -> Generator[Any, Any, Attempt]:
        """Run again what failed and may be run again, within the decision it had, and let each attempt
        be seen.
        """
        policy = RetryPolicy.from_profile(call.spec.execution)
        while attempt.exception is not None:
            error = attempt.exception
            if control_flow(error) or cancellation(error) is not None:
                break
            if call.sandbox is not None and call.sandbox.refuses:
                break  # it refuses again
            if call.reported_effects is not None:
                break  # what it reports now might be something else
            failure = self._errors.classify(error, redact=_silent)
            delay = policy.next_delay(call.outcome.attempts, failure)
            if delay is None or call.cancellation is not None:
                break
            attributes = {
                Attr.ATTEMPT_NUMBER: call.outcome.attempts,
                Attr.ATTEMPT_DELAY: delay,
                GenAI.ERROR_TYPE: failure.error_class.value,
            }
            self._span.emit(call, Event.INVOCATION_RETRIED, attributes)
            yield Call(time.sleep, asyncio.sleep, (delay,))
            # the pause may have been longer than the decision holds
            if (
                call.decision.verdict is not None
                and call.decision.verdict.mode is not PolicyMode.SHADOW
                and expired(call.decision.verdict)
            ):
                break
            call.outcome.attempts += 1
            args, kwargs = again()
            attempt = yield replace(step, args=args, kwargs=kwargs)
        return attempt

    def take_outcome(self, call: Invocation, attempt: Attempt) -> None:
        """Take what a body came to as the outcome of its call; nothing is recorded."""
        if attempt.exception is not None or attempt.timed_out:
            self._failed(call, attempt)
            return
        if type(attempt.value) is ContextModifier:
            call.modifier = attempt.value
            attempt.value = attempt.value.value
        call.value = call.delivered = attempt.value
        call.outcome.result_status = ResultStatus.SUCCEEDED
        if attempt.abandoned:
            call.outcome.result_status = ResultStatus.PARTIAL_SUCCEEDED
            call.outcome.abort_reason = AbortReason.ABANDONED.value
        elif call.cancellation is not None and call.cancellation.acknowledged_at is not None:
            # it was asked to stop, and gives what it has
            call.outcome.result_status = ResultStatus.PARTIAL_SUCCEEDED
            call.outcome.abort_reason = call.cancellation.abort_reason
            if call.handle is not None:
                call.handle.settle(CancelOutcome.CANCELED)
        failure = None if type(attempt.value) in PLAIN_TYPES else native_failure(attempt.value)
        if failure is None:
            call.enter(InvocationStatus.SUCCEEDED)
        else:
            # the tool returned, so its caller gets the value; that it failed is what the value
            # itself holds (MCP's isError)
            call.fail(
                ErrorClass.EXECUTION_FAILED,
                "the tool returned a failure as its result",
                InvocationStatus.FAILED,
                native_error_ref=failure,
            )

    def _failed(self, call: Invocation, attempt: Attempt) -> None:
        error = call.exception = attempt.exception
        if attempt.timed_out or error is None:
            call.outcome.abort_reason = AbortReason.TIMEOUT.value
            call.fail(
                ErrorClass.TIMEOUT,
                f"the tool did not end within {call.spec.execution.timeout_ms} ms",
                InvocationStatus.TIMED_OUT,
                ResultStatus.TIMED_OUT,
            )
            call.exception = None
        elif jump(error):
            # langgraph's ParentCommand: the tool is done, and the graph goes on elsewhere
            call.enter(InvocationStatus.SUCCEEDED)
            call.outcome.result_status = ResultStatus.SUCCEEDED
        elif control_flow(error):
            call.enter(InvocationStatus.NEEDS_INPUT)
            call.outcome.result_status = ResultStatus.PENDING
            if call.handle is not None:
                call.handle.report_status(ProgressStatus.WAITING_FOR_INPUT)
            # langgraph's interrupt(): the graph runs the body again, from its start
            call.outcome.execution = Outcome.PENDING
        elif cancellation(error) is not None:
            self._refusals.cancel(call, error)
            if call.cancellation is not None and not isinstance(error, asyncio.CancelledError):
                call.exception = None  # nobody canceled the caller
        else:
            self._raised(call, error)

    def _raised(self, call: Invocation, error: BaseException) -> None:
        """Record the failure of a body that raised."""
        if call.sandbox is not None and call.sandbox.refuses:
            self._refused(call, call.sandbox, error)
            return
        call.outcome.error = self._errors.classify(
            error, redact=partial(self._refusals.redact, call=call)
        )
        timed_out = call.outcome.error.error_class is ErrorClass.TIMEOUT
        call.outcome.result_status = ResultStatus.TIMED_OUT if timed_out else ResultStatus.FAILED
        call.enter(InvocationStatus.TIMED_OUT if timed_out else InvocationStatus.FAILED)
        self._span.record_exception(call)

    def _refused(self, call: Invocation, sandbox: Sandbox, error: BaseException) -> None:
        """Record that a sandbox refused what a body tried, or could not hold it after all."""
        error_class, message = ErrorClass.SANDBOX_VIOLATION, refusal(sandbox)
        if sandbox.unavailable is not None:
            # proven before, and not to be had now: the body's door was reached, and it did not run
            error_class = ErrorClass.POLICY_BLOCKED
            message = f"the body could not be held: {sandbox.unavailable}"
        redacted = self._refusals.redact(message, call)
        reference = error_name(error)
        call.fail(error_class, redacted, InvocationStatus.FAILED, native_error_ref=reference)
        self._span.record_exception(call)


def _handed_over_ns(call: Invocation) -> int:
    """Return when whoever runs a call was given it: when it began to wait for its result."""
    for status, at in reversed(call.outcome.transitions):
        if status is InvocationStatus.NEEDS_INPUT:
            return at
    return call.created_ns


def _is_plain(call: Invocation, max_inline_chars: int) -> bool:
    """Return whether a result is delivered as it is: small, and nobody demands anything of it; the
    usual case.
    """
    verdict, size = call.decision.verdict, call.outcome.size
    return (
        size is not None
        and size <= max_inline_chars
        and not call.spec.shapes_result
        and (verdict is None or not shapes_result(verdict))
    )


def shapes_result(verdict: Verdict) -> bool:
    """Return whether a decision obliges something of the result."""
    return bool(
        verdict.redact_result or verdict.persistence or verdict.max_inline_chars is not None
    )


def is_remembered(spec: ToolSpec, session: Session, *, failed: bool) -> bool:
    """Return whether the session remembers what a call gives.

    Trusted output matters only beside untrusted one, which it may confirm: in a session without any,
    nothing has to be remembered.
    """
    if failed or spec.is_source or not spec.output_trust.is_trusted:
        return True
    return session.ledger is not None and session.ledger.has_evidence


def _record_origin(call: Invocation, session: Session, attempt: Attempt) -> None:
    """Remember in the session which texts came from outside: by a value, or by an exception."""
    if attempt.exception is not None and _from_outside(call):
        record_exception_text(call, session, attempt.exception)
    elif call.value is not NOT_RUN and call.context.session_id:
        arguments = call.inputs.permission_input
        guarded(record_output, call.spec, arguments, session, attempt.value)


def guarded(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Take one step after the body, in which methods of the result's own class may be called.

    What such a method raises must not be what the caller gets in place of the tool's outcome, not
    even where it is a SystemExit; only a KeyboardInterrupt is taken at its word.
    """
    try:
        return step(*args, **kwargs)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise RuntimeError(f"a method of the result raised {short_name(error)}") from error


def take_result(call: Invocation, target: Target, attempt: Attempt) -> None:
    """Take out of a body's value what a model sees, and measure it.

    Args:
        call: the call, whose outcome is known.
        target: what it ran; a door's ``unwrap`` may raise.
        attempt: what its body came to.
    """
    if call.value is NOT_RUN:
        return
    if target.unwrap is not None:
        call.delivered = target.unwrap(attempt.value)
    call.outcome.items = attempt.items
    call.outcome.size = attempt.size if attempt.items is not None else size_of(call.delivered)


def _from_outside(call: Invocation) -> bool:
    """Return whether what the call gives may have been written by anybody, and somebody will ask
    where it came from.
    """
    return bool(call.context.session_id) and call.spec.safety.open_world is not False


def _silent(text: str) -> str:
    """Stand for a redactor where nobody reads the message."""
    return ""


def _in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    async def off_the_loop(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(function, *args, **kwargs)

    return off_the_loop
