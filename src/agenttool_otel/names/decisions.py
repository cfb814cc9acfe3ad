"""Words of permission: what was decided, by whom, on which facts, and why not."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Behavior(StrEnum):
    """What a decision makes of a call (standard, "Behaviors")."""

    ALLOW = "allow"
    """It may run."""
    # "The runtime must ask a user, coordinator, policy tool, or external authority"
    ASK = "ask"
    """A person or another authority has to be asked."""
    # "The call must not execute. Produce a terminal error result"
    DENY = "deny"
    """It must not run."""
    # "The tool delegates final permission resolution to another policy layer"
    PASSTHROUGH = "passthrough"
    """Another policy layer decides; without one the call does not run."""


class GuardrailVerdict(StrEnum):
    """A decision as OpenTelemetry's proposal for guardrails names it."""

    ALLOW = "allow"
    """The call may run."""
    MODIFY = "modify"
    """It may run with other arguments."""
    ESCALATE = "escalate"
    """A person or another authority has to be asked."""
    DENY = "deny"
    """It must not run."""


class GuardrailAction(StrEnum):
    """What was done about a guardrail's verdict."""

    ALLOW = "allow"
    """The call was let through."""
    MODIFY = "modify"
    """It was let through with other arguments."""
    ESCALATE = "escalate"
    """It waits for an answer."""
    BLOCK = "block"
    """It was kept from running."""


class Outcome(StrEnum):
    """What happened to the call after its decision, which is another fact than the decision."""

    EXECUTED = "executed"
    """The tool ran."""
    NOT_EXECUTED = "not_executed"
    """It did not."""
    PENDING = "pending"
    """It waits for an answer."""


class DecisionSource(StrEnum):
    """Who or what made the decision, so that a timeout is never read as a person's refusal."""

    POLICY = "policy"
    """The Rego bundle."""
    USER = "user"
    """A person who answered."""
    DEFAULT = "default"
    """No policy: the call is denied."""
    TIMEOUT = "timeout"
    """No answer came in time."""
    ERROR = "error"
    """The policy could not be evaluated."""
    HOOK = "hook"
    """A hook."""


class PolicyMode(StrEnum):
    """Whether decisions bind."""

    ENFORCE = "enforce"
    """They do."""
    SHADOW = "shadow"
    """They are recorded only."""


class PermissionChannel(StrEnum):
    """Through whom a policy's question is answered (standard, "Required partitions")."""

    APPROVER = "approver"
    """An approver is asked in place; what it leaves open is in the approval store."""
    APPROVAL_STORE = "approval_store"
    """The question waits in the approval store, which others read and answer."""
    HOST = "host"
    """The question waits in this process, for the program itself to answer."""
    NONE = "none"
    """Nobody is asked: decisions are recorded only."""


class ReasonType(StrEnum):
    """What a decision rests on (standard, "Decision reasons")."""

    RULE = "rule"
    """A rule."""
    MODE = "mode"
    """The permission mode."""
    POLICY = "policy"
    """The policy as a whole."""
    HOOK = "hook"
    """A hook."""
    CLASSIFIER = "classifier"
    """A safety classifier."""
    WORKING_DIR = "working_dir"
    """A place outside of the working directories."""
    SANDBOX_OVERRIDE = "sandbox_override"
    """A request to leave the sandbox."""
    SAFETY_CHECK = "safety_check"
    """A check that no rule may switch off."""
    PERMISSION_PROMPT_TOOL = "permission_prompt_tool"
    """A tool that answers permission prompts."""
    ASYNC_AGENT = "async_agent"
    """An agent that runs unattended."""
    SUBCOMMAND_RESULTS = "subcommand_results"
    """The decisions about the parts of a command line."""
    OTHER = "other"
    """None of these."""


class EntryPoint(StrEnum):
    """Rules of the bundle that are queried (docs/policies.md)."""

    DECISION = "data.agenttool.permission.decision"
    """Whether a call may run."""
    PERMITTED = "data.agenttool.permission.permitted"
    """The same where it may run; a bundle need not have it."""
    VISIBLE = "data.agenttool.surface.visible"
    """Whether a tool is on a surface."""
    OBLIGATIONS = "data.agenttool.redaction.obligations"
    """What has to be redacted."""


LOSS_RECORD: Final = "agenttool.loss"
"""The name of a line about the records that a killed process lost."""

SURFACE_REASON: Final = "data.agenttool.surface.reason"
"""The rule with the reason why a tool is hidden; a bundle may omit it."""


class EngineName(StrEnum):
    """What evaluates the policy."""

    EMBEDDED = "embedded"
    """The evaluator in this process."""
    OPA_SERVER = "opa_server"
    """An OPA server over HTTP."""
    NONE = "none"
    """Nothing: every call is denied."""


