"""Words of one call on its way: its states and phases, its hooks, progress and end."""

from __future__ import annotations

from enum import StrEnum


class InvocationStatus(StrEnum):
    """States of a call (standard, "Invocation lifecycle")."""

    PLANNED = "planned"
    """The call was requested."""
    SELECTED = "selected"
    """Its tool was found on the surface."""
    SCHEMA_PARSE_FAILED = "schema_parse_failed"
    """Its arguments don't fit the schema that the model sees."""
    ARGUMENTS_READY = "arguments_ready"
    """Its arguments are checked."""
    VALIDATION_FAILED = "validation_failed"
    """The tool's own check refused the arguments."""
    PRE_HOOKS_RUNNING = "pre_hooks_running"
    """Hooks run before the decision."""
    AWAITING_APPROVAL = "awaiting_approval"
    """A person or another authority is asked."""
    APPROVED = "approved"
    """It may run."""
    DENIED = "denied"
    """It must not run."""
    QUEUED = "queued"
    """It waits for its turn."""
    RUNNING = "running"
    """The tool runs."""
    NEEDS_INPUT = "needs_input"
    """The tool waits for input."""
    PARTIAL_RESULT = "partial_result"
    """A part of the result is there."""
    POST_HOOKS_RUNNING = "post_hooks_running"
    """Hooks run after the tool."""
    YIELDED = "yielded"
    """The result was handed to the caller."""
    SUCCEEDED = "succeeded"
    """The tool did what was asked."""
    FAILED = "failed"
    """The tool or a phase failed."""
    CANCELED = "canceled"
    """The call was canceled."""
    TIMED_OUT = "timed_out"
    """The time of the call was over."""
    BLOCKED = "blocked"
    """A hook, the policy or the surface stopped the call."""


class Phase(StrEnum):
    """Phases of a call, in their order (standard, "Tool Execution Pipeline")."""

    RESOLVE_TOOL = "resolve_tool"
    """Find the tool on the surface, by name or alias."""
    PARSE_SCHEMA = "parse_schema"
    """Check the arguments against the schema."""
    VALIDATE_VALUES = "validate_values"
    """Let the tool check the values."""
    PREPARE_OBSERVABLE_INPUT = "prepare_observable_input"
    """Copy the input for those who watch."""
    PRE_HOOKS = "pre_hooks"
    """Run the hooks before the decision."""
    PERMISSION = "permission"
    """Decide."""
    SCHEDULE = "schedule"
    """Queue the call or let it run."""
    EXECUTE = "execute"
    """Run the tool."""
    MAP_RESULT = "map_result"
    """Turn what it returned into the model's content."""
    POST_HOOKS = "post_hooks"
    """Run the hooks after the tool."""
    PERSIST_RESULT = "persist_result"
    """Keep, shorten, redact or link the result."""
    EMIT_TERMINAL = "emit_terminal"
    """Emit the result and the last event."""


class HookEvent(StrEnum):
    """When a hook runs (standard, "Hook events")."""

    PRE_TOOL_USE = "pre_tool_use"
    """Before the decision."""
    POST_TOOL_USE = "post_tool_use"
    """After the tool ran."""
    POST_TOOL_USE_FAILURE = "post_tool_use_failure"
    """After the tool failed."""
    PERMISSION_REQUEST = "permission_request"
    """Before a person is asked."""
    PERMISSION_DECISION = "permission_decision"
    """When the decision is made."""
    RESULT_PERSISTENCE = "result_persistence"
    """When it is decided how the result is kept."""


class MutationSource(StrEnum):
    """What replaced an input (standard, "Mutation rule")."""

    HOOK = "hook"
    """A hook."""
    PERMISSION_PROMPT = "permission_prompt"
    """The person who answered."""
    ADAPTER = "adapter"
    """The adapter of a framework or protocol."""
    MIGRATION = "migration"
    """A migration of old arguments."""
    RUNTIME = "runtime"
    """This package: defaults and internal fields."""


class ProgressStatus(StrEnum):
    """What the call does while it is under way (standard, "Progress classes")."""

    QUEUED = "queued"
    """It waits for its turn."""
    STARTED = "started"
    """It has started."""
    RUNNING = "running"
    """It runs."""
    WAITING_FOR_PERMISSION = "waiting_for_permission"
    """It waits for a decision."""
    WAITING_FOR_INPUT = "waiting_for_input"
    """It waits for input."""
    BACKGROUNDED = "backgrounded"
    """It runs on in the background."""
    PARTIAL_RESULT = "partial_result"
    """A part of the result is there."""
    COMPLETED = "completed"
    """It is done."""
    FAILED = "failed"
    """It failed."""
    CANCELED = "canceled"
    """It was canceled."""


class AbortReason(StrEnum):
    """Why a call was stopped (standard, "Cancellation facts")."""

    USER_INTERRUPTION = "user_interruption"
    """A person interrupted it."""
    # "A canceled sibling SHOULD receive a synthetic result with `abort_reason`, not disappear"
    SIBLING_ERROR = "sibling_error"
    """Another call of its batch failed."""
    TIMEOUT = "timeout"
    """Its time was over."""
    FALLBACK = "fallback"
    """The model's answer was dropped for another."""
    RUNTIME_SHUTDOWN = "runtime_shutdown"
    """The process is ending."""
    # a generator that its consumer leaves: for row in rows(): break
    ABANDONED = "abandoned"
    """Its result is no longer read."""
    UNKNOWN = "unknown"
    """No reason was given."""


class CancelOutcome(StrEnum):
    """What became of a request to cancel a running call (standard, "Cancellation facts")."""

    CANCELED = "canceled"
    """The tool was stopped."""
    CANCEL_FAILED = "cancel_failed"
    """The tool could not be stopped."""


class ContextOrigin(StrEnum):
    """Whether the application stated who calls; a policy may refuse calls without an actor."""

    STATED = "stated"
    """It did."""
    NONE = "none"
    """No ``agent_context`` is open."""
    LOST = "lost"
    """One was open, and the call runs where it can't be seen, such as in a new thread."""
