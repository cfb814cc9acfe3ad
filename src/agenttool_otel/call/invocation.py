"""One call as data: who calls what, its inputs, the decision and the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

from opentelemetry.trace import INVALID_SPAN, Span

from agenttool_otel.approvals.types import ApprovalRequest, Claim, StoredCall
from agenttool_otel.call.argument_mask import ArgumentMask
from agenttool_otel.call.effects import CallEffects
from agenttool_otel.call.reported_effects import ReportedEffects
from agenttool_otel.call.running.handle import CallHandle, CancelState
from agenttool_otel.call.sandbox import ProcessSandbox, Sandbox
from agenttool_otel.call.scheduling.gate import Place
from agenttool_otel.call.scheduling.modifiers import ContextModifier
from agenttool_otel.call.services import Services
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.sessions import HistoryEntry
from agenttool_otel.facts.classified import Classified
from agenttool_otel.facts.types import EMPTY_FACTS, Facts
from agenttool_otel.hooks.context import HookState
from agenttool_otel.names import (
    DecisionSource,
    ErrorClass,
    InvocationStatus,
    MutationSource,
    Outcome,
    PersistenceStrategy,
    RedactionState,
    ResultStatus,
)
from agenttool_otel.policy.types import ApprovalInput, HookHint, SandboxDuty, Verdict
from agenttool_otel.records import (
    ExternalMapping,
    HookRecord,
    InputMutation,
    ResultPersistence,
    ToolError,
)
from agenttool_otel.redaction import Redacted
from agenttool_otel.redaction.types import DETECTED
from agenttool_otel.results.persistence.keeper import Kept
from agenttool_otel.results.persistence.stream import StreamOutcome
from agenttool_otel.results.stream_tap import StreamTap
from agenttool_otel.values.ids import new_id

NOT_RUN: Any = object()


class _NotRead(dict[str, Any]):
    """An empty dict that a dataclass takes as a default: it refuses what has no hash."""

    __hash__: ClassVar[Any] = object.__hash__


NOT_READ: Final = _NotRead()
"""The observable and the permission input of a call before its arguments are read; compared by
identity, never changed.
"""


class RedactionEntry(NamedTuple):
    """A redaction: where and what it was, never a value."""

    target: str  # arguments, result, error or delivered
    kind: str
    pointer: str  # JSON pointer into the target
    rule: str  # the detector, contract or policy that found it
    times: int


@dataclass(slots=True, eq=False, repr=False)
class Inputs:
    """The arguments of a call in their four forms, and who changed them."""

    # JSON arguments as received; never changed
    model_input: dict[str, Any] = field(default_factory=dict)
    # the model input of before a pause, after which a call is bound anew
    received: dict[str, Any] | None = None
    # normalised copy for hooks and people
    observable_input: dict[str, Any] = NOT_READ
    permission_input: dict[str, Any] = NOT_READ  # what is decided
    # whether the arguments may be others than in the schema: a Python caller's, or what a reader
    # makes of them
    unchecked: bool = False
    # the arguments that are: facts look at them as at data of no schema
    misfits: frozenset[str] = frozenset()
    # Python arguments by name: what the executor gets
    bound: dict[str, Any] = field(default_factory=dict)
    # what the executor was given as JSON, where the body might change its arguments in place
    executed: dict[str, Any] | None = None
    # who changed the input last, and to what, where that reads as another permission input
    given: tuple[MutationSource, dict[str, Any]] | None = None
    # a framework has validated the arguments and given the normalised ones already
    validated: bool = False
    mutations: list[InputMutation] = field(default_factory=list)  # changes between the inputs
    edit_note: str | None = None  # what a model reads about a person's changes


class Established(NamedTuple):
    """The facts of a call, from a look at it that was not enough to decide it."""

    context: AgentContext  # who calls
    arguments: dict[str, Any]  # the permission input: a few plain values
    facts: Facts

    def fits(self, context: AgentContext, arguments: dict[str, Any]) -> bool:
        """Return whether they are of these arguments, types included.

        Args:
            context: who calls.
            arguments: the permission input.
        """
        if context is not self.context or arguments != self.arguments:
            return False
        return all(type(value) is type(arguments[name]) for name, value in self.arguments.items())


class Decided(NamedTuple):
    """A verdict that came into force."""

    decision_id: str
    verdict: Verdict
    at_ns: int
    edited: bool = False  # by a person who changed the arguments with it


@dataclass(slots=True, eq=False, repr=False)
class Decision:
    """What was decided, on which facts, who was asked, and what hooks contributed."""

    facts: Facts = field(default_factory=lambda: EMPTY_FACTS)  # facts of the permission input
    verdict: Verdict | None = None  # the decision in force
    decisions: list[Decided] = field(default_factory=list)  # every verdict, oldest first
    # the newest, or the person's answer, where that lets the call run and an ask came after it
    in_force: Decided | None = None
    approval: ApprovalInput | None = None  # the answered request, as the policy sees it
    approval_status: str | None = None
    approval_wait: float | None = None  # seconds between question and answer
    request: ApprovalRequest | None = None  # the approval request that was made
    classified: Classified | None = None  # what the host's classifier answered
    hints: list[HookHint] = field(default_factory=list)  # hooks' permission hints
    hook_context: list[dict[str, Any]] = field(default_factory=list)
    hook_records: list[HookRecord] = field(default_factory=list)  # what hooks did
    hook_state: HookState | None = None  # the hook runner's own notes on this call
    # what the host of a custom tool has to hold its body by
    host_duty: SandboxDuty | None = None
    # what the process that runs its body is held by, as its decision obliges
    process_duty: SandboxDuty | None = None

    @property
    def decision_id(self) -> str:
        """Id of the decision in force, or an empty string before any."""
        return "" if self.in_force is None else self.in_force.decision_id

    @property
    def by_answer(self) -> bool:
        """Whether a person's answer is in force, and not the ask behind it."""
        return self.in_force is not None and self.in_force is not self.decisions[-1]

    def take(self, verdict: Verdict, at_ns: int, *, edited: bool = False) -> None:
        """Bring a verdict into force at a time."""
        self.verdict = verdict
        self.in_force = Decided(new_id("perm"), verdict, at_ns, edited)
        self.decisions.append(self.in_force)

    def let_in(self) -> None:
        """Bring the last answer of a person into force, behind the ask that it answers."""
        for decided in self.decisions:
            if decided.verdict.source is DecisionSource.USER:
                self.in_force = decided


