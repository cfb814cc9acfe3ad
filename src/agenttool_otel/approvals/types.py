"""An approval request, the answer to it, what a store gives back, and who can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from pydantic import Field

from agenttool_otel.approvals.people import Agreement, StillNeeded, still_needed
from agenttool_otel.names import AnswerWay, ApprovalLogKind, ApprovalStatus, ResultStatus
from agenttool_otel.records.base import JsonObject, Record, Timestamp, utc_now
from agenttool_otel.values.ids import new_id

MAX_PENDING: Final = 10_000
"""How many requests may wait for an answer at once where nothing else is stated; in memory each takes
some 4 KB.
"""

MAX_PENDING_PER_SESSION: Final = 100
"""How many of them may be of one session."""


class ApprovalRequest(Record):
    """A question about one call, bound to the bytes that will run.

    Attributes:
        request_id: sortable id; knowing it is not a permission to answer.
        event_id: the ``tool.approval.requested`` event that announced the question; ``None`` for
          one that an older version stored.
        invocation_id: the call, the same before and after the pause.
        tool_id: the tool.
        tool_name: its name, for people.
        declaration_digest: digest of the tool's declaration and interface; a changed tool voids the
          request.
        args_digest: ``sha256:`` and the SHA-256 of the RFC 8785 form of the permission input.
        actor_id: who asked for the call.
        tenant: the actor's tenant.
        session_id: the session.
        policy_revision: revision of the bundle that asked; a changed revision means deciding again.
        rule_ref: the rule that asked.
        rule_refs: every rule that decided about the call; a grant answers no questions but theirs.
        open_questions: the rules whose questions this answer is about, where the policy states
          them.
        answered_questions: questions that something else answers, ``{"question", "by"}``.
        message: why it asked.
        approval_reason: why the tool's author wants a person to be asked, redacted.
        profile: of the tool's permission profile its ``risk_level``, ``access_kinds``,
          ``write_effects`` and ``data_sensitivity``, as far as they are stated.
        question: in one sentence which values decide whom or what the call reaches, and where they
          came from; without secrets.
        user_words: what the user wrote last, without secrets and bounded; empty where the context
          states none.
        arguments_preview: the arguments without secrets, for the person who answers; recipients and
          accounts are in clear.
        tool_description: what the tool does, as it declares.
        cwd: directory that relative paths start from, where the context states it.
        roots: directories that the call is to stay in.
        places: what paths, URLs and SQL of the arguments mean, ``{"argument", "access", "place",
            "note"}``; one whose argument is redacted is left out.
        effects: how much a rehearsed call would change: ``counts``, ``complete``, ``commands`` and
            ``digest``; ``None`` for one whose body has not run.
        diff: the changes of text files, redacted and bounded.
        places_digest: digest of where paths and commands of the arguments lead; empty where they
            have none. The call runs only where they lead to the same places.
        surroundings_digest: digest of the directory and the roots; edited arguments run only with
          the same.
        input_schema: the tool's JSON Schema, if edited arguments are to be checked when they are
          given.
        alternatives: safer calls.
        suggested_updates: grants that the answerer may accept with the approval.
        approver_roles: roles of which an answerer needs one; empty: any authenticated answerer.
        approvals_needed: how many different people have to agree.
        required_roles: roles that have to agree, each a person of its own.
        agreed: who has agreed so far, where several have to: ``{"answered_by", "roles"}``.
        requester_may_answer: whether the requesting actor may answer too.
        status: state of the request.
        answered_by: who answered.
        answer_reason: the reason that they gave.
        created_at: when it was asked.
        expires_at: until when it may be answered and used.
        answered_at: when it was answered.
        edited: whether the answer replaced the arguments; the new ones are sealed in the store.
        outcome: how the one run ended, once it did.
        closed_reason: why the request was canceled or interrupted; machine text, no content.
        supersedes: the interrupted request that this one asks again for.
    """

    request_id: str = Field(default_factory=lambda: new_id("appr"))
    event_id: str | None = None
    invocation_id: str
    tool_id: str
    tool_name: str
    declaration_digest: str = ""
    args_digest: str
    actor_id: str = ""
    tenant: str | None = None
    session_id: str | None = None
    policy_revision: str = ""
    rule_ref: str = ""
    rule_refs: list[str] = Field(default_factory=list)
    open_questions: list[str] = Field(default_factory=list)
    answered_questions: list[JsonObject] = Field(default_factory=list)
    message: str = ""
    approval_reason: str = ""
    profile: JsonObject = Field(default_factory=dict)
    question: str = ""
    user_words: str = ""
    arguments_preview: JsonObject = Field(default_factory=dict)
    tool_description: str = ""
    cwd: str | None = None
    roots: list[str] = Field(default_factory=list)
    places: list[JsonObject] = Field(default_factory=list)
    effects: JsonObject | None = None
    diff: str = ""
    places_digest: str = ""
    surroundings_digest: str = ""
    input_schema: JsonObject | None = None
    alternatives: list[JsonObject] = Field(default_factory=list)
    suggested_updates: list[JsonObject] = Field(default_factory=list)
    approver_roles: list[str] = Field(default_factory=list)
    approvals_needed: int = 1
    required_roles: list[str] = Field(default_factory=list)
    agreed: list[JsonObject] = Field(default_factory=list)
    requester_may_answer: bool = False
    status: ApprovalStatus = ApprovalStatus.PENDING
    answered_by: str | None = None
    answer_reason: str | None = None
    created_at: Timestamp = Field(default_factory=utc_now)
    expires_at: Timestamp | None = None
    answered_at: Timestamp | None = None
    edited: bool = False
    outcome: ResultStatus | None = None
    closed_reason: str | None = None
    supersedes: str | None = None

    @property
    def still_needed(self) -> StillNeeded:
        """Who still has to agree, where several people have to."""
        agreed = [
            Agreement(str(each["answered_by"]), frozenset(each["roles"])) for each in self.agreed
        ]
        return still_needed(self.approvals_needed, self.required_roles, agreed)

    @property
    def needs_several(self) -> bool:
        """Whether the yes of any one person who may answer is not enough."""
        return self.approvals_needed != 1 or bool(self.required_roles)


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """An answer.

    Attributes:
        approved: yes or no.
        answered_by: id of the person or coordinator; empty when the approver has none.
        roles: that person's roles.
        reason: the reason that they gave; redacted before it is shown elsewhere.
        edited_input: replacement arguments; a mutation that is validated and decided again.
        remember: index into ``suggested_updates`` of the grant that they accept with it, if any.
        stored: the store has this answer already, because it was given there; it is claimed, not
          stored again.
        way: by which way it was given; recorded, and no permission of any kind.
        earlier: the answers with yes of other people before it, where several have to agree; set by
          the store.
    """

    approved: bool
    answered_by: str = ""
    roles: tuple[str, ...] = ()
    reason: str = ""
    edited_input: dict[str, Any] | None = None
    remember: int | None = None
    stored: bool = False
    way: AnswerWay = AnswerWay.PROGRAM
    earlier: tuple[ApprovalAnswer, ...] = ()


class StoredCall(NamedTuple):
    """What is needed to decide a stored call again, in whatever process; reading it gives no right
    to run it.
    """

    request: ApprovalRequest  # the request, with its current state
    # the arguments that an approval covers: the edited ones when the answer edited them
    arguments: dict[str, Any]
    original_arguments: dict[str, Any]  # the arguments that were asked about
    context: dict[str, Any]  # what the asking process stored beside them
    answer: ApprovalAnswer | None  # the authenticated answer; ``None`` while there is none
    args_digest: str  # digest of ``arguments``


class ClaimBinding(NamedTuple):
    """What an approved call would run, and for whom, as it is when it is claimed."""

    args_digest: str  # digest of the arguments that an approval has to be for
    policy_revision_seen: str  # the policy that decided it again
    declaration_digest: str  # digest of the tool's declaration
    tool_id: str  # the tool
    actor_id: str  # the actor
    tenant: str | None  # the actor's tenant
    session_id: str | None  # the session
    # ``places_digest`` and ``surroundings_digest`` as they are now
    places: tuple[str, str] | None = None


class Claim(NamedTuple):
    """The right to run one approved call once. Its holder must end it with ``finish``."""

    claim_id: str  # names this one run
    request: ApprovalRequest  # the consumed request
    arguments: dict[str, Any]  # exactly what was approved, and the only thing that may run
    original_arguments: dict[str, Any]  # the arguments that were asked about
    context: dict[str, Any]  # what the asking process stored beside them
    answer: ApprovalAnswer  # the answer
    args_digest: str  # digest of ``arguments``


class Recovered(NamedTuple):
    """One run that was lost in a crash."""

    request_id: str  # the request whose run was lost, now interrupted
    asked_again: str  # the new pending request for the same invocation


@dataclass(frozen=True, slots=True)
class RequiredCall:
    """A permitted call that waits for its result, as the store keeps it."""

    invocation_id: str  # the call
    tool_id: str  # the tool
    declaration_digest: str  # digest of the tool's declaration as it was permitted
    arguments: dict[str, Any] = field(repr=False)  # the JSON arguments that it was permitted with
    context: dict[str, Any] = field(repr=False)  # what the permitting process stored beside them
    since: datetime  # since when it waits
    # the approval's claim, for the taker of the call; ``None`` where nobody had to approve it
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class GrantQuery:
    """A call that is to be asked about, as a grant would have to cover it."""

    tool_id: str  # the tool
    declaration_digest: str  # digest of its declaration as it is now
    actor_id: str  # who calls
    tenant: str | None  # the caller's tenant
    session_id: str | None  # the call's session
    arguments: dict[str, Any] = field(repr=False)  # the permission input
    # the rules that ask, and all others that decided about the call
    rule_refs: frozenset[str] = frozenset()
    facts: Sequence[dict[str, str]] = ()  # its needs, where the policy lets a grant by facts answer
    roots: Sequence[str] = ()  # the call's roots
    # roles of which the person who granted needs one; empty: any
    approver_roles: frozenset[str] = frozenset()


class Grant(Record):
    """A remembered approval: narrow, and for a limited time."""

    grant_id: str = Field(default_factory=lambda: new_id("grant"))  # sortable id
    tool_id: str  # the only tool it covers
    declaration_digest: str = ""  # the tool as it was; a changed tool voids the grant
    # ``session``, ``actor``, ``tenant`` or ``root`` (actor and roots): which of the next ones a
    # call has to share
    scope: str
    actor_id: str = ""  # the actor (scopes session and actor)
    tenant: str | None = None  # the tenant, always compared
    session_id: str | None = None  # the session (scope session)
    roots: list[str] = Field(default_factory=list)  # the roots (scope root)
    # what calls may need at most (approvals/needs.py), when it is a grant by facts
    facts: list[JsonObject] | None = None
    args_digest: str | None = None  # the exact arguments, when there is no matcher
    # matcher by top-level argument: ``{"equals": v}``, ``{"one_of": [...]}`` or ``{"any": true}``;
    # an argument that it does not name makes the call not match
    args: dict[str, JsonObject] | None = None
    granted_by: str  # who accepted it
    granter_roles: list[str] = Field(default_factory=list)  # that person's roles when they did
    # the rules whose questions they answered; a call that others ask about is another question
    rule_refs: list[str] = Field(default_factory=list)
    request_id: str  # the request with whose answer it was accepted
    created_at: Timestamp = Field(default_factory=utc_now)  # when
    expires_at: Timestamp  # until when it holds
    revoked_at: Timestamp | None = None  # when it was withdrawn


@dataclass(frozen=True, slots=True)
class AskLimit:
    """How often one actor may ask people (OWASP T10, "overwhelming human in the loop").

    Attributes:
        asks: number of asks.
        seconds: length of the sliding window.
    """

    asks: int
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One row of the evidence log."""

    seq: int  # 1, 2, 3 ... without a gap
    previous: str  # hash of the entry before; 64 zeros for the first
    hash: str  # MAC over all other fields under the store's key, in hexadecimal
    at_us: int  # microseconds since 1970 on the store's clock
    kind: ApprovalLogKind  # what happened
    # the request it happened to; for a call that waits for its result, the invocation
    request_id: str
    # facts; no arguments, and nothing that a person typed
    data: dict[str, Any] = field(default_factory=dict)
    changed_row: str = ""  # table, key and new seal of the row that it changed, if it changed one


class ChainReport(NamedTuple):
    """Result of checking the evidence log and the rows."""

    # whether every entry follows from the one before, the last is the recorded head, and each row
    # is as the log has it
    ok: bool
    entries: int  # number of entries that were checked
    # hash of the last entry; kept elsewhere, it distinguishes an older copy of the database from the
    # present one
    head: str
    # the first ``seq`` that does not fit; ``None`` where it is no entry that does not
    broken_at: int | None = None
    problem: str | None = None  # what is wrong with it


@runtime_checkable
class Approver(Protocol):
    """A person or program that can be asked in place. ``None`` means: not now, keep the request pending."""

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Ask and wait for the answer."""


@runtime_checkable
class AsyncApprover(Protocol):
    """The same for asynchronous code; used in preference to ``ask`` there."""

    async def aask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Ask without blocking the event loop."""
