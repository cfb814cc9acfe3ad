"""The permission phase: decide, ask, claim. It fails closed: only an allow, or a claimed approval,
gets through.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agenttool_otel.approvals.people import Agreement, counted, people_text, still_needed
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest, ClaimBinding
from agenttool_otel.call.approval_requests import Questions, bound_places
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.pending.serialized import (
    asked_context,
    recall_effects,
    recall_refusal,
    rehearsed_layer,
)
from agenttool_otel.call.phases.classifying import may_classify, with_classifier
from agenttool_otel.call.phases.grants import GrantUse, fill_in
from agenttool_otel.call.phases.holding import execution_input, oblige
from agenttool_otel.call.phases.hooks import HookRunner
from agenttool_otel.call.phases.inputs import Inputs, differs
from agenttool_otel.call.phases.refusals import Refusals
from agenttool_otel.call.phases.schedule import Schedule
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.services import Decides
from agenttool_otel.call.steps import Call, finish_claim
from agenttool_otel.call.target import Target
from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.sessions import HistoryEntry, Session
from agenttool_otel.errors import (
    ApprovalConflict,
    ApprovalError,
    ApprovalExpired,
    ApprovalStoreError,
    SessionStoreError,
)
from agenttool_otel.facts.classified import IntentCheck
from agenttool_otel.facts.types import EMPTY_FACTS, FactEnvironment
from agenttool_otel.names import (
    SCHEMA_VERSION,
    ApprovalConflictReason,
    ApprovalStatus,
    Attr,
    Behavior,
    ErrorClass,
    Event,
    InvocationStatus,
    Lifecycle,
    MutationSource,
    PolicyMode,
    ProgressStatus,
    ResultStatus,
    SandboxScope,
)
from agenttool_otel.policy.rego.syntax import Path
from agenttool_otel.policy.types import (
    AgreementInput,
    ExecutionInput,
    PolicyInput,
    Verdict,
    expired,
)
from agenttool_otel.records.external_mapping import mapped
from agenttool_otel.values.canonical import digest

if TYPE_CHECKING:  # loaded where decisions are recorded
    from agenttool_otel.evidence.record import DecisionRecorder

HISTORY = ("session", "history")
EXECUTION = ("execution",)

NOTHING_HOLDS: Final[ExecutionInput] = {
    "sandboxes": [],
    "scope": SandboxScope.NONE.value,
    "refused": [],
}
"""``input.execution`` where nothing runs, or no rule reads it."""

_MAX_ROUNDS = 5
"""How often an input may be changed and decided again before the call is denied."""

_LOADED = {Lifecycle.DEFERRED.value: Lifecycle.AVAILABLE.value}
"""What a deferred tool is to a policy: whether it may be loaded is asked, and only a loaded one can
be called.
"""

Phase = Generator[Any, Any, None]


class Admission(Enum):
    """What a decision in force means for its call."""

    ADMITTED = auto()
    """It runs now."""

    OPEN = auto()
    """It needs another input or an answer first, and then another decision."""

    OUTDATED = auto()
    """It waited, and the facts that it was decided on have changed meanwhile."""


@dataclass(slots=True, eq=False)
class Permission:
    """Resolves the permission of calls."""

    _refusals: Refusals
    _inputs: Inputs
    _span: CallSpan
    _questions: Questions
    _environment: Callable[[AgentContext, Session], FactEnvironment]
    _hooks: HookRunner | None
    _known_tools: Callable[[], Mapping[str, Mapping[str, Any]]]
    _schedule: Schedule
    # looks at the settings before the first decision of each set of tools
    _before: Callable[[], None]
    decisions: DecisionRecorder | None = None  # records each decision, where that is wanted
    intent_check: IntentCheck | None = None  # asked before a person is

    def establish(self, call: Invocation, session: Session) -> None:
        """Work out the facts of the permission input."""
        self._before()
        established, call.established = call.established, None  # another decision looks again
        plan = call.spec.facts
        if plan is None and call.inputs.misfits:
            plan = call.spec.misfit_facts
        if plan is None:
            call.decision.facts = EMPTY_FACTS
        elif (
            established is not None
            and not call.inputs.misfits
            and established.fits(call.context, call.inputs.permission_input)
        ):
            call.decision.facts = established.facts
        else:
            surroundings = self._environment(call.context, session)
            call.decision.facts = plan.establish(
                call.inputs.permission_input, surroundings, call.inputs.misfits
            )
        intent = session.intent(call.spec.words, call.context.user_text)
        approved = session.approved(call.spec.tool_id, call.inputs.permission_input)
        if intent is not None and call.decision.classified is not None:
            intent = {**intent, "classified": call.decision.classified.wanted}
        if intent is not None or approved:
            call.decision.facts = {**call.decision.facts, "intent": intent, "approved": approved}
        if call.ticket is not None:
            recall_effects(call)
            recall_refusal(call, session)
        if call.reported_effects is not None:
            # a person was asked about these effects, and the answer is bound to them
            effects = call.reported_effects.fact
            call.decision.facts = {**call.decision.facts, "effects": effects}

    def surroundings(self, call: Invocation, session: Session) -> FactEnvironment:
        """Return what the facts of a call depend on beside its arguments."""
        return self._environment(call.context, session)

    def resolve(self, call: Invocation, target: Target, session: Session) -> Phase:
        """Get a decision that lets the call run, or end it."""
        grant: GrantUse | None = None
        decider = call.in_charge.decider
        for _ in range(_MAX_ROUNDS):
            if self._hooks is not None:
                yield from self._hooks.before(call, target, session)
            # the call counts in its session from before the decision on, unless it is not let
            # through
            self._begin(call, session, decider, grant)
            counters = yield from self._admit(call, session)
            admission = Admission.OPEN
            try:
                # after _admit, which has read what other processes did in this session
                self.establish(call, session)
                document = policy_input(call, target, session, counters)
                verdict: Verdict = yield Call(decider.decide, decider.adecide, (document,))
                if self.decisions is not None:
                    self.decisions.record(decider, document, verdict, call.span)
                verdict = yield from self._take_verdict(call, target, session, verdict, grant)
                admission = yield from self._admits(call, verdict, session, grant)
            finally:
                if admission is not Admission.ADMITTED:
                    session.give_back(call.spec.tool_id)
            if admission is Admission.ADMITTED:
                return
            if admission is Admission.OUTDATED:
                continue
            verdict = call.decision.verdict or verdict  # the ask that a grant could not answer
            if not self._change_input(call, target, verdict):
                grant = yield from self._seek_answer(call, target, verdict, session, grant)
        self._refusals.deny_undecided(call, "the input kept changing between decisions", session)

    def _change_input(self, call: Invocation, target: Target, verdict: Verdict) -> bool:
        """Change the input as a verdict wants it; return whether it was changed, and so has to be
        decided again.
        """
        updated = verdict.updated_input
        if updated is None or not self._inputs.is_new(call, updated):
            return False
        author = (MutationSource.RUNTIME, verdict.rule_ref, "policy")
        if self._hooks is not None:
            author = self._hooks.author(call, verdict)
        self._inputs.mutate(call, target, updated, *author)
        return True

    def _seek_answer(
        self,
        call: Invocation,
        target: Target,
        verdict: Verdict,
        session: Session,
        grant: GrantUse | None,
    ) -> Generator[Any, Any, GrantUse | None]:
        """Get an answer for the next decision: of a remembered approval, or else of a person.

        Returns:
            The call's use of remembered approvals, once one was looked for.
        """
        self._schedule.unlock(call)  # a person may take a day to answer
        if self.intent_check is not None and may_classify(call, verdict):
            question = self._questions.intent(call)
            call.decision.classified = yield Call(self.intent_check.ask, None, (question,))
            return grant
        if verdict.behavior is Behavior.ASK:
            grant = grant or GrantUse(self._span)
            if (yield from grant.find(call, verdict)):
                return grant
        yield from self.ask(call, target, verdict, session)
        return grant

    def _admit(self, call: Invocation, session: Session) -> Generator[Any, Any, dict[str, int]]:
        """Count the call in its session."""
        if not session.shared:
            return session.admit(call.spec.tool_id)
        try:
            counters: dict[str, int] = yield Call(
                session.admit, None, (call.spec.tool_id, call.id, call.history_entry)
            )
        except SessionStoreError as error:
            self._refusals.unavailable(call, str(error))
        return counters

    def _begin(
        self, call: Invocation, session: Session, decider: Decides, grant: GrantUse | None
    ) -> None:
        """Forget a grant of another input, and take the call into the session's history, where a
        rule may read that.
        """
        if grant is not None:
            grant.forget_if_changed(call)
        wanted = decider.wants(HISTORY, call.context.mode, call.spec.policy_tool["kind"])
        entry = (
            HistoryEntry.of(call.spec.tool_id, call.inputs.permission_input, session.key)
            if wanted
            else None
        )
        if call.history_entry is not None and entry is not None:
            call.history_entry.targets = entry.targets  # its input may have been changed since
        elif call.spec.tool_id not in session.exempt:
            call.history_entry = entry
            session.begin(entry)

    def foresee(self, call: Invocation, target: Target, session: Session) -> Phase:
        """Decide a call that nobody will run, as it would be with the grants that there are; none
        is used.
        """
        decider, grant = call.in_charge.decider, GrantUse(self._span)
        verdict: Verdict = yield Call(
            decider.decide, decider.adecide, (policy_input(call, target, session),)
        )
        if verdict.behavior is Behavior.ASK and (yield from grant.find(call, verdict)):
            again: Verdict = yield Call(
                decider.decide, decider.adecide, (policy_input(call, target, session),)
            )
            again = grant.apply(again)
            verdict = again if grant.allows(again) or again.behavior is Behavior.DENY else verdict
        verdict = oblige(call, target, verdict)
        self.suggest(call, verdict)
        call.decision.take(verdict, call.now_ns())

    def _take_verdict(
        self,
        call: Invocation,
        target: Target,
        session: Session,
        verdict: Verdict,
        grant: GrantUse | None,
    ) -> Generator[Any, Any, Verdict]:
        """Bring a verdict into force: joined with a grant's and the hooks' answers, redacted and
        recorded. A denial ends the call.
        """
        if grant is not None:
            verdict = grant.apply(verdict)
        if verdict.behavior is not Behavior.ALLOW:
            self.suggest(call, verdict)
        if self._hooks is not None:
            verdict = yield from self._hooks.decided(call, target, verdict)
        verdict = self._span.redaction.redact_verdict(call, verdict)
        if call.decision.classified is not None:
            verdict = with_classifier(verdict, call.decision.classified)
        if verdict.sandbox is not None or call.decision.decisions:
            verdict = oblige(call, target, verdict)
        call.decision.take(verdict, call.now_ns())
        self._span.record_decision(call, verdict)
        if verdict.behavior is Behavior.DENY and verdict.mode is not PolicyMode.SHADOW:
            self._refusals.deny(call, verdict, session)
        return verdict

    def _admits(
        self, call: Invocation, verdict: Verdict, session: Session, grant: GrantUse | None
    ) -> Generator[Any, Any, Admission]:
        """Return whether the call may run now, with its locks taken and its answer used up."""
        # also in shadow mode: only a policy's answers are shadowed, and the change is a hook's
        if verdict.updated_input is not None and self._inputs.is_new(call, verdict.updated_input):
            return Admission.OPEN
        # a resumed call is one that was asked about, also where its verdict is an allow by now
        is_plain_allow = verdict.behavior is Behavior.ALLOW and not call.resumed
        if not is_plain_allow and not _is_permitted(call, verdict, grant):
            return Admission.OPEN
        if (
            call.place is not None
            or call.spec.locks
            or call.spec.exclusive
            or call.cancellation is not None
        ):
            waited = yield from self._schedule.lock(call)
            if waited and self._outdated(call, verdict, session):
                return Admission.OUTDATED
        if verdict.mode is PolicyMode.SHADOW:
            return Admission.ADMITTED
        if grant is not None or call.decision.approval is not None:
            return (yield from self._admit_answered(call, verdict, session, grant))
        if verdict.expires_at is not None:
            yield from self.check_not_expired(call, verdict, session)
        return Admission.ADMITTED

    def _admit_answered(
        self, call: Invocation, verdict: Verdict, session: Session, grant: GrantUse | None
    ) -> Generator[Any, Any, Admission]:
        """Let a call run that was asked about, if its answer can be used."""
        used = yield from self._use_answer(call, verdict, session, grant)
        if not used:
            return Admission.OPEN
        yield from self.check_not_expired(call, verdict, session)
        if _is_approved(call):
            session.approve(call.spec.tool_id, call.inputs.permission_input)
        return Admission.ADMITTED

    def _use_answer(
        self, call: Invocation, verdict: Verdict, session: Session, grant: GrantUse | None
    ) -> Generator[Any, Any, bool]:
        """Use up the grant or the approval that lets a call run; return whether it could be."""
        if grant is not None and grant.found:
            asking = yield from grant.use(call, verdict)
            if asking is not None:
                self._refusals.decide(call, asking)
                return False
        elif _is_approved(call):
            self.check_roles(call, verdict, session)
            yield from self.claim(call, verdict, session)
            if verdict.behavior is not Behavior.ALLOW:
                call.decision.let_in()
        return True

    def _outdated(self, call: Invocation, verdict: Verdict, session: Session) -> bool:
        """Return whether a decision is about a world that has changed while the call waited."""
        decided = call.decision.facts
        self.establish(call, session)
        return bool(call.decision.facts != decided) or (
            verdict.expires_at is not None and expired(verdict)
        )

    def check_not_expired(self, call: Invocation, verdict: Verdict, session: Session) -> Phase:
        """Deny a call whose decision ended meanwhile: while a hook or a claim took its time."""
        if not expired(verdict):
            return
        if call.claim is not None:
            yield finish_claim(call.in_charge, call.claim, ResultStatus.DENIED)
        self._refusals.deny_undecided(
            call, "the decision expired before the call could run", session
        )

    def suggest(self, call: Invocation, verdict: Verdict) -> None:
        """Add safer calls to a verdict that lets no shell command run, and the facts to what may be
        remembered.
        """
        fill_in(call, verdict, partial(self._refusals.redact, call=call))
        if not call.decision.facts["shell"]:
            return
        from agenttool_otel.policy.alternatives import shell_alternatives  # only commands need it

        known = self._known_tools()
        found = [
            entry
            for fact in call.decision.facts["shell"]
            for entry in shell_alternatives(fact, available=known)
        ]
        verdict.alternatives = (*verdict.alternatives, *found)

    def ask(self, call: Invocation, target: Target, verdict: Verdict, session: Session) -> Phase:
        """Ask for an approval; whatever was answered is decided again, so that a deny still
        wins.
        """
        call.enter(InvocationStatus.AWAITING_APPROVAL)
        session.count("asks")
        request = call.decision.request = self._questions.make(call, verdict)
        if self._hooks is not None:
            yield from self._hooks.asking(call, request, session)
        self._span.emit(call, Event.PERMISSION_REQUESTED, {Attr.POLICY_ENGINE: str(verdict.engine)})
        self._span.emit(
            call,
            Event.APPROVAL_REQUESTED,
            {Attr.APPROVAL_ID: request.request_id},
            event_id=request.event_id,
        )
        if call.handle is not None:
            call.handle.report_status(ProgressStatus.WAITING_FOR_PERMISSION)
        approvals, asked_at = call.in_charge.approvals, time.perf_counter()
        try:
            answer: ApprovalAnswer | None = yield Call(
                approvals.ask,
                approvals.aask,
                (request, call.inputs.permission_input, asked_context(call)),
            )
        except ApprovalError as error:
            if (
                isinstance(error, ApprovalConflict)
                and error.reason is ApprovalConflictReason.RATE_LIMITED
            ):
                session.count("denials")
                self._refusals.refuse(
                    call, ErrorClass.RATE_LIMITED, str(error), InvocationStatus.BLOCKED
                )
            if isinstance(error, ApprovalStoreError):
                self._refusals.unavailable(
                    call, f"the approval request could not be stored: {error}"
                )
            self._refusals.blocked(call, f"the approval request could not be stored: {error}")
        if answer is None:
            self._refusals.pending(call)
        self.take(call, target, answer, session, waited=time.perf_counter() - asked_at)

    def take(
        self,
        call: Invocation,
        target: Target,
        answer: ApprovalAnswer,
        session: Session,
        *,
        waited: float,
    ) -> None:
        """Take an answer into the call."""
        status = ApprovalStatus.APPROVED if answer.approved else ApprovalStatus.REJECTED
        request = call.decision.request
        request_id = request.request_id if request is not None else ""
        call.decision.approval_status = status.value
        call.decision.approval = {
            "request_id": request_id,
            "status": status.value,
            "answered_by": answer.answered_by or None,
            "roles": list(answer.roles),
            "granted": False,
        }
        if answer.approved and request is not None and request.needs_several:
            call.decision.approval["answers"] = _answers(request, answer)
        self._span.record_answer(call, answer, waited)
        if self.decisions is not None:
            self.decisions.answer(call.id, request_id, answer, waited, call.span)
        if not answer.approved:
            self._refusals.reject(call, answer, session)
        edited, source = answer.edited_input, MutationSource.PERMISSION_PROMPT
        is_edit = edited is not None and differs(edited, call.inputs.permission_input)
        if is_edit and _has_effects(call):
            self._refusals.unapproved(
                call, "the body has run with its arguments: its changes are approved as they are"
            )
        self._refusals.answered(call, answer, Behavior.ALLOW, edited=is_edit)
        if is_edit:
            self._inputs.mutate(call, target, edited, source, request_id, "edited by the approver")
        call.enter(InvocationStatus.APPROVED)

    def resume(self, call: Invocation, target: Target, session: Session) -> None:
        """Take the stored answer of a paused call; without a usable one, the call ends or
        waits on.
        """
        if (ticket := call.ticket) is None:
            return
        request = ticket.request
        call.enter(InvocationStatus.AWAITING_APPROVAL)
        call.decision.approval_status = request.status.value
        if request.status is ApprovalStatus.PENDING:
            self._refusals.pending(call)
        if request.status is ApprovalStatus.CONSUMED:
            session.count("denials")
            self._refusals.used_already(call, request.outcome)
        if request.status is ApprovalStatus.EXPIRED:
            session.count("denials")
            self._refusals.overdue(call)
        answer = ticket.answer
        if answer is None or request.status not in (
            ApprovalStatus.APPROVED,
            ApprovalStatus.REJECTED,
        ):
            session.count("denials")
            self._refusals.unapproved(call, f"the approval request is {request.status.value}")
        waited = 0.0
        if request.answered_at:
            waited = (request.answered_at - request.created_at).total_seconds()
        # negative where the clock of the answering machine is behind that of the asking one
        self.take(call, target, answer, session, waited=max(0.0, waited))

    def claim(self, call: Invocation, verdict: Verdict, session: Session) -> Phase:
        """Take the one right to run what was approved; a call that can't have it does not run."""
        if call.decision.request is None or call.decision.approval is None:
            return
        context = call.context
        approvals = call.in_charge.approvals
        places = bound_places(context, call.decision.facts)
        terms = digest(self._inputs.approved_form(call)), verdict.revision, call.spec.digest
        binding = ClaimBinding(
            *terms, call.spec.tool_id, context.actor, context.tenant, context.session_id, places
        )
        try:
            call.claim = yield Call(
                approvals.claim, approvals.aclaim, (call.decision.request.request_id, binding)
            )
        except ApprovalError as error:
            session.count("denials")
            # two processes resume one call: the store lets the first one run
            if (
                isinstance(error, ApprovalConflict)
                and error.reason is ApprovalConflictReason.CONSUMED
            ):
                self._refusals.used_already(call)
            if isinstance(error, ApprovalStoreError):
                self._refusals.unavailable(call, f"the approval could not be claimed: {error}")
            if isinstance(error, ApprovalExpired):
                self._refusals.overdue(call)
            self._refusals.unapproved(call, f"the approval can't be used: {error}")
        call.decision.approval_status = ApprovalStatus.CONSUMED.value

    def check_roles(self, call: Invocation, verdict: Verdict, session: Session) -> None:
        """End a call to which not all agreed whom the second decision asks for.

        A policy may ask for other people the second time: because the approver changed the
        arguments, because the policy changed while the call waited, or because it only sees now who
        answered.
        """
        approval = call.decision.approval
        if verdict.behavior is Behavior.ALLOW or approval is None:
            return
        missing = _missing_people(verdict, approval)
        if missing:
            session.count("denials")
            shown = self._refusals.redact(missing, call)
            self._refusals.unapproved(call, f"the approval can't be used: it takes {shown}")


