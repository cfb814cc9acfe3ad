"""What a person is shown of the questions that AgentDojo's replays ask.

Printed are, of all questions and of a sample drawn with a seed: how many show every value at stake,
where it came from, and what the user wrote. Then the sample itself, as the console shows it, with
whether the call was the task's or the attacker's. Usage:

    python -m benchmarks.questions [--suites banking,workspace,slack,travel] [--preset assistant]
    [--sample 40] [--seed 33]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from agenttool_otel.approvals.display import arguments_text, request_facts
from benchmarks.agentdojo import Question, measure


class Shown(NamedTuple):
    """What one question shows."""

    values: bool  # every value of the call's arguments that is at stake, as it is
    source: bool  # where such a value came from
    words: bool  # what the user wrote


def shown(question: Question) -> Shown:
    """Return what a question shows to the person who answers it."""
    request = question.request
    text = "\n".join(value for _, value in request_facts(request))
    text += arguments_text(request.arguments_preview)
    values = [value for value in _leaves(_at_stake(question)) if _spelt(value) not in text]
    return Shown(not values, bool(request.question), bool(request.user_words))


def _at_stake(question: Question) -> Any:
    """Return the arguments of which the question complains, or all where it names none."""
    names = {
        place["argument"].split("/")[1]
        for place in question.request.places
        if not place["access"] and "/" in place["argument"]
    }
    given = question.step.args
    return {name: given[name] for name in names & given.keys()} or given


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _spelt(value: Any) -> str:
    spelt = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
    return spelt.strip('"')


def _report(name: str, questions: list[Question]) -> None:
    for honest in (False, True):
        kind = [shown(one) for one in questions if one.step.honest is honest]
        values, sources, words = (
            (sum(column) for column in zip(*kind, strict=True)) if kind else (0, 0, 0)
        )
        whose = "honest" if honest else "attack"
        print(
            f"{name}, {whose}: {len(kind)} questions; value shown {values}, "
            f"source {sources}, user's words {words}"
        )


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--suites", default="banking,workspace,slack,travel")
    parser.add_argument("--preset", default="assistant")
    parser.add_argument("--sample", type=int, default=40)
    parser.add_argument("--seed", type=int, default=33)
    options = parser.parse_args(arguments)
    scores = measure(options.suites.split(","), [options.preset])
    questions = [one for score in scores.values() for one in score.questions]
    drawn = random.Random(options.seed).sample(questions, min(options.sample, len(questions)))
    _report("all", questions)
    _report("sample", drawn)
    for number, one in enumerate(drawn, 1):
        whose = "honest" if one.step.honest else "attack"
        print(f"\n--- {number} · {one.suite} {one.task} · {whose}")
        for label, value in request_facts(one.request)[:2]:
            print(f"{label}: {value}")
        print(f"Reason: {one.request.message}")
        print(arguments_text(one.request.arguments_preview))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
