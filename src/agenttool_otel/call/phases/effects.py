"""The second decision of a rehearsed call: on what its body would change.

The body has run, and nothing has happened yet. What it would change is decided by the same entry
point, with the effects as facts. Only an allow, or a claimed approval of these very effects, commits
them; whatever else happens throws them away.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from agenttool_otel.call.effects import (
    CallEffects,
    effects_fact,
    protected_changes,
    rehearsed_facts,
)
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.pending.paused import PausedCalls
from agenttool_otel.call.pending.serialized import rehearsed_layer
from agenttool_otel.call.phases.holding import duty_of, refusal, remember_refused, scope_of
from agenttool_otel.call.phases.permission import Permission, policy_input
from agenttool_otel.call.phases.refusals import Refusals, Refused, fail_closed
from agenttool_otel.call.phases.schedule import Schedule
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.sandbox import Sandbox, roots_of
from agenttool_otel.call.steps import Attempt, Call, finish_claim
from agenttool_otel.call.target import Target
from agenttool_otel.context.sessions import Session
from agenttool_otel.names import (
    ApprovalStatus,
    Behavior,
    ErrorClass,
    Event,
    FailClosedCause,
    InvocationStatus,
    Outcome,
    PolicyMode,
    ResultStatus,
    SandboxProfile,
)
from agenttool_otel.policy.types import ApprovalInput, PolicyInput, Verdict
from agenttool_otel.values.run_to_completion import run_to_completion

if TYPE_CHECKING:  # most calls rehearse nothing
    from agenttool_otel.call.rehearsal import RehearsedBody
    from agenttool_otel.enforcement.rehearsal import RehearsedRun, SealedLayer

_KEPT: Final = 256
"""How many results wait in this process; an older one is read from beside its layer."""
_OVER: Final = frozenset({ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED, ApprovalStatus.CANCELED})
"""States of a request after which its effects can't be committed any more."""


