"""Every string that leaves the process, in one module.

Attributes, events, metrics, error classes, states and environment variables: whatever a trace, a
metric, a policy input, a record or a person's dashboard may match on is spelt here once, and
nowhere else. The words come from Agent Tool v0.2.0 (the *standard* below), from the OpenTelemetry
semantic conventions for generative AI, or, under ``agenttool.*``, from this package where neither
has one. Attributes, events and metrics are written from ``semconv/``, which says what each means;
the vocabularies are kept here, and a test holds the enumerations of ``semconv/`` to them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

# the words of the two rooms that stand alone, spelt there
from agenttool_otel.readers.vocabulary import AddressClass as AddressClass
from agenttool_otel.readers.vocabulary import PathAccess as PathAccess
from agenttool_otel.readers.vocabulary import PathClass as PathClass
from agenttool_otel.readers.vocabulary import PathRejection as PathRejection
from agenttool_otel.readers.vocabulary import UrlRejection as UrlRejection
from agenttool_otel.readers.vocabulary import WindowsForm as WindowsForm
from agenttool_otel.redaction.state import RedactionState as RedactionState

SCHEMA_VERSION: Final = "0.2.0"
"""The version of Agent Tool that every record states (standard, "Version compatibility")."""

INSTRUMENTATION_NAME: Final = "agenttool_otel"
"""Name of the OpenTelemetry tracer, meter and logger of this package."""

EVENT_SOURCE: Final = "agenttool-otel"
"""Default ``source`` of a tool_event envelope (standard, event schema)."""


# --- states and vocabularies of the standard: the section of the same name says what each word means ---


class Behavior(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    PASSTHROUGH = "passthrough"


class Outcome(StrEnum):
    """What happened to the call after its decision: the verdict is one fact, its effect another."""

    EXECUTED = "executed"
    NOT_EXECUTED = "not_executed"
    PENDING = "pending"


DecisionSource = StrEnum("DecisionSource", "POLICY USER DEFAULT TIMEOUT ERROR HOOK")
"""Who or what produced the decision, so that a timeout is never read as a person's refusal."""


PolicyMode = StrEnum("PolicyMode", "ENFORCE SHADOW")
"""Whether a decision binds (``enforce``) or is only recorded (``shadow``)."""


ReasonType = StrEnum(
    "ReasonType",
    "RULE MODE POLICY HOOK CLASSIFIER WORKING_DIR SANDBOX_OVERRIDE SAFETY_CHECK PERMISSION_PROMPT_TOOL ASYNC_AGENT "
    "SUBCOMMAND_RESULTS OTHER",
)


ErrorClass = StrEnum(
    "ErrorClass",
    "UNKNOWN_TOOL INVALID_ARGUMENTS SCHEMA_VALIDATION_FAILED SCHEMA_NOT_LOADED PERMISSION_DENIED "
    "APPROVAL_REJECTED POLICY_BLOCKED HOOK_BLOCKED CAPABILITY_GAP SETUP_REQUIRED CREDENTIAL_MISSING "
    "SANDBOX_VIOLATION TIMEOUT RATE_LIMITED DEPENDENCY_UNAVAILABLE EXECUTION_FAILED PARTIAL_FAILURE "
    "RESULT_TOO_LARGE RESULT_REDACTED SIBLING_CANCELED STREAMING_FALLBACK_DISCARDED CANCELED "
    # named by the standard's pipeline contract ("Tool Execution Pipeline") as terminal failures of
    # a phase
    "BLOCKED_TOOL INPUT_MUTATION_FAILED HOOK_FAILED RESULT_MAPPING_FAILED POST_HOOK_FAILED",
)
"""The standard's error classes ("Errors and retries"), and its pipeline contract's additional
terminal failures.
"""


Recoverability = StrEnum(
    "Recoverability",
    "RETRY_SAFE RETRY_LATER CHANGE_ARGUMENTS CHANGE_ARGUMENTS_OR_POLICY DISCOVER_FIRST APPROVAL_NEEDED SETUP_NEEDED "
    "SIBLING_CAUSED NOT_RECOVERABLE UNKNOWN",
)

InvocationStatus = StrEnum(
    "InvocationStatus",
    "PLANNED SELECTED SCHEMA_PARSE_FAILED ARGUMENTS_READY VALIDATION_FAILED PRE_HOOKS_RUNNING AWAITING_APPROVAL "
    "APPROVED DENIED QUEUED RUNNING NEEDS_INPUT PARTIAL_RESULT POST_HOOKS_RUNNING YIELDED SUCCEEDED FAILED CANCELED "
    "TIMED_OUT BLOCKED",
)

