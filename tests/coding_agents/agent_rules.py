"""Fake agents: what each of them does with the answer of a hook before a call, as recorded in
``answers.jsonl``. The rules are checked against every line there.
"""

from __future__ import annotations

import json
from typing import Any

RAN = "ran"
BLOCKED = "not run"
ASKED = "asked"
REWRITTEN = "rewritten"

_CODEX_TOP = {"hookSpecificOutput", "systemMessage", "continue", "decision", "reason", "stopReason"}
_CODEX_INNER = {
    "hookEventName",
    "permissionDecision",
    "permissionDecisionReason",
    "updatedInput",
    "additionalContext",
}


def outcome(agent: str, status: int, stdout: str, stderr: str) -> str:
    """Return what becomes of the call."""
    return _AGENTS[agent](status, stdout, stderr)


def requested(agent: str, status: int, stdout: str, stderr: str) -> str:
    """Return what becomes of a call at an event at which the agent is about to ask a person."""
    if status == 2 and agent == "codex":
        return BLOCKED
    inner = _inner(_object(stdout) or {})
    decision = inner.get("decision")
    if status != 0 or inner.get("hookEventName") != "PermissionRequest" or decision is None:
        return ASKED
    # Codex takes no changed arguments here, and asks
    if agent == "codex" and not decision.keys() <= {"behavior", "message"}:
        return ASKED
    if decision["behavior"] == "deny":
        return BLOCKED
    if decision["behavior"] != "allow":
        return ASKED
    return REWRITTEN if "updatedInput" in decision else RAN


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _inner(answer: dict[str, Any]) -> dict[str, Any]:
    found = answer.get("hookSpecificOutput")
    return found if isinstance(found, dict) else {}


def _claude_code(status: int, stdout: str, stderr: str) -> str:
    if status == 2:
        return BLOCKED
    answer = _object(stdout) or {}
    if answer.get("decision") == "block":
        return BLOCKED
    inner = _inner(answer)
    # another name or a reason of another type: the whole answer is dropped
    reason = inner.get("permissionDecisionReason", "")
    if inner.get("hookEventName") != "PreToolUse" or not isinstance(reason, str):
        return RAN
    decision = inner.get("permissionDecision")
    if decision in {"deny", "defer"}:
        return BLOCKED
    if decision == "ask":
        return ASKED
    if "updatedInput" in inner:
        return REWRITTEN if isinstance(inner["updatedInput"].get("command"), str) else BLOCKED
    return RAN


def _codex(status: int, stdout: str, stderr: str) -> str:
    if status == 2:
        return BLOCKED if stderr.strip() else RAN
    answer = _object(stdout)
    if status != 0 or answer is None or not answer.keys() <= _CODEX_TOP:
        return RAN
    if answer.get("decision") == "block" and answer.get("reason"):
        return BLOCKED
    inner = _inner(answer)
    if inner.get("hookEventName") != "PreToolUse" or not inner.keys() <= _CODEX_INNER:
        return RAN
    decision = inner.get("permissionDecision")
    if decision == "deny" and inner.get("permissionDecisionReason"):
        return BLOCKED
    return REWRITTEN if decision == "allow" and "updatedInput" in inner else RAN


def _gemini(status: int, stdout: str, stderr: str) -> str:
    answer = _object(stdout) if stdout else _object(stderr)
    if answer is None:
        return BLOCKED if status >= 2 and (stdout or stderr).strip() else RAN
    if answer.get("decision") in {"deny", "block"} or answer.get("continue") is False:
        return BLOCKED
    if answer.get("decision") == "ask":
        return ASKED
    return REWRITTEN if "tool_input" in _inner(answer) else RAN


def _qwen(status: int, stdout: str, stderr: str) -> str:
    if status == 2:
        return BLOCKED if stderr.strip() else RAN
    answer = _object(stdout) or {}
    if answer.get("decision") in {"deny", "block"} or answer.get("continue") is False:
        return BLOCKED
    decision = _inner(answer).get("permissionDecision")
    return {"deny": BLOCKED, "ask": ASKED}.get(str(decision), RAN)


def _opencode(status: int, stdout: str, stderr: str) -> str:
    # our plugin throws where the client ends with another status than 0, or prints anything else
    if status != 0:
        return BLOCKED
    if stdout == "":
        return RAN
    return REWRITTEN if "arguments" in (_object(stdout) or {}) else BLOCKED


_AGENTS = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "opencode": _opencode,
}
