"""The posture in openboa's field names: what waits, the state of the host's shell and context, and
what is safer.

A model gets these fields from ``permissions_describe`` and ``permissions_check``; agents that read
files find them in ``permission-posture.json`` and ``permissions.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from agenttool_otel.call.preflight import next_outcome_step
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import AgentContext, current_context
from agenttool_otel.names import Behavior, ToolKind
from agenttool_otel.preflight.posture import (
    Posture,
    described_tools,
    harmless_arguments,
    preflight_call,
    without_secrets,
)
from agenttool_otel.records.base import JsonObject

_MENU: Final = (
    ("shell_describe", "see what the shell is doing"),
    ("shell_read_last_output", "read what the last command printed"),
    ("bash", "look around with pwd"),
    ("read", "read a file"),
    ("glob", "find files by name"),
    ("grep", "search in files"),
)
_MENU_ARGUMENTS: Final = {"bash": {"command": "pwd"}}
_CONTEXT_TOOL: Final = "session_describe_context"
_MAX_MENU: Final = 5


def permissions_document(posture: Posture, fields: Mapping[str, Any]) -> JsonObject:
    """Return what openboa keeps in ``permissions.json``.

    Args:
        posture: a posture.
        fields: its ``host_fields``.
    """
    return {
        "permissionMode": posture.mode,
        "alwaysAskTools": posture.always_ask,
        "evaluatorGatedTools": posture.evaluator_gated,
        "blockedTools": posture.blocked,
        "pendingConfirmations": [
            entry
            for entry in fields.get("requiresAction", ())
            if entry["kind"] == "tool_confirmation"
        ],
        **fields,
    }


def posture_document(posture: Posture, fields: Mapping[str, Any]) -> JsonObject:
    """Return a posture with openboa's fields beside its own: what ``permissions_describe`` returns.

    Args:
        posture: a posture.
        fields: its ``host_fields``.
    """
    return {**posture.to_json_object(), **fields}


def host_fields(runtime: Runtime, posture: Posture) -> JsonObject:
    """Return the fields of a posture that openboa names; one that has no value is left out.

    Args:
        runtime: the Governor.
        posture: its posture in the context in force.
    """
    context = runtime.effective(current_context())
    waiting = [*_confirmations(posture), *_custom_calls(runtime, context)]
    callable_tools = {
        tool.name
        for tool in posture.tools
        if tool.read_only and tool.permission_policy != "blocked"
    }
    menu = _read_first(runtime, context, lambda tool: tool.spec.name in callable_tools)
    return _present(
        requiresAction=waiting,
        blockingEventIds=[
            entry["blockingEventId"] for entry in waiting if entry["blockingEventId"]
        ],
        readOnlyAlternative=posture.read_only_alternative,
        outcomeEvaluation=posture.evaluation,
        nextStep=posture.next_step,
        nextOutcomeStep=next_outcome_step(posture.evaluation),
        contextPressure=(context.host or {}).get("contextPressure"),
        **_shell_fields(context),
        shellReadFirstAlternatives=menu,
    )


def checked_fields(
    runtime: Runtime, context: AgentContext, spec: ToolSpec, checked: Mapping[str, Any]
) -> JsonObject:
    """Return the fields of the check of one call that openboa names; those about the shell where the
    call would run a command.

    Args:
        runtime: the Governor.
        context: the context of the call.
        spec: its tool.
        checked: what would be decided of it, as JSON data.
    """
    alternatives = checked["alternatives"]
    fields = _present(
        readOnlyAlternative=alternatives[0] if alternatives else None,
        outcomeEvaluation=checked["evaluation"],
        nextStep=checked["next_step"],
        nextOutcomeStep=next_outcome_step(checked["evaluation"]),
        contextPressure=(context.host or {}).get("contextPressure"),
    )
    if not _changes_by_command(spec):
        return fields

    def is_callable(tool: GovernedTool) -> bool:
        if tool.spec.safety.read_only is not True:
            return False
        arguments = harmless_arguments(runtime, tool, context)
        return preflight_call(runtime, tool, arguments, context).behavior is not Behavior.DENY

    return {
        **fields,
        # currentCommand of a busy shell may name a password
        **without_secrets(runtime, _present(**_shell_fields(context))),
        "shellReadFirstAlternatives": _read_first(runtime, context, is_callable),
    }


def shell_step(
    runtime: Runtime, context: AgentContext, spec: ToolSpec, checked: Mapping[str, Any]
) -> str | None:
    """Return what to do before a command while the session's shell is busy or gone; ``None`` where
    the shell is ready, or the call is denied or runs no command.

    Args:
        runtime: the Governor.
        context: the context of the call.
        spec: its tool.
        checked: what would be decided of it, as JSON data.
    """
    fields = _shell_fields(context)
    step = fields.get("nextShellStep")
    if step is None or checked["behavior"] == Behavior.DENY or not _changes_by_command(spec):
        return None
    for safer in checked["alternatives"]:
        # {"tool": "read_file", ...} goes on without the shell; a reading form of the command does not
        tool = runtime.find(str(safer.get("tool")))
        if tool is not None and not tool.spec.interface.classifier_input:
            return f"call {safer['tool']} instead: {safer.get('reason', 'safer')}"
    return f"call {step} first: the shell is {fields['shellMutationPosture']['state']}"


def _present(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


# --- what waits -----------------------------------------------------------------------------------


def _confirmations(posture: Posture) -> list[JsonObject]:
    return [
        {
            "kind": "tool_confirmation",
            "toolName": entry["tool"],
            "arguments": entry["arguments"],
            "reason": entry["reason"],
            "requestId": entry["request_id"],
            "blockingEventId": entry["event_id"],
        }
        for entry in posture.pending
    ]


def _custom_calls(runtime: Runtime, context: AgentContext) -> list[JsonObject]:
    whose = (context.tenant, context.session_id, context.actor)
    return [
        {
            "kind": "custom_tool_result",
            "toolName": action.tool_name,
            "arguments": action.arguments,
            "invocationId": action.invocation_id,
            "blockingEventId": action.event_id,
        }
        for action in runtime.pipeline.required.list()
        if (action.tenant, action.session_id, action.actor_id) == whose
    ]


# --- the shell ------------------------------------------------------------------------------------


def _changes_by_command(spec: ToolSpec) -> bool:
    """Return whether a tool runs commands that may change something: openboa's shell mutation tools."""
    if spec.safety.read_only is True:
        return False
    is_shell = spec.declaration.tool_kind == ToolKind.SHELL_COMMAND
    return is_shell or bool(spec.interface.classifier_input)


