"""Every package of agenttool.rules is asked; what could not be asked refuses the bundle by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agenttool_otel import Governor, agent_context
from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle import default_bundle_path


def decided(folder: Path, place: str, text: str) -> str:
    policies = folder / "policies"
    shutil.copytree(default_bundle_path(), policies)
    file = policies / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")

    def greet(name: str) -> str:
        """Greet."""
        return name

    tool = Governor(str(policies)).govern(greet, read_only=True, open_world=False, risk_level="low")
    with agent_context(actor="agent:a", session_id="s"):
        return str(tool.tool.check(name="x").behavior)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('deny contains {"rule": "acme.never", "message": "never"}', "deny"),
        ('ask contains {"rule": "acme.ask", "message": "may it?"}', "ask"),
        ('deny contains "a finding without a name"', "deny"),
        (
            'deny contains {"rule": "acme.other", "message": "no"} if input.tool.name == "other"',
            "allow",
        ),
        (
            'default clear := false\n\ndeny contains {"rule": "acme.x", "message": "no"} if false',
            "deny",
        ),
    ],
)
def test_a_new_rule_package_is_asked(body: str, expected: str, tmp_path: Path) -> None:
    found = decided(
        tmp_path, "agenttool/rules/fresh/fresh.rego", f"package agenttool.rules.fresh\n\n{body}\n"
    )
    assert (
        found in {expected, "ask"}
        if expected == "deny" and "default clear" in body
        else found == expected
    )


def test_findings_behind_a_proof_are_not_evaluated(tmp_path: Path) -> None:
    # one over no hooks is an error, and an error denies
    body = 'clear := true\n\ndeny contains {"rule": "acme.x"} if 1 / count(input.hooks) > 2'
    text = f"package agenttool.rules.fresh\n\n{body}\n"
    assert decided(tmp_path, "agenttool/rules/fresh/fresh.rego", text) == "allow"


@pytest.mark.parametrize(
    ("package", "body"),
    [
        ("agenttool.rules.fresh", "deny if true"),
        ("agenttool.rules.fresh", 'deny := {"rule": "a", "message": "b"}'),
        ("agenttool.rules.fresh", 'denies contains {"rule": "a", "message": "b"}'),
        ("agenttool.rules.fresh", 'allow contains {"rule": "a", "message": "b"}'),
        ("agenttool.rules.fresh.deep", 'deny contains {"rule": "a", "message": "b"}'),
        ("agenttool.rules", 'deny contains {"rule": "a", "message": "b"}'),
    ],
)
def test_a_rule_package_that_is_not_asked_refuses_the_bundle(
    package: str, body: str, tmp_path: Path
) -> None:
    with pytest.raises(PolicyLoadError, match=r"agenttool\.rules"):
        decided(tmp_path, "agenttool/rules/fresh/fresh.rego", f"package {package}\n\n{body}\n")
