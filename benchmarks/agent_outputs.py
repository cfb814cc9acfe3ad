"""Whose output differs because it is held: a coding agent's recorded commands, rehearsed and plain.

Each command runs three times, in checkouts with the same past: rehearsed under ``coding``, and twice
with nothing that holds it. What differs between the two plain runs (times, addresses, order) is no
difference of the profile: ``python -m benchmarks.agent_outputs DIRECTORY [--runs N] [--commands N]``,
with the directory and the corpus of ``benchmarks.agent_runs``. Commands that need the network are
rejected there, and not compared.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from agenttool_otel import GovernedOutcome, Governor, agent_context, run_command
from benchmarks.agent_commands import DEFAULT
from benchmarks.agent_runs import (
    RECORDED_AT,
    SECONDS,
    Person,
    Tally,
    checkout,
    project_of,
    runs_of,
    shell_tool,
)

_CHANGING = re.compile(
    r"0x[0-9a-f]+|\d+(?:\.\d+)? ?m?s\b|\d\d:\d\d(?::\d\d)?|\b[0-9a-f]{7,40}\b|={3,}"
)
"""Times, addresses, commits, and the bars that pytest draws as wide as a time leaves room for."""


class Places:
    """Three checkouts of one session."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.held, self.first, self.second = (folder / name for name in "hpq")
        for place in (self.held, self.first, self.second):
            checkout(source, place)

    def plain(self, command: str, place: Path) -> str:
        """Run a command with nothing that holds it, and return what it printed."""
        line = command.replace(RECORDED_AT, str(place))
        return same(run_command(line, cwd=place, timeout=SECONDS).text, place)

    def rehearsed(self, command: str, tool: Any) -> str:
        """Run a command under the policy, and return what it printed.

        Raises:
            GovernedOutcome: it did not run.
        """
        return same(tool(command.replace(RECORDED_AT, str(self.held))), self.held)


def same(output: str, place: Path) -> str:
    """An output without what differs each time."""
    return _CHANGING.sub("?", output.replace(str(place), "PLACE"))


def compare(session: str, commands: list[str], places: Places, governor: Governor) -> Counter[str]:
    """Compare the commands of a session, and print those whose output differs."""
    found: Counter[str] = Counter()
    tool = shell_tool(governor, places.held)
    root = str(places.held)
    with agent_context(
        actor="agent:bench", session_id=session, roots=[root], cwd=root, interactive=True
    ):
        for command in commands:
            try:
                held = places.rehearsed(command, tool)
            except GovernedOutcome:
                found["not run"] += 1
                continue
            first = places.plain(command, places.first)
            second = places.plain(command, places.second)
            ending = "equal"
            if first != second:
                ending = "noise"
            elif held != first:
                ending = "differs"
                show(command, held, first)
            found[ending] += 1
    return found


def show(command: str, held: str, plain: str) -> None:
    """Print a command, and the first lines in which its outputs differ."""
    pairs = zip((*held.splitlines(), ""), (*plain.splitlines(), ""), strict=False)
    lines = next(((one, other) for one, other in pairs if one != other), ("", ""))
    sys.stdout.write(
        f"  {command[:150]!r}\n    held:  {lines[0][:150]}\n    plain: {lines[1][:150]}\n"
    )


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", type=Path)
    parser.add_argument("--runs", type=int, default=10_000, help="most runs of a project")
    parser.add_argument("--commands", type=int, default=10_000, help="most commands of a run")
    stated = parser.parse_args()
    if not DEFAULT.exists():
        sys.stdout.write("the corpus of agent commands is not here\n")
        return 0
    projects = {path.name for path in stated.sources.iterdir() if path.is_dir()}
    taken: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for session, commands in runs_of(DEFAULT, projects).items():
        taken[project_of(session)] += 1
        if taken[project_of(session)] > stated.runs:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            governor = Governor(
                policy_preset="coding",
                rehearsals_dir=str(folder / "state"),
                approver=Person(Tally()),
            )
            places = Places(folder, stated.sources / project_of(session))
            found += compare(session, commands[: stated.commands], places, governor)
            governor.close()
    ran = sum(found.values()) - found["not run"]
    sys.stdout.write(f"{dict(found)}; {found['differs'] / ran:.1%} differ because they are held\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
