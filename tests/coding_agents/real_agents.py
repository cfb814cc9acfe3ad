"""Coding agents as they are in their registry, run without a person, a key or a network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from agent_programs import AgentUnavailable, path
from benchmarks.serve_soak import wait_for
from scripted_models import Events, Script, anthropic_events, openai_events, scripted_model

AGENTTOOL = [sys.executable, "-c", "from agenttool_otel.cli import main; main()"]
_NO_ADDRESS = "http://127.0.0.1:9"  # where nothing listens


@dataclass(frozen=True)
class RealAgent:
    """How one agent is run.

    Attributes:
        name: its name in ``agenttool hooks``.
        events: makes the answers of its model.
        tool: its tool that runs a command.
        arguments: the arguments of that tool beside the command.
        words: the words after its program; the prompt is the last.
        address: the environment variable with the address of its model.
        environment: other variables; they switch its telemetry and updates off.
        settings: its settings, likewise.
        start: what its program is started with.
    """

    name: str
    events: Events
    tool: str
    arguments: dict[str, object]
    words: Sequence[str]
    address: str
    environment: dict[str, str]
    settings: dict[str, object] = field(default_factory=dict)
    start: str = ""


REAL_AGENTS = {
    agent.name: agent
    for agent in (
        RealAgent(
            "claude-code",
            anthropic_events,
            "Bash",
            {"description": "Run a command."},
            # its own rules permit each command, so that only the hook is in the way
            ["--model", "script", "--allowedTools", "Bash", "-p"],
            "ANTHROPIC_BASE_URL",
            {
                "ANTHROPIC_API_KEY": "none",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_ERROR_REPORTING": "1",
                "DISABLE_GROWTHBOOK": "1",
                "DISABLE_INSTALLATION_CHECKS": "1",
                "DISABLE_TELEMETRY": "1",
                "DISABLE_UPDATES": "1",
                # whatever is not on loopback meets a proxy that is not there; Qwen sends all of it there
                "HTTP_PROXY": _NO_ADDRESS,
                "HTTPS_PROXY": _NO_ADDRESS,
                "NO_PROXY": "127.0.0.1",
            },
        ),
        RealAgent(
            "qwen",
            openai_events,
            "run_shell_command",
            {"description": "Run a command.", "is_background": False},
            ["--auth-type", "openai", "--yolo", "-p"],
            "OPENAI_BASE_URL",
            {"OPENAI_API_KEY": "none", "OPENAI_MODEL": "script", "QWEN_CODE_NO_RELAUNCH": "1"},
            {
                "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
                "privacy": {"usageStatisticsEnabled": False},
                "telemetry": {"enabled": False},
            },
            "node",
        ),
    )
}


class Workplace:
    """A home and a project of their own for one agent, with our hooks in its settings.

    Args:
        agent: the agent.
        folder: where they are made.
    """

    def __init__(self, agent: RealAgent, folder: Path) -> None:
        self.agent = agent
        self.home = folder / "home"
        self.project = folder / "project"
        self.socket = folder / "serve" / "serve.sock"
        self.socket.parent.mkdir(mode=0o700)
        self.home.mkdir()
        (self.project / "build").mkdir(parents=True)
        try:
            self._program = path(agent.name)
        except AgentUnavailable as reason:
            pytest.skip(str(reason))
        self._settings().parent.mkdir()
        self._settings().write_text(json.dumps(agent.settings))

    def _settings(self) -> Path:
        folder = ".claude" if self.agent.name == "claude-code" else f".{self.agent.name}"
        return self.home / folder / "settings.json"

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "HOME": str(self.home)}

    def hooks(self, *words: str) -> None:
        """Run ``agenttool hooks``."""
        options = [*words, self.agent.name]
        if words[0] != "remove":
            options += ["--socket", str(self.socket)]
        command = [*AGENTTOOL, "hooks", *options]
        subprocess.run(command, env=self._environment(), check=True, capture_output=True)

    def run(self, *commands: str) -> Script:
        """Let the agent run commands, as its model asks for them.

        Args:
            commands: the commands.
        """
        script = Script(commands, self.agent.tool, self.agent.arguments)
        start = [self.agent.start] if self.agent.start else []
        words = [*start, str(self._program), *self.agent.words, "Do what you have to do."]
        with scripted_model(self.agent.events, script) as address:
            environment = {**self._environment(), **self.agent.environment}
            environment[self.agent.address] = address
            done = subprocess.run(
                words,
                cwd=self.project,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
        # an agent that never came so far would show nothing
        assert len(script.seen) == len(commands), done.stdout + done.stderr
        return script

    @contextmanager
    def served(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run ``agenttool serve`` as a process that can be killed."""
        command = [*AGENTTOOL, "serve", "--agent", self.agent.name, "--socket", str(self.socket)]
        preset = {"AGENTTOOL_POLICY_PRESET": "coding"}
        running = subprocess.Popen(command, env={**self._environment(), **preset})
        try:
            wait_for(self.socket)
            yield running
        finally:
            running.kill()
            running.wait()


def workplace(name: str, folder: Path) -> Workplace:
    """Make the workplace of an agent.

    Args:
        name: its name in ``agenttool hooks``.
        folder: where it is made.
    """
    if shutil.which("node") is None:
        pytest.skip("Node is not here")
    return Workplace(REAL_AGENTS[name], folder)
