"""The permission phase: decide, ask, claim. It fails closed: only an allow, or a claimed approval, gets through."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from typing import Any

from agenttool_otel.approvals.types import ApprovalAnswer, ClaimBinding
from agenttool_otel.context import AgentContext
from agenttool_otel.effects import Ask, Decide, FinishClaim, TakeClaim
from agenttool_otel.errors import ApprovalError
from agenttool_otel.facts.environment import FactEnvironment
from agenttool_otel.facts.types import EMPTY_FACTS
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import (
    ApprovalStatus,
    Attr,
    Behavior,
    ErrorClass,
    Event,
    FailClosedCause,
    InvocationStatus,
    MutationSource,
    PolicyMode,
    ResultStatus,
)
from agenttool_otel.pipeline.document import policy_input, stored_context
from agenttool_otel.pipeline.endings import Endings, fail_closed
from agenttool_otel.pipeline.hooking import HookRunner
from agenttool_otel.pipeline.inputs import Inputs, differs
from agenttool_otel.pipeline.remembering import Remembering
from agenttool_otel.pipeline.target import Target
from agenttool_otel.policy.types import Verdict, expired
from agenttool_otel.questions import Questions
from agenttool_otel.recorder import Recorder
from agenttool_otel.records.values import digest
from agenttool_otel.sessions import Session

__all__ = ["Permission"]

_MAX_ROUNDS = 5
"""How often an input may be changed and decided again before the call is denied."""

Phase = Generator[Any, Any, None]


class Permission:
    """Resolves the permission of calls.

    Args:
        endings: how a call ends that may not run.
        inputs: changes inputs.
        recorder: telemetry.
        questions: makes approval requests.
        environment: makes the fact environment of a context and session.
        hooks: the hook runner, or ``None``.
        known_tools: facts of the governed tools by name, for alternatives.
    """

    __slots__ = ("_endings", "_environment", "_hooks", "_inputs", "_known_tools", "_questions", "_recorder")

    def __init__(
        self,
        endings: Endings,
        inputs: Inputs,
        recorder: Recorder,
        questions: Questions,
        environment: Callable[[AgentContext, Session], FactEnvironment],
        hooks: HookRunner | None,
        known_tools: Callable[[], Mapping[str, Mapping[str, Any]]],
    ) -> None:
        self._endings = endings
        self._inputs = inputs
        self._recorder = recorder
        self._questions = questions
        self._environment = environment
        self._hooks = hooks
        self._known_tools = known_tools

    def establish(self, call: Invocation, session: Session) -> None:
        """Work out the facts of the permission input.

        Args:
            call: the call.
            session: its session.
        """
        plan = call.spec.facts
        if plan is None:
            call.facts = EMPTY_FACTS
        else:
            call.facts = plan.establish(call.permission_input, self._environment(call.context, session))

    def resolve(self, call: Invocation, target: Target, session: Session) -> Phase:
        """Get a decision that lets the call run, or end it.

        Args:
            call: the call.
            target: what it runs.
            session: its session.
        """
        remembering = Remembering(self._recorder)
        for _ in range(_MAX_ROUNDS):
            if self._hooks is not None:
                yield from self._hooks.before(call, target, session)
            remembering.recheck(call)
            self.establish(call, session)
            verdict = yield from self._decide(call, target, session, remembering)
            if verdict is None:
                return
            if verdict.updated_input is not None and self._inputs.is_new(call, verdict.updated_input):
                author = (MutationSource.RUNTIME, verdict.rule_ref, "policy")
                if self._hooks is not None:
                    author = self._hooks.author(call, verdict)
                self._inputs.mutate(call, target, verdict.updated_input, *author)
                continue
            if verdict.behavior is Behavior.ASK and (yield from remembering.find(call, verdict)):
                continue
            yield from self._ask(call, target, verdict, session)
        verdict = fail_closed("the input kept changing between decisions", FailClosedCause.NO_DECISION)
        call.decide(verdict)
        self._recorder.decided(call, verdict)
        self._endings.deny(call, verdict, session)

    def _decide(
        self, call: Invocation, target: Target, session: Session, remembering: Remembering
    ) -> Generator[Any, Any, Verdict | None]:
        """Decide once; the call counts in its session from before the decision on, unless it is not let through.

        Returns:
            ``None`` when the call may run; else the verdict, which asks or wants another input.
        """
        tool_id = call.spec.declaration.tool_id
        counters = session.admit(tool_id)
        admitted = False
        try:
            verdict: Verdict = yield Decide(policy_input(call, session, counters))
            verdict = remembering.honoured(verdict)
            self.suggest(call, verdict)
            if self._hooks is not None:
                verdict = yield from self._hooks.decided(call, target, verdict)
            verdict = self._recorder.cleaned(call, verdict)
            call.decide(verdict)
            self._recorder.decided(call, verdict)
            changes = verdict.updated_input is not None and self._inputs.is_new(call, verdict.updated_input)
            if verdict.mode is PolicyMode.SHADOW:
                if changes:  # by a hook: nothing that hooks say is only observed
                    return verdict
                admitted = True
                return None
            if verdict.behavior is Behavior.DENY:
                self._endings.deny(call, verdict, session)
            if changes:
                return verdict
            if remembering.granted:
                asking = yield from remembering.settle(call, verdict)
                if asking is not None:
                    call.decide(asking)
                    self._recorder.decided(call, asking)
                    return asking
            else:
                approved = call.approval is not None and call.approval["status"] == ApprovalStatus.APPROVED
                if approved:
                    self._check_roles(call, verdict, session)
                elif verdict.behavior is not Behavior.ALLOW or call.resumed:
                    return verdict
                yield from self._claim(call, verdict, session)
            yield from self._still_holds(call, verdict, session)
            admitted = True
            return None
        finally:
            if not admitted:
                session.give_back(tool_id)

    def _still_holds(self, call: Invocation, verdict: Verdict, session: Session) -> Phase:
        """Deny a call whose decision ended meanwhile: while a hook or a claim took its time."""
        if not expired(verdict):
            return
        if call.claim is not None:
            yield FinishClaim(call.claim, ResultStatus.DENIED)
        verdict = fail_closed("the decision expired before the call could run", FailClosedCause.NO_DECISION)
        call.decide(verdict)
        self._recorder.decided(call, verdict)
        self._endings.deny(call, verdict, session)

    def suggest(self, call: Invocation, verdict: Verdict) -> None:
        """Add safer calls to a verdict that does not let a shell command run (openboa, "permissions_check").

        Args:
            call: the call, with its facts.
            verdict: the verdict; changed in place.
        """
        if verdict.behavior is Behavior.ALLOW or not call.facts["shell"]:
            return
        from agenttool_otel.facts.alternatives import shell_alternatives  # only commands need it

        known = self._known_tools()
        found = [entry for fact in call.facts["shell"] for entry in shell_alternatives(fact, available=known)]
        verdict.alternatives = (*verdict.alternatives, *found)

    def _ask(self, call: Invocation, target: Target, verdict: Verdict, session: Session) -> Phase:
        """Ask for an approval; whatever was answered is decided again, so that a deny still wins."""
        call.enter(InvocationStatus.AWAITING_APPROVAL)
        session.asked()
        request = call.request = self._questions.make(call, verdict)
        if self._hooks is not None:
            yield from self._hooks.asking(call, request, session)
        self._recorder.emit(call, Event.APPROVAL_REQUESTED, {Attr.APPROVAL_ID: request.request_id})
        self._recorder.pending(1)
        asked_at = time.perf_counter()
        try:
            answer: ApprovalAnswer | None = yield Ask(request, call.permission_input, stored_context(call))
        except ApprovalError as error:
            self._recorder.pending(-1)
            self._endings.refuse(
                call,
                ErrorClass.POLICY_BLOCKED,
                f"the approval request could not be stored: {error}",
                InvocationStatus.DENIED,
                ResultStatus.DENIED,
            )
        if answer is None:
            self._endings.pending(call)
        self.take(call, target, answer, session, waited=time.perf_counter() - asked_at)

    def take(
        self, call: Invocation, target: Target, answer: ApprovalAnswer, session: Session, *, waited: float
    ) -> None:
        """Take an answer into the call.

        Args:
            call: the call, with its request.
            target: what it runs.
            answer: the answer.
            session: its session.
            waited: seconds between question and answer.
        """
        status = ApprovalStatus.APPROVED if answer.approved else ApprovalStatus.REJECTED
        request_id = call.request.request_id if call.request is not None else ""
        call.approval_status = status.value
        call.approval = {
            "request_id": request_id,
            "status": status.value,
            "answered_by": answer.answered_by or None,
            "roles": list(answer.roles),
            "granted": False,
        }
        self._recorder.answered(call, status, waited)
        if not answer.approved:
            self._endings.reject(call, answer, session)
        if answer.edited_input is not None and differs(answer.edited_input, call.permission_input):
            self._inputs.mutate(
                call,
                target,
                answer.edited_input,
                MutationSource.PERMISSION_PROMPT,
                request_id,
                "edited by the approver",
            )
        call.enter(InvocationStatus.APPROVED)

    def resume(self, call: Invocation, target: Target, session: Session) -> None:
        """Take the stored answer of a paused call; without a usable one, the call ends or waits on.

        Args:
            call: the resumed call, with its ticket.
            target: what it runs.
            session: its session.
        """
        ticket = call.ticket
        if ticket is None:
            return
        request = ticket.request
        call.enter(InvocationStatus.AWAITING_APPROVAL)
        call.approval_status = request.status.value
        if request.status is ApprovalStatus.PENDING:
            self._endings.pending(call)
        answer = ticket.answer
        if answer is None or request.status not in (ApprovalStatus.APPROVED, ApprovalStatus.REJECTED):
            session.denied()
            self._endings.unapproved(call, f"the approval request is {request.status.value}")
        waited = (request.answered_at - request.created_at).total_seconds() if request.answered_at else 0.0
        self.take(call, target, answer, session, waited=max(0.0, waited))

    def _claim(self, call: Invocation, verdict: Verdict, session: Session) -> Phase:
        """Take the one right to run what was approved; whoever can't have it does not run."""
        if call.request is None or call.approval is None:
            return
        context = call.context
        wanted = TakeClaim(
            call.request.request_id,
            ClaimBinding(call.spec.tool_id, context.actor, context.tenant, context.session_id),
            digest(self._inputs.approved_form(call)),
            verdict.revision,
            call.spec.digest,
        )
        try:
            call.claim = yield wanted
        except ApprovalError as error:
            session.denied()
            self._endings.unapproved(call, f"the approval can't be used: {error}")
        call.approval_status = ApprovalStatus.CONSUMED.value

    def _check_roles(self, call: Invocation, verdict: Verdict, session: Session) -> None:
        """End a call that was approved by somebody whose yes the second decision does not take.

        A policy may ask for other people the second time: because the approver changed the arguments, because the
        policy changed while the call waited, or because it only sees now who answered.
        """
        needed = verdict.approver_roles if verdict.behavior is not Behavior.ALLOW else ()
        if needed and call.approval is not None and set(needed).isdisjoint(call.approval["roles"]):
            session.denied()
            roles = self._endings.redact(", ".join(needed), call)
            self._endings.unapproved(call, f"the approval can't be used: it takes one of the roles: {roles}")
