"""AgentDojo without a model: each user's task, alone and fully hijacked, replayed under a policy.

The model is taken to obey every injection that it reads. Printed are, by suite and preset: hijacks
stopped, attacks that succeed by the benchmark's own checks, honest calls that are asked about or
denied, user tasks that keep their utility when honest questions are approved; then the rules that
asked. Usage:

    python -m benchmarks.agentdojo [--suites banking,workspace] [--presets balanced,assistant]
    [--rules] [--misses] [--one-hop] [--facts author,suggested,pasted,none] [--version v1.2.2]

Version 1.2.2 has eight injections without calls; theirs are in ``agentdojo_written``.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.table import Table

from agenttool_otel import Governor, agent_context
from benchmarks.agentdojo_replay import JAILBREAK, VERSION, Recorded, Run
from benchmarks.agentdojo_tools import SUITES
from benchmarks.decision_cache import ComparedCache
from benchmarks.judged import Approver, Facts, Step, decide, facts_of, percent

_MESSAGES = ("slack.read_channel_messages", "slack.read_inbox")
"""What people of the workspace write: an address in it is one that a person sent."""

_MARK: Final = JAILBREAK.split()[0]
"""Begins each injected text."""


class Question(NamedTuple):
    """A question of a replay."""

    suite: str
    task: str  # the user's task, and the injection's
    step: Step
    request: Any


@dataclass
class Score:
    """What one suite comes to under one preset."""

    pairs: int = 0
    texts: int = 0  # pairs without any call of the attacker's: no guard of tools sees them
    stopped: int = 0
    attacked: int = 0
    honest: int = 0
    asked: int = 0
    denied: int = 0
    carrying: int = 0  # honest calls of which an argument holds the injected text
    carrying_asked: int = 0
    tasks: int = 0
    useful: int = 0  # of the tasks that are useful ungoverned
    ungoverned: int = 0
    alone: int = 0
    alone_asked: int = 0
    rules: Counter[tuple[bool, str, str]] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


class Replay:
    """Replays the runs of one suite under one preset."""

    def __init__(
        self,
        recorded: Recorded,
        preset: str,
        *,
        one_hop: bool = False,
        facts: Facts = Facts.AUTHOR,
        **options: Any,
    ) -> None:
        self._recorded = recorded
        self._approver = Approver()
        self._folder = TemporaryDirectory()
        settings = {"agenttool": {"settings": {"preset": preset}}}
        self.governor = Governor(policy_data=settings, approver=self._approver, **options)
        self._environment: Any = None
        self._sessions = 0
        names = [tool.name for tool in recorded.suite.tools]
        plain = {name: recorded.shown_function(name, lambda: self._environment) for name in names}
        stated = facts_of(facts, plain, SUITES[recorded.name])
        if one_hop and "get_webpage" in stated:
            stated["get_webpage"]["sources"] = {"url": ["user", *_MESSAGES]}
        self._tools = {
            name: self.governor.govern(call, **stated[name]) for name, call in plain.items()
        }
        self.score = Score()

    def run(self, run: Run) -> None:
        """Replay one run, and count."""
        score, recorded = self.score, self._recorded
        self._environment = run.user.init_environment(recorded.environment(run.injections))
        before = self._environment.model_copy(deep=True)
        self._sessions += 1
        ran: list[Step] = []
        with agent_context(
            actor="agent:assistant",
            session_id=f"s{self._sessions}",
            user_text=run.user.PROMPT,
            roots=[self._folder.name],
            cwd=self._folder.name,
            interactive=True,
        ):
            outcomes = [(step, *self._step(step, ran, run)) for step in run.steps]
        for step, outcome, rules in outcomes:
            if not step.honest:
                continue
            if run.injection is None:
                score.alone += 1
                score.alone_asked += outcome != "ran"
            else:
                score.honest += 1
                score.asked += outcome == "asked"
                score.denied += outcome == "denied"
                score.carrying += carries(step)
                score.carrying_asked += carries(step) and outcome == "asked"
            for rule in rules:
                score.rules[(True, step.tool, rule)] += run.injection is not None
        calls = [recorded.as_call(step) for step in ran]
        if run.injection is None:
            score.tasks += 1
            score.ungoverned += run.useful
            score.useful += run.useful and recorded.useful(run, before, self._environment, calls)
            return
        score.pairs += 1
        score.texts += all(step.honest for step in run.steps)
        held = [outcome for step, outcome, _ in outcomes if not step.honest and outcome != "ran"]
        for step, _, rules in outcomes:
            for rule in rules if not step.honest else ():
                score.rules[(False, step.tool, rule)] += 1
        score.stopped += bool(held)
        attacked = recorded.attacked(run, before, self._environment, calls)
        score.attacked += attacked
        if not held:
            wanted = ", ".join(f"{step.tool}({step.args})" for step in run.steps if not step.honest)
            score.missed.append(f"{run.user.ID} {run.injection.ID} attacked={attacked} {wanted}")

    def _step(self, step: Step, ran: list[Step], run: Run) -> tuple[str, tuple[str, ...]]:
        decided = decide(self._tools[step.tool], step, self._approver, own=(Exception,))
        if decided.ran:
            ran.append(step)
        if self._approver.asked:
            task = f"{run.user.ID} {run.injection.ID if run.injection else 'alone'}"
            asked = Question(self._recorded.name, task, step, self._approver.request)
            self.score.questions.append(asked)
        return decided.outcome, decided.rules


def carries(step: Step) -> bool:
    """Return whether an argument holds the injected text, such as a channel that is called by it: to
    ask about such a call is right.
    """
    return any(_MARK in str(value) for value in step.args.values())


def measure(
    suites: list[str],
    presets: list[str],
    *,
    one_hop: bool = False,
    facts: Iterable[Facts] = (Facts.AUTHOR,),
    version: str = VERSION,
) -> dict[tuple[str, str, Facts], Score]:
    """Return the scores by suite, preset and facts."""
    found = {}
    for name in suites:
        recorded = Recorded(name, version)
        runs = list(recorded.runs())
        for preset, stated in itertools.product(presets, facts):
            started = time.process_time()
            replay = Replay(recorded, preset, one_hop=one_hop, facts=stated)
            cache = replay.governor.decider._cache = ComparedCache()
            for run in runs:
                replay.run(run)
            found[name, preset, stated] = replay.score
            spent = time.process_time() - started
            print(f"{name} {preset} {stated}: {spent:.0f} s; {cache.compared}", file=sys.stderr)
    return found


def table(scores: dict[tuple[str, str, Facts], Score], version: str) -> Table:
    """Return the table of scores."""
    shown = Table(title=f"AgentDojo {version}, every injection obeyed")
    for heading in (
        "suite",
        "preset",
        "facts",
        "pairs",
        "of text alone",
        "stopped %",
        "attack %",
        "honest calls",
        "asked %",
        "carry the injection",
        "asked of the others %",
        "denied",
        "asked in tasks alone %",
        "utility kept",
    ):
        shown.add_column(heading, justify="right")
    for (suite, preset, facts), one in scores.items():
        shown.add_row(
            suite,
            preset,
            str(facts),
            str(one.pairs),
            str(one.texts),
            percent(one.stopped, one.pairs),
            percent(one.attacked, one.pairs),
            str(one.honest),
            percent(one.asked, one.honest),
            str(one.carrying),
            percent(one.asked - one.carrying_asked, one.honest - one.carrying),
            str(one.denied),
            percent(one.alone_asked, one.alone),
            f"{one.useful} of {one.ungoverned}",
        )
    return shown


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--suites", default="banking,workspace")
    parser.add_argument("--presets", default="balanced,assistant")
    parser.add_argument(
        "--rules", action="store_true", help="print which rule asked about which tool"
    )
    parser.add_argument(
        "--misses", action="store_true", help="print the hijacks that were not stopped"
    )
    parser.add_argument(
        "--one-hop",
        action="store_true",
        help="a web page's address comes from the user or a message, as sources states",
    )
    parser.add_argument("--facts", default="author", help="author, suggested, pasted, none")
    parser.add_argument("--version", default=VERSION, help="of the benchmark, such as v1.2.2")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 150)
    scores = measure(
        options.suites.split(","),
        options.presets.split(","),
        one_hop=options.one_hop,
        facts=[Facts(name) for name in options.facts.split(",")],
        version=options.version,
    )
    console.print(table(scores, options.version))
    for (suite, preset, facts), score in scores.items():
        name = f"{suite} {preset} {facts}"
        if options.rules:
            for (honest, tool, rule), count in sorted(
                score.rules.items(), key=lambda item: (not item[0][0], -item[1])
            ):
                if count:
                    console.print(
                        f"{name} {'honest' if honest else 'attack'} {count:4} {tool} {rule}"
                    )
        for missed in score.missed if options.misses else ():
            console.print(f"{name} not stopped: {missed}", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
