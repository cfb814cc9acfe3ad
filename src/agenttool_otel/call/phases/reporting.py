"""The second decision of a call whose body reports what it is about to do, while the body runs.

The body goes on only where that is allowed. It lets a refusal through, and its own transaction rolls
back; a body that goes on nevertheless ends as denied, and what it may have done is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NoReturn

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.pending.paused import PausedCalls
from agenttool_otel.call.phases.effects import Rehearsing
from agenttool_otel.call.phases.permission import Permission
from agenttool_otel.call.phases.refusals import Refusals, Refused, fail_closed
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.reported_effects import (
    EffectChange,
    ReportedEffects,
    ReportState,
    changes_text,
    reported_fact,
)
from agenttool_otel.call.steps import Attempt, Call
from agenttool_otel.call.target import Target
from agenttool_otel.context.sessions import Session
from agenttool_otel.errors import AgentToolError, EffectsDenied, EffectsError, EffectsPending
from agenttool_otel.facts.types import EffectsFact
from agenttool_otel.names import (
    Behavior,
    ErrorClass,
    Event,
    FailClosedCause,
    InvocationStatus,
    Outcome,
    PolicyMode,
)
from agenttool_otel.policy.types import Verdict, expired
from agenttool_otel.values.forks import new_lock

_WENT_ON: Final = "the body went on although what it reported was not allowed, and may have done it"

_mutex: Final = new_lock()


@dataclass(slots=True, eq=False)
class Reporting:
    """Decides what bodies report."""

    _refusals: Refusals
    _span: CallSpan
    _permission: Permission
    _paused: PausedCalls
    _rehearsing: Rehearsing

    def report(
        self,
        call: Invocation,
        target: Target,
        session: Session,
        changes: Iterable[EffectChange],
        begin: Callable[[Invocation], None],
    ) -> Generator[Any, Any, None]:
        """Decide what a body is about to do; yields steps, as the pipeline does.

        Args:
            call: the call, whose body runs.
            target: what it runs.
            session: its session.
            changes: what the body reports.
            begin: records that the call runs, once it may.

        Raises:
            EffectsError: the body must not go on.
        """
        if not call.spec.reports_effects:
            raise EffectsError("the tool is not governed with reports_effects=True")
        fact = self._read(call, target, changes)
        before = call.reported_effects
        effects = self._take(call, fact)
        if before is not None and _covers(before, fact, call):
            effects.state = ReportState.ALLOWED
            begin(call)
            return
        effects.diff = self._refusals.redact(changes_text(fact), call)
        call.decision.facts = {**call.decision.facts, "effects": fact}
        effects.state = ReportState.REFUSED  # until something else is decided
        try:
            yield from self._permit(call, target, session, before)
        except Refused:
            self._stop(call, effects)
        except Exception as bug:
            self._refusals.interrupted(call, bug)
            self._stop(call, effects)
        effects.state = ReportState.ALLOWED
        begin(call)

    def _read(
        self, call: Invocation, target: Target, changes: Iterable[EffectChange]
    ) -> EffectsFact:
        if call.sandbox is not None or target.streams:
            self._unusable(call, "a body that is held, or a stream, can't report its effects")
        try:
            return reported_fact(changes)
        except Exception as error:
            # the author's own objects: their text may be anything
            message = f"the reported effects can't be used: {type(error).__name__}"
            self._unusable(call, message)

    def _take(self, call: Invocation, fact: EffectsFact) -> ReportedEffects:
        """Make a report that of this attempt; there is one, so that nothing is split."""
        attempt = call.outcome.attempts
        with _mutex:
            before = call.reported_effects
            if before is None or before.attempt != attempt:
                call.reported_effects = ReportedEffects(fact, attempt=attempt)
                return call.reported_effects
        before.again = True
        raise EffectsError("effects were reported before: report them once, and all of them")

    def _unusable(self, call: Invocation, message: str) -> NoReturn:
        """Refuse a report about which nothing can be decided."""
        if call.outcome.started_ns is not None and call.reported_effects is not None:
            call.reported_effects.again = True
            raise EffectsError(message)
        if call.reported_effects is None:
            call.reported_effects = ReportedEffects(reported_fact(()))
        call.reported_effects.state = ReportState.REFUSED
        with suppress(Refused):
            self._refusals.undecidable(call, message)
        raise EffectsError(message)

    def _stop(self, call: Invocation, effects: ReportedEffects) -> NoReturn:
        if call.outcome.execution is Outcome.PENDING:
            effects.state = ReportState.WAITS
            raise EffectsPending("a person is asked about the reported effects") from None
        error = call.outcome.error
        reason = error.message if error is not None else "not allowed"
        raise EffectsDenied(f"the reported effects are denied: {reason}") from None

    def _permit(
        self,
        call: Invocation,
        target: Target,
        session: Session,
        before: ReportedEffects | None,
    ) -> Generator[Any, Any, None]:
        # a question about other effects is another one, whatever its words are
        asked = None if before else _last_question(call)
        if asked is not None and not (yield from self._asks_without(call, target, session, asked)):
            asked = None
        check = partial(_checked, asked)
        verdict = yield from self._rehearsing.decide(call, target, session, None, check)
        if verdict.mode is PolicyMode.SHADOW:
            return
        if verdict.behavior is Behavior.ALLOW:
            yield from self._permission.check_not_expired(call, verdict, session)
            return
        yield from self._rehearsing.close_first_question(call)
        yield from self._permission.ask(call, target, verdict, session)
        yield from self._rehearsing.use_answer(call, target, session)

    def _asks_without(
        self, call: Invocation, target: Target, session: Session, asked: Verdict
    ) -> Generator[Any, Any, bool]:
        """Return whether the same is asked about a call that reports no change.

        A rule that asks unless few rows are changed also asks where nothing is known of them: who
        answered that has not agreed to a million rows.
        """
        facts = call.decision.facts
        call.decision.facts = {**facts, "effects": reported_fact(())}
        try:
            _, verdict = yield from self._rehearsing.evaluate(call, target, session, None)
        finally:
            call.decision.facts = facts
        verdict = self._span.redaction.redact_verdict(call, verdict)
        return verdict.behavior is Behavior.ASK and _is_same(asked, verdict)

    def ended(
        self, call: Invocation, target: Target, session: Session, attempt: Attempt
    ) -> Generator[Any, Any, bool]:
        """Take the end of a body that reported its effects.

        Args:
            call: the call.
            target: what it ran.
            session: its session.
            attempt: what the body came to.

        Returns:
            Whether the call has its outcome by that; else it has that of its body.
        """
        effects = call.reported_effects
        if effects is None or effects.state is ReportState.ANSWERED:
            return False
        raised = attempt.exception is not None
        if effects.state is ReportState.ALLOWED:
            if effects.again and not raised:
                self._span.record_effects(call, Event.EFFECTS_UNHEEDED)
                call.fail(ErrorClass.POLICY_BLOCKED, _WENT_ON, InvocationStatus.FAILED)
                return True
            if not attempt.timed_out:
                name = Event.EFFECTS_DISCARDED if raised else Event.EFFECTS_COMMITTED
                self._span.record_effects(call, name)
            return False
        if not raised:
            yield from self._went_on(call, effects)
            return True
        if effects.state is ReportState.WAITS:
            self._paused.keep(call, target)
            session.give_back(call.spec.tool_id)  # it counts when it goes on
            return True
        self._span.record_effects(call, Event.EFFECTS_DISCARDED)
        # without an error it was stopped while the policy or a person decided
        return call.outcome.error is not None

    def _went_on(self, call: Invocation, effects: ReportedEffects) -> Generator[Any, Any, None]:
        """End a call as denied whose body did not let a refusal through."""
        request = call.decision.request
        if effects.state is ReportState.WAITS and request is not None:
            # the body must not run a second time
            # where a graph asks, its own question ends with the call
            cancel = getattr(call.in_charge.approvals, "cancel", None)
            with suppress(AgentToolError):
                if cancel is not None:
                    yield Call(cancel, None, (request.request_id, _WENT_ON))
        call.exception = None
        call.outcome.execution = Outcome.NOT_EXECUTED  # of what it did nothing is known
        self._span.record_effects(call, Event.EFFECTS_UNHEEDED)
        if call.outcome.error is None:
            with suppress(Refused):
                self._refusals.blocked(call, _WENT_ON)
        else:
            call.outcome.error.message += f"; {_WENT_ON}"


def _covers(before: ReportedEffects, fact: EffectsFact, call: Invocation) -> bool:
    """Return whether effects were decided: of an earlier attempt, or before the body ran again."""
    verdict = call.decision.verdict
    if before.refused or before.fact["digest"] != fact["digest"] or verdict is None:
        return False
    return verdict.mode is PolicyMode.SHADOW or not expired(verdict)


def _last_question(call: Invocation) -> Verdict | None:
    for decided in reversed(call.decision.decisions):
        if decided.verdict.behavior is Behavior.ASK:
            return decided.verdict
    return None


def _checked(asked: Verdict | None, verdict: Verdict) -> Verdict:
    """Return a verdict about effects: one that only asks again what was answered is an allow.

    Args:
        asked: the question that was answered before the body ran.
        verdict: what the policy decides now.
    """
    if verdict.updated_input is not None:
        return fail_closed("the input of a body that runs can't be changed", _MALFORMED)
    if verdict.sandbox is not None and verdict.behavior is not Behavior.DENY:
        return fail_closed("a body that runs can't be held any more", _UNAVAILABLE)
    # a remembered yes would be one to the call, whatever it changes the next time
    verdict = replace(verdict, suggested_updates=())
    if verdict.behavior is Behavior.ASK and asked is not None and _is_same(asked, verdict):
        return replace(
            verdict,
            behavior=Behavior.ALLOW,
            approver_roles=(),
            approvals_needed=1,
            required_roles=(),
        )
    return verdict


_MALFORMED: Final = FailClosedCause.MALFORMED
_UNAVAILABLE: Final = FailClosedCause.SANDBOX_UNAVAILABLE


def _is_same(asked: Verdict, verdict: Verdict) -> bool:
    """Return whether a question has no reason that an earlier one had not."""
    if not verdict.rule_ref or asked.rule_ref != verdict.rule_ref:
        return False
    if asked.message != verdict.message:
        return False
    rules, roles = set(verdict.rule_refs), set(verdict.approver_roles)
    if verdict.approvals_needed > asked.approvals_needed:
        return False
    if not set(verdict.required_roles) <= set(asked.required_roles):
        return False
    return rules <= set(asked.rule_refs) and roles <= set(asked.approver_roles)
