"""tool_invocation: one requested or executed call, visible whatever became of it (standard,
"Invocation Lifecycle").
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SerializeAsAny

from agenttool_otel.names import InvocationStatus
from agenttool_otel.records.base import (
    OPEN,
    JsonObject,
    JsonValue,
    Part,
    Record,
    Timestamp,
    utc_now,
)
from agenttool_otel.records.external_mapping import ExternalMapping


class StatusTransition(Part):
    """One step of an invocation.

    Attributes:
        status: the state that was entered.
        at: when.
    """

    status: Annotated[InvocationStatus, OPEN] = InvocationStatus.PLANNED
    at: Timestamp = Field(default_factory=utc_now)


class InvocationRecord(Record):
    """One call as the standard records it; inputs are present only where capture was asked for, and
    redacted.

    Attributes:
        invocation_id: sortable id, kept across pause and resume.
        tool_id: the tool.
        surface_id: the surface it was selected from.
        native_call_id: the model's or framework's id of the call.
        status: current state.
        model_input: arguments as received.
        model_input_ref: digest reference to them.
        observable_input: normalised copy for hooks and people.
        observable_input_ref: reference to it.
        permission_input: what was decided.
        permission_input_ref: reference to it.
        call_input: what the executor got.
        call_input_ref: reference to it.
        actor_ref: who called.
        runtime_refs: session, process, sandbox.
        policy_refs: policies and revisions.
        permission_decision_refs: ids of the decisions, oldest first.
        hook_refs: ids of the hook records.
        evidence_refs: evidence rows.
        telemetry_refs: trace and span ids.
        artifact_refs: deliverables.
        approval_request_ref: the approval request, if one was made.
        scheduler: what a scheduler needs of the call, and its state in a queue.
        cancellation: the request to stop it: asked, acknowledged and its outcome.
        external_mappings: native ids of this very call.
        scheduler_policy_ref: the batch's policy.
        status_transitions: every state with its time.
        created_at: when the call was received.
        started_at: when the tool started to run.
        ended_at: when the call ended.
    """

    invocation_id: str
    tool_id: str
    surface_id: str | None = None
    native_call_id: str | None = None
    status: Annotated[InvocationStatus, OPEN]
    model_input: JsonValue = None
    model_input_ref: str | None = None
    observable_input: JsonValue = None
    observable_input_ref: str | None = None
    permission_input: JsonValue = None
    permission_input_ref: str | None = None
    call_input: JsonValue = None
    call_input_ref: str | None = None
    actor_ref: str | None = None
    runtime_refs: list[str] = Field(default_factory=list)
    policy_refs: list[str] = Field(default_factory=list)
    permission_decision_refs: list[str] = Field(default_factory=list)
    hook_refs: list[str] = Field(default_factory=list)
    evidence_refs: list[str] = Field(default_factory=list)
    telemetry_refs: list[JsonObject] = Field(default_factory=list)
    artifact_refs: list[JsonObject] = Field(default_factory=list)
    approval_request_ref: str | None = None
    scheduler: JsonObject | None = None
    cancellation: JsonObject | None = None
    external_mappings: list[SerializeAsAny[ExternalMapping]] = Field(default_factory=list)
    scheduler_policy_ref: str | None = None
    # "preserve status transitions with timestamps"
    status_transitions: list[StatusTransition] = Field(default_factory=list)
    created_at: Timestamp = Field(default_factory=utc_now)
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
