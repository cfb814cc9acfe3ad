"""How well and how fast the catalog's search finds tools: ``python -m benchmarks.tool_search
[FOLDER]``.

FOLDER holds BFCL v4 (github.com/ShishirPatil/gorilla,
berkeley-function-call-leaderboard/bfcl_eval/data): its files simple_python, multiple, live_simple
and live_multiple, with their possible_answer. Without it only speed and size are measured, with
made-up declarations.
"""

from __future__ import annotations

import gc
import itertools
import json
import random
import resource
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agenttool_otel import Governor, agent_context
from agenttool_otel.catalog.search import (
    Backend,
    Fts5Backend,
    TantivyBackend,
    ToolIndex,
    text_of,
    words_of,
)

FILES = ("simple_python", "live_simple", "multiple", "live_multiple")
HELD_OUT = ("multiple", "live_multiple")
BACKENDS: dict[str, type[Backend]] = {"tantivy": TantivyBackend, "fts5": Fts5Backend}
MANY = 100_000


def bfcl(folder: Path) -> tuple[dict[str, dict[str, Any]], list[tuple[str, str, str]]]:
    """Return the pool of functions as declarations by name, and (file, question, right name) of
    each question.
    """
    pool: dict[tuple[str, str], dict[str, Any]] = {}
    questions = []
    for file in FILES:
        answers = {
            entry["id"]: next(iter(entry["ground_truth"][0]))
            for entry in _lines(folder / "possible_answer" / f"BFCL_v4_{file}.json")
        }
        for entry in _lines(folder / f"BFCL_v4_{file}.json"):
            for function in entry["function"]:
                pool.setdefault(
                    (function["name"], function["description"]),
                    {
                        "name": function["name"],
                        "description": function["description"],
                        "input_contract": {"model_input_schema": function["parameters"]},
                    },
                )
            if entry["id"] in answers:
                said = " ".join(
                    turn["content"] for turn in entry["question"][0] if turn["role"] == "user"
                )
                questions.append((file, said, answers[entry["id"]]))
    return {
        f"t{number}": declaration for number, declaration in enumerate(pool.values())
    }, questions


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def recall(name: str, folder: Path) -> None:
    """Print how often the right tool is among the first found."""
    pool, questions = bfcl(folder)
    index = ToolIndex(BACKENDS[name]())
    index.add((tool_id, text_of(tool)) for tool_id, tool in pool.items())
    ranks: dict[str, list[int]] = {file: [] for file in FILES}
    for file, question, right in questions:
        names = [pool[tool_id]["name"] for tool_id, _ in index.search(question, 10)]
        ranks[file].append(names.index(right) + 1 if right in names else 99)
    every = [rank for file in FILES for rank in ranks[file]]
    held_out = [rank for file in HELD_OUT for rank in ranks[file]]
    for label, of in (("all four files", every), ("multiple and live_multiple", held_out)):
        shares = " ".join(
            f"@{top} {sum(rank <= top for rank in of) / len(of):.3f}" for top in (1, 5, 10)
        )
        print(f"{name:8} {label:27} {len(of)} questions, {len(pool)} tools: {shares}")
    print(f"{name:8} one letter missing in a name: top 5 {misspelt(index, pool):.3f}")


def misspelt(index: ToolIndex, pool: dict[str, dict[str, Any]]) -> float:
    """Return how often a tool is among the first five when one word of its name lacks a letter."""
    chance, found, asked = random.Random(7), 0, 0
    for name in sorted({tool["name"] for tool in pool.values()}):
        words = words_of(name)
        long = [at for at, word in enumerate(words) if len(word) > 3]
        if not long:
            continue
        at = chance.choice(long)
        gone = chance.randrange(len(words[at]))
        words[at] = words[at][:gone] + words[at][gone + 1 :]
        asked += 1
        found += name in [pool[tool_id]["name"] for tool_id, _ in index.search(" ".join(words), 5)]
    return found / asked


