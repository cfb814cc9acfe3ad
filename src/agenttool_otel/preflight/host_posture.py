"""The posture in openboa's field names: what waits, what the host says of its shell and context,
and what is safer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agenttool_otel.call.preflight import next_outcome_step
from agenttool_otel.call.runtime import Runtime
from agenttool_otel.context.context import AgentContext, current_context
from agenttool_otel.preflight.posture import Posture

_MENU: Final = (
    ("shell_describe", "see what the shell is doing"),
    ("shell_read_last_output", "read what the last command printed"),
    ("bash", "look around with pwd"),
    ("read", "read a file"),
    ("glob", "find files by name"),
    ("grep", "search in files"),
)
_CONTEXT_TOOL: Final = "session_describe_context"
_MAX_MENU: Final = 5


def permissions_document(runtime: Runtime, posture: Posture) -> dict[str, Any]:
    """Return what openboa keeps in ``permissions.json``.

    Args:
        runtime: the Governor.
        posture: its posture in the context in force.
    """
    context = runtime.effective(current_context())
    host = dict(context.host or {})
    waiting = _custom_calls(runtime, context)
    asked = [
        {
            "kind": "tool_confirmation",
            "toolName": entry["tool"],
            "arguments": entry["arguments"],
            "reason": entry["reason"],
            "blockingEventId": entry["request_id"],
        }
        for entry in posture.pending
    ]
    document = {
        "permissionMode": posture.mode,
        "alwaysAskTools": posture.always_ask,
        "evaluatorGatedTools": posture.evaluator_gated,
        "blockedTools": posture.blocked,
        "pendingConfirmations": asked,
        "requiresAction": [*asked, *waiting],
        "blockingEventIds": [entry["blockingEventId"] for entry in (*asked, *waiting)],
        "outcomeEvaluation": posture.evaluation,
        "nextStep": posture.next_step,
        "nextOutcomeStep": next_outcome_step(posture.evaluation),
        "contextPressure": host.get("contextPressure"),
        **_shell(host.get("shell")),
        "shellReadFirstAlternatives": read_first(
            posture, pressed=bool(host.get("contextPressure"))
        ),
    }
    return {name: value for name, value in document.items() if value is not None}


def read_first(posture: Posture, *, pressed: bool) -> list[dict[str, str]]:
    """Return a bounded menu of calls to make before one that changes something.

    Args:
        posture: what is governed.
        pressed: whether the host says that its context is nearly full.
    """
    reading = {
        tool.name: tool
        for tool in posture.tools
        if tool.read_only and tool.permission_policy != "blocked"
    }
    menu = [{"tool": name, "reason": reason} for name, reason in _MENU if name in reading]
    known = {entry["tool"] for entry in menu}
    menu += [{"tool": name, "reason": "it only reads"} for name in reading if name not in known]
    if pressed and _CONTEXT_TOOL in reading:
        menu = [{"tool": _CONTEXT_TOOL, "reason": "see what fills the context"}, *menu]
    return menu[:_MAX_MENU]


def _shell(shell: Mapping[str, Any] | None) -> dict[str, Any]:
    if shell is None:
        return {}
    state = "busy" if shell.get("busy") else "ready" if shell.get("open", True) else "missing"
    step = {"busy": "shell_wait", "missing": "shell_restart", "ready": None}[state]
    plans = {name: shell.get(name) for name in ("busyPlan", "recoveryPlan")}
    return {"shellMutationPosture": {"state": state, **shell}, "nextShellStep": step, **plans}


def _custom_calls(runtime: Runtime, context: AgentContext) -> list[dict[str, Any]]:
    return [
        {
            "kind": "custom_tool_result",
            "toolName": action.tool_name,
            "arguments": action.arguments,
            "blockingEventId": action.invocation_id,
        }
        for action in runtime.pipeline.required.list()
        if (action.tenant, action.session_id) == (context.tenant, context.session_id)
    ]
