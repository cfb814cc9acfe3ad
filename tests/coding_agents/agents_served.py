"""A real decision point that answers the hooks of all agents, and the recorded payloads."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agenttool_otel.coding_agents import client
from agenttool_otel.coding_agents.answers import HookOutput
from agenttool_otel.coding_agents.dialects import AGENTS, dialect_of
from agenttool_otel.coding_agents.trial import run_command
from agenttool_otel.names import HookPart
from agenttool_otel.serve.server import DecisionServer
from agenttool_otel.testing import Capture, capture

RECORDED = Path(__file__).parent / "fixtures"
FOLDERS = {"gemini": "gemini-cli", "qwen": "qwen-code"}
DIRECTORY = "/home/user/project"  # of every recorded payload; opencode's plugin adds it


def payloads(part: HookPart) -> list[tuple[str, str, str]]:
    """Return agent, event and file name of each recorded payload of a part."""
    found = []
    for agent in AGENTS:
        events = dialect_of(agent).events
        for path in sorted((RECORDED / FOLDERS.get(agent, agent)).glob("*.json")):
            event = next(
                (one for one in events if path.name.startswith((f"{one}-", f"{one}."))), ""
            )
            if event and events[event] is part:
                found.append((agent, event, path.stem))
    return found


def recorded(agent: str, name: str) -> dict[str, Any]:
    """Return a recorded payload; one of opencode as our plugin sends it."""
    path = RECORDED / FOLDERS.get(agent, agent) / f"{name}.json"
    payload: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return {**payload, "directory": DIRECTORY} if agent == "opencode" else payload


def client_command(part: str, agent: str, event: str, place: Path) -> list[str]:
    """Return the words by which the client is run."""
    words = [sys.executable, "-I", "-S", str(client.__file__), part, agent, event, str(place)]
    variable = dialect_of(agent).settings.project_variable
    return [*words, variable] if variable else words


class Hooks:
    """The hooks of all agents, answered."""

    def __init__(self, captured: Capture, place: Path) -> None:
        self.captured = captured
        self.governor = captured.governor
        self.place = place

    def fire(self, agent: str, event: str, payload: dict[str, Any]) -> HookOutput:
        """Run the client as the agent would."""
        part = "decide" if dialect_of(agent).waits_at(event) else "record"
        return run_command(client_command(part, agent, event, self.place), payload)


@contextmanager
def hooks_served(folder: Path, **options: Any) -> Iterator[Hooks]:
    """Serve the hooks of all agents by the stock policy, with an approval store."""
    folder.chmod(0o700)
    place = folder / "serve.sock"
    store = f"sqlite:///{folder}/approvals.db"
    with (
        capture(approvals=store, **options) as captured,
        DecisionServer(captured.governor, [], socket_path=place, agents=AGENTS),
    ):
        yield Hooks(captured, place)
