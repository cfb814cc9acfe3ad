"""Lists of commands in the settings: a restriction holds in any reading of a line, a permission in
its plain one.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenttool_otel import Preflight, agent_context
from agenttool_otel.testing import capture

FACTS: dict[str, Any] = {
    "command_args": ["command"],
    "tool_kind": "shell_command",
    "access_kinds": ["file_read", "file_write", "code_execution"],
    "read_only": "classifier:command_read_only",
    "destructive": "classifier:command_destructive",
}
Decide = Callable[..., str]


@pytest.fixture
def decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Decide:
    """What the policy answers to a line, by the lists of commands and the preset."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "old.txt").write_text("")
    monkeypatch.chdir(tmp_path)

    def shown(answer: Preflight) -> str:
        rule = str(answer.decision.reason.rule_ref) if answer.decision else ""
        return "held" if rule.startswith("agenttool.sandbox.") else answer.behavior.value

    def answers(lines: list[str], lists: dict[str, Any], preset: str | None = None) -> list[str]:
        options = {"policy_preset": preset} if preset else {}
        data = {"agenttool": {"settings": {"shell": {"commands": lists}}}}
        with capture(policy_data=data, **options) as captured:

            @captured.governor.govern(**FACTS)
            def run(command: str) -> str:
                """Run a command."""
                return ""

            with agent_context(actor="agent:dev", session_id="s", roots=[str(tmp_path)]):
                return [shown(run.tool.check(command=line)) for line in lines]

    def decided(line: str, lists: dict[str, Any], preset: str | None = None) -> str:
        return answers([line], lists, preset)[0]

    decided.answers = answers  # type: ignore[attr-defined]
    return decided


BEHIND = [
    "{}",
    "timeout --signal KILL 5 {}",
    "nice -n 3 {}",
    "env A=b {}",
    "sudo -u bob {}",
    "command {}",
    "xargs -0 {}",
    "find . -name x -exec {} ';'",
    "bash -lc '{}'",
    "cd . && stdbuf -oL {}",
    "uv run --with x {}",
    "npx -y {}",
    "docker exec -it c {}",
    "if true; then nohup {}; fi",
    "flock lock sh -c '{}'",
]


@pytest.mark.parametrize(
    ("words", "command", "preset"),
    [
        (["touch"], "touch new.txt", "coding"),
        (["git", "show"], "git -C . --no-pager show", None),
        (["head"], "/usr/bin/head old.txt", None),
        (["mypy"], "python3.12 -m mypy .", "coding"),
        (["make", "deploy"], "make -C . -j4 A=b deploy", "observe"),
        (["npm", "run", "release"], "npm --prefix . run --silent release", "strict"),
        (["kubectl", "delete", "pod"], "kubectl -n x delete --wait=false pod y", "plan"),
    ],
)
def test_a_denied_command_is_denied_whatever_runs_it(
    words: list[str], command: str, preset: str | None, decide: Any
) -> None:
    lines = [form.format(command) for form in BEHIND]
    found = decide.answers(lines, {"deny": [words]}, preset)
    assert {
        line: answer for line, answer in zip(lines, found, strict=True) if answer != "deny"
    } == {}


@pytest.mark.parametrize(
    ("words", "command"), [(["touch"], "touch new.txt"), (["git", "add"], "git -C . add old.txt")]
)
def test_an_asked_command_is_asked_whatever_runs_it(
    words: list[str], command: str, decide: Any
) -> None:
    lines = [form.format(command) for form in BEHIND]
    assert "allow" not in decide.answers(lines, {"ask": [words]}, "coding")
    assert decide(command.replace("-C . ", ""), {}, "coding") == "allow"


@pytest.mark.parametrize(
    "line", ["sudo mkfs /dev/sda1", "timeout 5 mkfs.ext4 x", "xargs wipefs", "nice /sbin/reboot"]
)
def test_a_critical_program_is_denied_whatever_runs_it(line: str, decide: Decide) -> None:
    assert decide(line, {}) == "deny"


