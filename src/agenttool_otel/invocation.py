"""One call as data: a small mutable object that walks the phases, and the records that are made of it on demand."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from opentelemetry.trace import INVALID_SPAN, Span

from agenttool_otel.approvals.types import ApprovalRequest, Claim, StoredCall
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context import AgentContext
from agenttool_otel.facts.types import EMPTY_FACTS, Facts
from agenttool_otel.names import (
    ErrorClass,
    InvocationStatus,
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

__all__ = ["Invocation"]

_NOT_RUN: Any = object()


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
        decisions: every verdict with its id, oldest first.
        approval: the answered request, when there is one.
        request: the approval request that was made.
        hints: hooks' permission hints.
        mutations: changes between the inputs.
        hook_records: what hooks did.
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
        redactions: what was redacted, as ``(target, kind, pointer, rule, count)``.
        size: size of the result in bytes, when known.
        attempts: how often the tool was run.
        resumed: continues after an ask.
        preflight: nobody will run it.
        validated: a framework has validated the arguments and given the normalised ones already.
    """

    __slots__ = (
        "abort_reason", "approval", "approval_status", "attempts", "bound", "call_args", "call_kwargs", "claim",
        "context", "created_ns", "decisions", "delivered", "ended_ns", "error", "exception", "facts", "hints",
        "hook_context", "hook_records", "id", "items", "model_input", "mutations", "native_call_id",
        "observable_input", "outcome", "owned", "permission_input", "persistence", "preflight", "preview",
        "redaction_state", "redactions", "request", "result_id", "result_status", "resumed", "size", "span", "spec",
        "started_ns", "status", "t0", "ticket", "transitions", "validated", "value", "verdict",
    )  # fmt: skip

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
        self.validated = False
        self.created_ns = time.time_ns()
        self.t0 = time.perf_counter()
        self.started_ns: int | None = None
        self.ended_ns: int | None = None
        self.model_input: dict[str, Any] = {}
        self.observable_input: dict[str, Any] = {}
        self.permission_input: dict[str, Any] = {}
        self.bound: dict[str, Any] = {}
        self.call_args: tuple[Any, ...] = ()
        self.call_kwargs: dict[str, Any] = {}
        self.facts: Facts = EMPTY_FACTS
        self.verdict: Verdict | None = None
        self.decisions: list[tuple[str, Verdict, int]] = []
        self.approval: ApprovalInput | None = None
        self.approval_status: str | None = None
        self.request: ApprovalRequest | None = None
        self.hints: list[HookHint] = []
        self.hook_context: list[dict[str, Any]] = []
        self.hook_records: list[HookRecord] = []
        self.mutations: list[InputMutation] = []
        self.status = InvocationStatus.PLANNED
        self.transitions: list[tuple[InvocationStatus, int]] = []
        self.outcome = Outcome.NOT_EXECUTED
        self.result_id = new_id("result")
        self.result_status = ResultStatus.SYNTHETIC_ERROR
        self.error: ToolError | None = None
        self.exception: BaseException | None = None
        self.value: Any = _NOT_RUN
        self.delivered: Any = _NOT_RUN
        self.span: Span = INVALID_SPAN
        self.owned = False
        self.redaction_state = RedactionState.NONE
        self.redactions: list[tuple[str, str, str, str, int]] = []
        self.persistence: ResultPersistence | None = None
        self.size: int | None = None
        self.items: int | None = None
        self.attempts = 0
        self.abort_reason: str | None = None
        self.claim: Claim | None = None
        self.ticket: StoredCall | None = None
        self.preview: Any = _NOT_RUN

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
        return self.decisions[-1][0] if self.decisions else ""

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
        self.decisions.append((new_id("perm"), verdict, time.time_ns()))

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
        context = self.span.get_span_context()
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