def _answers(request: ApprovalRequest, answer: ApprovalAnswer) -> list[AgreementInput]:
    """Return what the policy's input has of an approval by several people."""
    agreed = [
        Agreement(each.answered_by, frozenset(each.roles)) for each in (*answer.earlier, answer)
    ]
    return [
        {"answered_by": each.person, "roles": sorted(each.roles), "counts_as": role}
        for each, role in counted(request.required_roles, agreed)
    ]


def _missing_people(verdict: Verdict, approval: Mapping[str, Any]) -> str:
    """Return what the people who agreed lack for a decision, in words; empty where it is nothing."""
    agreed = [
        Agreement(each["answered_by"] or "", frozenset(each["roles"]))
        for each in approval.get("answers", (approval,))
    ]
    needed = set(verdict.approver_roles)
    if needed and any(needed.isdisjoint(each.roles) for each in agreed):
        return f"one of the roles: {', '.join(verdict.approver_roles)}"
    return people_text(still_needed(verdict.approvals_needed, verdict.required_roles, agreed))


def _has_effects(call: Invocation) -> bool:
    """Return whether a person was asked about what the body of a call would do."""
    if call.effects is not None or call.reported_effects is not None or rehearsed_layer(call):
        return True
    return call.ticket is not None and "effects" in call.ticket.context


