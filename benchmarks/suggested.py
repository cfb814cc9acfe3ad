"""What ``agenttool policy suggest`` is worth: learnt on one half of honest work, tried on the other.

The work is the corpus of a coding agent's commands, half of its sessions, and AgentDojo's user
tasks, half of each suite. Somebody agrees to all that is asked of the first half; what was recorded
is given to ``suggest``. Then the other half is decided with and without the suggested extension, and
so are that half's tasks with every injection obeyed. Printed are the honest calls, and whole tasks,
that nobody is asked about (bar 75 % of the calls), and of the hijacks that write those of which a
write is stopped (bar 85 %): asked about or denied. Usage:

    python -m benchmarks.suggested [--suites banking,workspace] [--coding] [--preset P] [--seed N]
    [--sessions N] [--tasks N] [--least N] [--no-words]

Without ``--no-words`` the words of the first half may stand in the extension, as from a file of
``--words``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from agenttool_otel import GovernedOutcome, Governor, agent_context
from agenttool_otel.evidence.chain import Reading, read_lines
from agenttool_otel.evidence.files import key_of
from agenttool_otel.evidence.suggesting import Suggestion, suggest
from agenttool_otel.policy.bundles.bundle import default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.overlay import overlay
from benchmarks.agent_commands import DEFAULT, shell_tool
from benchmarks.agentdojo import Replay
from benchmarks.agentdojo_replay import Recorded, Run
from benchmarks.agentdojo_tools import SUITES
from benchmarks.judged import percent


class Options(NamedTuple):
    """How it is measured."""

    preset: str
    seed: int
    least: int  # different values before a step is taken
    words: bool  # whether words of the first half may stand in the extension
    sessions: int  # most coding sessions of each half
    tasks: int  # most user tasks of each half of a suite


@dataclass
class Half:
    """What became of the half that nothing was learnt on."""

    calls: int = 0
    calls_free: int = 0  # of them without a question or denial
    tasks: int = 0
    tasks_free: int = 0
    hijacks: int = 0  # those that write
    stopped: int = 0

    def add(self, calls: int, free: int) -> None:
        """Count the calls of an honest task."""
        self.calls += calls
        self.calls_free += free
        self.tasks += 1
        self.tasks_free += calls == free


class Found(NamedTuple):
    """What one kind of work came to."""

    work: str
    rules: int  # of the extension
    before: Half  # without the extension
    after: Half


def halves(names: Iterable[str], seed: int, most: int) -> tuple[list[str], list[str]]:
    """Split names at random into two halves of at most so many each."""
    shuffled = sorted(names)
    random.Random(seed).shuffle(shuffled)
    middle = len(shuffled) // 2
    return shuffled[:middle][:most], shuffled[middle:][:most]


def suggestion(path: Path, options: Options, words: Iterable[str]) -> Suggestion:
    """Return what is suggested of a file of records."""
    settings = {"agenttool": {"settings": {"preset": options.preset}}}
    base = overlay(load_bundle(default_bundle_path()), data=settings)
    key = key_of(path)
    known = list(words) if options.words else []
    return suggest(read_lines([path], key, Reading()), base, key, known, options.least)


def write_extension(made: Suggestion, folder: Path) -> dict[str, Any]:
    """Write an extension; return the options of a Governor that has it."""
    if not made.files:
        return {}
    for name, text in made.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    return {"extension": folder}


# --- a coding agent's commands --------------------------------------------------------------------


def coding_sessions() -> dict[str, list[dict[str, Any]]]:
    """The corpus: the commands of each session, in their order."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in gzip.decompress(DEFAULT.read_bytes()).decode("utf-8").splitlines():
        row = json.loads(line)
        found[row["session"]].append(row)
    return found


def coding(options: Options) -> Found:
    """Learn on half of the sessions, and try the other half."""
    sessions = coding_sessions()
    first, second = halves(sessions, options.seed, options.sessions)
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "decisions.jsonl"
        governor = _coding_governor(options, decisions=f"file:{path}", approver=lambda asked: True)
        tool = shell_tool(governor, False)
        for session in first:
            for row in sessions[session]:
                with _where(session, row), suppress(GovernedOutcome):
                    tool(row["command"])
        governor.close()
        words = [row["command"] for session in first for row in sessions[session]]
        made = suggestion(path, options, words)
        extended = write_extension(made, Path(scratch) / "extension")
        tried = {name: sessions[name] for name in second}
        before = _coding_half(tried, _coding_governor(options))
        after = _coding_half(tried, _coding_governor(options, **extended))
    return Found("coding", len(made.learnt), before, after)


