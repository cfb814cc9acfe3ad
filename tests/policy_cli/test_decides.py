"""``policy decide`` prints one decision, tells it by its exit code, and never allows what it can't
read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from policy_project import example_input, run, run_json, write


def _reading() -> dict[str, Any]:
    """A call that the stock bundle allows."""
    from agenttool_otel.authoring.completing import complete_input

    document: Any = complete_input(
        {"tool": {"id": "local.notes.count", "namespace": "local.notes", "name": "count"}}
    )[0]
    document["tool"] |= {
        "read_only": True,
        "destructive": False,
        "open_world": False,
        "inferred": [],
    }
    document["permission_profile"] |= {"risk_level": "low"}
    document["session"] |= {"interactive": True, "roots": ["/w"]}
    reading: dict[str, Any] = document
    return reading


def test_the_exit_code_tells_allow_ask_and_deny(project: Path) -> None:
    status, told = run_json("decide", stdin=json.dumps(_reading()))
    assert (status, told["behavior"]) == (0, "allow")
    document = example_input(project)
    status, told = run_json("decide", stdin=json.dumps(document))
    assert (status, told["behavior"]) == (10, "ask")
    status, told = run_json("decide", "--bundle", project, stdin=json.dumps(document))
    assert (status, told["behavior"]) == (11, "deny")
    assert told["reason"]["rule_ref"] == "custom.deployments.frozen_day"


def test_the_input_may_be_a_file(project: Path) -> None:
    assert run_json("decide", project / "input.json", "--bundle", project)[0] == 11


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "true", '"allow"', "{}", '{"tool": {"name": "x"}}', "[" * 20000,
     '{"behavior": "allow"}', b"\xff\xfe", "{}{}"],
)  # fmt: skip
def test_a_malformed_input_is_an_error_and_a_deny(text: str | bytes) -> None:
    status, told = run_json("decide", stdin=text)
    assert status == 2
    assert told["behavior"] == "deny"


@pytest.mark.slow
def test_every_loss_and_every_wrong_type_is_no_allow() -> None:
    document = _reading()
    assert run("decide", stdin=json.dumps(document)).exit_code == 0
    for name in ("tool", "facts", "session", "approval", "evaluation", "hooks", "schema_version"):
        lost = {key: value for key, value in document.items() if key != name}
        assert run("decide", stdin=json.dumps(lost)).exit_code == 2, name
    for name in ("tool", "facts", "session", "actor", "input", "permission_profile"):
        for value in (None, "allow"):
            assert run("decide", stdin=json.dumps({**document, name: value})).exit_code == 2, (
                name,
                value,
            )


def test_a_key_that_stands_twice_is_refused() -> None:
    text = json.dumps(_reading())
    doubled = text[:-1] + ', "actor": ' + json.dumps(_reading()["actor"]) + "}"
    assert run_json("decide", stdin=doubled)[0] == 2


@pytest.mark.parametrize(
    "decision",
    ['{"behavior": "Allow"}', '{"behavior": "allow", "obligations": {"other": 1}}', '"allow"', "true", "{}", "null",
     '{"behavior": "passthrough"}'],
)  # fmt: skip
def test_a_policy_that_answers_nonsense_denies(tmp_path: Path, decision: str) -> None:
    write(tmp_path, {"p/p.rego": f"package agenttool.permission\n\ndecision := {decision}\n"})
    status, told = run_json("decide", "--bundle", tmp_path / "p", stdin=json.dumps(_reading()))
    assert status in (2, 11)
    assert told["behavior"] == "deny"


def test_an_undefined_decision_denies(tmp_path: Path) -> None:
    text = 'package agenttool.permission\n\ndecision := {"behavior": "allow"} if input.tool.name == "other"\n'
    write(tmp_path, {"p/p.rego": text})
    status, told = run_json("decide", "--bundle", tmp_path / "p", stdin=json.dumps(_reading()))
    assert (status, told["behavior"], told["fail_closed"]) == (2, "deny", "undefined")


def test_a_broken_policy_is_an_error_and_a_deny(tmp_path: Path) -> None:
    write(tmp_path, {"p/p.rego": "package agenttool.custom\n\ndeny {\n\ttrue\n}\n"})
    status, told = run_json("decide", "--bundle", tmp_path / "p", stdin=json.dumps(_reading()))
    assert (status, told["behavior"]) == (2, "deny")
    assert "p.rego:3" in told["error"]
    assert run_json("decide", "--bundle", tmp_path / "none", stdin=json.dumps(_reading()))[0] == 2