def _is_permitted(call: Invocation, verdict: Verdict, grant: GrantUse | None) -> bool:
    """Return whether a call may run whose verdict is not a plain allow."""
    if verdict.mode is PolicyMode.SHADOW:
        return True
    if grant is not None and grant.found:
        return True
    return _is_approved(call)


def _is_approved(call: Invocation) -> bool:
    approval = call.decision.approval
    return approval is not None and approval["status"] == ApprovalStatus.APPROVED


def _reads(call: Invocation, path: Path) -> bool:
    if call.services is None:
        return True
    return call.services.decider.wants(path, call.context.mode, call.spec.policy_tool["kind"])


def policy_input(
    call: Invocation,
    target: Target,
    session: Session,
    counters: Mapping[str, int] | None = None,
) -> PolicyInput:
    """Build the policy input of a call."""
    native: Any = mapped(call.mappings) if call.mappings else {}
    spec, context = call.spec, call.context
    tool = call.policy_tool
    past: tuple[list[dict[str, Any]], bool] = ([], True)
    if call.history_entry is not None or (call.preflight and _reads(call, HISTORY)):
        past = session.past_calls(call.inputs.permission_input, without=call.history_entry)
    resources = dict(context.resources)
    for looked_up in call.resources.values():
        resources.update(looked_up)
    if tool["lifecycle"] in _LOADED:
        tool = {**tool, "lifecycle": _LOADED[tool["lifecycle"]]}
    return {
        "invocation": {
            "id": call.id,
            "native_call_id": call.native_call_id,
            "attempt": len(call.decision.decisions) + 1,
            "resumed": call.resumed,
            "preflight": call.preflight,
            **native,
        },
        "tool": tool,
        "permission_profile": spec.policy_profile,
        "input": call.inputs.permission_input,
        "facts": call.decision.facts,
        "approval": call.decision.approval,
        "hooks": call.decision.hints,
        **context_input(context, counters or session.counters(spec.declaration.tool_id), past),  # type: ignore[typeddict-item]
        "resources": resources,
        # what can hold the body is proven at first need, and a rule that reads it is one
        "execution": execution_input(call, target, session)
        if _reads(call, EXECUTION)
        else NOTHING_HOLDS,
    }