Phase = StrEnum(
    "Phase",
    "RESOLVE_TOOL PARSE_SCHEMA VALIDATE_VALUES PREPARE_OBSERVABLE_INPUT PRE_HOOKS PERMISSION SCHEDULE EXECUTE "
    "MAP_RESULT POST_HOOKS PERSIST_RESULT EMIT_TERMINAL",
)

ResultStatus = StrEnum(
    "ResultStatus",
    "SUCCEEDED PARTIAL_SUCCEEDED FAILED DENIED REJECTED REDACTED TOO_LARGE CANCELED TIMED_OUT SYNTHETIC_ERROR "
    "DISCARDED PENDING",
)
"""The states of a result (standard, "Result status"); ``pending`` is ours: an ask that nobody
answered yet.
"""

ContentType = StrEnum(
    "ContentType",
    "TEXT STRUCTURED_CONTENT IMAGE AUDIO VIDEO FILE RESOURCE_LINK EMBEDDED_RESOURCE LOG DIFF ARTIFACT_REF "
    "PERSISTED_OUTPUT_REF HANDOFF_REF",
)


PersistenceStrategy = StrEnum(
    "PersistenceStrategy",
    "INLINE PREVIEW_AND_PERSIST REF_ONLY REDACT DROP_WITH_REASON NEVER_PERSIST",
)


ToolKind = StrEnum(
    "ToolKind",
    "FUNCTION MCP_TOOL OPENAPI_OPERATION NATIVE_TOOL BROWSER_ACTION SHELL_COMMAND CODE_EXECUTION FILE_OPERATION "
    "WEB_SEARCH RETRIEVAL MODEL_TASK SKILL_TOOL PEER_AGENT_TOOL POLICY_CHECK ARTIFACT_OPERATION EVIDENCE_EXPORT "
    "CUSTOM",
)


Lifecycle = StrEnum(
    "Lifecycle", "DRAFT AVAILABLE DISABLED REQUIRES_SETUP DEFERRED DEPRECATED RETIRED"
)


ExecutionKind = StrEnum(
    "ExecutionKind",
    "MCP_SERVER HTTP_API NATIVE_APP LOCAL_PROCESS SHELL BROWSER MODEL_SERVICE PEER_AGENT EMBEDDED_RUNTIME HYBRID",
)


RiskLevel = StrEnum("RiskLevel", "LOW MEDIUM HIGH CRITICAL")


AccessKind = StrEnum(
    "AccessKind",
    "FILE_READ FILE_WRITE NETWORK BROWSER CREDENTIAL PAYMENT EXTERNAL_SEND CODE_EXECUTION",
)


WriteEffect = StrEnum(
    "WriteEffect", "NONE LOCAL_DRAFT LOCAL_PERSISTENT REMOTE_MUTATION IRREVERSIBLE"
)


SchemaVisibility = StrEnum("SchemaVisibility", "LOADED DEFERRED INTERNAL NATIVE_REF")


LoadingState = StrEnum("LoadingState", "LOADED DEFERRED DISCOVERABLE PENDING_PROVIDER UNAVAILABLE")


BlockReason = StrEnum(
    "BlockReason",
    "POLICY_BLOCKED CREDENTIAL_MISSING SETUP_REQUIRED MODEL_UNSUPPORTED RECURSIVE_TOOL_FORBIDDEN ROLE_NOT_ALLOWED "
    "FEATURE_DISABLED DEFERRED_UNTIL_DISCOVERED",
)
"""Why a tool is not on a surface (standard, "Tool surface")."""


QueryType = StrEnum("QueryType", "SELECT KEYWORD")
"""How a tool search selects."""


NextAction = StrEnum("NextAction", "LOAD_SCHEMA_THEN_CALL CALL RETRY_LATER REFINE_QUERY")
"""What to do after a tool search."""


SurfaceScope = StrEnum(
    "SurfaceScope", "TURN TASK SESSION TENANT SKILL PEER_AGENT WORKSPACE ROLE MODEL_REQUEST"
)


HookEvent = StrEnum(
    "HookEvent",
    "PRE_TOOL_USE POST_TOOL_USE POST_TOOL_USE_FAILURE PERMISSION_REQUEST PERMISSION_DECISION RESULT_PERSISTENCE",
)


