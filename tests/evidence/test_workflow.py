"""The example of a workflow that replays decisions before a policy is merged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from recorded_calls import record_calls

from agenttool_otel.values.canonical import DIGEST_KEY

WORKFLOW = Path(__file__).resolve().parents[2] / "examples" / "policy_replay.yml"
KEY = "a key of the tests"
RULE = """package agenttool.custom.acme

allow contains {
	"rule": "custom.acme.mail",
	"message": "known",
	"waives": [
		"agenttool.rules.declared.access_external_send",
		"agenttool.rules.declared.unstated",
		"agenttool.rules.destructive.effects",
	],
} if {
	input.tool.name == "send"
}
"""


def step(name: str) -> str:
    """The script of a step of the workflow."""
    steps: list[dict[str, Any]] = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["replay"][
        "steps"
    ]
    return str(next(each["run"] for each in steps if each.get("name") == name))


@pytest.mark.slow
@pytest.mark.parametrize(("approved", "code"), [("", 1), ("*", 0)])
def test_a_widening_stops_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approved: str, code: int
) -> None:
    monkeypatch.setenv(DIGEST_KEY, KEY)
    record_calls(tmp_path / "decisions.jsonl", ["ls"])
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "acme.rego").write_text(RULE, "utf-8")
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", step("replay")],
        cwd=tmp_path,
        env={**os.environ, "PATH": tools, "APPROVED": approved},
        check=False,
    )
    assert done.returncode == code
    assert (tmp_path / "replay.sarif").exists()
    assert (tmp_path / "replay.html").exists()