@dataclass(slots=True, eq=False)
class Rehearsing:
    """Decides the effects of calls, and commits or discards them."""

    _refusals: Refusals
    _span: CallSpan
    _permission: Permission
    _schedule: Schedule
    _paused: PausedCalls
    # what bodies came to whose effects wait for an answer, by the call's id
    _waiting: OrderedDict[str, Attempt] = field(default_factory=OrderedDict)

    def settle(
        self,
        call: Invocation,
        target: Target,
        session: Session,
        body: RehearsedBody,
        attempt: Attempt,
    ) -> Generator[Any, Any, bool]:
        """Decide what a body would change.

        Args:
            call: the call, whose body has ended.
            target: what it ran.
            session: its session.
            body: the layers of its attempts.
            attempt: what the last one came to.

        Returns:
            Whether the call goes on with what its body came to, and with the effects that the call
            has then; it has ended, or waits for an answer, where not.
        """
        sealed = body.sealed
        if sealed is None or attempt.exception is not None or attempt.timed_out:
            yield Call(body.end)
            return True
        try:
            if sealed.effects.empty:
                yield Call(sealed.discard)
                return True
            self._find(call, session, sealed, body.runs, attempt)
            if _is_written(call):
                yield Call(self._check_places, None, (call, session))
            else:
                yield from self._permit(call, target, session)
        except Refused:
            yield from self._refused(call, target)
            return False
        except Exception as bug:
            self._refusals.interrupted(call, bug)
            yield from self._refused(call, target)
            return False
        except BaseException:
            # canceled: while the policy decides, or a person answers
            self._throw_away(call, sealed)
            raise
        return True

    def _find(
        self,
        call: Invocation,
        session: Session,
        sealed: SealedLayer,
        runs: list[RehearsedRun],
        attempt: Attempt,
    ) -> None:
        """Make the effects the facts of the call."""
        facts = call.decision.facts
        argument = facts["shell"][0]["argument"] if facts["shell"] else ""
        surroundings = self._permission.surroundings(call, session)
        fact = effects_fact(sealed, runs, surroundings, argument)
        call.effects = CallEffects(sealed, fact, attempt)
        call.decision.facts = rehearsed_facts(facts, fact)

    def _check_places(self, call: Invocation, session: Session) -> None:
        """End the call where it changed a protected place; the decision before it was about the rest."""
        surroundings = self._permission.surroundings(call, session)
        changes = protected_changes(_effects_of(call).layer, surroundings)
        first = next(iter(changes), None)
        if first is None or call.sandbox is None:
            return
        from agenttool_otel.enforcement import Violation, ViolationKind

        call.sandbox.violations.append(Violation(ViolationKind.WRITE, first))
        message = self._refusals.redact(refusal(call.sandbox), call)
        self._refusals.refuse(call, ErrorClass.SANDBOX_VIOLATION, message, InvocationStatus.FAILED)

    def _permit(
        self, call: Invocation, target: Target, session: Session
    ) -> Generator[Any, Any, None]:
        """Get a decision that lets the effects be committed, or end the call."""
        verdict = yield from self.decide(call, target, session, None)
        if verdict.mode is PolicyMode.SHADOW:
            return
        if verdict.behavior is Behavior.ALLOW:
            yield from self._permission.check_not_expired(call, verdict, session)
            return
        yield from self.close_first_question(call)
        # before anybody can answer: another process may be the one that goes on
        yield Call(self._prepare_question, None, (call,))
        self._schedule.unlock(call)
        yield from self._permission.ask(call, target, verdict, session)
        yield from self.use_answer(call, target, session)

    def decide(
        self,
        call: Invocation,
        target: Target,
        session: Session,
        approval: ApprovalInput | None,
        check: Callable[[Verdict], Verdict] | None = None,
    ) -> Generator[Any, Any, Verdict]:
        """Decide a call with its effects as facts; a denial ends it.

        Args:
            call: the call.
            target: what it runs.
            session: its session.
            approval: a person's answer to the question about the effects.
            check: makes of the policy's verdict that of the effects.
        """
        document, verdict = yield from self.evaluate(call, target, session, approval)
        if self._permission.decisions is not None:
            self._permission.decisions.record(call.in_charge.decider, document, verdict, call.span)
        verdict = self._span.redaction.redact_verdict(call, verdict)
        if verdict.mode is not PolicyMode.SHADOW:
            verdict = _with_earlier_duties(call, (check or _checked)(verdict))
        self._refusals.decide(call, verdict)
        if verdict.behavior is Behavior.DENY and verdict.mode is not PolicyMode.SHADOW:
            self._refusals.deny(call, verdict, session)
        if call.effects is not None and call.effects.fact["counts"]["connections"]:
            remember_refused(call, session, {"connection"})
        return verdict

    @staticmethod
    def evaluate(
        call: Invocation, target: Target, session: Session, approval: ApprovalInput | None
    ) -> Generator[Any, Any, tuple[PolicyInput, Verdict]]:
        """Return what the policy is asked about the effects, and its verdict; nothing is recorded.

        Args:
            call: the call, with its effects among the facts.
            target: what it runs.
            session: its session.
            approval: a person's answer to the question about the effects.
        """
        decider = call.in_charge.decider
        counters = _without_this_call(session.counters(call.spec.tool_id))
        document = policy_input(call, target, session, counters)
        document["approval"] = approval
        verdict: Verdict = yield Call(decider.decide, decider.adecide, (document,))
        return document, verdict

    @staticmethod
    def close_first_question(call: Invocation) -> Generator[Any, Any, None]:
        """Forget who agreed that the command is tried: that was another question."""
        if call.claim is not None:
            yield finish_claim(call.in_charge, call.claim, ResultStatus.PENDING)
            call.claim = None
        call.decision.approval = call.decision.request = None
        # a call that went on with an answer waits again, which is a state of its own
        call.ticket = None

    def _prepare_question(self, call: Invocation) -> None:
        """Keep the result, and write down what a person is shown."""
        effects = _effects_of(call)
        from agenttool_otel.call.kept_result import result_document
        from agenttool_otel.enforcement.rehearsal import layer_diff

        result = result_document(effects.attempt.value)
        effects.layer.keep({"result": result, "commands": effects.fact["commands"]})
        effects.diff = self._refusals.redact(layer_diff(effects.layer), call)

    def use_answer(
        self, call: Invocation, target: Target, session: Session
    ) -> Generator[Any, Any, None]:
        """Decide with a person's answer, and claim it."""
        verdict = yield from self.decide(call, target, session, call.decision.approval)
        self._permission.check_roles(call, verdict, session)
        yield from self._schedule.lock(call)
        yield from self._permission.claim(call, verdict, session)
        if call.claim is None:
            self._refusals.unapproved(call, "the approval could not be claimed")
        if verdict.behavior is not Behavior.ALLOW:
            call.decision.let_in()
        yield from self._permission.check_not_expired(call, verdict, session)

    # --- another part of the call -----------------------------------------------------------------

    def resume(
        self, call: Invocation, target: Target, session: Session
    ) -> Generator[Any, Any, None]:
        """Get the effects of a call that was asked about, and a decision that lets them be committed.

        The body does not run again.

        Args:
            call: the call, whose answer was taken.
            target: what it ran.
            session: its session.
        """
        self._permission.establish(call, session)
        layer: SealedLayer | None = yield Call(_kept_layer, None, (call,))
        if layer is None:
            self._refusals.blocked(
                call, "the rehearsed changes were committed or discarded, or have expired"
            )
        kept: dict[str, Any] = (yield Call(layer.what_was_kept)) or {}
        attempt = self._waiting.get(call.id) or _kept_attempt(kept)
        if attempt is None:
            yield Call(layer.discard)
            self._refusals.blocked(
                call, "the result of the rehearsed body is not here, and it does not run again"
            )
        self._find(call, session, layer, [], attempt)
        _effects_of(call).fact["commands"] = kept.get("commands", [])
        duty = duty_of(call)
        if duty is not None:
            scope, roots = scope_of(call, target), roots_of(call.context)
            call.sandbox = Sandbox(duty, scope, "bubblewrap", roots, entered=True)
        try:
            yield from self.use_answer(call, target, session)
        except Refused:
            verdict = call.decision.verdict
            if call.claim is not None or (
                verdict is not None
                and verdict.behavior is Behavior.DENY
                and verdict.fail_closed is not FailClosedCause.STORE_UNAVAILABLE
            ):
                yield from self._refused(call, target)
            raise

    def commit(self, call: Invocation) -> Generator[Any, Any, bool]:
        """Commit the effects of a call that runs; return whether that was done.

        Args:
            call: the call, with effects that were decided.
        """
        self._waiting.pop(call.id, None)
        try:
            yield from self._commit(call)
        except Refused:
            yield from self._end(call)
            return False
        except BaseException:
            self._throw_away(call, _effects_of(call).layer)
            raise
        return True

    def ended(self, call: Invocation) -> Generator[Any, Any, None]:
        """Throw away the effects of a call whose question was rejected, or not answered.

        Args:
            call: a call that was asked about.
        """
        if call.decision.approval_status not in _OVER:
            return
        self._waiting.pop(call.id, None)
        layer: SealedLayer | None = yield Call(_kept_layer, None, (call,))
        if layer is not None:
            self._throw_away(call, layer)

    # --- the end of the effects -------------------------------------------------------------------

    def _commit(self, call: Invocation) -> Generator[Any, Any, None]:
        from agenttool_otel.enforcement.rehearsal import CommitConflict, RehearsalError

        effects = _effects_of(call)
        try:
            committed = yield Call(_commit, _acommit, (effects,))
        except CommitConflict as conflict:
            self._not_committed(call, conflict, ErrorClass.DEPENDENCY_UNAVAILABLE)
        except (RehearsalError, OSError) as error:
            self._not_committed(call, error, ErrorClass.POLICY_BLOCKED)
        if not committed.whole:
            effects.settled = True  # its commit has begun: the next sweep tries the rest again
            first = committed.unfinished[0]
            reason = self._refusals.redact(f"{first.path}: {first.reason}", call)
            message = f"the changes were committed in part: {reason}"
            self._refusals.refuse(
                call, ErrorClass.PARTIAL_FAILURE, message, InvocationStatus.FAILED
            )
        self._span.record_effects(call, Event.EFFECTS_COMMITTED)

    def _not_committed(self, call: Invocation, error: Exception, why: ErrorClass) -> NoReturn:
        message = self._refusals.redact(f"the changes were not committed: {error}", call)
        self._refusals.refuse(call, why, message, InvocationStatus.FAILED)

    def _refused(self, call: Invocation, target: Target) -> Generator[Any, Any, None]:
        """Let a call wait with its effects, or end it without them."""
        if call.outcome.execution is Outcome.PENDING:
            self._wait(call, target)
        else:
            yield from self._end(call)

    def _end(self, call: Invocation) -> Generator[Any, Any, None]:
        if call.effects is not None:
            yield Call(self._throw_away, None, (call, call.effects.layer))
        if call.claim is not None:
            yield finish_claim(call.in_charge, call.claim, call.outcome.result_status)

    def _wait(self, call: Invocation, target: Target) -> None:
        self._paused.keep(call, target)
        self._waiting[call.id] = _effects_of(call).attempt
        while len(self._waiting) > _KEPT:
            self._waiting.popitem(last=False)

    def _throw_away(self, call: Invocation, layer: SealedLayer) -> None:
        """Discard a layer; one that can't be is never committed either, and expires."""
        from agenttool_otel.enforcement.rehearsal import RehearsalError

        if call.effects is not None:
            if call.effects.settled:
                return
            call.effects.settled = True
        with suppress(RehearsalError, OSError):
            layer.discard()
        self._span.record_effects(call, Event.EFFECTS_DISCARDED)


