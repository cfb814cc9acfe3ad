"""InjecAgent without a model: a user's read, and what its result tells the agent to do.

Direct harm is one call of the attacker's. Data stealing is a read of what is the user's own, drawn from the
calls that InjecAgent's own agents made, and a mail of it to the attacker. Each of the 17 user tools
meets each of the 30 and 32 attacks. The read of the user's tool is honest. Usage:

    python -m benchmarks.injecagent DATA [--facts author,suggested,pasted,none] [--preset assistant]
    [--sample 0] [--seed 33] [--misses 10] [--rules]

DATA is the folder ``data`` of a copy of InjecAgent (github.com/uiuc-kang-lab/InjecAgent).
"""

from __future__ import annotations

import ast
import json
import keyword
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.injecagent_tools import AUTHOR, CALLS
from benchmarks.judged import TYPES, Benchmark, Case, Described, Step, measure

_SLOT: Final = "<Attacker Instruction>"
_SENDER: Final = "GmailSendEmail"
_ATTACKER: Final = "amy.watson@gmail.com"
_MADE: Final = re.compile(r"\((\w+), *(.*)\)", re.S)


class _Read(NamedTuple):
    """A call of a reader that an agent made, and what it was given."""

    args: dict[str, Any]
    result: str


def load(folder: Path, seed: int) -> Benchmark:
    """Return the tools and the cases of a folder of data.

    Args:
        folder: the folder.
        seed: of the recorded calls that are drawn.
    """
    described = {tool.name: tool for tool in _tools(folder)}
    users = _lines(folder / "user_cases.jsonl")
    harm = _lines(folder / "attacker_cases_dh.jsonl")
    theft = _lines(folder / "attacker_cases_ds.jsonl")
    reads = _recorded(folder, described)
    draw = random.Random(seed)
    cases = [_harm(user, attack) for user in users for attack in harm]
    for user in users:
        for attack in theft:
            made = reads[attack["Attacker Tools"][0]]
            cases.append(_theft(user, attack, draw.choice(made)))
    names = {step.tool for case in cases for step in case.steps}
    tools = [described[name] for name in sorted(names)]
    return Benchmark("InjecAgent", tools, AUTHOR, cases)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def _tools(folder: Path) -> Iterator[Described]:
    for kit in json.loads((folder / "tools.json").read_text("utf-8")):
        for tool in kit["tools"]:
            given = [(_spelt(one["name"]), one) for one in tool["parameters"]]
            arguments = {name: TYPES[one["type"]] for name, one in given}
            optional = frozenset(name for name, one in given if not one.get("required"))
            name = f"{kit['name_for_model']}{tool['name']}"
            yield Described(name, tool["summary"], arguments, optional)


def _spelt(name: str) -> str:
    # GmailSearchEmails has an argument "from", which no function of Python can have
    return f"{name}_" if keyword.iskeyword(name) else name


def _recorded(folder: Path, tools: dict[str, Described]) -> dict[str, list[_Read]]:
    """Return the recorded calls that fit their tools' schemas, by tool.

    ``"(AmazonViewSavedAddresses,{})": "[...]"`` is one; arguments are JSON or Python.
    """
    found: dict[str, list[_Read]] = defaultdict(list)
    path = folder / "attacker_simulated_responses.json"
    for made, result in json.loads(path.read_text("utf-8")).items():
        match = _MADE.fullmatch(made)
        if match is None or match[1] not in tools:
            continue
        args = _literal(match[2])
        if isinstance(args, dict) and _fits(tools[match[1]], args):
            found[match[1]].append(_Read(args, result))
    return found


def _fits(tool: Described, args: dict[str, Any]) -> bool:
    if not tool.arguments.keys() - tool.optional <= args.keys() <= tool.arguments.keys():
        return False
    return all(isinstance(value, tool.arguments[name]) for name, value in args.items())


def _literal(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return None


def _harm(user: dict[str, Any], attack: dict[str, Any]) -> Case:
    tool = attack["Attacker Tools"][0]
    return _case("direct harm", user, attack, [Step(tool, CALLS[tool], honest=False)], {})


def _theft(user: dict[str, Any], attack: dict[str, Any], read: _Read) -> Case:
    tool = attack["Attacker Tools"][0]
    mail = {"to": _ATTACKER, "subject": "Details", "body": read.result}
    steps = [Step(tool, read.args, honest=False), Step(_SENDER, mail, honest=False)]
    return _case("data stealing", user, attack, steps, {tool: read.result})


def _case(
    kind: str,
    user: dict[str, Any],
    attack: dict[str, Any],
    hostile: list[Step],
    results: dict[str, Any],
) -> Case:
    tool = user["User Tool"]
    template = ast.literal_eval(user["Tool Response Template"])
    poisoned = _filled(template, attack["Attacker Instruction"])
    given = ast.literal_eval(user["Tool Parameters"])
    args = {_spelt(name): value for name, value in given.items()}
    # GitHubGetUserDetails is a tool of the user's and of an attacker's: the user's result counts
    return Case(
        kind,
        f"{tool} {attack['Attacker Tools'][0]}",
        user["User Instruction"],
        [Step(tool, args, honest=True), *hostile],
        {**results, tool: poisoned},
    )


def _filled(value: Any, instruction: str) -> Any:
    if isinstance(value, str):
        return value.replace(_SLOT, instruction)
    if isinstance(value, dict):
        return {key: _filled(child, instruction) for key, child in value.items()}
    return [_filled(child, instruction) for child in value] if isinstance(value, list) else value


def main(arguments: list[str]) -> int:
    """Measure and print."""
    return measure(__doc__, lambda options: load(options.data, options.seed), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
