"""Calls whose commands run on a layer, and policies that decide what they would change."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenttool_otel import ApprovalAnswer, agent_context, arun_command, run_command
from agenttool_otel.testing import Capture, decision
from function_engine import FunctionEngine

REHEARSE = {"sandbox": {"profile": "rehearse"}}
FACTS: dict[str, Any] = {
    "read_only": False,
    "access_kinds": ["code_execution"],
    "command_args": ["command"],
    "runs_commands": True,
}
ADA = ApprovalAnswer(approved=True, answered_by="user:ada")


def shell(command: str) -> str:
    """Run a command."""
    return run_command(command, timeout=60).text


async def ashell(command: str) -> str:
    """Run a command."""
    return (await arun_command(command, timeout=60)).text


def stated(behavior: str) -> Callable[[dict[str, Any]], Any]:
    """A second decision that is always the same."""
    return lambda document: decision(behavior)


@dataclass
class Decides:
    """A policy that obliges a rehearsal, and decides its effects."""

    on_effects: Callable[[dict[str, Any]], Any]
    first: Callable[[dict[str, Any]], Any] = lambda document: decision(
        "allow", obligations=REHEARSE
    )
    seen: list[dict[str, Any]] = field(default_factory=list)

    @property
    def engine(self) -> FunctionEngine:
        return FunctionEngine(self._decide)

    def _decide(self, document: Any) -> Any:
        self.seen.append(document)
        return self.on_effects(document) if "effects" in document["facts"] else self.first(document)

    @property
    def effects(self) -> dict[str, Any]:
        """The effects of the last decision."""
        found: dict[str, Any] = self.seen[-1]["facts"]["effects"]
        return found


@dataclass
class Place:
    """A root, and the state directory of its layers."""

    root: Path
    state: Path
    tools: list[Any] = field(default_factory=list)

    def in_root(self, line: str) -> str:
        return f"cd {self.root} && {line}"

    def call(self, captured: Capture, line: str, function: Any = shell, **facts: Any) -> Any:
        tool = self.govern(captured, function, **facts)
        with self.context():
            value = tool(self.in_root(line))
            return asyncio.run(value) if inspect.isawaitable(value) else value

    def govern(self, captured: Capture, function: Any = shell, **facts: Any) -> Any:
        tool = captured.governor.govern(function, name="shell", **{**FACTS, **facts})
        self.tools.append(tool)  # a Governor forgets tools that nobody holds
        return tool

    def context(self) -> Any:
        return agent_context(
            actor="agent:a",
            session_id="s-1",
            roots=[str(self.root)],
            cwd=str(self.root),
            interactive=True,
        )

    @property
    def layers(self) -> list[Path]:
        folder = self.state / "layers"
        return list(folder.iterdir()) if folder.exists() else []