MutationSource = StrEnum("MutationSource", "HOOK PERMISSION_PROMPT ADAPTER MIGRATION RUNTIME")


ArgumentMode = StrEnum("ArgumentMode", "JSON TEXT FILE MULTIPART STREAM CUSTOM")


InterruptBehavior = StrEnum("InterruptBehavior", "CANCEL BLOCK")
"""What an interrupt does to a running tool; ``block`` where nothing is said."""


SiblingFailurePolicy = StrEnum("SiblingFailurePolicy", "IGNORE CANCEL_SIBLINGS CANCEL_DEPENDENT")
"""What one call's failure does to the others of its batch."""


OrderingPolicy = StrEnum("OrderingPolicy", "PRESERVE_TERMINAL_ORDER ALLOW_UNORDERED SERIAL")
"""How terminal results of a batch are ordered."""


YieldPolicy = StrEnum(
    "YieldPolicy", "PROGRESS_IMMEDIATE_RESULTS_ORDERED ALL_ORDERED UNORDERED_STREAMING"
)
"""How progress and results of a batch are yielded."""


ContextModifierPolicy = StrEnum(
    "ContextModifierPolicy", "ALLOW_SERIAL_ONLY DEFER_UNTIL_BATCH_COMPLETE FORBID"
)
"""Whether tools may change shared context while others run."""


ProgressStatus = StrEnum(
    "ProgressStatus",
    "QUEUED STARTED RUNNING WAITING_FOR_PERMISSION WAITING_FOR_INPUT BACKGROUNDED PARTIAL_RESULT COMPLETED FAILED "
    "CANCELED",
)


TrustLevel = StrEnum("TrustLevel", "TRUSTED UNTRUSTED")
"""Whether what a result says may be taken at its word."""


AbortReason = StrEnum(
    "AbortReason",
    "USER_INTERRUPTION SIBLING_ERROR TIMEOUT FALLBACK RUNTIME_SHUTDOWN ABANDONED UNKNOWN",
)
"""Why a call was stopped (standard, "Cancellation facts")."""


CancelOutcome = StrEnum("CancelOutcome", "CANCELED CANCEL_FAILED")
"""What became of a request to cancel a running call (standard, "Cancellation facts")."""


Ownership = StrEnum("Ownership", "MANAGED MCP CUSTOM")
"""Who fulfils a tool (openboa, "Ownership")."""


ContextOrigin = StrEnum("ContextOrigin", "STATED NONE LOST")
"""Whether the facts of who calls were stated."""


ApprovalStatus = StrEnum(
    "ApprovalStatus", "PENDING APPROVED REJECTED EXPIRED CANCELED CONSUMED INTERRUPTED"
)
"""States of an approval request; ``consumed`` means that its one run was claimed."""


ApprovalConflictReason = StrEnum(
    "ApprovalConflictReason",
    "ARGUMENTS ACTOR TENANT SESSION TOOL DECLARATION PLACES POLICY_REVISION NOT_ANSWERED ALREADY_ANSWERED REJECTED "
    "CONSUMED CANCELED INTERRUPTED EXPIRED REQUESTER ROLE UNIDENTIFIED INVALID_ANSWER DUPLICATE STILL_OPEN "
    "RATE_LIMITED WRONG_CLAIM CORRUPT",
)
"""Why an approval can't be created, answered or used; also the ``reason`` of refusals in the
evidence log.
"""

ApprovalLogKind = StrEnum(
    "ApprovalLogKind",
    "CREATED CREATE_REFUSED ANSWERED ANSWER_REFUSED CLAIMED CLAIM_REFUSED CLAIM_RELEASED FINISHED CANCELED EXPIRED "
    "INTERRUPTED GRANTED GRANT_USED GRANT_REVOKED RESULT_REQUIRED RESULT_COMPLETED RESULT_INTERRUPTED CLAIM_EXTENDED "
    "CLAIM_TAKEN_OVER EXPIRY_REPORTED KEY_ROTATED CLOCK_ACCEPTED",
)


RequiredStatus = StrEnum("RequiredStatus", "WAITING COMPLETED INTERRUPTED")
"""States of a custom tool's call that the approval store keeps until its result arrives."""


# --- policy ---------------------------------------------------------------------------------------


