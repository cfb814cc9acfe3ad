"""A hook's payload read: which call of which tool it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agenttool_otel.coding_agents.dialects import Dialect, PayloadFields
from agenttool_otel.coding_agents.patches import paths_of_patch
from agenttool_otel.errors import PayloadInvalid
from agenttool_otel.names import HookPart

ABSENT: Final[Any] = object()
"""Stands for what a payload does not have: ``None`` may be a result."""


@dataclass(frozen=True)
class HookCall:
    """What a payload is about.

    Attributes:
        part: what the hook is to do.
        event: the agent's name of the event.
        session: the agent's session.
        call_id: the agent's id of the call; empty where it gives none.
        turn: the turn that it is of.
        cwd: directory of the session.
        tool: the tool's name.
        arguments: its arguments, as the agent sent them.
        decided: its arguments as the policy sees them: those of a patch have its paths, too.
        mode: the agent's permission mode.
        sub_agent: the kind of sub-agent that calls.
        is_mcp: whether it is a tool of an MCP server.
        result: what it returned; ``ABSENT`` where it has none.
        error: why it failed.
    """

    part: HookPart
    event: str
    session: str
    call_id: str = ""
    turn: str = ""
    cwd: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] | None = None
    decided: Mapping[str, Any] | None = None
    mode: str = ""
    sub_agent: str = ""
    is_mcp: bool = False
    result: Any = ABSENT
    error: str = ""


def read_payload(dialect: Dialect, event: str, payload: Mapping[str, Any]) -> HookCall:
    """Read the payload of a hook.

    Args:
        dialect: the agent's dialect.
        event: the event, as the installed command names it.
        payload: what the agent sent.

    Raises:
        PayloadInvalid: it is of another event, or lacks what a decision needs.
    """
    part = dialect.events.get(event)
    if part is None:
        raise PayloadInvalid(f"{dialect.title} has no event {event[:80]!r} that a hook takes")
    # opencode names the function in no payload of its own
    named = payload.get("hook_event_name", event)
    if named != event:
        raise PayloadInvalid("the payload is of another event")
    fields = dialect.fields
    session = _text(payload, fields.session, "session")
    if part is HookPart.END:
        return HookCall(part, event, session)
    tool = _text(payload, fields.tool, "tool")
    arguments = _found(payload, fields.arguments)
    if not isinstance(arguments, Mapping):
        raise PayloadInvalid("the arguments are no object")
    return HookCall(
        part,
        event,
        session,
        call_id=_call_id(payload, fields, part),
        turn=_optional(payload, fields.turn),
        cwd=_text(payload, fields.cwd, "cwd"),
        tool=tool,
        arguments=arguments,
        decided=_with_paths(dialect, tool, arguments),
        mode=_optional(payload, fields.mode),
        sub_agent=_optional(payload, fields.sub_agent),
        is_mcp=_is_mcp(dialect, tool, payload),
        result=_found(payload, fields.result),
        error=_optional(payload, fields.error),
    )


def _call_id(payload: Mapping[str, Any], fields: PayloadFields, part: HookPart) -> str:
    # where an agent is about to ask a person, none gives the id
    if part is HookPart.PERMIT or not fields.call:
        return _optional(payload, fields.call)
    return _text(payload, fields.call, "call")


def _with_paths(dialect: Dialect, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    known = dialect.tools.get(tool)
    if known is None or not known.patch:
        return arguments
    named, deleted = paths_of_patch(arguments.get(known.patch))
    # {"command": "*** Begin Patch...", "paths": []} of a model's own would hide those of the patch
    return {**arguments, "paths": named, "deleted_paths": deleted}


def _is_mcp(dialect: Dialect, tool: str, payload: Mapping[str, Any]) -> bool:
    names = dialect.mcp
    if names.server:
        return _found(payload, (names.server,)) is not ABSENT
    return bool(names.prefix) and tool.startswith(names.prefix)


def _text(payload: Mapping[str, Any], pointers: Sequence[str], what: str) -> str:
    found = _found(payload, pointers)
    if not isinstance(found, str) or not found:
        raise PayloadInvalid(f"the payload has no {what}")
    return found


def _optional(payload: Mapping[str, Any], pointers: Sequence[str]) -> str:
    found = _found(payload, pointers)
    return found if isinstance(found, str) else ""


def _found(payload: Mapping[str, Any], pointers: Sequence[str]) -> Any:
    """Return what stands at the first pointer that leads somewhere."""
    for pointer in pointers:
        value: Any = payload
        for token in pointer[1:].split("/"):
            value = value.get(token, ABSENT) if isinstance(value, Mapping) else ABSENT
        if value is not ABSENT:
            return value
    return ABSENT
