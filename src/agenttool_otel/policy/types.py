"""The policy contract as types: the input document, an engine, its answer, and the verdict made of it.

The TypedDicts are the source of ``policies/schemas/input.json``. Keys are always present; "not
known" is ``None``, an empty string or an empty list, so that a rule can distinguish it from a typing
error.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import (
    Annotated,
    Any,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypedDict,
    runtime_checkable,
)

from agenttool_otel.enforcement.own import profile_named, strictest_of
from agenttool_otel.facts.types import Facts
from agenttool_otel.names import (
    AccessKind,
    Behavior,
    DecisionSource,
    FailClosedCause,
    Lifecycle,
    Ownership,
    PolicyMode,
    ReasonType,
    ResultStatus,
    RiskLevel,
    SandboxNetwork,
    SandboxProfile,
    ToolKind,
    WriteEffect,
)
from agenttool_otel.values.words import OneOf

_Kind: TypeAlias = Annotated[str, OneOf(ToolKind, open=True)]
_Access: TypeAlias = Annotated[str, OneOf(AccessKind, open=True)]
_Effect: TypeAlias = Annotated[str, OneOf(WriteEffect, open=True)]
_Network: TypeAlias = Annotated[str, OneOf(("none", "loopback", "internal", "internet"), open=True)]
_Lifecycle: TypeAlias = Annotated[str, OneOf(Lifecycle)]
_Ownership: TypeAlias = Annotated[str, OneOf(Ownership)]
_Risk: TypeAlias = Annotated[str, OneOf(RiskLevel)]
_ActorKind: TypeAlias = Annotated[str, OneOf(("agent", "user", "service", "unknown"))]
_Outcome: TypeAlias = Annotated[str, OneOf(ResultStatus, ("running",))]
_Origin: TypeAlias = Annotated[str, OneOf(("stated", "none", "lost"))]
_Answer: TypeAlias = Annotated[str, OneOf(("approved", "rejected", "expired"))]
_Hint: TypeAlias = Annotated[str, OneOf(Behavior)]
_Verdict: TypeAlias = Annotated[str, OneOf(("pass", "not_ready", "fail", "error"), open=True)]
_Trend: TypeAlias = Annotated[
    str, OneOf(("first_iteration", "improving", "stable", "regressing"), open=True)
]


class Mapped(TypedDict, total=False):
    """What native ids there are, of the tool or of this very call; left out where there are
    none.
    """

    external_mappings: list[dict[str, Any]]  # the standard's external_mapping records


class InvocationInput(Mapped):
    """``input.invocation``."""

    id: str  # the invocation's id, the same before and after a pause
    native_call_id: str | None  # id of the model's tool call
    attempt: int  # 1 for the first decision of an invocation
    resumed: bool  # continues after an ask
    preflight: bool  # nobody will run this call whatever the answer


class ToolInput(Mapped):
    """``input.tool``: facts of declaration and interface, for this very input."""

    id: str  # the tool's id: namespace.name, or its own
    namespace: str  # where the name belongs
    name: str  # the name that models call; another tool may have the same
    aliases: list[str]  # other names
    kind: _Kind  # function, file_operation, shell_command and so on
    # draft, available, disabled, requires_setup, deferred, deprecated or retired
    lifecycle: _Lifecycle
    ownership: _Ownership  # managed, mcp, custom
    read_only: bool  # it changes nothing
    destructive: bool  # it destroys something
    open_world: bool  # it reaches what nobody here controls
    concurrency_safe: bool  # it may run beside others
    requires_user_interaction: bool  # a person takes part while it runs
    inferred: list[str]  # names of facts that nobody stated
    capability_refs: list[str]  # capability keys that it states


class PermissionProfileInput(TypedDict):
    """``input.permission_profile``."""

    risk_level: _Risk  # low, medium, high or critical
    access_kinds: list[_Access]  # file_read, file_write, network, credential, payment and so on
    # none, local_draft, local_persistent, remote_mutation, irreversible
    write_effects: list[_Effect]
    network_scope: _Network | None  # none, loopback, internal or internet
    tenant_scope: str | None  # single, cross, or the tenant that it belongs to
    credential_refs: list[str]  # names of credentials that it uses
    sandbox_profile: str | None  # name of the sandbox that it runs in
    approval_required: bool  # its author wants a person's agreement
    approval_reason: str | None  # why
    prompt_avoidable: bool  # its author thinks that a question can be avoided
    data_sensitivity: str | None  # how sensitive its results are
    redaction_required: bool  # its results have to be redacted


class DelegatorInput(TypedDict):
    """One entry of ``input.actor.chain``: who started the actor, as it was then."""

    id: str  # who it is, such as agent:lead
    kind: _ActorKind  # agent, user, service, unknown
    roles: list[str]  # its roles
    tenant: str | None  # the tenant that it acts for
    mode: str  # its permission mode
    roots: list[str]  # its directories


class Delegated(TypedDict, total=False):
    """Who has delegated; left out where nobody has."""

    # who started the actor, the outermost first
    chain: list[DelegatorInput]


class ActorInput(Delegated):
    """``input.actor``."""

    id: str  # who calls, such as agent:support
    kind: _ActorKind  # agent, user, service, unknown
    roles: list[str]  # the actor's roles
    tenant: str | None  # the tenant that it acts for


class SessionCounters(TypedDict):
    """``input.session.counters``: what the session has used so far, this call not included."""

    calls: int  # calls so far
    tool_calls: int  # of this tool
    asks: int  # questions so far
    denials: int  # denials so far
    result_bytes: int  # bytes of results so far


class HistoryEntry(TypedDict):
    """One entry of ``input.session.history``: an earlier call, without its values."""

    tool: str  # the tool's id
    # running, or the status of its result: succeeded, failed, denied, pending ...
    outcome: _Outcome
    targets: list[str]  # digests of its arguments' values, each with the argument's name
    same: list[str]  # JSON pointers of this call's arguments whose values were among them


class SessionInput(TypedDict):
    """``input.session``."""

    id: str | None  # the session's id
    # stated, none (nobody stated one), lost (in a thread that nobody carried it into)
    context: _Origin
    mode: str  # default, plan, strict ... as the host names it
    interactive: bool  # whether anybody can answer an ask
    roots: list[str]  # directories that file tools should stay in
    counters: SessionCounters  # what the session has used so far
    labels: dict[str, str]  # words of the host about the session
    # decided calls of this session, oldest first; empty where no rule reads it
    history: list[HistoryEntry]
    history_complete: bool  # nothing of it was forgotten


class AgreementInput(TypedDict):
    """One entry of ``input.approval.answers``: one person's yes."""

    answered_by: str  # who gave it
    roles: list[str]  # that person's roles
    counts_as: str | None  # the needed role that it counts as; null where it counts as none


