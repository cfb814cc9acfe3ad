"""The standard's seventeen acceptance scenarios, each examined in this process."""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel.conformance.checking import examine
from agenttool_otel.conformance.own import OwnSubject
from agenttool_otel.conformance.scenarios import read_scenarios

SCENARIOS = {scenario.number: scenario for scenario in read_scenarios()}


def scenario(number: int) -> Any:
    return pytest.param(number, marks=pytest.mark.covers(f"acceptance-{number}"))


@pytest.mark.parametrize("number", [scenario(number) for number in SCENARIOS])
def test_a_scenario_holds_in_this_process(number: int) -> None:
    [outcome] = examine(OwnSubject, [SCENARIOS[number]]).outcomes
    assert outcome.failures == []
    assert outcome.ours_failed == []
    assert outcome.passed