def _shell_fields(context: AgentContext) -> JsonObject:
    shell = (context.host or {}).get("shell")
    if shell is None:
        return {}
    if shell.get("busy"):
        state, step = "busy", "shell_wait"
    elif shell.get("open", True):
        state, step = "ready", None
    else:
        state, step = "missing", "shell_restart"
    return {
        "shellMutationPosture": {"state": state, **shell},
        "nextShellStep": step,
        "busyPlan": shell.get("busyPlan"),
        "recoveryPlan": shell.get("recoveryPlan"),
    }


def _read_first(
    runtime: Runtime, context: AgentContext, is_callable: Callable[[GovernedTool], bool]
) -> list[JsonObject]:
    """Return a bounded menu of calls to make before one that changes something.

    Args:
        runtime: the Governor.
        context: the context in force; the first entry looks at what fills it, where the host states
            that it is nearly full.
        is_callable: whether a tool only reads and may be called.
    """
    tools = {tool.spec.name: tool for tool in described_tools(runtime)}
    reasons = dict(_MENU)
    if (context.host or {}).get("contextPressure"):
        reasons = {_CONTEXT_TOOL: "see what fills the context", **reasons}
    for name in tools:
        reasons.setdefault(name, "it only reads")
    menu: list[JsonObject] = []
    for name, reason in reasons.items():
        if len(menu) == _MAX_MENU:
            break
        if name not in tools or not is_callable(tools[name]):
            continue
        entry: JsonObject = {"tool": name, "reason": reason}
        if name in _MENU_ARGUMENTS:
            entry["arguments"] = _MENU_ARGUMENTS[name]
        menu.append(entry)
    return menu