def _is_written(call: Invocation) -> bool:
    """Return whether the decision that let the body run lets its effects be committed, too."""
    return call.sandbox is not None and call.sandbox.duty.profile is SandboxProfile.WRITE


def _effects_of(call: Invocation) -> CallEffects:
    if call.effects is None:
        raise RuntimeError("the call has no effects")
    return call.effects


def _checked(verdict: Verdict) -> Verdict:
    """Return a verdict about effects, a denial where it wants what can't be done to them."""
    if verdict.updated_input is not None:
        return fail_closed(
            "the input of a rehearsed call can't be changed", FailClosedCause.MALFORMED
        )
    duty = verdict.sandbox
    if duty is not None and duty.profile is SandboxProfile.READ:
        return replace(
            fail_closed("the decision on its effects lets the call change nothing", _UNAVAILABLE),
            engine=verdict.engine,
            revision=verdict.revision,
            bundle_digest=verdict.bundle_digest,
            rule_ref=verdict.rule_ref,
        )
    # a remembered yes would be one to the command, whatever it changes the next time
    return replace(verdict, suggested_updates=())


_UNAVAILABLE: Final = FailClosedCause.SANDBOX_UNAVAILABLE


def _with_earlier_duties(call: Invocation, verdict: Verdict) -> Verdict:
    """Add what the decision that let the body run obliges of its result.

    It is a denial where a profile of one's own is obliged that is stricter than what held the body.
    """
    held, late = duty_of(call), verdict.sandbox
    if held is not None and late is not None and late.own:
        both = held.joined(late)
        if both.unordered or both.name != held.name:
            message = f"the commands ran already, and not inside the sandbox {late.own}"
            verdict = replace(
                fail_closed(message, _UNAVAILABLE),
                engine=verdict.engine,
                revision=verdict.revision,
                bundle_digest=verdict.bundle_digest,
                rule_ref=verdict.rule_ref,
            )
    limits = [verdict.max_inline_chars]
    results, persistence = dict.fromkeys(verdict.redact_result), verdict.persistence
    for earlier in call.decision.decisions:
        limits.append(earlier.verdict.max_inline_chars)
        results |= dict.fromkeys(earlier.verdict.redact_result)
        persistence = persistence or earlier.verdict.persistence
    return replace(
        verdict,
        sandbox=held,
        redact_result=tuple(results),
        persistence=persistence,
        max_inline_chars=min((limit for limit in limits if limit is not None), default=None),
    )