def made_up(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield declarations with names and descriptions of words as frequent as in a language."""
    chance = random.Random(seed)
    letters = "bcdfghklmnprstvz"
    words = [
        "".join(
            chance.choice(letters) + chance.choice("aeiou") for _ in range(chance.randint(2, 4))
        )
        for _ in range(20_000)
    ]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    for number in range(count):
        said = chance.choices(words, cum_weights=weights, k=31)
        yield {
            "schema_version": "0.2.0",
            "tool_id": f"made.{said[0]}_{said[1]}_{number}",
            "namespace": "made",
            "name": f"{said[0]}_{said[1]}_{number}",
            "description": " ".join(said[2:27]),
            "lifecycle": "deferred",
            "tool_kind": "function",
            "input_contract": {
                "model_input_schema": {
                    "type": "object",
                    "properties": {
                        said[27]: {
                            "type": "string",
                            "description": f"{said[28]} {said[29]} {said[30]}",
                        }
                    },
                }
            },
        }


def speed(name: str) -> None:
    """Print how long an index takes to build, and to answer."""
    tools = list(made_up(MANY))
    before, started = _memory(), time.perf_counter()
    index = ToolIndex(BACKENDS[name]())
    index.add((tool["tool_id"], text_of(tool)) for tool in tools)
    built = time.perf_counter() - started
    print(f"{name:8} {MANY} tools: built in {built:.1f} s, {_memory() - before:.0f} MB")
    chance = random.Random(3)
    for count in (3, 12):
        times = []
        for _ in range(300):
            said = chance.choice(tools)["description"].split()
            query = " ".join(chance.sample(said, count))
            started = time.perf_counter()
            index.search(query, 20)
            times.append((time.perf_counter() - started) * 1000)
        print(
            f"{name:8} {count} words: median {statistics.median(times):.2f} ms, p95 {sorted(times)[285]:.2f} ms"
        )


def whole(count: int = MANY) -> None:
    """Print what a catalog of a Governor takes, and a search that puts what it finds before the
    policy.
    """
    governor, before, names = Governor(), _memory(), []
    taken = 0.0
    for first in range(0, count, 1000):
        tools = list(made_up(1000, seed=first))
        for number, tool in enumerate(tools):
            tool["name"] = f"{tool['name']}_{first + number}"
            tool["tool_id"] = f"made.{tool['name']}"
        names += [(tool["name"], tool["description"].split()) for tool in tools[:10]]
        started = time.process_time()
        governor.catalog.add_json({"tools": tools})
        taken += time.process_time() - started
    started = time.process_time()
    governor.catalog.rank("anything", 1)
    indexed = time.process_time() - started
    print(
        f"catalog  {count} tools: {taken:.1f} s and {indexed:.1f} s of CPU, {_memory() - before:.0f} MB with index"
    )
    chance = random.Random(3)
    queries = {
        "3 words": [" ".join(chance.sample(said, 3)) for _, said in names[:300]],
        "12 words": [" ".join(chance.sample(said, 12)) for _, said in names[:300]],
        "exact": [f"select:{name}" for name, _ in names[:300]],
    }
    with agent_context(actor="agent:bench", session_id="bench"):
        governor.surface()
        for label, asked in queries.items():
            times = []
            for query in asked:
                started = time.perf_counter()
                governor.search(query)
                times.append((time.perf_counter() - started) * 1000)
            times.sort()
            print(
                f"catalog  {label}: median {statistics.median(times):.2f} ms, p95 {times[len(times) * 19 // 20]:.2f} ms"
            )


def _memory() -> float:
    """The process's resident megabytes (Linux)."""
    gc.collect()
    return (
        int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * resource.getpagesize() / 2**20
    )


def main(arguments: list[str]) -> None:
    """Measure."""
    for name in BACKENDS:
        if arguments:
            recall(name, Path(arguments[0]))
        speed(name)
    whole()


if __name__ == "__main__":
    main(sys.argv[1:])