class EntryPoint(StrEnum):
    """Rules of the bundle that are queried (design, "Policy contract")."""

    DECISION = "data.agenttool.permission.decision"
    VISIBLE = "data.agenttool.surface.visible"
    OBLIGATIONS = "data.agenttool.redaction.obligations"


SURFACE_REASON: Final = "data.agenttool.surface.reason"
"""Rule that says why a tool is not shown; a bundle may do without it."""


EngineName = StrEnum("EngineName", "EMBEDDED OPA_SERVER NONE")


FailClosedCause = StrEnum(
    "FailClosedCause",
    "UNDEFINED MALFORMED UNKNOWN_BEHAVIOR ENGINE_ERROR ENGINE_PANIC TIMEOUT UNAVAILABLE CIRCUIT_OPEN BUNDLE_MISSING "
    "INPUT_INVALID NO_DECISION STORE_UNAVAILABLE INTERNAL",
)
"""Why a decision could not be had and the call was denied for that; label of the
fail-closed metric.
"""


# --- facts ----------------------------------------------------------------------------------------


Trust = StrEnum("Trust", "USER TRUSTED RECORD INFERRED FREE_TEXT UNKNOWN")
"""How far the source of a value is trusted, best first; ``input.facts.provenance[_].trust``."""


ArgumentRole = StrEnum("ArgumentRole", "TARGET BOUNDED CONTENT")
"""What a value does in a call; ``input.facts.provenance[_].role``."""


# --- telemetry ------------------------------------------------------------------------------------

OPERATION_EXECUTE_TOOL: Final = "execute_tool"
"""``gen_ai.operation.name`` and the first word of the span's name."""


# --- generated from semconv/ by `make docs`; edit there -------------------------------------------


class GenAI:
    """Attributes of OpenTelemetry's GenAI conventions that a tool span uses."""

    OPERATION_NAME: Final = "gen_ai.operation.name"
    TOOL_NAME: Final = "gen_ai.tool.name"
    TOOL_TYPE: Final = "gen_ai.tool.type"
    TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
    TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
    TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
    TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
    AGENT_NAME: Final = "gen_ai.agent.name"
    CONVERSATION_ID: Final = "gen_ai.conversation.id"
    ERROR_TYPE: Final = "error.type"


class Exc:
    """The event of a tool's own exception; its message only where content is captured."""

    TYPE: Final = "exception.type"
    MESSAGE: Final = "exception.message"
    EVENT: Final = "exception"