@dataclass(slots=True, eq=False, repr=False)
class CallOutcome:
    """How far a call came and what became of it, without the content of its result."""

    status: InvocationStatus = InvocationStatus.PLANNED
    execution: Outcome = Outcome.NOT_EXECUTED
    transitions: list[tuple[InvocationStatus, int]] = field(default_factory=list)
    started_ns: int | None = None
    ended_ns: int | None = None
    run_seconds: float | None = None  # how long the tool itself ran, its retries included
    attempts: int = 0  # how often the tool was run
    result_status: ResultStatus = ResultStatus.SYNTHETIC_ERROR
    error: ToolError | None = None
    result_error: ToolError | None = None  # what is wrong with the result of a tool that returned
    abort_reason: str | None = None
    # deliverables that the result names
    artifact_refs: list[dict[str, Any]] = field(default_factory=list)
    # what else it refers to, where a text stands in its place
    resource_refs: list[dict[str, Any]] = field(default_factory=list)
    # where the output misses its schema, once that was looked at
    schema_errors: list[str] | None = None
    size: int | None = None  # bytes of the result, when known
    items: int | None = None  # items of a stream
    persistence: ResultPersistence | None = None
    redaction_state: RedactionState = RedactionState.NONE
    redactions: list[RedactionEntry] = field(default_factory=list)
    modified: dict[str, Any] | None = None  # what became of a change of shared context
    made_result_id: str = ""  # kept across pause and resume, as the invocation's id
    yielded: bool = False  # a batch handed the result on

    @property
    def reported_error(self) -> ToolError | None:
        """The error in a result, a span and events: of the call, or of its result."""
        if self.error is not None or self.result_error is None:
            return self.error
        # a post hook that failed is no fault of the result
        if self.result_error.error_class is ErrorClass.POST_HOOK_FAILED:
            return None
        return self.result_error

    @property
    def strategy(self) -> PersistenceStrategy:
        """How the result's bytes are kept."""
        return self.persistence.strategy if self.persistence else PersistenceStrategy.INLINE

    @property
    def result_id(self) -> str:
        """Id of the result, made when first asked for."""
        if not self.made_result_id:
            self.made_result_id = new_id("result")
        return self.made_result_id


_OUTCOME_FIELDS: Final = tuple(each.name for each in fields(CallOutcome))


class EndedOutcome(CallOutcome):
    """The outcome of a call that ended or waits: nothing changes it any more."""

    __slots__ = ("_frozen",)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, "_frozen"):
            raise FrozenInstanceError(f"the call has ended: {name} can't be set")
        object.__setattr__(self, name, value)

    @classmethod
    def of(cls, outcome: CallOutcome) -> EndedOutcome:
        """Return an outcome as it is now."""
        _ = outcome.result_id  # made when first asked for, and the same in every record
        ended = cls(**{name: getattr(outcome, name) for name in _OUTCOME_FIELDS})
        # a batch appends to the call's own list when it hands results on
        ended.transitions = list(outcome.transitions)
        ended._frozen = True
        return ended


