"""A command that a policy obliges to be held runs under ``agenttool run``, or does not run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_rules import BLOCKED, RAN, REWRITTEN, outcome
from agents_served import Hooks, hooks_served, recorded
from held_calls import held, held_when_asked
from shell_hooks import SHELLS, command_of, fire, run

from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.coding_agents.dialects import AGENTS, dialect_of
from agenttool_otel.enforcement import available
from agenttool_otel.testing import StaticEngine, decision
from function_engine import FunctionEngine

PROOF = available()["read"]
READ_FILE = {
    "claude-code": "PreToolUse-read",
    "gemini": "BeforeTool-read-file",
    "opencode": "tool.execute.before-read",
}
TAKE_CHANGES = ["claude-code", "codex", "gemini", "opencode"]
needs_read = pytest.mark.skipif(not PROOF.proven, reason=PROOF.reason)


@contextmanager
def served(folder: Path, policy: Any) -> Iterator[Hooks]:
    place = folder / "serve"
    place.mkdir(mode=0o700)
    with hooks_served(place, policy=policy) as hooks:
        yield hooks


@needs_read
@pytest.mark.parametrize("agent", TAKE_CHANGES)
def test_the_command_that_the_agent_runs_is_held(agent: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("it's here")
    (tmp_path / ".env").write_text("KEY=1")
    here = {"cwd": str(tmp_path), "directory": str(tmp_path)}
    line = "cat notes.txt; cat .env; echo x > new.txt || exit 3"
    with served(tmp_path, held()) as hooks:
        output = fire(hooks, agent, line, **here)
    assert outcome(agent, *output) == REWRITTEN
    done = run(command_of(output), tmp_path)
    assert (done.returncode, done.stdout) == (3, "it's here")
    assert not (tmp_path / "new.txt").exists()


@needs_read
def test_an_agent_that_takes_no_changes_runs_nothing(tmp_path: Path) -> None:
    with served(tmp_path, held()) as hooks:
        output = fire(hooks, "qwen", "ls")
    assert outcome("qwen", *output) == BLOCKED
    assert "sandbox" in output.stderr


@needs_read
def test_codex_runs_nothing_where_it_might_ask(tmp_path: Path) -> None:
    with served(tmp_path, held()) as hooks:
        output = fire(hooks, "codex", "ls", permission_mode="default")
    assert outcome("codex", *output) == BLOCKED


@pytest.mark.parametrize("agent", READ_FILE)
def test_a_tool_that_runs_no_command_is_not_held(agent: str, tmp_path: Path) -> None:
    with served(tmp_path, held()) as hooks:
        payload = recorded(agent, READ_FILE[agent])
        output = hooks.fire(agent, dialect_of(agent).deciding, payload)
    assert outcome(agent, *output) == BLOCKED


@pytest.mark.parametrize("agent", AGENTS)
def test_the_profile_write_runs_nothing(agent: str, tmp_path: Path) -> None:
    policy = StaticEngine(decision("allow", obligations={"sandbox": {"profile": "write"}}))
    with served(tmp_path, policy) as hooks:
        assert outcome(agent, *fire(hooks, agent, "ls")) == BLOCKED


@pytest.mark.parametrize("command", ["ls \0 x", "echo " + "x" * 70_000])
def test_a_command_that_no_program_can_get_runs_nothing(command: str, tmp_path: Path) -> None:
    with served(tmp_path, held()) as hooks:
        assert outcome("gemini", *fire(hooks, "gemini", command)) == BLOCKED


@needs_read
def test_the_policy_sees_what_the_agent_can_hold(tmp_path: Path) -> None:
    seen = []

    def decide(document: Any) -> Any:
        seen.append(document["execution"]["sandboxes"])
        return decision("allow")

    with served(tmp_path, FunctionEngine(decide)) as hooks:
        for agent in ("claude-code", "qwen"):
            fire(hooks, agent, "ls")
    assert seen == [["read"], []]


@needs_read
def test_a_call_that_is_held_and_asked_about_uses_no_dialog(tmp_path: Path) -> None:
    with served(tmp_path, held_when_asked()) as hooks:
        # a yes in the dialog would run the command as it was sent
        first = fire(hooks, "claude-code", "ls")
        assert outcome("claude-code", *first) == BLOCKED
        store = hooks.governor.approvals.store
        (asked,) = store.list()
        store.answer(asked.request_id, ApprovalAnswer(approved=True, answered_by="user:ada"))
        again = fire(hooks, "claude-code", "ls", tool_use_id="toolu_again")
    assert "agenttool_otel.cli run --profile read" in command_of(again)


@needs_read
def test_the_result_of_a_held_command_is_recorded(tmp_path: Path) -> None:
    with served(tmp_path, held()) as hooks:
        # Gemini gives no id: the end of a call is found by its arguments
        output = fire(hooks, "gemini", "ls")
        after = recorded("gemini", "AfterTool-run-shell-command-ls")
        sent = recorded("gemini", SHELLS["gemini"])["tool_input"]
        after["tool_input"] = {**sent, "command": command_of(output)}
        after["session_id"] = recorded("gemini", SHELLS["gemini"])["session_id"]
        hooks.fire("gemini", "AfterTool", after)
        ended = [dict(span.attributes or {}) for span in hooks.captured.spans]
    assert ended[-1]["agenttool.invocation.status"] == "succeeded"


HELD_BY_READ = (
    "declared.access_code_execution",
    "declared.writes",
    "shell.incomplete",
    "shell.not_read_only",
)


@needs_read
def test_the_stock_policy_holds_instead_of_asking(tmp_path: Path) -> None:
    place = tmp_path / "serve"
    place.mkdir(mode=0o700)
    answers = {f"agenttool.rules.{name}": "read" for name in HELD_BY_READ}
    # else a host with layers has it rehearsed
    answers["agenttool.rules.paths.write_inside"] = "ask"
    settings = {"agenttool": {"settings": {"sandbox": {"answers": answers}}}}
    here = {"cwd": str(tmp_path), "permission_mode": "acceptEdits"}
    expected = {"python3 report.py": REWRITTEN, "ls": RAN, "echo x > new.txt": BLOCKED}
    with hooks_served(place, policy_data=settings) as hooks:
        for command, becomes in expected.items():
            output = fire(hooks, "claude-code", command, **here, tool_use_id=command)
            assert outcome("claude-code", *output) == becomes, command


# --- agenttool run --------------------------------------------------------------------------------

AGENTTOOL = [sys.executable, "-I", "-m", "agenttool_otel.cli", "run"]


@needs_read
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--", "sh", "-c", "exit 7"], 7),
        (["--", "sh", "-c", "kill -9 $$"], 137),
        (["--", "no-such-program-here"], 127),
        (["--profile", "rehearse", "--", "ls"], 2),
    ],
)
def test_run_ends_as_its_command_does(words: list[str], status: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [*AGENTTOOL, *words], cwd=tmp_path, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == status


@needs_read
def test_a_command_ends_with_run(tmp_path: Path) -> None:
    words = [*AGENTTOOL, "--", "sh", "-c", "exec sleep 250.25"]
    with subprocess.Popen(words, cwd=tmp_path) as running:
        wait_until(lambda: is_there("250.25"))
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=120) == 128 + signal.SIGTERM
    assert not is_there("250.25")


def is_there(word: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == f"sleep\0{word}\0".encode():
                return True
        except OSError:
            continue
    return False


def wait_until(holds: Any) -> None:
    until = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_nothing_runs_where_no_profile_can_be_had(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from agenttool_otel.enforcement import commands\n"
        "from agenttool_otel.errors import SandboxUnavailable\n"
        "def refuse(profile): raise SandboxUnavailable('no kernel', profile=profile)\n"
        "commands.mechanism_of = refuse\n"
        "from agenttool_otel.cli.run import app\n"
        "sys.argv = ['run', '--', 'touch', 'ran']\n"
        "app()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 125
    assert b"no kernel" in done.stderr
    assert not (tmp_path / "ran").exists()
