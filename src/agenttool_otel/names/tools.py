"""Words of a tool's declaration, interface, surface and scheduling."""

from __future__ import annotations

from enum import StrEnum


class ToolKind(StrEnum):
    """What a tool is (standard, "Tool kinds")."""

    FUNCTION = "function"
    """A function of the application."""
    MCP_TOOL = "mcp_tool"
    """A tool of an MCP server."""
    OPENAPI_OPERATION = "openapi_operation"
    """An operation that an OpenAPI document describes."""
    NATIVE_TOOL = "native_tool"
    """A tool that the model's provider or a native application brings."""
    BROWSER_ACTION = "browser_action"
    """A step in a browser, such as a click."""
    SHELL_COMMAND = "shell_command"
    """A command line that a shell runs."""
    CODE_EXECUTION = "code_execution"
    """A program text that an interpreter runs."""
    FILE_OPERATION = "file_operation"
    """Reading or changing files."""
    WEB_SEARCH = "web_search"
    """A search of the web."""
    RETRIEVAL = "retrieval"
    """A look-up in a knowledge store."""
    MODEL_TASK = "model_task"
    """A task that another model does, such as making an image."""
    SKILL_TOOL = "skill_tool"
    """A tool that an activated skill brings."""
    PEER_AGENT_TOOL = "peer_agent_tool"
    """A capability of another agent."""
    POLICY_CHECK = "policy_check"
    """A question to a policy."""
    ARTIFACT_OPERATION = "artifact_operation"
    """Making or changing a durable artifact."""
    EVIDENCE_EXPORT = "evidence_export"
    """Handing evidence out for an audit."""
    # "custom SHOULD be a compatibility fallback, not the default for domain tools"
    CUSTOM = "custom"
    """None of the others; a fallback, not a default."""


class Lifecycle(StrEnum):
    """Where a declaration stands (standard, "Lifecycle")."""

    DRAFT = "draft"
    """It is being written."""
    AVAILABLE = "available"
    """The tool can be selected and called."""
    DISABLED = "disabled"
    """The tool exists, and can't be selected in this context."""
    REQUIRES_SETUP = "requires_setup"
    """Credentials, a project or a server are missing."""
    DEFERRED = "deferred"
    """The tool can be found by name or search; its schema is not loaded yet."""
    DEPRECATED = "deprecated"
    """Old callers may use it, new ones should not."""
    RETIRED = "retired"
    """Only its identity remains, for old references."""


class ExecutionKind(StrEnum):
    """What runs a tool (standard, "Execution kinds")."""

    MCP_SERVER = "mcp_server"
    """An MCP server."""
    HTTP_API = "http_api"
    """A remote API over HTTP."""
    NATIVE_APP = "native_app"
    """An application of the operating system."""
    LOCAL_PROCESS = "local_process"
    """A process on this machine."""
    SHELL = "shell"
    """A shell."""
    BROWSER = "browser"
    """A browser."""
    MODEL_SERVICE = "model_service"
    """A model behind a service."""
    PEER_AGENT = "peer_agent"
    """Another agent."""
    EMBEDDED_RUNTIME = "embedded_runtime"
    """This process."""
    HYBRID = "hybrid"
    """Several of these."""


class RiskLevel(StrEnum):
    """How much harm a call may do (standard, "Permission Profile")."""

    LOW = "low"
    """Little, and easily undone."""
    MEDIUM = "medium"
    """Some."""
    HIGH = "high"
    """Much."""
    CRITICAL = "critical"
    """So much that no call should run unseen."""


class AccessKind(StrEnum):
    """What a tool may reach (standard, "Permission Profile")."""

    FILE_READ = "file_read"
    """It reads files."""
    FILE_WRITE = "file_write"
    """It makes, changes or deletes files."""
    NETWORK = "network"
    """It opens connections."""
    BROWSER = "browser"
    """It acts in a browser."""
    CREDENTIAL = "credential"
    """It reads or uses credentials."""
    PAYMENT = "payment"
    """It moves money."""
    EXTERNAL_SEND = "external_send"
    """It sends something to people or systems outside."""
    CODE_EXECUTION = "code_execution"
    """It runs code."""


class WriteEffect(StrEnum):
    """What a call may change (standard, "Permission Profile")."""

    NONE = "none"
    """Nothing."""
    LOCAL_DRAFT = "local_draft"
    """A draft on this machine."""
    LOCAL_PERSISTENT = "local_persistent"
    """Something on this machine that stays."""
    REMOTE_MUTATION = "remote_mutation"
    """Something on another system."""
    IRREVERSIBLE = "irreversible"
    """Something that can't be undone."""


class SchemaVisibility(StrEnum):
    """Who sees a schema or a field (standard, "Model schema vs runtime schema"; schema of
    ``deferred_tool_ref``).
    """

    LOADED = "loaded"
    """The model has it."""
    DEFERRED = "deferred"
    """It can be loaded, and is not yet."""
    INTERNAL = "internal"
    """The runtime alone has it; a model must not produce it."""
    NATIVE_REF = "native_ref"
    """It is kept by the native protocol and referred to."""


