"""One call as data: a small mutable object that walks the phases, and the records that are made of it on demand."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import INVALID_SPAN, Span

from agenttool_otel.approvals.types import ApprovalRequest, Claim, StoredCall
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context import AgentContext
from agenttool_otel.facts.types import EMPTY_FACTS, Facts
from agenttool_otel.names import (
    ErrorClass,
    InvocationStatus,
    MutationSource,
    Outcome,
    PersistenceStrategy,
    RedactionState,
    ResultStatus,
)
from agenttool_otel.policy.types import ApprovalInput, HookHint, Verdict
from agenttool_otel.records import (
    HookRecord,
    InputMutation,
    InvocationRecord,
    PermissionDecision,
    ResultPersistence,
    StatusTransition,
    ToolError,
)
from agenttool_otel.records.ids import new_id
from agenttool_otel.records.permission_decision import DecisionReason, Obligations
from agenttool_otel.telemetry.spans import context_of

if TYPE_CHECKING:  # they are made further up, and only kept here
    from agenttool_otel.echoes import Echoes
    from agenttool_otel.pipeline.hooking import HookState
    from agenttool_otel.results.persistence import Kept
    from agenttool_otel.results.stream import StreamOutcome
    from agenttool_otel.stream_tap import StreamTap

__all__ = ["Invocation"]

_NOT_RUN: Any = object()
_MADE_WHEN_ASKED: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("hints", "hook_context", "hook_records", "mutations", "redactions"), list),
    **dict.fromkeys(("model_input", "observable_input", "permission_input", "bound", "call_kwargs"), dict),
}


class Invocation:
    """One requested call.

    Attributes:
        spec: the tool.
        context: who calls.
        id: invocation id, kept across pause and resume.
        native_call_id: the model's or framework's id of the call.
        model_input: JSON arguments as received; never changed.
        observable_input: normalised copy for hooks and people.
        permission_input: what is decided.
        bound: Python arguments by name: what the executor gets (``call_input``).
        facts: facts of the permission input.
        verdict: the decision in force.
        verdicts: every verdict with its time, oldest first.
        approval: the answered request, when there is one.
        request: the approval request that was made.
        hints: hooks' permission hints.
        mutations: changes between the inputs.
        hook_records: what hooks did.
        internal: internal-only arguments that hooks gave; ``None`` where none did.
        hook_state: the hook runner's own notes on this call; ``None`` where no hook ran.
        status: current state.
        outcome: what became of the call.
        result_status: state of the result.
        error: structured error.
        exception: what the tool (or a control-flow signal) raised, to be re-raised unmodified.
        value: native return value; ``ran`` tells whether there is one.
        span: the call's span.
        ticket: the stored call that this one continues.
        claim: the right to run an approved call, once it was taken.
        delivered: what the caller of the plain function gets.
        preview: what a model gets, where that is less.
        kept: what was done to keep the result (``Kept`` or ``StreamOutcome``), if anything was.
        tap: what watches the items of a stream, where somebody needs them.
        overheard: is told each item of a stream that the session has to remember the words of.
        echoes: the decision under which the call's own secrets were looked for, and their masks.
        redactions: what was redacted, as ``(target, kind, pointer, rule, count)``.
        size: size of the result in bytes, when known.
        attempts: how often the tool was run.
        resumed: continues after an ask.
        preflight: nobody will run it.
        given: who changed the input last, and to what, where that reads as another permission input.
        validated: a framework has validated the arguments and given the normalised ones already.
    """

    # Most calls end without most of these being set, so the defaults live on the class; lists are made when first
    # asked for (``__getattr__``).
    validated: bool = False
    given: tuple[MutationSource, dict[str, Any]] | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    model_input: dict[str, Any]
    observable_input: dict[str, Any]
    permission_input: dict[str, Any]
    bound: dict[str, Any]
    call_args: tuple[Any, ...] = ()
    call_kwargs: dict[str, Any]
    facts: Facts = EMPTY_FACTS
    verdict: Verdict | None = None
    approval: ApprovalInput | None = None
    approval_status: str | None = None
    approval_wait: float | None = None  # seconds between question and answer
    request: ApprovalRequest | None = None
    hints: list[HookHint]
    hook_context: list[dict[str, Any]]
    hook_records: list[HookRecord]
    hook_state: HookState | None = None
    internal: dict[str, Any] | None = None
    mutations: list[InputMutation]
    status: InvocationStatus = InvocationStatus.PLANNED
    outcome: Outcome = Outcome.NOT_EXECUTED
    result_status: ResultStatus = ResultStatus.SYNTHETIC_ERROR
    error: ToolError | None = None
    exception: BaseException | None = None
    value: Any = _NOT_RUN
    delivered: Any = _NOT_RUN
    preview: Any = _NOT_RUN
    span: Span = INVALID_SPAN
    owned: bool = False
    redaction_state: RedactionState = RedactionState.NONE
    redactions: list[tuple[str, str, str, str, int]]
    persistence: ResultPersistence | None = None
    size: int | None = None
    items: int | None = None
    attempts: int = 0
    abort_reason: str | None = None
    claim: Claim | None = None
    ticket: StoredCall | None = None
    kept: Kept | StreamOutcome | None = None
    tap: StreamTap | None = None
    echoes: tuple[Verdict | None, Echoes | None] | None = None
    overheard: Callable[[Any], None] | None = None

    def __init__(
        self,
        spec: ToolSpec,
        context: AgentContext,
        *,
        native_call_id: str | None = None,
        invocation_id: str | None = None,
        resumed: bool = False,
        preflight: bool = False,
    ) -> None:
        self.spec = spec
        self.context = context
        self.id = invocation_id or new_id("inv")
        self.native_call_id = native_call_id
        self.resumed = resumed
        self.preflight = preflight
        self.created_ns = time.time_ns()
        self.t0 = time.perf_counter()
        self.transitions: list[tuple[InvocationStatus, int]] = []
        self.verdicts: list[tuple[Verdict, int]] = []

    def __getattr__(self, name: str) -> Any:
        make = _MADE_WHEN_ASKED.get(name)
        if make is None:
            raise AttributeError(name)
        value = self.__dict__[name] = make()
        return value

    @cached_property
    def result_id(self) -> str:
        """Id of the result, made when first asked for."""
        return new_id("result")

    @property
    def decisions(self) -> list[tuple[str, Verdict, int]]:
        """Every verdict with its decision id and time, oldest first."""
        return [(self._decision_ids(n), *entry) for n, entry in enumerate(self.verdicts)]

    def _decision_ids(self, number: int) -> str:
        ids = self.__dict__.setdefault("_ids", {})
        if number not in ids:
            ids[number] = new_id("perm")
        return str(ids[number])

    def adopt_decision_ids(self, ids: list[str]) -> None:
        """Take over the ids of the verdicts from the process that decided.

        Args:
            ids: one for each verdict, oldest first.
        """
        self.__dict__["_ids"] = dict(enumerate(ids))

    @property
    def ran(self) -> bool:
        """Whether the tool returned a value."""
        return self.value is not _NOT_RUN

    @property
    def model_value(self) -> Any:
        """What a model gets of the result."""
        return self.delivered if self.preview is _NOT_RUN else self.preview

    @property
    def decision_id(self) -> str:
        """Id of the decision in force, or an empty string before any."""
        return self._decision_ids(len(self.verdicts) - 1) if self.verdicts else ""

    @property
    def strategy(self) -> PersistenceStrategy:
        """How the result's bytes are kept."""
        return self.persistence.strategy if self.persistence else PersistenceStrategy.INLINE

    def enter(self, status: InvocationStatus) -> None:
        """Change the state and remember when.

        Args:
            status: the new state.
        """
        self.status = status
        self.transitions.append((status, time.time_ns()))

    def decide(self, verdict: Verdict) -> None:
        """Take a verdict into force.

        Args:
            verdict: a believed decision.
        """
        self.verdict = verdict
        self.verdicts.append((verdict, time.time_ns()))

    def fail(
        self, error_class: ErrorClass, message: str, status: InvocationStatus, result: ResultStatus, **details: Any
    ) -> None:
        """End the call with an error.

        Args:
            error_class: class of the taxonomy.
            message: for people; no argument or result content.
            status: terminal state of the invocation.
            result: state of the result.
            details: further fields of the error record.
        """
        self.error = ToolError.of(error_class, message, **details)
        self.result_status = result
        self.enter(status)

    def decision_records(self) -> list[PermissionDecision]:
        """Build the permission_decision record of every decision of this call, oldest first."""
        return [self._decision(*entry) for entry in self.decisions]

    def decision_record(self) -> PermissionDecision | None:
        """Build the permission_decision record of the decision in force."""
        return self._decision(*self.decisions[-1]) if self.decisions else None

    def _decision(self, decision_id: str, verdict: Verdict, at_ns: int) -> PermissionDecision:
        return PermissionDecision(
            decision_id=decision_id,
            invocation_id=self.id,
            behavior=verdict.behavior,
            mode=verdict.mode.value,
            source=verdict.source.value,
            reason=DecisionReason(type=verdict.reason_type, rule_ref=verdict.rule_ref or None, message=verdict.message),
            rule_refs=list(verdict.rule_refs),
            policy_refs=[policy_ref(verdict)] if verdict.engine else [],
            updated_input=verdict.updated_input,
            user_modified=any(m.source_type == "permission_prompt" for m in self.mutations),
            suggested_updates=list(verdict.suggested_updates),
            blocked_path=verdict.blocked_path,
            alternatives=list(verdict.alternatives),
            obligations=Obligations(
                redact_input=list(verdict.redact_input),
                redact_result=list(verdict.redact_result),
                max_inline_chars=verdict.max_inline_chars,
                persistence=verdict.persistence,
            ),
            decided_at=_time(at_ns),
            expires_at=datetime.fromisoformat(verdict.expires_at) if verdict.expires_at else None,
        )

    def call_input(self) -> dict[str, Any]:
        """Return what the executor gets, or got, as JSON data: without what no model may produce, nor plumbing."""
        from agenttool_otel.records.decided import decided_form

        parameters = self.spec.parameters
        # what nobody gave, a default, was decided as well; a framework's door binds what it injects too
        bound = self.bound if parameters is None else parameters.flatten(self.bound)
        given = {name: value for name, value in bound.items() if name in self.permission_input}
        return {**self.permission_input, **decided_form(given, self.permission_input)}

    def record(self, *, inputs: bool = False) -> InvocationRecord:
        """Build the tool_invocation record.

        Args:
            inputs: include the four inputs as they are; otherwise only digests that stand for them.
        """
        from agenttool_otel.records.canonical import digest

        shown: dict[str, Any] = {
            "model_input_ref": digest(self.model_input),
            "observable_input_ref": digest(self.observable_input),
            "permission_input_ref": digest(self.permission_input),
        }
        if inputs:
            shown = {
                "model_input": self.model_input,
                "observable_input": self.observable_input,
                "permission_input": self.permission_input,
            }
        # a call that did not get so far has no call input: nothing was, or will be, executed
        if self.outcome is Outcome.EXECUTED or self.status is InvocationStatus.NEEDS_INPUT:
            given = self.call_input()
            shown["call_input" if inputs else "call_input_ref"] = given if inputs else digest(given)
        if self.mutations:
            shown["mutation_refs"] = [mutation.mutation_id for mutation in self.mutations]
        context = context_of(self.span)
        return InvocationRecord(
            invocation_id=self.id,
            tool_id=self.spec.tool_id,
            surface_id=self.context.surface,
            native_call_id=self.native_call_id,
            status=self.status,
            actor_ref=self.context.actor or None,
            runtime_refs=[f"session:{self.context.session_id}"] if self.context.session_id else [],
            policy_refs=[policy_ref(self.verdict)] if self.verdict and self.verdict.engine else [],
            permission_decision_refs=[entry[0] for entry in self.decisions],
            hook_refs=[record.hook_id for record in self.hook_records],
            telemetry_refs=[{"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}]
            if context.is_valid
            else [],
            approval_request_ref=self.request.request_id if self.request else None,
            status_transitions=[StatusTransition(status=s, at=_time(at)) for s, at in self.transitions],
            created_at=_time(self.created_ns),
            started_at=_time(self.started_ns) if self.started_ns else None,
            ended_at=_time(self.ended_ns) if self.ended_ns else None,
            **shown,
        )


def policy_ref(verdict: Verdict) -> str:
    """Return the reference of the policy behind a verdict: engine and bundle revision.

    Args:
        verdict: the verdict.
    """
    return f"policy:{verdict.engine}@{verdict.revision}"


def _time(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)
