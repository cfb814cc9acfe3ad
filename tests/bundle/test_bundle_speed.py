"""A fresh decision is cheap. Measured as processor time, in ratios to what reading the same input alone costs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
import regorus
from stock_bundle import DECISION, Machine, call, path_call, shell_call, stock, url_call, write_call


def _cost(work: Callable[[], object], floor: Callable[[], object]) -> float:
    best = [float("inf"), float("inf")]
    for _ in range(12):
        for index, each in enumerate((work, floor)):
            start = time.process_time_ns()
            for _ in range(100):
                each()
            best[index] = min(best[index], time.process_time_ns() - start)
    return best[0] / best[1]


@pytest.mark.speed
@pytest.mark.parametrize(
    ("document", "bar"),
    [(call(facts={"paths": []}), 4.5), (path_call(), 4.5), (url_call(), 5), (shell_call(), 6), (write_call(), 16)],
    ids=["no facts", "read", "fetch", "shell", "ask"],
)
def test_the_compiled_bundle_costs_a_few_times_its_input(document: dict[str, object], bar: float) -> None:
    text = json.dumps(document)
    bare = regorus.Engine()
    bare.add_policy("bare", "package bare\nanswer := 1")
    machine = stock(Machine).machine(DECISION)

    def floor() -> None:
        bare.set_input_json(text)
        bare.eval_rule_as_json("data.bare.answer")

    def decide() -> None:
        machine.set_input_json(text)
        machine.execute()

    assert _cost(decide, floor) <= bar
