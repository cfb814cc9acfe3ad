"""What clients and the decision point send each other, as models: from these the OpenAPI document
is made, and by these a request is checked.

The shape of a request is AuthZEN's (Authorization API 1.0). A member that no model has is refused:
a misspelt ``root`` must not widen a call.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agenttool_otel.names import EvaluationsSemantic, ProblemType, RehearsalState, RemoteState

EVALUATION_PATH: Final = "/access/v1/evaluation"
EVALUATIONS_PATH: Final = "/access/v1/evaluations"
INVOCATIONS_PATH: Final = "/v1/invocations"
HOOKS_PATH: Final = "/v1/hooks"
REHEARSALS_PATH: Final = "/v1/rehearsals"
MAX_EVALUATIONS: Final = 100
"""Evaluations of one batch."""
MAX_ID_CHARS: Final = 256
"""Characters of an id or a name."""
_MAX_WORDS: Final = 100
_MAX_CHAIN: Final = 20
_MAX_TEXT_CHARS: Final = 100_000


def _absolute(path: str) -> str:
    # "src" would start from the directory of the server
    if not path.startswith("/") or "\0" in path:
        raise ValueError("an absolute path")
    return path


Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
AbsolutePath = Annotated[str, Field(max_length=4096), AfterValidator(_absolute)]
JsonObject = dict[str, Any]


class Message(BaseModel):
    """Base of what is sent: another type or an unknown member is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


# --- requests -------------------------------------------------------------------------------------


class SubjectProperties(Message):
    """What is known of who calls.

    Other properties are kept, for the rules of an operator's own (``input.resources.authzen``).

    Attributes:
        tenant: tenant that the actor acts for.
        roles: the actor's roles.
    """

    model_config = ConfigDict(extra="allow", strict=True)

    tenant: str | None = Field(default=None, max_length=MAX_ID_CHARS)
    roles: list[Id] = Field(default_factory=list, max_length=_MAX_WORDS)


class Subject(Message):
    """Who calls.

    Attributes:
        type: ``agent``, ``user`` or ``service``; another word is an actor of unknown kind.
        id: the actor's id within its type.
        properties: what is known of the actor.
    """

    type: Id
    id: Id
    properties: SubjectProperties = Field(default_factory=SubjectProperties)


class Action(Message):
    """Which tool is called.

    Attributes:
        name: the tool's name, alias or id.
        properties: for the rules of an operator's own; the arguments are the resource's.
    """

    name: Id
    properties: JsonObject = Field(default_factory=dict, max_length=_MAX_WORDS)


class Resource(Message):
    """With what it is called.

    Attributes:
        type: what the call is about; ``tool_call`` where it is the call itself.
        id: the client's own id of the call; a call that is sent again under it is the same call.
        properties: the arguments.
    """

    type: Id
    id: Id
    properties: JsonObject = Field(default_factory=dict)


class StatedDelegator(Message):
    """Who started the agent that calls.

    Attributes:
        id: its actor id, such as ``agent:lead``.
        roles: its roles.
        tenant: tenant that it acts for.
        mode: its permission mode.
        roots: its absolute directories.
    """

    id: Id
    roles: list[Id] = Field(default_factory=list, max_length=_MAX_WORDS)
    tenant: str | None = Field(default=None, max_length=MAX_ID_CHARS)
    mode: Id = "default"
    roots: list[AbsolutePath] = Field(default_factory=list, max_length=_MAX_WORDS)


