"""A decision over the socket is the one in process: behavior, rule and reason."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from decision_points import Served, request
from recorded_inputs import inputs

from agenttool_otel import agent_context

BATCH = 50

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpora" / "agent_commands.jsonl.gz"
"""Commands that a coding agent really gave."""
COUNT = int(os.environ.get("AGENTTOOL_TEST_RECORDED_COMMANDS", "600"))


def in_process(point: Served, tool: str, arguments: dict[str, Any]) -> tuple[Any, ...]:
    with agent_context(
        actor="agent:coder", session_id="s-1", roots=["/srv/project"], cwd="/srv/project"
    ):
        found = point.governor.find(tool).check(arguments)
    rule = found.decision.reason.rule_ref if found.decision is not None else None
    error = found.error.error_class.value if found.error is not None else None
    return found.behavior.value, rule, found.reason, error


def shown(context: dict[str, Any]) -> tuple[Any, ...]:
    return context["behavior"], context["rule"], context["reason"], context["error_class"]


def test_there_are_two_hundred_inputs() -> None:
    assert len(inputs()) >= 200


def test_an_evaluation_is_the_decision_in_process(point: Served) -> None:
    found = []
    for start in range(0, len(inputs()), BATCH):
        parts = []
        for tool, arguments in inputs()[start : start + BATCH]:
            resource = {"type": "tool_call", "id": "c", "properties": arguments}
            parts.append({"action": {"name": tool}, "resource": resource})
        batch = request("read_file") | {"evaluations": parts}
        answer = point.ask("POST", "/access/v1/evaluations", batch)
        found += [shown(one["context"]) for one in answer.json["evaluations"]]
    assert found == [in_process(point, *one) for one in inputs()]


@pytest.mark.slow
def test_a_call_is_the_decision_in_process(point: Served) -> None:
    states = {"allow": "permitted", "ask": "waiting", "deny": "refused"}
    expected = [states[in_process(point, *one)[0]] for one in inputs()]
    found = []
    for number, (tool, arguments) in enumerate(inputs()):
        body = request(tool, **arguments)
        # one session may have no more than a hundred open questions
        body["context"]["session_id"] = f"part-{number // BATCH}"
        found.append(point.ask("POST", "/v1/invocations", body).json["state"])
    assert found == expected


def recorded() -> list[tuple[str, dict[str, Any]]]:
    """Return commands of all runs, as many as are wanted."""
    lines = gzip.decompress(CORPUS.read_bytes()).decode().splitlines()
    chosen = lines[:: max(1, len(lines) // COUNT)]
    return [("run_command", {"command": json.loads(line)["command"]}) for line in chosen]


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.skipif(not CORPUS.exists(), reason="the recorded commands are not here")
def test_recorded_commands_are_decided_as_in_process(point: Served) -> None:
    commands = recorded()
    expected = [in_process(point, *one) for one in commands]
    for ask in (point.ask, point.ask_port):
        found = []
        for start in range(0, len(expected), BATCH):
            parts = []
            for tool, arguments in commands[start : start + BATCH]:
                resource = {"type": "tool_call", "id": "c", "properties": arguments}
                parts.append({"action": {"name": tool}, "resource": resource})
            batch = request("run_command") | {"evaluations": parts}
            answer = ask("POST", "/access/v1/evaluations", batch)
            found += [shown(one["context"]) for one in answer.json["evaluations"]]
        assert found == expected
    states = {"allow": "permitted", "ask": "waiting", "deny": "refused"}
    for number, (tool, arguments) in enumerate(commands):
        body = request(tool, **arguments)
        body["context"]["session_id"] = f"recorded-{number // BATCH}"
        call = point.ask("POST", "/v1/invocations", body).json
        assert call["state"] == states[expected[number][0]]
        point.ask("POST", f"/v1/invocations/{call['invocation_id']}/cancel", {})
