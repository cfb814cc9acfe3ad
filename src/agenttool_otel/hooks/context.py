"""What a hook is given: facts and copies. Nothing that it does to them reaches the call; only its
outputs do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agenttool_otel.names import Behavior, HookEvent


@dataclass(frozen=True, slots=True)
class HookContext:
    """The call as one hook sees it. Every hook gets copies of its own.

    Attributes:
        event: which of the six kinds this is.
        hook_id: the hook's id.
        invocation_id: the call.
        native_call_id: the model's or framework's id of the call.
        tool_id: the tool.
        tool_name: the name that models call.
        namespace: its namespace.
        tool_kind: its kind.
        ownership: managed, mcp or custom.
        risk_level: its declared risk.
        actor: who calls.
        tenant: on whose behalf.
        roles: the actor's roles.
        session_id: the session.
        mode: the session's mode.
        labels: the session's labels.
        resumed: the call continues after a pause.
        model_input: arguments as received.
        arguments: arguments as they would run: defaults filled in, earlier changes included,
          internal ones left out.
        decision: behavior of the decision, from ``permission_request`` on.
        rule: the rule that decided.
        message: why, in the policy's words.
        request: the approval request as data, for ``permission_request``.
        status: the result's status, after the tool.
        result: what the tool returned, as a copy (as JSON data where it can't be copied), bounded
            as ``records.to_json_value`` is.
        size: bytes of the result, when known.
        items: how many items a stream gave.
        error: the error record as data, for ``post_tool_use_failure``.
        persistence: the persistence decision as data, for ``result_persistence``.
    """

    event: HookEvent
    hook_id: str
    invocation_id: str
    native_call_id: str | None
    tool_id: str
    tool_name: str
    namespace: str
    tool_kind: str
    ownership: str
    risk_level: str
    actor: str
    tenant: str | None
    roles: tuple[str, ...]
    session_id: str | None
    mode: str
    labels: dict[str, str]
    resumed: bool
    model_input: dict[str, Any] = field(repr=False)
    arguments: dict[str, Any] = field(repr=False)
    decision: Behavior | None = None
    rule: str = ""
    message: str = ""
    request: dict[str, Any] | None = field(default=None, repr=False)
    status: str | None = None
    result: Any = field(default=None, repr=False)
    size: int | None = None
    items: int | None = None
    error: dict[str, Any] | None = None
    persistence: dict[str, Any] | None = None


@dataclass(slots=True)
class HookState:
    """What hooks left on one call."""

    # by hook id the permission input that this pre hook has seen; the very object, so that any
    # change counts
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)  # messages, redacted
    stop: dict[str, Any] | None = None  # the stop that a hook asked for after the tool had run
    steps: int = 0  # how many progress steps were emitted
    # the input that a permission_decision hook wants, its author and the reason
    proposal: tuple[dict[str, Any], str, str] | None = None