class CallContext(Message):
    """In which session, and where; see ``agent_context`` for what each member means.

    Attributes:
        session_id: conversation or task.
        agent_name: the agent's name in telemetry.
        mode: permission mode of the host.
        interactive: whether a person can answer a question now.
        roots: absolute directories that file tools should stay in.
        cwd: absolute directory that relative paths start from.
        user_text: the user's words.
        labels: short facts for policies.
        evaluation: an evaluator's verdict.
        resources: the application's state that the call is about.
        chain: who started the agent that calls, the outermost first; none of them may be narrower.
    """

    session_id: Id | None = None
    agent_name: Id | None = None
    mode: Id | None = None
    interactive: bool | None = None
    roots: list[AbsolutePath] | None = Field(default=None, max_length=_MAX_WORDS)
    cwd: AbsolutePath | None = None
    user_text: list[Annotated[str, Field(max_length=_MAX_TEXT_CHARS)]] | None = Field(
        default=None, max_length=_MAX_WORDS
    )
    labels: dict[str, str] | None = Field(default=None, max_length=_MAX_WORDS)
    evaluation: JsonObject | None = None
    resources: JsonObject | None = None
    chain: list[StatedDelegator] | None = Field(default=None, max_length=_MAX_CHAIN)


class EvaluationRequest(Message):
    """One call: who calls which tool with what, and where.

    Attributes:
        subject: who calls.
        action: which tool.
        resource: with what.
        context: in which session.
    """

    subject: Subject
    action: Action
    resource: Resource
    context: CallContext = Field(default_factory=CallContext)


class EvaluationPart(Message):
    """One entry of a batch; what it leaves out is taken from the batch.

    Attributes:
        subject: who calls.
        action: which tool.
        resource: with what.
        context: in which session.
    """

    subject: Subject | None = None
    action: Action | None = None
    resource: Resource | None = None
    context: CallContext | None = None


class EvaluationsOptions(Message):
    """How a batch is worked through.

    Attributes:
        evaluations_semantic: how far.
    """

    evaluations_semantic: EvaluationsSemantic = EvaluationsSemantic.EXECUTE_ALL


class EvaluationsRequest(EvaluationPart):
    """Several calls; without ``evaluations`` it is one.

    Attributes:
        evaluations: the calls.
        options: how they are worked through.
    """

    evaluations: list[EvaluationPart] = Field(default_factory=list, max_length=MAX_EVALUATIONS)
    options: EvaluationsOptions = Field(default_factory=EvaluationsOptions)


class ResultRequest(Message):
    """How a permitted call ended in the client: with ``result``, ``null`` included, or ``error``.

    Attributes:
        result: what the tool returned.
        error: what went wrong, instead of a result.
    """

    result: Any = None
    error: str | None = Field(default=None, max_length=_MAX_TEXT_CHARS)


class CancelRequest(Message):
    """Why a call ends without a result.

    Attributes:
        reason: for people; redacted before it is stored or shown.
    """

    reason: str = Field(default="canceled by the client", min_length=1, max_length=2000)


class RehearsalStart(Message):
    """A command that is about to run on a layer.

    Attributes:
        ticket: what the hook was given for it; it can be used once.
        command: the program and its arguments.
        roots: the directories of the layer.
    """

    ticket: str = Field(min_length=1, max_length=256)
    command: list[str] = Field(min_length=1, max_length=1_000)
    roots: list[str] = Field(min_length=1, max_length=100)


class RehearsalEnd(Message):
    """A command that has run on a layer, or could not.

    Attributes:
        ticket: the ticket that it began with.
        layer: the sealed layer.
        digest: the layer's digest.
        exit_code: exit status of the command.
        stdout: its standard output, in base64.
        stderr: its standard error, in base64.
        stdout_omitted: bytes that ``stdout`` lacks.
        stderr_omitted: bytes that ``stderr`` lacks.
        seconds: how long it took.
        failure: why there is no layer, instead of one.
    """

    ticket: str = Field(min_length=1, max_length=256)
    layer: str = Field(default="", max_length=100)
    digest: str = Field(default="", max_length=200)
    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    stdout_omitted: int = Field(default=0, ge=0)
    stderr_omitted: int = Field(default=0, ge=0)
    seconds: float = Field(default=0.0, ge=0)
    failure: str = Field(default="", max_length=2_000)


class HookPayload(Message):
    """What a coding agent sends to its hook; each agent has members of its own."""

    model_config = ConfigDict(extra="allow", strict=True)


# --- answers --------------------------------------------------------------------------------------


