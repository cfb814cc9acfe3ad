"""Hooks of the agents' shells: what the agent would run after them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from agents_served import Hooks, recorded

from agenttool_otel.coding_agents.answers import HookOutput
from agenttool_otel.coding_agents.dialects import dialect_of

SHELLS = {
    "claude-code": "PreToolUse-bash-ls",
    "codex": "PreToolUse-bash-ls",
    "gemini": "BeforeTool-run-shell-command-ls",
    "opencode": "tool.execute.before-bash-ls",
    "qwen": "PreToolUse-run-shell-command-ls",
}


def fire(hooks: Hooks, agent: str, command: str, **changes: Any) -> HookOutput:
    payload = recorded(agent, SHELLS[agent]) | changes
    arguments = payload["output"]["args"] if agent == "opencode" else payload["tool_input"]
    arguments["command"] = command
    return hooks.fire(agent, dialect_of(agent).deciding, payload)


def command_of(output: HookOutput) -> str:
    """Return the command that the agent would run."""
    answer = json.loads(output.stdout)
    inner = answer.get("hookSpecificOutput", answer)
    names = ("updatedInput", "tool_input", "arguments")
    changed = next(inner[name] for name in names if name in inner)
    return str(changed["command"])


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as an agent does."""
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
