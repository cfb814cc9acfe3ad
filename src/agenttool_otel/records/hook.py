"""tool_hook: what one hook was given and what it did (standard, "Hooks and Input Mutation")."""

from __future__ import annotations

from pydantic import Field

from agenttool_otel.names import HookEvent
from agenttool_otel.records.base import JsonObject, JsonValue, Record, Timestamp, id_field


class HookRecord(Record):
    """One run of one hook.

    Attributes:
        hook_id: id of the hook.
        hook_event: when in the call it ran.
        invocation_id: the call.
        tool_id: the tool.
        matcher: what it matches on.
        outputs: the outputs it made, by kind, without content.
        permission_result: its permission hint, with its ``message``.
        updated_input: replacement input; present only when captured and redacted.
        additional_context: context it added.
        stop: the stop it asked for: its ``reason``, and its ``effect``: ``blocked`` the call, or
          ``passed_on`` beside the result of a tool that ran.
        updated_output: replacement output; present only when captured and redacted.
        failure: what went wrong, and what that does to the call: ``error_type``, ``timed_out``,
          ``effect``: what it was registered with, or ``canceled`` where the call was canceled
          while it ran.
        started_at: when it started.
        ended_at: when it ended.
    """

    hook_id: str = id_field("hook")
    hook_event: HookEvent
    invocation_id: str | None = None
    tool_id: str | None = None
    matcher: JsonObject | None = None
    outputs: list[JsonObject] = Field(default_factory=list)
    permission_result: JsonObject | None = None
    updated_input: JsonValue = None
    additional_context: list[JsonObject] = Field(default_factory=list)
    stop: JsonObject | None = None
    updated_output: JsonValue = None
    failure: JsonObject | None = None
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