def _without_this_call(counters: Mapping[str, int]) -> dict[str, int]:
    """Return a session's counters as they were before this call, which it has counted."""
    before = dict(counters)
    for name in ("calls", "tool_calls"):
        before[name] = max(0, before[name] - 1)
    return before


def _commit(effects: CallEffects) -> Any:
    committed = effects.layer.commit(effects.fact["digest"])
    effects.settled = committed.whole
    return committed


async def _acommit(effects: CallEffects) -> Any:
    """Commit to the end, also where the task is canceled meanwhile."""
    committed, canceled = await run_to_completion(partial(_commit, effects))
    if canceled is not None:
        raise canceled
    return committed


def _kept_layer(call: Invocation) -> SealedLayer | None:
    from agenttool_otel.call.rehearsal import rehearsals_at
    from agenttool_otel.enforcement.rehearsal import RehearsalError

    try:
        rehearsals = rehearsals_at(call.in_charge.layers, os.getpid())
        return rehearsals.kept(rehearsed_layer(call))
    except (RehearsalError, OSError):
        return None


def _kept_attempt(kept: Mapping[str, Any]) -> Attempt | None:
    from agenttool_otel.call.kept_result import result_value

    try:
        return Attempt(result_value(kept.get("result")))
    except ValueError:
        return None
