"""Installs the coding agents that tests run for real, once, from their registry package into a
cache outside the repository.

Usage::

    python tools/agent_programs.py build [NAME ...]  # those that are there already cost nothing
    python tools/agent_programs.py build --available # the same; what can't be had is no error
    python tools/agent_programs.py path NAME         # prints the program's path, or exits with 1 and the reason
    python tools/agent_programs.py list

The cache is that of ``tools/servers.py``. ``tools/agent_locks/NAME`` has the pinned version and the
checksum of each package, which npm checks; no package's own install script is run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from servers import cache, locked

LOCKS: Final = Path(__file__).with_name("agent_locks")
_SECONDS: Final = 900


class AgentUnavailable(RuntimeError):
    """An agent isn't on this machine; the message is the reason that a skipped test shows."""


@dataclass(frozen=True)
class AgentProgram:
    """One agent.

    Attributes:
        name: its name in ``agenttool hooks``.
        program: its program, below ``node_modules``.
        package: the package with its version.
        options: options of npm beside the usual ones.
    """

    name: str
    program: str
    package: str
    options: tuple[str, ...] = ()

    @property
    def lock(self) -> Path:
        """The folder with what npm installs, and its checksums."""
        return LOCKS / self.name

    @property
    def version(self) -> str:
        """The pinned version."""
        pinned = json.loads((self.lock / "package.json").read_text("utf-8"))
        return str(pinned["dependencies"][self.package])

    @property
    def folder(self) -> Path:
        """The folder that it is installed into."""
        return cache() / f"{self.name}-{self.version}"

    @property
    def target(self) -> Path:
        """Where its program lies."""
        return self.folder / "node_modules" / self.program


AGENT_PROGRAMS: Final = {
    program.name: program
    for program in (
        # the package's own program is a stub that its install script would replace
        AgentProgram(
            "claude-code",
            "@anthropic-ai/claude-code-linux-x64/claude",
            "@anthropic-ai/claude-code",
        ),
        # what is optional is a terminal, and a clipboard
        AgentProgram(
            "qwen", "@qwen-code/qwen-code/cli.js", "@qwen-code/qwen-code", ("--omit=optional",)
        ),
    )
}


def path(name: str) -> Path:
    """Find an agent's program without installing anything.

    Args:
        name: one of ``AGENT_PROGRAMS``.

    Raises:
        AgentUnavailable: it isn't there.
    """
    agent = AGENT_PROGRAMS[name]
    if not agent.target.exists():
        raise AgentUnavailable(f"{name} {agent.version} is not installed (make agents)")
    return agent.target


def build(name: str) -> Path:
    """Install an agent unless it is there.

    Args:
        name: one of ``AGENT_PROGRAMS``.

    Raises:
        AgentUnavailable: it can't be had on this machine.
    """
    agent = AGENT_PROGRAMS[name]
    with locked():
        if not agent.target.exists():
            _install(agent)
    return path(name)


def _install(agent: AgentProgram) -> None:
    """Install into a folder beside, so that a half installed agent is never used."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise AgentUnavailable(f"Node is not installed, so {agent.name} can't be")
    partial = agent.folder.with_name(f"{agent.folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(agent.lock, partial)
    # not "ci": it refuses a lock without those optional packages that npm itself left out
    words = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    words += agent.options
    try:
        done = subprocess.run(
            words, cwd=partial, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise AgentUnavailable(f"npm had not installed {agent.name} in {_SECONDS} s") from None
    if done.returncode != 0:
        raise AgentUnavailable(
            f"npm install failed: {(done.stderr or done.stdout).strip()[-2000:]}"
        )
    shutil.rmtree(agent.folder, ignore_errors=True)
    partial.rename(agent.folder)


def main(arguments: list[str]) -> int:
    """Run the command line."""
    lenient = "--available" in arguments
    arguments = [argument for argument in arguments if argument != "--available"]
    command, names = (arguments[0], arguments[1:]) if arguments else ("", [])
    is_unknown = any(name not in AGENT_PROGRAMS for name in names)
    needs_name = command == "path" and len(names) != 1
    if command not in {"build", "path", "list"} or is_unknown or needs_name:
        print(__doc__)
        return 2
    failed = False
    for name in names or AGENT_PROGRAMS:
        try:
            found = build(name) if command == "build" else path(name)
        except AgentUnavailable as reason:
            failed = True
            print(f"{name}: {reason}", file=sys.stderr)
            continue
        shown = f"{name} {AGENT_PROGRAMS[name].version}: "
        print(found if command == "path" else f"{shown}{found}")
    return int(failed and command != "list" and not lenient)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