@dataclass(slots=True, eq=False, repr=False)
class CallRecord:
    """What there is to record of a call: its identity, and the parts that become records.

    It holds no result and nothing that only the running process needs, so that it can outlive
    the call.
    """

    spec: ToolSpec
    context: AgentContext
    native_call_id: str | None = None  # the model's or framework's id of the call
    id: str = field(default_factory=partial(new_id, "inv"))  # kept across pause and resume
    resumed: bool = False  # continues after an ask
    # its body ran before and paused itself; until it runs again, nothing is recorded twice
    replayed: bool = False
    by_name: bool = False  # a model named the tool, and no object of it was at hand
    preflight: bool = False  # nobody will run it
    mappings: list[ExternalMapping] = field(default_factory=list)  # native ids of this very call
    place: Place | None = None  # its place among calls that belong together
    created_ns: int = field(default_factory=time.time_ns)
    span: Span = INVALID_SPAN
    cancellation: CancelState | None = None  # the request to stop it, if there was one

    inputs: Inputs = field(default_factory=Inputs)
    decision: Decision = field(default_factory=Decision)
    outcome: CallOutcome = field(default_factory=CallOutcome)

    def now_ns(self) -> int:
        """Return the time, and none before what is recorded of the call: a clock may be set back."""
        latest = self.created_ns
        if self.outcome.transitions:
            latest = max(latest, self.outcome.transitions[-1][1])
        if self.decision.decisions:
            latest = max(latest, self.decision.decisions[-1].at_ns)
        return max(time.time_ns(), latest)

    @property
    def policy_tool(self) -> dict[str, Any]:
        """``input.tool`` of this call."""
        spec = self.spec
        if spec.safety.static:
            return spec.policy_tool
        facts = spec.safety_facts(self.inputs.permission_input, self.decision.facts)
        return {**spec.policy_tool, **facts}


def seconds_since(at_ns: int) -> float:
    """Return the seconds since a time; none where the clock of whoever took it is ahead."""
    return max(0, time.time_ns() - at_ns) / 1e9


_RECORD_FIELDS: Final = tuple(each.name for each in fields(CallRecord))


