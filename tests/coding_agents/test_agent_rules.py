"""The fake agents do what the real ones did with each recorded answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_rules import ASKED, BLOCKED, outcome, requested
from agents_served import FOLDERS, RECORDED

from agenttool_otel.coding_agents.dialects import AGENTS, dialect_of

# trials in which something else than the hook's answer decided: a person, a rule, an approval policy
_OTHERS = ("onrequest", "-default", "tui-", "mode-", "post-", "all-tools", "stop-", "session-")


def answers() -> list[Any]:
    found = []
    for agent in AGENTS:
        if agent == "opencode":  # its hook is a function, which throws: tests of the plugin
            continue
        path = RECORDED / FOLDERS.get(agent, agent) / "answers.jsonl"
        for line in path.read_text("utf-8").splitlines():
            trial = json.loads(line)
            answer = trial["answers"].get(dialect_of(agent).deciding)
            if isinstance(answer, dict) and is_plain(trial, answer):
                found.append(pytest.param(agent, trial, id=f"{agent}-{trial['case']}"))
    return found


def is_plain(trial: dict[str, Any], answer: dict[str, Any]) -> bool:
    has_outcome = trial.get("destructive_call") in {"ran", "not run", "rewritten", "hung"}
    alone = len(trial["answers"]) == 1 and "sleep" not in answer and "setup" not in trial
    return has_outcome and alone and not any(word in trial["case"] for word in _OTHERS)


@pytest.mark.parametrize(("agent", "trial"), answers())
def test_an_answer_has_the_recorded_effect(agent: str, trial: dict[str, Any]) -> None:
    answer = trial["answers"][dialect_of(agent).deciding]
    stdout = answer.get("stdout", "")
    text = stdout if isinstance(stdout, str) else json.dumps(stdout)
    found = outcome(agent, answer.get("exit", 0), text, answer.get("stderr", ""))
    # without a person a question is not run, or hangs in Gemini
    expected = {ASKED: {BLOCKED, "hung"}}.get(found, {found})
    assert trial["destructive_call"] in expected


def test_there_are_enough_recorded_answers() -> None:
    assert len(answers()) > 60


# the trials in which the hook's answer alone counted: the host never answered, or nobody was there
_ALONE = ("host-permhook-allow-slowhost", "host-permhook-deny-slowhost", "host-permhook-rewrite")


def request_answers() -> list[Any]:
    found = []
    for agent in ("claude-code", "codex"):
        path = RECORDED / agent / "answers.jsonl"
        for line in path.read_text("utf-8").splitlines():
            trial = json.loads(line)
            answer = trial["answers"].get("PermissionRequest")
            if answer and (trial["case"] in _ALONE or trial["case"].startswith("tui-perm-")):
                found.append(pytest.param(agent, trial, id=f"{agent}-{trial['case']}"))
    return found


@pytest.mark.parametrize(("agent", "trial"), request_answers())
def test_an_answer_to_a_request_has_its_effect(agent: str, trial: dict[str, Any]) -> None:
    answer = trial["answers"]["PermissionRequest"]
    text = json.dumps(answer.get("stdout", ""))
    found = requested(agent, answer.get("exit", 0), text, answer.get("stderr", ""))
    assert trial["destructive_call"] == {ASKED: "person asked"}.get(found, found)