class EvaluationContext(Message):
    """Why it was decided so, and what the decision obliges to.

    Attributes:
        behavior: ``allow``, ``ask`` or ``deny``.
        reason: for people and models; it holds no argument.
        rule: the rule that decided.
        error_class: the standard's error class, where the call never got to the policy.
        obligations: what must be done to input and result.
        alternatives: safer calls.
        next_step: one sentence of what to do.
        requestable: denied here, but a person can be asked: send the same body to
          ``request_endpoint``.
        request_endpoint: where to, if it is requestable.
        policy_refs: the policies that decided, with their revisions.
        ignored: places of the request that are not understood, 20 at most; AuthZEN 1.0 asks to ignore
          them.
    """

    behavior: str
    reason: str
    rule: str | None = None
    error_class: str | None = None
    obligations: JsonObject = Field(default_factory=dict)
    alternatives: list[JsonObject] = Field(default_factory=list)
    next_step: str = ""
    requestable: bool = False
    request_endpoint: str | None = None
    policy_refs: list[str] = Field(default_factory=list)
    ignored: list[str] = Field(default_factory=list)


class EvaluationAnswer(Message):
    """The answer to one evaluation.

    Attributes:
        decision: whether the call may run; ``false`` for a question, too.
        context: why.
    """

    decision: bool
    context: EvaluationContext


class EvaluationsAnswer(Message):
    """The answers to a batch, in its order.

    Attributes:
        evaluations: the answers; fewer than were asked for where the batch stops early.
    """

    evaluations: list[EvaluationAnswer]


class Metadata(Message):
    """AuthZEN's discovery document.

    Attributes:
        policy_decision_point: base URL of this decision point.
        access_evaluation_endpoint: where one call is evaluated.
        access_evaluations_endpoint: where several are.
    """

    policy_decision_point: str
    access_evaluation_endpoint: str
    access_evaluations_endpoint: str


class RemoteCall(Message):
    """A call as its client sees it. It may run where ``state`` is ``permitted``, and nowhere else.

    Attributes:
        invocation_id: what to wait for, complete or cancel.
        call_id: the client's own id of it.
        state: what may be done.
        tool_id: the tool.
        arguments: what it runs with, where it is permitted; they may not be those that were sent.
        reason: why it was decided so.
        rule: the rule that decided.
        request_id: the approval request, where a person is asked.
        result: the standard's tool_result record, with what a model may see.
    """

    invocation_id: str
    call_id: str
    state: RemoteState
    tool_id: str
    arguments: JsonObject | None = None
    reason: str = ""
    rule: str | None = None
    request_id: str | None = None
    result: JsonObject = Field(default_factory=dict)


class RehearsalAnswer(Message):
    """What becomes of a command on a layer.

    Attributes:
        state: what may be done, or was done.
        reason: why.
        directory: where its layer has to be, if it may run.
        keep_seconds: how long its layer waits for an answer.
        exit_code: exit status of the command, where its changes were committed later.
        stdout: its standard output then, in base64.
        stderr: its standard error then, in base64.
    """

    state: RehearsalState
    reason: str = ""
    directory: str = ""
    keep_seconds: float = 0.0
    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""


class HookAnswer(Message):
    """What the hook of a coding agent prints, and how it ends.

    Attributes:
        exit: its exit status.
        stdout: what it prints on standard output.
        stderr: what it prints on standard error.
    """

    exit: int
    stdout: str
    stderr: str


class Health(Message):
    """How the decision point is.

    Attributes:
        status: ``ok``, or what keeps it from deciding.
        policy_revision: the policy in use.
        tools: how many tools are declared.
    """

    status: str
    policy_revision: str = ""
    tools: int = 0


class Problem(Message):
    """Why a request was refused (RFC 9457). No call may run because of one.

    Attributes:
        type: what kind of problem.
        title: its name for people.
        status: the HTTP status.
        detail: this very problem; it holds nothing of the request but places.
    """

    type: ProblemType
    title: str
    status: int
    detail: str = ""
