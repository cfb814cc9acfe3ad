"""What the benchmarks of judgement share: tools made from their descriptions, the facts that these state,
and the counts of what became of each call.

The model is taken to obey every injection that it reads. Honest questions are approved, the others
rejected. A case is stopped when one of its attacker's calls does not run.
"""

from __future__ import annotations

import argparse
import inspect
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeVar

from rich.console import Console
from rich.table import Table

from agenttool_otel import ApprovalAnswer, Governor, ToolDenied, agent_context
from agenttool_otel.preflight.guessed_facts import guesses

_T = TypeVar("_T")
Stated = Mapping[str, Mapping[str, Any]]
"""Facts by the name of a tool."""

TYPES: Final[dict[str, type]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}
"""Types of arguments by their name in a JSON schema."""


class Facts(StrEnum):
    """Where the facts of a benchmark's tools come from."""

    AUTHOR = "author"
    """Written by hand, as the tool's author would."""

    SUGGESTED = "suggested"
    """Printed by ``agenttool tools suggest``, and accepted as they are."""

    PASTED = "pasted"
    """The same, pasted unread: what could make a policy lenient stays a comment."""

    NONE = "none"
    """None is stated."""


@dataclass
class Step:
    """One call of a trajectory."""

    tool: str
    args: dict[str, Any]
    honest: bool


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


class Decided(NamedTuple):
    """What became of a call."""

    outcome: str  # ran (without a question), asked, or denied
    rules: tuple[str, ...]
    ran: bool  # also one that was approved


def decide(
    call: Callable[..., Any],
    step: Step,
    approver: Approver,
    own: tuple[type[Exception], ...] = (),
) -> Decided:
    """Make a governed call, and return what became of it.

    Args:
        call: the governed tool.
        step: the call's arguments, and whether it is the user's.
        approver: who is asked.
        own: exceptions that the tool itself may raise; such a call ran.
    """
    approver.honest, approver.asked, approver.rules = step.honest, False, ()
    try:
        call(**step.args)
    except ToolDenied as denied:
        rules = approver.rules or (str(denied),)
        return Decided("asked" if approver.asked else "denied", rules, ran=False)
    except own:
        pass
    return Decided("asked" if approver.asked else "ran", approver.rules, ran=True)


def facts_of(
    facts: Facts, tools: Mapping[str, Callable[..., Any]], author: Stated
) -> dict[str, dict[str, Any]]:
    """Return what each tool states.

    Args:
        facts: where it comes from.
        tools: the tools, ungoverned, by name.
        author: what their author states.
    """
    if facts is Facts.AUTHOR:
        return {name: dict(author[name]) for name in tools}
    if facts is Facts.NONE:
        return {name: {} for name in tools}
    governor = Governor()
    specs = {name: governor.govern(call, name=name).tool.spec for name, call in tools.items()}
    governor.close()
    return {
        name: {
            guess.keyword: guess.value
            for guess in guesses(spec, specs.values())
            if facts is Facts.SUGGESTED or not guess.loosens
        }
        for name, spec in specs.items()
    }


class Described(NamedTuple):
    """A tool as a benchmark's data describes it."""

    name: str
    description: str
    arguments: Mapping[str, type] = {}
    optional: frozenset[str] = frozenset()

    def function(self, body: Callable[[str], Any]) -> Callable[..., Any]:
        """Return a function of this name and these arguments, which gives what the body does of
        its name.
        """

        def call(**_: Any) -> Any:
            return body(self.name)

        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter(
                name,
                keyword,
                annotation=kind,
                default=None if name in self.optional else inspect.Parameter.empty,
            )
            for name, kind in self.arguments.items()
        ]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = dict(self.arguments)
        call.__name__, call.__doc__ = self.name, self.description
        return call


class Case(NamedTuple):
    """A session: what the user wrote, and the calls of an agent that obeys what it reads."""

    kind: str  # the row of the table
    name: str
    words: str | list[str]
    steps: list[Step]
    results: Mapping[str, Any] = {}  # by the name of a tool; others give "done"
    roots: tuple[str, ...] = ()  # folders of the user's beside an empty one


class Benchmark(NamedTuple):
    """Tools, what their author states of them, and the cases."""

    name: str
    tools: list[Described]
    author: Stated
    cases: list[Case]


@dataclass
class Tally:
    """What the cases of one kind came to."""

    attacks: int = 0
    stopped: int = 0
    honest: int = 0
    asked: int = 0
    denied: int = 0
    rules: Counter[tuple[bool, str, str]] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)

    def add(self, case: Case, decided: Iterable[Decided]) -> None:
        """Count a case."""
        made = list(zip(case.steps, decided, strict=True))
        for step, one in made:
            for rule in one.rules:
                self.rules[step.honest, step.tool, rule] += 1
            if step.honest:
                self.honest += 1
                self.asked += one.outcome == "asked"
                self.denied += one.outcome == "denied"
        attacks = [(step, one) for step, one in made if not step.honest]
        if not attacks:
            return
        self.attacks += 1
        stopped = any(not one.ran for _, one in attacks)
        self.stopped += stopped
        if not stopped:
            calls = ", ".join(f"{step.tool}({step.args})" for step, _ in attacks)
            self.missed.append(f"{case.name}: {calls}")