def now_text() -> str:
    """Return the time as a policy's input has it: RFC 3339, in UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def tool_input(
    context: AgentContext, session: Session, tool: Mapping[str, Any], profile: Mapping[str, Any]
) -> PolicyInput:
    """Build the policy input of a tool that nobody calls yet."""
    planned = {"id": "", "native_call_id": None, "attempt": 1, "resumed": False, "preflight": True}
    return {
        "invocation": planned,
        "tool": {**tool, "lifecycle": _LOADED.get(tool["lifecycle"], tool["lifecycle"])},
        "permission_profile": profile,
        "input": {},
        "facts": EMPTY_FACTS,
        "approval": None,
        "hooks": [],
        **context_input(context, session.counters(tool["id"]), ([], False)),  # type: ignore[typeddict-item]
        "resources": dict(context.resources),
        "execution": NOTHING_HOLDS,
    }


def context_input(
    context: AgentContext, counters: Mapping[str, int], past: tuple[list[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Build the members of a policy input that are about who asks, and when."""
    return {
        "schema_version": SCHEMA_VERSION,
        "time": now_text(),
        "actor": context.policy_actor,
        "session": {
            "id": context.session_id,
            "context": context.origin.value,
            "mode": context.mode,
            "interactive": context.interactive,
            "roots": list(context.roots),
            "counters": counters,
            "labels": dict(context.labels),
            "history": past[0],
            "history_complete": past[1],
        },
        "evaluation": context.policy_evaluation,
    }