class LoadingState(StrEnum):
    """How far a deferred tool is loaded (standard, "Loading states")."""

    LOADED = "loaded"
    """The full schema is with the model."""
    DEFERRED = "deferred"
    """Its name or hint is known; the schema is not loaded."""
    DISCOVERABLE = "discoverable"
    """A search can find it."""
    PENDING_PROVIDER = "pending_provider"
    """Its server or provider is still connecting."""
    UNAVAILABLE = "unavailable"
    """It can't be loaded in this context."""


class BlockReason(StrEnum):
    """Why a tool is not on a surface (standard, "Tool surface")."""

    POLICY_BLOCKED = "policy_blocked"
    """The policy hides it."""
    CREDENTIAL_MISSING = "credential_missing"
    """A credential that it needs is missing."""
    SETUP_REQUIRED = "setup_required"
    """It is not set up."""
    MODEL_UNSUPPORTED = "model_unsupported"
    """The model lacks what it needs."""
    RECURSIVE_TOOL_FORBIDDEN = "recursive_tool_forbidden"
    """A tool that starts agents is not for a sub-agent."""
    ROLE_NOT_ALLOWED = "role_not_allowed"
    """The caller's role may not use it."""
    FEATURE_DISABLED = "feature_disabled"
    """A feature that it belongs to is off."""
    DEFERRED_UNTIL_DISCOVERED = "deferred_until_discovered"
    """It is left out until a search asks for it."""


class QueryType(StrEnum):
    """How a tool search selects (standard, "Search result")."""

    SELECT = "select"
    """By exact names: ``select:read_file``."""
    KEYWORD = "keyword"
    """By words of the name, namespace, description and hints."""


class NextAction(StrEnum):
    """What to do after a tool search (standard, "Search result")."""

    LOAD_SCHEMA_THEN_CALL = "load_schema_then_call"
    """Load the schema of a match, then call it."""
    CALL = "call"
    """Call a match; its schema is loaded."""
    RETRY_LATER = "retry_later"
    """Search again when the provider is connected."""
    REFINE_QUERY = "refine_query"
    """Search with other words."""


class SurfaceScope(StrEnum):
    """What a surface is made for (standard, "Tool surface")."""

    TURN = "turn"
    """One turn of the conversation."""
    TASK = "task"
    """One task."""
    SESSION = "session"
    """One session."""
    TENANT = "tenant"
    """All sessions of a tenant."""
    SKILL = "skill"
    """The time that a skill is active."""
    PEER_AGENT = "peer_agent"
    """Another agent."""
    WORKSPACE = "workspace"
    """One workspace."""
    ROLE = "role"
    """One role of callers."""
    MODEL_REQUEST = "model_request"
    """One request to the model."""


class ArgumentMode(StrEnum):
    """In which form arguments come (standard, "Input contract")."""

    JSON = "json"
    """As a JSON object."""
    TEXT = "text"
    """As plain text."""
    FILE = "file"
    """As a file."""
    MULTIPART = "multipart"
    """As several parts."""
    STREAM = "stream"
    """As a stream."""
    CUSTOM = "custom"
    """In a form of the tool's own."""


class Ownership(StrEnum):
    """Who fulfils a tool (openboa, "Ownership")."""

    MANAGED = "managed"
    """The application, in this process."""
    MCP = "mcp"
    """An MCP server."""
    CUSTOM = "custom"
    """A system or person outside: the call waits until its result is handed in."""


class InterruptBehavior(StrEnum):
    """What an interrupt does to a running tool (standard, "Interrupt behavior")."""

    CANCEL = "cancel"
    """The tool is stopped."""
    # "If omitted, use block"
    BLOCK = "block"
    """The tool runs on, and what depends on it waits; the default."""


class SiblingFailurePolicy(StrEnum):
    """What the failure of a call does to the others of its batch (standard, "Sibling failure")."""

    IGNORE = "ignore"
    """Nothing."""
    CANCEL_SIBLINGS = "cancel_siblings"
    """All that still run are canceled."""
    CANCEL_DEPENDENT = "cancel_dependent"
    """Only those that depend on it are canceled."""


class OrderingPolicy(StrEnum):
    """In which order a batch returns its terminal results (schema of ``tool_scheduler_policy``)."""

    PRESERVE_TERMINAL_ORDER = "preserve_terminal_order"
    """In the order of the calls."""
    ALLOW_UNORDERED = "allow_unordered"
    """As they come."""
    SERIAL = "serial"
    """In the order of the calls, which run one after the other."""


class YieldPolicy(StrEnum):
    """When a batch yields progress and results (schema of ``tool_scheduler_policy``)."""

    PROGRESS_IMMEDIATE_RESULTS_ORDERED = "progress_immediate_results_ordered"
    """Progress at once, results in the order of the calls."""
    ALL_ORDERED = "all_ordered"
    """Progress and results in the order of the calls."""
    UNORDERED_STREAMING = "unordered_streaming"
    """Both at once."""


class ContextModifierPolicy(StrEnum):
    """Whether tools may change shared context while others run (standard, "Context modifiers")."""

    ALLOW_SERIAL_ONLY = "allow_serial_only"
    """Only where the calls run one after the other."""
    DEFER_UNTIL_BATCH_COMPLETE = "defer_until_batch_complete"
    """The changes are applied after the batch."""
    FORBID = "forbid"
    """They may not."""