ALLOWED = {"allow": [["npm", "test"], {"words": ["pytest"]}]}


@pytest.mark.parametrize(
    "line",
    [
        "npm test",
        "time npm test",
        "timeout 60 npm test",
        "CI=1 npm test",
        "CI=true NO_COLOR=1 nice -n 5 npm test",
        "env CI=true NO_COLOR=1 nice -n 5 npm test",
        "nice -n 5 /usr/bin/env LC_ALL=C npm test",
        "bash -lc 'npm test'",
        "timeout 90 bash -c 'CI=1 npm test && pytest -q'",
        "cat old.txt && time pytest",
    ],
)
def test_an_allowed_command_runs_behind_harmless_wrappers(line: str, decide: Decide) -> None:
    assert decide(line, ALLOWED) == "allow"
    assert decide(line, {}) == "ask"


@pytest.mark.parametrize("assigned", ["CI=1", "NO_COLOR=1 CI=true", "PAGER=cat", "NODE_ENV=test"])
def test_a_category_sees_through_harmless_assignments(assigned: str, decide: Decide) -> None:
    assert decide(f"{assigned} touch new.txt", {}, "coding") == "allow"
    for other in ("PATH=.", "LD_PRELOAD=x", "PAGER=./x", "CI=./x", "CI=1 CI=./x"):
        assert decide(f"{assigned} {other} touch new.txt", {}, "coding") == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "LD_PRELOAD=x npm test",
        "PATH=. npm test",
        "env PATH=. npm test",
        "env CI=1 LD_PRELOAD=x npm test",
        "env CI=./x npm test",
        "nice -n 5 env PAGER=./x npm test",
        "NODE_OPTIONS=-r=x npm test",
        "BASH_ENV=x bash -c 'npm test'",
        "bash --rcfile x -c 'npm test'",
        "bash -c 'npm test; rm old.txt'",
        "bash -c 'npm test' && npm publish",
        "sudo npm test",
        "npx npm test",
        "uv run pytest",
        "xargs npm test",
        "find . -exec npm test ';'",
        "time -o out npm test",
        "./npm test",
        "timeout 5 ./pytest",
        "npm run test",
        "sh -c 'sh -c \"npm publish\"'",
        "docker run x npm test",
    ],
)
def test_nothing_else_borrows_an_allowed_command(line: str, decide: Decide) -> None:
    assert decide(line, ALLOWED) != "allow"


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sampled_from(BEHIND[1:8]), min_size=1, max_size=3))
def test_no_row_of_wrappers_passes_a_denial(decide: Any, forms: list[str]) -> None:
    line = "touch new.txt"
    for form in forms:
        line = form.format(line)
    assert decide(line, {"deny": [["touch"]]}, "coding") == "deny"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder that git takes for a repository, whose configuration names a program."""
    folder = tmp_path / "notes"
    (folder / "objects").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text('[core]\n\tfsmonitor = "touch ran; false"\n')
    return folder


@pytest.mark.parametrize("preset", [None, "balanced", "strict", "plan", "observe", "coding"])
@pytest.mark.parametrize(
    "line", ["git -C notes status", "cd notes && git add .", "(cd notes && git stash)"]
)
def test_no_preset_agrees_to_git_in_a_made_repository(
    line: str, preset: str | None, decide: Decide, notes: Path
) -> None:
    assert os.path.isdir(notes)
    assert decide(line, {"allow": [["git"]]}, preset) != "allow"


@pytest.mark.parametrize(
    "setting", ["core.fsmonitor", "diff.external", "filter.x.clean", "core.editor"]
)
def test_a_configured_program_is_asked_about_in_coding(setting: str, decide: Decide) -> None:
    assert decide("git add old.txt", {}, "coding") == "allow"
    subprocess.run(["git", "config", setting, "touch ran"], check=True)
    assert decide("git add old.txt", {}, "coding") == "ask"