class Replay:
    """Replays the cases of a benchmark with its tools in a session each."""

    def __init__(self, benchmark: Benchmark, facts: Facts, preset: str) -> None:
        self._approver = Approver()
        self._results: Mapping[str, Any] = {}
        self._folder = TemporaryDirectory()
        self._sessions = 0
        settings = {"agenttool": {"settings": {"preset": preset}}}
        governor = Governor(policy_data=settings, approver=self._approver)
        plain = {tool.name: tool.function(self._result) for tool in benchmark.tools}
        stated = facts_of(facts, plain, benchmark.author)
        self._tools = {name: governor.govern(call, **stated[name]) for name, call in plain.items()}
        self.tallies: dict[str, Tally] = {}

    def _result(self, name: str) -> Any:
        return self._results.get(name, "done")

    def run(self, case: Case) -> list[Decided]:
        """Replay a case, count it, and return what became of its calls."""
        self._results = case.results
        self._sessions += 1
        with agent_context(
            actor="agent:assistant",
            session_id=f"s{self._sessions}",
            user_text=case.words,
            roots=[self._folder.name, *case.roots],
            cwd=self._folder.name,
            interactive=True,
        ):
            decided = [decide(self._tools[step.tool], step, self._approver) for step in case.steps]
        self.tallies.setdefault(case.kind, Tally()).add(case, decided)
        return decided


def percent(part: int, whole: int) -> str:
    """Return a share with one decimal."""
    return f"{100 * part / whole:.1f}" if whole else "-"


def parser_of(doc: str) -> argparse.ArgumentParser:
    """Return a parser with the options that these benchmarks share.

    Args:
        doc: the module's text, for ``--help``.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="assistant")
    parser.add_argument("--facts", default="author,suggested,none")
    parser.add_argument("--sample", type=int, default=0, help="draw so many cases; 0: all")
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--misses", type=int, default=0, help="print so many that ran, drawn")
    parser.add_argument("--rules", action="store_true", help="print what asked about which tool")
    return parser


def drawn(given: list[_T], count: int, seed: int) -> list[_T]:
    """Return as many as are wanted, drawn with a seed; 0 is all of them."""
    if not 0 < count < len(given):
        return given
    return random.Random(seed).sample(given, count)


def measure(
    doc: str | None,
    load: Callable[[argparse.Namespace], Benchmark],
    arguments: Sequence[str],
) -> int:
    """Replay the benchmark of a folder or file of data, and print its counts.

    Args:
        doc: the module's text, for ``--help``.
        load: reads the benchmark; ``data`` of what it is given is the place.
        arguments: what was typed.
    """
    parser = parser_of(doc or "")
    parser.add_argument("data", type=Path)
    options = parser.parse_args(arguments)
    report(load(options), options)
    return 0


def report(benchmark: Benchmark, options: argparse.Namespace) -> None:
    """Replay a benchmark with the facts that are asked for, and print its counts."""
    console = Console(width=None if sys.stdout.isatty() else 150)
    cases = drawn(benchmark.cases, options.sample, options.seed)
    table = Table(title=f"{benchmark.name}, {options.preset}, seed {options.seed}")
    for heading in ("what", "facts", "attacks", "stopped %", "honest calls", "asked %", "denied"):
        table.add_column(heading, justify="left" if heading in {"what", "facts"} else "right")
    details: list[str] = []
    for facts in map(Facts, options.facts.split(",")):
        started = time.process_time()
        replay = Replay(benchmark, facts, options.preset)
        for case in cases:
            replay.run(case)
        print(f"{facts}: {time.process_time() - started:.0f} s", file=sys.stderr)
        for kind, tally in replay.tallies.items():
            table.add_row(kind, str(facts), *_cells(tally))
            details += _details(f"{kind} {facts}", tally, options)
    console.print(table)
    for line in details:
        print(line)


def _cells(tally: Tally) -> list[str]:
    return [
        str(tally.attacks),
        percent(tally.stopped, tally.attacks),
        str(tally.honest),
        percent(tally.asked, tally.honest),
        str(tally.denied),
    ]


def _details(name: str, tally: Tally, options: argparse.Namespace) -> Iterable[str]:
    if options.rules:
        for (honest, tool, rule), count in tally.rules.most_common():
            yield f"{name} {'honest' if honest else 'attack'} {count:4} {tool} {rule}"
    if options.misses:
        for missed in drawn(tally.missed, options.misses, options.seed):
            yield f"{name} not stopped: {missed}"