class SeveralAnswers(TypedDict, total=False):
    """Answers of several people."""

    # every yes; left out where one person's was enough
    answers: list[AgreementInput]


class ApprovalInput(SeveralAnswers):
    """``input.approval``: an answered approval request that belongs to this invocation and these
    arguments.
    """

    request_id: str  # id of the request
    status: _Answer  # approved, rejected, expired
    answered_by: str | None  # who answered
    roles: list[str]  # the answerer's roles
    granted: bool  # a remembered grant rather than an answer to this very call


class HookHint(TypedDict):
    """One entry of ``input.hooks``: a hook's permission hint. An allow lifts nothing."""

    hook_id: str  # which hook
    behavior: _Hint  # allow, ask or deny
    message: str  # why


class SandboxHistory(TypedDict, total=False):
    """What sandboxes did earlier."""

    # what one refused to the same call earlier in this session: read, write, connection ...
    refused: list[str]


class ExecutionInput(SandboxHistory):
    """``input.execution``: what can hold this very body on this host, proven and not stated."""

    # profiles that may be obliged: read, rehearse, write, and those of one's own; empty where no
    # rule reads it
    sandboxes: list[str]
    # thread (all of the body), command (the programs it starts by arun_command), process (that of a
    # server, with all that it runs) or none
    scope: str


class EvaluationInput(TypedDict):
    """``input.evaluation``: verdict of a user-given evaluator (openboa, "outcome_evaluate")."""

    status: _Verdict  # pass, not_ready, fail, error
    trend: _Trend  # first_iteration, improving, stable, regressing
    next_step: str | None  # what the evaluator wants done next


class PolicyInput(TypedDict):
    """The document that an entry point is queried with."""

    schema_version: str  # version of the standard
    time: str  # RFC 3339 in UTC: the decision's time
    invocation: InvocationInput  # the call
    tool: ToolInput  # the tool
    permission_profile: PermissionProfileInput  # what the tool uses, as its author declares
    input: dict[str, Any]  # the arguments that are decided, as JSON
    facts: Facts  # what the arguments mean
    actor: ActorInput  # who calls
    session: SessionInput  # in which session
    # an answered request that belongs to this call; null where there is none
    approval: ApprovalInput | None
    hooks: list[HookHint]  # what hooks returned
    evaluation: EvaluationInput | None  # an evaluator's verdict; null where there is none
    resources: dict[str, Any]  # the application's state that the call is about, by name
    execution: ExecutionInput  # what can hold its body


class EngineAnswer(NamedTuple):
    """An engine's answer, not yet checked."""

    value: Any  # the entry point's value as plain JSON data
    revision: str  # revision of the bundle that answered
    decision_id: str | None = None  # OPA's own decision id, if it gave one
    bundle_digest: str = ""  # digest of that bundle, where the engine has it


@dataclass(frozen=True, slots=True)
class EngineCapabilities:
    """What an engine can do."""

    # names of the Rego builtins that give OPA's answers on it; ``None`` when that is not known
    builtins: frozenset[str] | None = None
    remote: bool = False  # evaluation leaves the process
    tracing: bool = False  # can report which rules fired, with file and line
    coverage: bool = False  # can report rule coverage
    # its deadline counts the CPU time of the evaluation, and an answer of its is not thrown away
    # because the machine was busy
    counts_cpu_time: bool = False