class FailClosedCause(StrEnum):
    """Why no decision could be had, so that the call was denied; label of the fail-closed metric."""

    UNDEFINED = "undefined"
    """The policy has no answer for this input."""
    MALFORMED = "malformed"
    """The answer has not the form of a decision."""
    UNKNOWN_BEHAVIOR = "unknown_behavior"
    """The answer's behavior is none of the four."""
    ENGINE_ERROR = "engine_error"
    """The evaluation failed."""
    ENGINE_PANIC = "engine_panic"
    """The evaluator crashed."""
    TIMEOUT = "timeout"
    """The evaluation took too long."""
    UNAVAILABLE = "unavailable"
    """The policy server could not be reached."""
    CIRCUIT_OPEN = "circuit_open"
    """The policy server failed so often that it is not asked for a while."""
    BUNDLE_MISSING = "bundle_missing"
    """There is no bundle, or no policy in it."""
    INPUT_INVALID = "input_invalid"
    """The policy input could not be made or does not fit its schema."""
    NO_DECISION = "no_decision"
    """No policy is configured."""
    STORE_UNAVAILABLE = "store_unavailable"
    """The approval store could not be used."""
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    """The decision obliges a sandbox that can't hold this body on this host."""
    INTERNAL = "internal"
    """Anything else that failed."""


class SandboxProfile(StrEnum):
    """What a body may do where a decision obliges a sandbox; the strictest first."""

    READ = "read"
    """It writes nothing but its own temporary directory, and reaches no network."""
    REHEARSE = "rehearse"
    """It writes into a layer that is committed, or thrown away, after a second decision."""
    WRITE = "write"
    """It writes below the session's roots."""


class SandboxNetwork(StrEnum):
    """What a body may reach where a decision obliges a sandbox."""

    NONE = "none"
    """Nothing."""


class EffectOperation(StrEnum):
    """What would happen to a path."""

    CREATED = "created"
    """There is nothing by this name yet."""
    CHANGED = "changed"
    """The content is another, or the time of the last change, or what is there is of another kind."""
    DELETED = "deleted"
    """Nothing is there any more."""
    MODE = "mode"
    """The permission bits are others."""
    OWNER = "owner"
    """The owner or the group is another."""
    LINKED = "linked"
    """A second name of a file, as ``ln a b`` makes."""


class ChangeKind(StrEnum):
    """What a tool is about to change that is no path of this machine."""

    SQL = "sql"
    """Rows of a table of a database."""
    RESOURCE = "resource"
    """A resource of an infrastructure, as Terraform plans it."""
    API = "api"
    """A record of a service that is called."""
    MESSAGE = "message"
    """A message that somebody gets."""
    OTHER = "other"
    """Anything else."""


class ChangeOperation(StrEnum):
    """What a tool is about to do to what it names."""

    CREATED = "created"
    """It is not there yet."""
    CHANGED = "changed"
    """It will be another."""
    DELETED = "deleted"
    """It will be gone."""
    SENT = "sent"
    """It goes to somebody, and can't be taken back."""


class EffectKind(StrEnum):
    """What is at a path; of a deleted path, what was there."""

    FILE = "file"
    """A regular file."""
    DIRECTORY = "directory"
    """A directory."""
    SYMLINK = "symlink"
    """A symbolic link."""
    OTHER = "other"
    """A pipe, a socket or a device, which is not committed."""


class SandboxScope(StrEnum):
    """How much of a body a sandbox holds; ``input.execution.scope``."""

    THREAD = "thread"
    """The whole function, with the programs that it starts."""
    COMMAND = "command"
    """The programs that it starts by ``arun_command``; it starts none otherwise, as its author states."""
    PROCESS = "process"
    """The process that runs it and others before it, such as a server's; the door has started it held."""
    NONE = "none"
    """Nothing: the body runs elsewhere, or bit by bit in its caller's code."""


class ClassifierState(StrEnum):
    """How a check by a classifier ended; in ``pending_classifier_check`` of a decision."""

    COMPLETED = "completed"
    """It answered with a score."""
    TIMED_OUT = "timed_out"
    """It did not answer in time."""
    FAILED = "failed"
    """It raised, or answered with no score."""
    BUSY = "busy"
    """Too many checks were under way."""


class Trust(StrEnum):
    """How far the source of a value is trusted, best first; ``input.facts.provenance[_].trust``."""

    USER = "user"
    """The user wrote it."""
    TRUSTED = "trusted"
    """Only the application writes there."""
    RECORD = "record"
    """The application keeps it about others: an id, a sender."""
    INFERRED = "inferred"
    """It looks like such a field, without being declared."""
    FREE_TEXT = "free_text"
    """Any outsider may have written it."""
    UNKNOWN = "unknown"
    """It was not seen before."""


class StatedWord(StrEnum):
    """A word of ``sources`` that is no glob of tools; ``input.facts.provenance[_].allowed``."""

    USER = "user"
    """The user wrote it."""
    COUNTERPARTIES = "counterparties"
    """It is a known counterparty."""


class Sourced(StrEnum):
    """Whether a value came from where its argument's author lets it come from;
    ``input.facts.provenance[_].sourced``.
    """

    UNSTATED = "unstated"
    """The tool's author stated no sources of the argument."""
    LISTED = "listed"
    """All of it stands in a stated source."""
    OTHER = "other"
    """Some of it stands in no stated source, as far as is known."""


class ArgumentRole(StrEnum):
    """What a value does in a call; ``input.facts.provenance[_].role``."""

    TARGET = "target"
    """It decides whom or what the call reaches."""
    BOUNDED = "bounded"
    """It is one of a few values, such as a number of lines."""
    CONTENT = "content"
    """It is carried: a text, a title."""
