"""AgentDojo without a model: each user's task, alone and fully hijacked, replayed under a policy.

The model is taken to obey every injection that it reads. Printed are, by suite and preset: hijacks
stopped, attacks that succeed by the benchmark's own checks, honest calls that are asked about or
denied, user tasks that keep their utility when honest questions are approved; then the rules that
asked. Usage:

    python -m benchmarks.agentdojo [--suites banking,workspace] [--presets balanced,assistant]
    [--rules] [--misses] [--one-hop]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from agenttool_otel import ApprovalAnswer, Governor, ToolDenied, agent_context
from benchmarks.agentdojo_replay import Recorded, Run, Step
from benchmarks.agentdojo_tools import SUITES

_MESSAGES = ("slack.read_channel_messages", "slack.read_inbox")
"""What people of the workspace write: an address in it is one that a person sent."""


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
    stopped: int = 0
    attacked: int = 0
    honest: int = 0
    asked: int = 0
    denied: int = 0
    tasks: int = 0
    useful: int = 0  # of the tasks that are useful ungoverned
    ungoverned: int = 0
    alone: int = 0
    alone_asked: int = 0
    rules: Counter[tuple[bool, str, str]] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


class Approver:
    """Approves the questions about honest calls and rejects the others; remembers that it
    was asked.
    """

    def __init__(self) -> None:
        self.honest = True
        self.rules: tuple[str, ...] = ()
        self.asked = False
        self.request: Any = None

    def ask(self, request: Any) -> ApprovalAnswer:
        """Answer."""
        self.asked, self.rules, self.request = True, tuple(request.rule_refs), request
        return ApprovalAnswer(approved=self.honest, answered_by="user:benchmark")


class Replay:
    """Replays the runs of one suite under one preset."""

    def __init__(
        self, recorded: Recorded, preset: str, *, one_hop: bool = False, **options: Any
    ) -> None:
        self._recorded = recorded
        self._one_hop = one_hop
        self._approver = Approver()
        self._folder = TemporaryDirectory()
        settings = {"agenttool": {"settings": {"preset": preset}}}
        self.governor = Governor(policy_data=settings, approver=self._approver, **options)
        self._environment: Any = None
        self._sessions = 0
        self._tools = {tool.name: self._governed(tool.name) for tool in recorded.suite.tools}
        self.score = Score()

    def _governed(self, name: str) -> Any:
        call = self._recorded.shown_function(name, lambda: self._environment)
        facts = SUITES[self._recorded.name][name]
        if self._one_hop and name == "get_webpage":
            facts = {**facts, "sources": {"url": ["user", *_MESSAGES]}}
        return self.governor.govern(call, **facts)

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
            for rule in rules:
                score.rules[(True, step.tool, rule)] += run.injection is not None
        calls = [recorded.as_call(step) for step in ran]
        if run.injection is None:
            score.tasks += 1
            score.ungoverned += run.useful
            score.useful += run.useful and recorded.useful(run, before, self._environment, calls)
            return
        score.pairs += 1
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
        approver = self._approver
        approver.honest, approver.asked, approver.rules = step.honest, False, ()
        try:
            outcome = self._called(step, ran)
        finally:
            if approver.asked:
                task = f"{run.user.ID} {run.injection.ID if run.injection else 'alone'}"
                asked = Question(self._recorded.name, task, step, approver.request)
                self.score.questions.append(asked)
        return outcome

    def _called(self, step: Step, ran: list[Step]) -> tuple[str, tuple[str, ...]]:
        approver = self._approver
        try:
            self._tools[step.tool](**step.args)
        except ToolDenied as denied:
            rules = approver.rules or (str(denied),)
            return ("asked" if approver.asked else "denied"), rules
        except Exception:  # the tool's own
            pass
        ran.append(step)
        return ("asked" if approver.asked else "ran"), approver.rules


def measure(
    suites: list[str], presets: list[str], *, one_hop: bool = False
) -> dict[tuple[str, str], Score]:
    """Return the scores by suite and preset."""
    found = {}
    for name in suites:
        recorded = Recorded(name)
        runs = list(recorded.runs())
        for preset in presets:
            started = time.process_time()
            replay = Replay(recorded, preset, one_hop=one_hop)
            for run in runs:
                replay.run(run)
            found[name, preset] = replay.score
            print(f"{name} {preset}: {time.process_time() - started:.0f} s", file=sys.stderr)
    return found


def table(scores: dict[tuple[str, str], Score]) -> Table:
    """Return the table of scores."""
    shown = Table(title="AgentDojo v1.1.2, every injection obeyed")
    for heading in (
        "suite",
        "preset",
        "pairs",
        "stopped %",
        "attack %",
        "honest calls",
        "asked %",
        "denied",
        "asked in tasks alone %",
        "utility kept",
    ):
        shown.add_column(heading, justify="right")
    for (suite, preset), one in scores.items():
        shown.add_row(
            suite,
            preset,
            str(one.pairs),
            _share(one.stopped, one.pairs),
            _share(one.attacked, one.pairs),
            str(one.honest),
            _share(one.asked, one.honest),
            str(one.denied),
            _share(one.alone_asked, one.alone),
            f"{one.useful} of {one.ungoverned}",
        )
    return shown


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


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
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 150)
    scores = measure(options.suites.split(","), options.presets.split(","), one_hop=options.one_hop)
    console.print(table(scores))
    for (suite, preset), score in scores.items():
        if options.rules:
            for (honest, tool, rule), count in sorted(
                score.rules.items(), key=lambda item: (not item[0][0], -item[1])
            ):
                if count:
                    console.print(
                        f"{suite} {preset} {'honest' if honest else 'attack'} {count:4} {tool} {rule}"
                    )
        for missed in score.missed if options.misses else ():
            console.print(f"{suite} {preset} not stopped: {missed}", soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
