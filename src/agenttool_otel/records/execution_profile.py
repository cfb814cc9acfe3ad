"""tool_execution_profile: how a tool is run, and what it can't do (standard, "Execution
Profile").
"""

from __future__ import annotations

from pydantic import Field

from agenttool_otel.names import ExecutionKind
from agenttool_otel.records.base import JsonObject, Record
from agenttool_otel.records.external_mapping import ExternalMapping


class ExecutionProfile(Record):
    """How a tool is run; what nobody stated is unsupported, or not said.

    Attributes:
        execution_profile_id: id.
        execution_kind: one of ExecutionKind or a producer's own word.
        supports_progress: emits progress records.
        supports_cancel: can be cancelled while running.
        supports_resume: can continue after a pause.
        supports_retries: may be run again by the wrapper after a retryable failure.
        supports_partial_results: streams.
        supports_background: may outlive its call.
        supports_artifacts: creates durable deliverables.
        supports_context_modifiers: changes shared context.
        supports_persistence: its results may be persisted.
        supports_credential_delegation: runs with another's credentials.
        supports_offline: works without a network.
        sandboxed: runs in a sandbox.
        sandbox_profile: name of that sandbox.
        timeout_ms: limit of one attempt, in milliseconds.
        retry: ``max_attempts``, ``initial_delay_ms``, ``max_delay_ms``, ``multiplier``,
          ``retry_on`` (error classes).
        external_mappings: native ids.
    """

    execution_profile_id: str
    execution_kind: str = ExecutionKind.EMBEDDED_RUNTIME.value
    supports_progress: bool = False
    supports_cancel: bool = False
    supports_resume: bool = False
    supports_retries: bool = False
    supports_partial_results: bool = False
    # None is "not stated"; "If a capability is unsupported, say so explicitly" is False
    supports_background: bool | None = None
    supports_artifacts: bool | None = None
    supports_context_modifiers: bool | None = None
    supports_persistence: bool = True
    supports_credential_delegation: bool | None = None
    supports_offline: bool | None = None
    sandboxed: bool = False
    sandbox_profile: str | None = None
    timeout_ms: int | None = None
    retry: JsonObject | None = None
    external_mappings: list[ExternalMapping] = Field(default_factory=list)