@dataclass(slots=True, eq=False, repr=False)
class Invocation(CallRecord):
    """One requested call on its way: its record so far, and what only this process needs of it."""

    # --- who runs it ---
    services: Services | None = None  # who decides and asks; set when the pipeline starts
    handle: CallHandle | None = None  # while it goes on
    executor: Executor | None = None  # where its body runs, where that is not here
    process: ProcessSandbox | None = None  # what holds the process that runs it, set by its door
    effects: CallEffects | None = None  # what its body would change, where it was rehearsed
    reported_effects: ReportedEffects | None = None  # what its body is about to do, as it reports
    # what a sandbox refused to the same call earlier, as the policy was given it
    refused_earlier: tuple[str, ...] = ()
    sandbox: Sandbox | None = None  # what holds its body, where its decision obliges that
    claim: Claim | None = None  # the right to run an approved call, once it was taken
    ticket: StoredCall | None = None  # the stored call that this one continues
    history_entry: HistoryEntry | None = None  # its entry in the session's history
    # what hooks looked up, by hook id
    resources: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    # --- telemetry ---
    # span attributes of what brought the call, redacted; the same whatever becomes of it
    native_attributes: dict[str, Any] | None = None
    t0: float = field(default_factory=time.perf_counter)
    earlier_s: float = 0.0  # seconds from its beginning to that of this part of it
    owned: bool = False  # the span is this call's own, not the framework's
    measured: bool = False  # another instrumentation measures its body
    reported: int = 0  # how many progress records it has emitted
    # what listeners get of them when its result is handed on
    held_progress: list[Callable[[], None]] | None = None
    result_recorded: bool = False  # whether the event of its result was emitted
    is_attempt: bool = False  # somebody asked for it to go on: where that is refused, it waits on
    # what an attempt to go on has recorded, until it is known whether it is a part of the call;
    # ``None`` for what is one for sure
    held: list[Callable[[], object]] | None = None
    # id of the event that announced that a custom tool's call waits for its result
    waiting_event: str | None = None

    established: Established | None = None  # its facts, if the straight way has looked at it

    # --- Python arguments ---
    call_args: tuple[Any, ...] = ()  # as the caller gave them, later what the executor gets
    call_kwargs: dict[str, Any] = field(default_factory=dict)
    # of a Python call: the caller's objects that were copied
    originals: dict[str, Any] = field(default_factory=dict)
    internal: dict[str, Any] | None = None  # internal-only arguments that hooks gave

    # --- content of the result ---
    # what the tool (or a control-flow signal) raised, re-raised unmodified
    exception: BaseException | None = None
    value: Any = NOT_RUN  # native return value; ``ran`` is whether there is one
    delivered: Any = NOT_RUN  # what the caller of the plain function gets
    preview: Any = NOT_RUN  # what a model gets, where that is less
    native_meta: dict[str, Any] | None = None  # ``_meta`` of an MCP result, redacted
    kept: Kept | StreamOutcome | None = None  # what was done to keep the result
    tap: StreamTap | None = None  # what watches the items of a stream, where that is needed
    # called with each item of a stream that the session has to remember
    item_seen: Callable[[Any], None] | None = None
    modifier: ContextModifier | None = None  # a change of shared context that it wants

    # --- redaction ---
    # the permission input, the arguments and the pointers by which the call's own secrets were
    # looked for; their mask
    argument_mask: (
        tuple[dict[str, Any], dict[str, Any], tuple[str, ...], ArgumentMask | None] | None
    ) = None
    # the permission input redacted, with the input and the pointers that it was redacted by
    redacted_input: tuple[dict[str, Any], tuple[str, ...], Redacted] | None = None

    @property
    def in_charge(self) -> Services:
        """Who decides and asks for it, once the pipeline has started it."""
        if self.services is None:
            raise RuntimeError("the call was not started by the pipeline")
        return self.services

    @property
    def whole(self) -> Invocation:
        """Itself: of a call on the straight way there is less."""
        return self

    @property
    def ran(self) -> bool:
        """Whether the tool returned a value."""
        return self.value is not NOT_RUN

    @property
    def model_value(self) -> Any:
        """What a model gets of the result."""
        return self.delivered if self.preview is NOT_RUN else self.preview

    @property
    def result_pointers(self) -> tuple[str, ...]:
        """Which places of the result are redacted, by the tool's contract and by the decision."""
        verdict = self.decision.verdict
        obliged = verdict.redact_result if verdict is not None else ()
        return (*self.spec.redact_result, *(pointer for pointer in obliged if pointer != DETECTED))

    @property
    def must_redact(self) -> bool:
        """Whether the contract or the decision wants the result redacted."""
        verdict = self.decision.verdict
        if verdict is not None and verdict.redact_result:
            return True
        return self.spec.permission.redaction_required or bool(self.spec.redact_result)

    def as_record(self) -> CallRecord:
        """Return the call as it is now, once it ended or waits: its outcome is frozen."""
        record = CallRecord(**{name: getattr(self, name) for name in _RECORD_FIELDS})
        record.outcome = EndedOutcome.of(self.outcome)
        return record

    def second_part(self) -> Invocation:
        """Return the same invocation for its second part: another span and result, the same id,
        decisions and records.

        The first part's envelope was handed out and must not change any more.
        """
        outcome = replace(
            self.outcome,
            transitions=list(self.outcome.transitions),
            redactions=list(self.outcome.redactions),
            ended_ns=None,
        )
        return replace(
            self,
            resumed=True,
            t0=time.perf_counter(),
            earlier_s=seconds_since(self.created_ns),
            result_recorded=False,
            inputs=replace(self.inputs),
            decision=replace(self.decision, decisions=list(self.decision.decisions)),
            outcome=outcome,
        )

    def enter(self, status: InvocationStatus) -> None:
        """Change the state and remember when.

        A resumed or replayed call walks through states again that it entered before its pause:
        these are not recorded twice.
        """
        outcome = self.outcome
        outcome.status = status
        if status is InvocationStatus.RUNNING:
            self.replayed = False
        waits_on = self.ticket is not None and self.decision.approval is None
        walks_again = waits_on or self.replayed
        if walks_again and any(status is entered for entered, _ in outcome.transitions):
            return
        outcome.transitions.append((status, self.now_ns()))

    def reopen(self) -> None:
        """Take back that the tool succeeded, in a call that has not ended otherwise."""
        transitions = self.outcome.transitions
        if transitions and transitions[-1][0] is InvocationStatus.SUCCEEDED:
            transitions.pop()

    def fail(
        self,
        error_class: ErrorClass,
        message: str,
        status: InvocationStatus,
        result: ResultStatus = ResultStatus.FAILED,
        **details: Any,
    ) -> None:
        """End the call with an error; its message is for people and holds no argument or result
        content.
        """
        self.outcome.error = ToolError.of(error_class, message, **details)
        self.outcome.result_status = result
        self.enter(status)
