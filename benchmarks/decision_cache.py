"""How many of a coding agent's new commands the decision cache answers: ``python -m
benchmarks.decision_cache [file]``.

Each command of the corpus of ``benchmarks.agent_commands`` is checked once, however often the agents
gave it. A hit is compared with what the engine gives for the same input: with an equal answer, it
counts; the others are printed.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from agenttool_otel import Governor, agent_context
from agenttool_otel.names import Behavior
from agenttool_otel.policy.cache import DecisionCache, Lookup
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.types import PolicyEngine, Verdict
from benchmarks.agent_commands import DEFAULT, corpus, shell_tool

BAR: Final = 0.15
_OF_THIS_CALL: Final = frozenset({"cached", "duration", "engine_duration"})


class ComparedCache(DecisionCache):
    """A decision cache that asks the engine again at each hit."""

    def __init__(self) -> None:
        super().__init__(100_000)
        self.was_hit = False
        self.wrong: list[Any] = []

    def lookup(self, engine: PolicyEngine, document: Any) -> Lookup:
        """Find what was decided, and compare it with what is decided now."""
        found = super().lookup(engine, document)
        self.was_hit = found.verdict is not None
        if found.verdict is not None:
            fresh = Decider((engine,)).decide(document)
            if _content(found.verdict) != _content(fresh):
                self.wrong.append(document["input"])
        return found

    @property
    def compared(self) -> str:
        """How many hits there were, and how many were not the engine's answer."""
        return f"{self.stats().hits} hits, {len(self.wrong)} that are not the engine's answer"


def _content(verdict: Verdict) -> dict[str, Any]:
    names = [one.name for one in fields(verdict) if one.name not in _OF_THIS_CALL]
    return {name: getattr(verdict, name) for name in names}


def measure(path: Path, preset: str) -> tuple[Counter[tuple[str, bool]], list[Any]]:
    """Return how many commands had each behaviour, by hit or not, and the inputs of wrong hits."""
    cache = ComparedCache()
    settings = {"agenttool": {"settings": {"preset": preset}}}
    governor = Governor(policy_data=settings)
    governor.decider._cache = cache
    shell = shell_tool(governor, held=True)
    counted: Counter[tuple[str, bool]] = Counter()
    for cwd, command in corpus(path):
        where: dict[str, Any] = {"roots": [cwd], "cwd": cwd, "interactive": True}
        with agent_context(actor="agent:bench", session_id="bench", **where):
            answer = shell.tool.check(command=command)
        counted[answer.behavior.value, cache.was_hit] += 1
    return counted, cache.wrong


def rows() -> list[tuple[str, float]]:
    """No part of a call."""
    return []


def bars() -> list[tuple[str, float, float, str]]:
    """The bar of the design, where the corpus is here."""
    if not DEFAULT.exists():
        sys.stderr.write("the corpus of agent commands is not here: no figure of the cache\n")
        return []
    counted, wrong = measure(DEFAULT, "coding")
    hits, misses = counted[Behavior.ALLOW, True], counted[Behavior.ALLOW, False]
    name = "recorded commands, coding: new allows that the cache misses"
    times = f"{misses} of {hits + misses}, {len(wrong)} wrong hits"
    return [(name, misses / (hits + misses), BAR, times)]


def main() -> int:
    """Print the figures."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    if not path.exists():
        sys.stdout.write("the corpus of agent commands is not here\n")
        return 0
    failed = False
    for preset in ("balanced", "coding"):
        counted, wrong = measure(path, preset)
        sys.stdout.write(f"{preset}: {counted.total()} different commands\n")
        for behavior in Behavior:
            hits, misses = counted[behavior, True], counted[behavior, False]
            if hits + misses:
                share = hits / (hits + misses)
                sys.stdout.write(f"  {behavior:12}{hits + misses:6}, of which hits {share:7.1%}\n")
        sys.stdout.write(f"  hits that are not the engine's answer: {len(wrong)}\n")
        for given in wrong:
            failed = True
            sys.stdout.write(f"    {given}\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