class Attr:
    """Attributes of spans and events: flat primitives, by which backends search and group."""

    APPROVAL_STATUS: Final = "agenttool.approval.status"
    APPROVAL_ID: Final = "agenttool.approval.id"
    APPROVAL_GRANT_ID: Final = "agenttool.approval.grant_id"
    APPROVAL_WAIT: Final = "agenttool.approval.wait_s"
    ERROR_CODE: Final = "agenttool.error.code"
    ERROR_RECOVERABILITY: Final = "agenttool.error.recoverability"
    ERROR_NATIVE_TYPE: Final = "agenttool.error.native_type"
    HOOK_ID: Final = "agenttool.hook.id"
    HOOK_EVENT: Final = "agenttool.hook.event"
    HOOK_OUTPUTS: Final = "agenttool.hook.outputs"
    HOOK_ERROR: Final = "agenttool.hook.error"
    MUTATION_ID: Final = "agenttool.mutation.id"
    MUTATION_SOURCE: Final = "agenttool.mutation.source"
    MUTATION_SOURCE_REF: Final = "agenttool.mutation.source_ref"
    MUTATION_CHANGED_FIELDS: Final = "agenttool.mutation.changed_fields"
    MUTATION_DIGEST_FROM: Final = "agenttool.mutation.digest.from"
    MUTATION_DIGEST_TO: Final = "agenttool.mutation.digest.to"
    INVOCATION_ID: Final = "agenttool.invocation.id"
    INVOCATION_STATUS: Final = "agenttool.invocation.status"
    INVOCATION_ATTEMPTS: Final = "agenttool.invocation.attempts"
    INVOCATION_RUN_SECONDS: Final = "agenttool.invocation.run_s"
    INVOCATION_RESUMED: Final = "agenttool.invocation.resumed"
    ABORT_REASON: Final = "agenttool.abort_reason"
    PHASE: Final = "agenttool.phase"
    PROGRESS_SEQUENCE: Final = "agenttool.progress.sequence"
    PROGRESS_STATUS: Final = "agenttool.progress.status"
    PROGRESS_PERCENT: Final = "agenttool.progress.percent"
    ATTEMPT_NUMBER: Final = "agenttool.attempt.number"
    ATTEMPT_DELAY: Final = "agenttool.attempt.delay_s"
    SESSION_ID: Final = "agenttool.session.id"
    ACTOR_ID: Final = "agenttool.actor.id"
    TENANT_ID: Final = "agenttool.tenant.id"
    PERMISSION_BEHAVIOR: Final = "agenttool.permission.behavior"
    PERMISSION_OUTCOME: Final = "agenttool.permission.outcome"
    PERMISSION_MODE: Final = "agenttool.permission.mode"
    PERMISSION_SOURCE: Final = "agenttool.permission.source"
    PERMISSION_REASON_TYPE: Final = "agenttool.permission.reason.type"
    PERMISSION_REASON_MESSAGE: Final = "agenttool.permission.reason.message"
    PERMISSION_RULE: Final = "agenttool.permission.rule"
    PERMISSION_RULES: Final = "agenttool.permission.rules"
    PERMISSION_ORIGINS: Final = "agenttool.permission.origins"
    PERMISSION_DECISION_ID: Final = "agenttool.permission.decision_id"
    PERMISSION_SHADOW_BEHAVIOR: Final = "agenttool.permission.shadow.behavior"
    PERMISSION_SHADOW_RULE: Final = "agenttool.permission.shadow.rule"
    PERMISSION_FAIL_CLOSED: Final = "agenttool.permission.fail_closed.cause"
    PERMISSION_BLOCKED_ARGUMENT: Final = "agenttool.permission.blocked.argument"
    PERMISSION_BLOCKED_PATH: Final = "agenttool.permission.blocked.path"
    PERMISSION_DURATION: Final = "agenttool.permission.duration_s"
    POLICY_ENGINE: Final = "agenttool.policy.engine"
    POLICY_REVISION: Final = "agenttool.policy.revision"
    POLICY_CACHED: Final = "agenttool.policy.cached"
    POLICY_OPA_DECISION_ID: Final = "agenttool.policy.opa.decision_id"
    REDACTION_STATE: Final = "agenttool.redaction.state"
    REDACTION_COUNT: Final = "agenttool.redaction.count"
    REDACTION_KIND: Final = "agenttool.redaction.kinds"
    REDACTION_POINTERS: Final = "agenttool.redaction.pointers"
    REDACTION_RULES: Final = "agenttool.redaction.rules"
    REDACTION_TARGET: Final = "agenttool.redaction.target"
    RESULT_SIZE_BYTES: Final = "agenttool.result.size_bytes"
    RESULT_STATUS: Final = "agenttool.result.status"
    RESULT_PERSISTENCE: Final = "agenttool.result.persistence"
    RESULT_ITEMS: Final = "agenttool.result.items"
    RESULT_PREVIEW_SIZE_BYTES: Final = "agenttool.result.preview_size_bytes"
    RESULT_REF: Final = "agenttool.result.ref"
    RESULT_DIGEST: Final = "agenttool.result.digest"
    RESULT_REASON: Final = "agenttool.result.reason"
    SCHEMA_VERSION: Final = "agenttool.schema_version"
    TOOL_ID: Final = "agenttool.tool.id"
    TOOL_NAMESPACE: Final = "agenttool.tool.namespace"
    TOOL_KIND: Final = "agenttool.tool.kind"
    TOOL_RISK_LEVEL: Final = "agenttool.tool.risk_level"
    SURFACE_ID: Final = "agenttool.surface.id"
    SURFACE_SCOPE: Final = "agenttool.surface.scope"
    SURFACE_LOADED: Final = "agenttool.surface.loaded"
    SURFACE_DEFERRED: Final = "agenttool.surface.deferred"


class Label:
    """Metric labels that are no span attributes; never an id, a digest or a message."""

    CACHE_RESULT: Final = "agenttool.policy.cache.result"
    RELOAD_RESULT: Final = "agenttool.policy.reload.result"
    REDACTION_KIND: Final = "agenttool.redaction.kind"
    STORE: Final = "agenttool.persistence.store"
    SIGNAL: Final = "agenttool.telemetry.signal"


