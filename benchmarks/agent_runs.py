"""How often a policy asks while a coding agent's recorded runs are really run again, rehearsed.

Each run starts from a fresh checkout (``git init`` of a source release), and its commands run in
order, with the state that they leave: ``python -m benchmarks.agent_runs DIRECTORY [-v]
[--runs N] [--commands N]``. The directory holds one source tree for each project, named as in the corpus
(``django``, ``marshmallow``, ``pydicom``); projects that are not there
are left out. Whoever is asked approves effects that are shown to them, and rejects what would run
unseen: a network command that nobody could rehearse. So later commands of a run may lack what a
rejected one would have installed.

The corpus is that of ``benchmarks.agent_commands``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenttool_otel import ApprovalAnswer, GovernedOutcome, Governor, agent_context, run_command
from agenttool_otel.approvals.types import ApprovalRequest
from benchmarks.agent_commands import DEFAULT, SHELL

RECORDED_AT = "/testbed"
SECONDS = 60
_IDENTITY = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
_NO_UPKEEP = ["-c", "gc.auto=0", "-c", "maintenance.auto=false"]


@dataclass
class Tally:
    """What became of the commands of one preset.

    Attributes:
        asked: the rules that asked, after a rehearsal and before it.
        endings: how the calls ended.
    """

    asked: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)

    @property
    def commands(self) -> int:
        return sum(self.endings.values())


class Person:
    """Approves what is shown, rejects what would run unseen."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        shown = request.effects is not None
        self._tally.asked[f"{'after' if shown else 'before'} {request.rule_ref}"] += 1
        return ApprovalAnswer(approved=shown, answered_by="user:bench")


def runs_of(path: Path, projects: set[str]) -> dict[str, list[str]]:
    """The recorded runs of some projects: session -> commands in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines():
        row = json.loads(line)
        if project_of(row["session"]) in projects:
            found[row["session"]].append(row["command"])
    return found


def project_of(session: str) -> str:
    """The project of a run: ``django`` of ``django__django-11066#2``."""
    return session.partition("__")[2].partition("#")[0].rpartition("-")[0]


def checkout(source: Path, place: Path) -> None:
    """A copy of a source tree with one commit."""
    shutil.copytree(source, place, symlinks=True)
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        [*_IDENTITY, *_NO_UPKEEP, "commit", "-qm", "start"],
    ):
        subprocess.run(["git", *words], cwd=place, check=True, capture_output=True)


def replay(commands: list[str], place: Path, tool: Any, session: str, tally: Tally) -> None:
    """Run a session's commands in a checkout."""
    where: dict[str, Any] = {"roots": [str(place)], "cwd": str(place), "interactive": True}
    with agent_context(actor="agent:bench", session_id=session, **where):
        for command in commands:
            ending = "ran"
            try:
                tool(command.replace(RECORDED_AT, str(place)))
            except GovernedOutcome as outcome:
                ending = outcome.result.status.value
                if "-v" in sys.argv:
                    sys.stdout.write(f"    {outcome}: {command[:120]!r}\n")
            tally.endings[ending] += 1


def measure(preset: str, sources: Path, runs: dict[str, list[str]], most: int) -> Tally:
    """Run each session in a checkout of its own under a preset."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as scratch:
        state = Path(scratch) / "state"
        governor = Governor(policy_preset=preset, rehearsals_dir=str(state), approver=Person(tally))
        for session, commands in runs.items():
            place = Path(scratch) / "checkout"
            checkout(sources / project_of(session), place)
            replay(commands[:most], place, shell_tool(governor, place), session, tally)
            shutil.rmtree(place)
    return tally


def shell_tool(governor: Governor, place: Path) -> Any:
    """A shell tool of a checkout."""

    def run(command: str) -> str:
        """Run a shell command."""
        return run_command(command, cwd=place, timeout=SECONDS).text

    return governor.govern(run, **SHELL, runs_commands=True)


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", type=Path)
    parser.add_argument("--runs", type=int, default=10_000, help="most runs of a project")
    parser.add_argument("--commands", type=int, default=10_000, help="most commands of a run")
    parser.add_argument("-v", action="store_true")
    stated = parser.parse_args()
    if not DEFAULT.exists():
        sys.stdout.write("the corpus of agent commands is not here\n")
        return 0
    projects = {path.name for path in stated.sources.iterdir() if path.is_dir()}
    taken: Counter[str] = Counter()
    runs = {}
    for session, commands in runs_of(DEFAULT, projects).items():
        taken[project_of(session)] += 1
        if taken[project_of(session)] <= stated.runs:
            runs[session] = commands
    for preset in ("balanced", "coding"):
        started = time.monotonic()
        tally = measure(preset, stated.sources, runs, stated.commands)
        seconds = time.monotonic() - started
        asked = sum(tally.asked.values())
        sys.stdout.write(
            f"{preset}: {len(runs)} runs, {tally.commands} commands in {seconds:.0f} s, asked"
            f" {asked} ({asked / tally.commands:.1%}), endings {dict(tally.endings)}\n"
        )
        for rule, count in tally.asked.most_common():
            sys.stdout.write(f"  {rule:60}{count:6}  {count / tally.commands:6.2%}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