@runtime_checkable
class PolicyEngine(Protocol):
    """Evaluates an entry point of a bundle on an input.

    An engine raises nothing but ``PolicyError`` and its subclasses, panics of native code included;
    it never turns an error, a timeout or an undefined result into a value.
    """

    @property
    def name(self) -> str:
        """Value of ``agenttool.policy.engine``."""

    @property
    def revision(self) -> str:
        """Revision of the bundle in use, or an empty string before the first answer of a remote
        engine.
        """

    @property
    def capabilities(self) -> EngineCapabilities:
        """What it can do."""

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Evaluate synchronously.

        Args:
            entry_point: full path of the rule, for example ``data.agenttool.permission.decision``.
            document: the input.
            timeout: seconds that the whole evaluation may take: of wall-clock time, or of CPU time
                where the capabilities have it.

        Raises:
            PolicyEvaluationError: the evaluation failed, or the entry point is undefined for this
              input.
            PolicyTimeout: the deadline passed.
            PolicyUnavailable: the engine can't be reached.
        """

    async def aevaluate(
        self, entry_point: str, document: PolicyInput, *, timeout: float
    ) -> EngineAnswer:
        """Evaluate without blocking the event loop; as ``evaluate``."""

    def close(self) -> None:
        """Release threads, connections and watches; further calls raise PolicyUnavailable."""


@dataclass(frozen=True, slots=True)
class SandboxDuty:
    """What a decision obliges of the place where the body runs."""

    profile: SandboxProfile  # what it may do; of a profile of one's own, which one it narrows
    network: SandboxNetwork | None = None  # what it may reach; the profile's own where None
    own: str = ""  # the name of a profile of one's own
    unordered: tuple[str, ...] = ()  # profiles of which none is the strictest: nothing holds all

    @classmethod
    def named(cls, name: str, network: SandboxNetwork | None = None) -> SandboxDuty | None:
        """Return a duty by its profile's name; ``None`` where there is no such profile."""
        profile = profile_named(name)
        if profile is None:
            return None
        return cls(profile.base, network, own=name if name != profile.base else "")

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.own or self.profile.value

    def joined(self, other: SandboxDuty | None) -> SandboxDuty:
        """Return the stricter of two in each member."""
        if other is None:
            return self
        network = self.network or other.network
        names = {name for duty in (self, other) for name in duty.unordered or (duty.name,)}
        strictest = strictest_of(names)
        duty = SandboxDuty.named(strictest, network) if strictest is not None else None
        return duty or replace(self, network=network, unordered=tuple(sorted(names)))


@dataclass(slots=True)
class Verdict:
    """A believed decision: strictly checked, and what the pipeline acts on."""

    behavior: Behavior  # allow, ask or deny after combination; passthrough only inside a chain
    source: DecisionSource = DecisionSource.POLICY  # who decided
    mode: PolicyMode = PolicyMode.ENFORCE  # enforce or shadow
    reason_type: ReasonType = ReasonType.RULE  # kind of reason
    rule_ref: str = ""  # the deciding rule
    message: str = ""  # why, for people; no argument content
    rule_refs: tuple[str, ...] = ()  # every rule that contributed, the deciding one first
    updated_input: dict[str, Any] | None = None  # replacement arguments, to be decided again
    suggested_updates: tuple[dict[str, Any], ...] = ()  # policy changes an approver may accept
    blocked_path: str | None = None  # the path that the denial is about
    # safer calls, ``{"tool", "arguments", "reason"}``
    alternatives: tuple[dict[str, Any], ...] = ()
    redact_input: tuple[str, ...] = ()  # JSON pointers
    redact_result: tuple[str, ...] = ()  # JSON pointers, ``detected`` or ``*``
    max_inline_chars: int | None = None  # limit from the policy
    persistence: str | None = None  # strategy from the policy
    sandbox: SandboxDuty | None = None  # what has to hold the body
    # roles of which the person who answers this ask needs one; empty: any authenticated answerer
    approver_roles: tuple[str, ...] = ()
    approvals_needed: int = 1  # how many different people have to agree to this ask
    required_roles: tuple[str, ...] = ()  # roles that have to agree to it, each a person of its own
    # rules whose questions nothing has answered yet
    open_questions: tuple[str, ...] = ()
    # a rule whose question is answered, and the rule or setting that answers it
    answered_questions: tuple[tuple[str, str], ...] = ()
    expires_at: str | None = None  # RFC 3339 time until which the decision holds
    engine: str = ""  # engine name
    revision: str = ""  # revision of the bundle that decided
    bundle_digest: str = ""  # its digest, where the engine has it
    opa_decision_id: str | None = None  # OPA's decision id
    cached: bool = False  # whether it came from the decision cache
    # why no decision could be had, when that is why it denies
    fail_closed: FailClosedCause | None = None
    shadow: Verdict | None = None  # what a shadow engine or rule set would have decided
    duration: float = 0.0  # seconds that the decision took
    extra: dict[str, Any] = field(default_factory=dict)


def expired(verdict: Verdict) -> bool:
    """Return whether the time until which a decision holds is over."""
    return verdict.expires_at is not None and datetime.fromisoformat(
        verdict.expires_at
    ) <= datetime.now(UTC)