class Event:
    """Event classes of the standard, and this package's own in its style."""

    DECLARED: Final = "tool.declared"
    SURFACE_CREATED: Final = "tool.surface.created"
    SURFACE_UPDATED: Final = "tool.surface.updated"
    DEFERRED_DISCOVERED: Final = "tool.deferred.discovered"
    DEFERRED_LOADED: Final = "tool.deferred.loaded"
    INVOCATION_PLANNED: Final = "tool.invocation.planned"
    INVOCATION_SELECTED: Final = "tool.invocation.selected"
    INVOCATION_ARGUMENTS_READY: Final = "tool.invocation.arguments_ready"
    INVOCATION_VALIDATION_FAILED: Final = "tool.invocation.validation_failed"
    HOOK_PRE_STARTED: Final = "tool.hook.pre.started"
    HOOK_PRE_COMPLETED: Final = "tool.hook.pre.completed"
    PERMISSION_REQUESTED: Final = "tool.permission.requested"
    PERMISSION_DECIDED: Final = "tool.permission.decided"
    INVOCATION_QUEUED: Final = "tool.invocation.queued"
    INVOCATION_STARTED: Final = "tool.invocation.started"
    INVOCATION_PROGRESS: Final = "tool.invocation.progress"
    INVOCATION_PARTIAL_RESULT: Final = "tool.invocation.partial_result"
    HOOK_POST_STARTED: Final = "tool.hook.post.started"
    HOOK_POST_COMPLETED: Final = "tool.hook.post.completed"
    RESULT_PERSISTED: Final = "tool.result.persisted"
    INVOCATION_YIELDED: Final = "tool.invocation.yielded"
    INVOCATION_SUCCEEDED: Final = "tool.invocation.succeeded"
    INVOCATION_FAILED: Final = "tool.invocation.failed"
    INVOCATION_CANCELED: Final = "tool.invocation.canceled"
    INVOCATION_TIMED_OUT: Final = "tool.invocation.timed_out"
    RESULT_CREATED: Final = "tool.result.created"
    RESULT_REDACTED: Final = "tool.result.redacted"
    INPUT_MUTATED: Final = "tool.input.mutated"
    ARGUMENTS_REDACTED: Final = "tool.arguments.redacted"
    APPROVAL_REQUESTED: Final = "tool.approval.requested"
    APPROVAL_ANSWERED: Final = "tool.approval.answered"
    INVOCATION_RETRIED: Final = "tool.invocation.retried"
    CANCEL_REQUESTED: Final = "tool.invocation.cancel_requested"
    CANCEL_ACKNOWLEDGED: Final = "tool.invocation.cancel_acknowledged"
    CANCEL_FAILED: Final = "tool.invocation.cancel_failed"
    PERSISTENCE_FAILED: Final = "tool.result.persistence_failed"
    REDACTION_FAILED: Final = "tool.redaction.failed"
    POLICY_RELOADED: Final = "tool.policy.reloaded"


class Metric:
    """Metric names."""

    DURATION: Final = "gen_ai.execute_tool.duration"
    DECISIONS: Final = "agenttool.permission.decisions"
    DECISION_DURATION: Final = "agenttool.permission.duration"
    FAIL_CLOSED: Final = "agenttool.permission.fail_closed"
    SHADOW_DIFFERENCES: Final = "agenttool.permission.shadow_differences"
    APPROVAL_WAIT: Final = "agenttool.approval.wait"
    APPROVALS_PENDING: Final = "agenttool.approvals.pending"
    APPROVALS_UNSTORED: Final = "agenttool.approvals.unstored"
    RESULT_SIZE: Final = "agenttool.result.size"
    REDACTIONS: Final = "agenttool.redactions"
    REDACTION_FAILURES: Final = "agenttool.redaction.failures"
    PERSISTENCE_FAILURES: Final = "agenttool.persistence.failures"
    POLICY_RELOADS: Final = "agenttool.policy.reloads"
    CACHE_LOOKUPS: Final = "agenttool.policy.cache.lookups"
    TELEMETRY_DROPPED: Final = "agenttool.telemetry.dropped"


# --- end of what is generated ---------------------------------------------------------------------


class Env:
    """Environment variables that the package reads (context/settings.py documents each)."""

    PREFIX: Final = "AGENTTOOL_"
    CAPTURE_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    APPROVALS_URL: Final = "AGENTTOOL_APPROVALS_URL"
    APPROVALS_KEY: Final = "AGENTTOOL_APPROVALS_KEY"
    OPA_PROGRAM: Final = "AGENTTOOL_OPA"