def _coding_governor(options: Options, **others: Any) -> Governor:
    settings = {"agenttool": {"settings": {"preset": options.preset}}}
    return Governor(policy_data=settings, **others)


def _where(session: str, row: dict[str, Any]) -> Any:
    return agent_context(
        actor="agent:bench",
        session_id=session,
        roots=[row["cwd"]],
        cwd=row["cwd"],
        interactive=True,
    )


def _coding_half(sessions: dict[str, list[dict[str, Any]]], governor: Governor) -> Half:
    half, tool = Half(), shell_tool(governor, False)
    for session, rows in sessions.items():
        free = 0
        for row in rows:
            with _where(session, row):
                free += tool.tool.check(command=row["command"]).allowed
        half.add(len(rows), free)
    governor.close()
    return half


# --- AgentDojo ------------------------------------------------------------------------------------


def suite(name: str, options: Options) -> Found:
    """Learn on half of a suite's user tasks, and try the other half, alone and hijacked."""
    recorded = Recorded(name)
    runs: dict[str, list[Run]] = defaultdict(list)
    for run in recorded.runs():
        runs[run.user.ID].append(run)
    first, second = halves(runs, options.seed, options.tasks)
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "decisions.jsonl"
        learning = Replay(recorded, options.preset, decisions=f"file:{path}")
        for task in first:
            for run in runs[task]:
                if run.injection is None:
                    learning.run(run)
        learning.governor.close()
        steps = [step for task in first for run in runs[task][:1] for step in run.steps]
        words = [str(value) for step in steps for value in step.args.values()]
        made = suggestion(path, options, words)
        extended = write_extension(made, Path(scratch) / "extension")
        tried = [run for task in second for run in runs[task]]
        before = _suite_half(name, tried, Replay(recorded, options.preset))
        after = _suite_half(name, tried, Replay(recorded, options.preset, **extended))
    return Found(name, len(made.learnt), before, after)


def _suite_half(name: str, runs: list[Run], replay: Replay) -> Half:
    half, score = Half(), replay.score
    for run in runs:
        if run.injection is not None and not _writes(name, run):
            continue
        calls, asked, stopped = score.alone, score.alone_asked, score.stopped
        replay.run(run)
        if run.injection is None:
            made = score.alone - calls
            half.add(made, made - (score.alone_asked - asked))
        else:
            half.hijacks += 1
            half.stopped += score.stopped - stopped
    replay.governor.close()
    return half


def _writes(name: str, run: Run) -> bool:
    """Return whether a hijack changes anything."""
    hostile = (step.tool for step in run.steps if not step.honest)
    return any(not SUITES[name][tool]["read_only"] for tool in hostile)


# --- the table ------------------------------------------------------------------------------------


def table(found: Iterable[Found], options: Options) -> Table:
    """The figures as a table."""
    shown = Table(title=f"Learnt on one half, tried on the other: {options}")
    headings = ("work", "rules", "calls", "free before %", "free after %", "tasks")
    for heading in (*headings, "free before %", "free after %", "hijacks", "stopped before %"):
        shown.add_column(heading, justify="right")
    shown.add_column("stopped after %", justify="right")
    for one in found:
        shown.add_row(one.work, str(one.rules), *_cells(one))
    return shown


def _cells(one: Found) -> Iterator[str]:
    before, after = one.before, one.after
    yield str(after.calls)
    yield percent(before.calls_free, before.calls)
    yield percent(after.calls_free, after.calls)
    yield str(after.tasks)
    yield percent(before.tasks_free, before.tasks)
    yield percent(after.tasks_free, after.tasks)
    yield str(after.hijacks)
    yield percent(before.stopped, before.hijacks)
    yield percent(after.stopped, after.hijacks)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--suites", default="banking,workspace", help="of AgentDojo; may be empty")
    parser.add_argument("--coding", action="store_true", help="the coding agent's commands, too")
    parser.add_argument("--preset", default="assistant")
    parser.add_argument("--coding-preset", default="coding")
    parser.add_argument("--seed", type=int, default=32)
    parser.add_argument("--least", type=int, default=2)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--no-words", action="store_true")
    stated = parser.parse_args(arguments)
    options = Options(
        stated.preset,
        stated.seed,
        stated.least,
        not stated.no_words,
        stated.sessions,
        stated.tasks,
    )
    found = [suite(name, options) for name in stated.suites.split(",") if name]
    if stated.coding and DEFAULT.exists():
        found.append(coding(options._replace(preset=stated.coding_preset)))
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table(found, options))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
