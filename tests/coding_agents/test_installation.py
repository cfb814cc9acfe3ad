"""Hooks are put into a settings file, and taken out again, without a change of any other byte."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agenttool_otel import ConfigurationError
from agenttool_otel.cli.hooks import app
from agenttool_otel.coding_agents.dialects import AGENTS, dialect_of
from agenttool_otel.coding_agents.installation import Installation, settings_path
from agenttool_otel.coding_agents.trial import answering

JSON_AGENTS = [agent for agent in AGENTS if dialect_of(agent).settings.kind == "json"]
GROUP = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true", "timeout": 5}]}
TEXTS = [
    "{}",
    "{}\n",
    "{\n}\n",
    " { } ",
    '{"model": "x"}',
    '{\r\n    "model": "x"\r\n}\r\n',
    '{\n\t"model": "x",\n\t"hooks": {}\n}',
    '{"hooks": {"PreToolUse": [], "BeforeTool": [ ]}}',
    json.dumps({"hooks": {"PreToolUse": [GROUP], "Stop": [GROUP]}, "model": "\u00fc"}, indent=4),
    json.dumps({"hooks": {"PreToolUse": [GROUP], "BeforeTool": [GROUP]}}),
]


def hooks_of(agent: str, path: Path | str = "settings.json") -> Installation:
    return Installation(agent, Path(path), Path("/run/user/1000/agenttool/serve.sock"), "/py")


@pytest.mark.parametrize("agent", JSON_AGENTS)
@pytest.mark.parametrize("text", TEXTS)
def test_removed_hooks_leave_no_byte(agent: str, text: str) -> None:
    hooks = hooks_of(agent)
    assert hooks.removed(hooks.installed(text)) == text


_SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
_GROUPS = st.lists(st.just(GROUP) | st.dictionaries(st.text(max_size=3), _SCALARS), max_size=3)
_HOOKS = st.dictionaries(st.sampled_from(["PreToolUse", "PostToolUse", "Stop"]), _GROUPS)
_SETTINGS = st.builds(
    lambda others, hooks: {**others, **({} if hooks is None else {"hooks": hooks})},
    st.dictionaries(st.text(max_size=5).filter(lambda name: name != "hooks"), _VALUES, max_size=3),
    st.none() | _HOOKS,
)


@given(_SETTINGS, st.sampled_from([None, 2, 4, "\t"]), st.sampled_from(["", "\n", " \r\n"]))
def test_any_settings_come_back_as_they_were(
    settings: dict[str, Any], indent: int | str | None, end: str
) -> None:
    text = json.dumps(settings, indent=indent) + end
    hooks = hooks_of("claude-code")
    installed = hooks.installed(text)
    assert hooks.removed(installed) == text
    # what was there stands where it was: Codex trusts a hook by its position
    for event, groups in settings.get("hooks", {}).items():
        assert json.loads(installed)["hooks"][event][: len(groups)] == groups


@given(_SETTINGS)
def test_installing_again_changes_nothing(settings: dict[str, Any]) -> None:
    hooks = hooks_of("codex")
    installed = hooks.installed(json.dumps(settings, indent=2))
    assert hooks.installed(installed) == installed


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_what_was_added_afterwards_stays(agent: str) -> None:
    hooks = hooks_of(agent)
    settings = json.loads(hooks.installed("{}"))
    event = hooks.dialect.deciding
    settings["hooks"][event].append(GROUP)
    settings["model"] = "x"
    removed = hooks.removed(json.dumps(settings, indent=2))
    assert removed is not None
    assert json.loads(removed) == {"hooks": {event: [GROUP]}, "model": "x"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "{} {}",
        '{"a": 1, "a": 2}',
        '{"hooks": []}',
        '{"hooks": {"PreToolUse": {}}}',
        "{// a comment\n}",
        '{"a": NaN}',
        "\ufeff{}",
        "[" * 100_000,
    ],
)
def test_what_cant_be_read_is_left_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text, "utf-8")
    hooks = hooks_of("claude-code", path)
    for change in (hooks.installed, hooks.removed):
        with pytest.raises(ConfigurationError):
            change(hooks.read() or "")
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_each_event_has_a_hook_in_the_agents_unit(agent: str) -> None:
    dialect = dialect_of(agent)
    installed = json.loads(hooks_of(agent).installed("{}"))["hooks"]
    assert installed.keys() == dialect.events.keys()
    for event, groups in installed.items():
        hook = groups[-1]["hooks"][0]
        assert hook["timeout"] == dialect.settings.timeout
        blocks = "exit 2" in hook["command"]
        assert blocks == dialect.waits_at(event)


def test_a_command_is_the_same_each_time() -> None:
    hooks = hooks_of("codex")
    assert hooks.installed("{}") == hooks.installed("{}")


def test_a_project_with_a_blank_in_its_name_is_quoted() -> None:
    hooks = Installation("codex", Path("x"), Path("/run/a b/$(id)/serve.sock"), "/py thon")
    command = hooks.command("PreToolUse", "")
    assert command.startswith("'/py thon' -I -S ")
    assert " '/run/a b/$(id)/serve.sock' " in command


@pytest.mark.parametrize(
    ("agent", "settings"),
    [
        ("claude-code", {"disableAllHooks": True}),
        ("gemini", {"hooksConfig": {"enabled": False}}),
        ("gemini", {"hooksConfig": {"disabled": ["agenttool"]}}),
    ],
)
def test_hooks_that_are_switched_off_are_a_problem(
    agent: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    hooks = hooks_of(agent, tmp_path / "settings.json")
    hooks.write(hooks.installed(json.dumps(settings)))
    assert [problem[:12] for problem in hooks.problems()] == ["switched off"]


def test_a_hook_of_another_socket_is_a_problem(tmp_path: Path) -> None:
    hooks = hooks_of("codex", tmp_path / "hooks.json")
    hooks.write(hooks.installed(None))
    other = Installation("codex", hooks.path, Path("/other.sock"), "/py")
    assert hooks.problems() == []
    assert len(other.problems()) == len(hooks.dialect.events)


def test_a_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "settings.json"
    real.write_text("{}")
    real.chmod(0o640)
    link.symlink_to(real)
    hooks = hooks_of("claude-code", link)
    hooks.write(hooks.installed("{}"))
    assert link.is_symlink()
    assert "PreToolUse" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["real.json", "settings.json"]


def test_codex_has_a_home_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    assert settings_path("codex", None) == tmp_path / "hooks.json"
    assert settings_path("codex", Path("/p")) == Path("/p/.codex/hooks.json")


# --- the commands ---------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", AGENTS)
def test_install_status_and_remove(agent: str, tmp_path: Path) -> None:
    run = CliRunner().invoke
    options = [agent, "--project", str(tmp_path)]
    assert run(app, ["status", *options]).exit_code == 1
    dry = run(app, ["install", *options, "--dry-run"])
    path = settings_path(agent, tmp_path)
    assert not path.exists()
    installed = run(app, ["install", *options])
    assert installed.exit_code == 0
    assert "+" in dry.stdout
    assert dry.stdout == installed.stdout
    assert run(app, ["status", *options]).exit_code == 0
    assert run(app, ["remove", *options]).exit_code == 0
    assert not path.exists()


def test_a_plugin_of_another_is_left_alone(tmp_path: Path) -> None:
    path = settings_path("opencode", tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("// mine")
    for command in ("install", "remove"):
        done = CliRunner().invoke(app, [command, "opencode", "--project", str(tmp_path)])
        assert done.exit_code == 2
    assert path.read_text() == "// mine"


def test_an_agent_that_is_not_known_is_an_error() -> None:
    assert CliRunner().invoke(app, ["install", "cursor"]).exit_code == 2


def test_the_doctor_misses_the_decision_point(tmp_path: Path) -> None:
    options = ["codex", "--project", str(tmp_path), "--socket", str(tmp_path / "s.sock")]
    CliRunner().invoke(app, ["install", *options])
    done = CliRunner().invoke(app, ["doctor", *options])
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert done.exit_code == 1
    assert [line[:22] for line in failed] == ["FAIL Bash: rm -rf /: a"]


# --- opencode's plugin ----------------------------------------------------------------------------


def answered(status: int, stdout: str, stderr: str = "") -> str:
    return json.dumps({"exit": status, "stdout": stdout, "stderr": stderr})


_PROGRAM = """
import { Agenttool } from "./agenttool.mjs"
const hooks = await Agenttool({ directory: "/srv/project" })
const input = { tool: "bash", sessionID: "s", callID: "c" }
try {
  const output = { args: { command: "ls", description: "x" } }
  await hooks["tool.execute.before"](input, output)
  console.log("ran " + JSON.stringify(output.args))
} catch (error) {
  console.log("blocked: " + error.message)
}
await hooks["tool.execute.after"](input, { output: "x" })
console.log("after")
"""


def run_plugin(folder: Path, installation: Installation) -> list[str]:
    if shutil.which("node") is None:
        pytest.skip("needs node")
    (folder / "agenttool.mjs").write_text(installation.installed(None))
    (folder / "run.mjs").write_text(_PROGRAM)
    done = subprocess.run(
        ["node", "run.mjs"], cwd=folder, capture_output=True, check=True, timeout=200
    )
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize(
    ("body", "first"),
    [
        (answered(0, ""), 'ran {"command":"ls","description":"x"}'),
        (answered(2, "", "no"), "blocked: no"),
        (answered(0, "{}"), "blocked: blocked by agenttool"),
        (answered(0, "null"), "blocked: Cannot read properties"),
        (answered(0, "half an ans"), "blocked: Unexpected token"),
        (
            answered(0, '{"arguments": {"command": "pwd"}}'),
            'ran {"command":"pwd","description":"x"}',
        ),
    ],
)
def test_the_plugin_runs_only_what_is_permitted(body: str, first: str, tmp_path: Path) -> None:
    place = tmp_path / "s.sock"
    answer = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    with answering(place, lambda _: answer):
        lines = run_plugin(tmp_path, Installation("opencode", tmp_path / "x", place))
    assert lines[0].startswith(first)
    assert lines[1] == "after"


def test_the_plugin_blocks_where_nothing_can_be_started(tmp_path: Path) -> None:
    gone = Installation("opencode", tmp_path / "x", tmp_path / "s.sock", "/nonexistent/python")
    first, after = run_plugin(tmp_path, gone)
    assert first.startswith("blocked: blocked by agenttool")
    assert after == "after"
