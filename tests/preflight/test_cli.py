"""``agenttool permissions``: the answer is in the exit code, and nothing runs."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agenttool_otel.cli.permissions import EXIT_CODES, app

PROGRAM = '''
from agenttool_otel import Governor

own = Governor()

@own.govern(namespace="t", read_only=True, destructive=False, open_world=False, tool_kind="file_operation",
            access_kinds=["file_read"])
def read_file(path: str) -> str:
    """Read a file."""
    raise AssertionError("ran")

@own.govern(namespace="t")
def mystery(number: int) -> str:
    """Do something."""
    raise AssertionError("ran")

not_a_governor = 1
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = "preflight_program"
    (tmp_path / f"{name}.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)  # a checkout below /root lies in a sensitive place
    yield f"{name}:own"
    sys.modules.pop(name, None)


def command(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("read_file", '{"path": "/proj/a.txt"}', "allow"),
        ("read_file", '{"path": "/etc/shadow"}', "deny"),
        ("t.mystery", '{"number": 1}', "ask"),
        ("mystery", "", "ask"),
        ("mystery", '{"number": "x"}', "deny"),
        ("nothing", "{}", "unknown_tool"),
    ],
)
def test_the_exit_code_tells_what_the_policy_says(
    module: str, tool: str, arguments: str, code: str
) -> None:
    for form in ([], ["--json"]):
        words = ["check", tool, "--module", module, "--root", "/proj", "--actor", "agent:a", *form]
        done = command(*words, *(["--args", arguments] if arguments else []))
        assert done.exit_code == EXIT_CODES[code], done.output
        if form:
            told = json.loads(done.stdout)
            assert ("[govern(tool" if code == "unknown_tool" else "") in told["next_step"] != ""
            assert told["behavior"] == ("deny" if code == "unknown_tool" else code)


@pytest.mark.parametrize(
    "words",
    [
        ["check", "mystery", "--args", "[1]"],
        ["check", "mystery", "--args", "{"],
        ["describe", "--evaluation", "1"],
    ],
)
def test_what_is_no_object_is_refused(module: str, words: list[str]) -> None:
    assert command(*words, "--module", module).exit_code == EXIT_CODES["usage"]


@pytest.mark.parametrize(
    "wrong",
    ["no_such_module_anywhere", "preflight_program:nothing", "preflight_program:not_a_governor"],
)
def test_a_module_that_cannot_be_used_is_named(module: str, wrong: str) -> None:
    done = command("describe", "--module", wrong)
    assert done.exit_code == EXIT_CODES["usage"]
    assert wrong in done.output.replace("\n", "")


def test_the_posture_is_shown_and_written(module: str, tmp_path: Path) -> None:
    shown = command("describe", "--module", module, "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["always_ask"] == ["mystery"]
    assert "mystery" in command("describe", "--module", module).output
    done = command("write", str(tmp_path / "runtime"), "--module", module)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "runtime" / "permission-posture.json").exists()


def test_a_folder_that_cannot_be_written_is_a_failure(module: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert (
        command("write", str(tmp_path / "file"), "--module", module).exit_code
        == EXIT_CODES["failed"]
    )


@pytest.mark.parametrize(("path", "behavior"), [("/proj/a.txt", "allow"), ("/etc/shadow", "deny")])
def test_the_input_of_a_call_is_explained_as_it_is_decided(
    module: str, path: str, behavior: str, tmp_path: Path
) -> None:
    from agenttool_otel.cli.policy import app as policy
    from agenttool_otel.policy.bundles.input_schema import validate_input

    words = [
        "check",
        "read_file",
        "--module",
        module,
        "--root",
        "/proj",
        "--actor",
        "agent:a",
        "--show-input",
    ]
    done = command(*words, "--args", json.dumps({"path": path}))
    assert done.exit_code == EXIT_CODES[behavior], done.output
    document = json.loads(done.stdout)
    validate_input(document)
    assert document["invocation"]["attempt"] == 1
    assert document["actor"]["id"] == "agent:a"
    (tmp_path / "policy").mkdir()
    assert CliRunner().invoke(policy, ["init", str(tmp_path / "policy")]).exit_code == 0
    (tmp_path / "input.json").write_text(done.stdout, "utf-8")
    explained = CliRunner().invoke(
        policy, ["explain", str(tmp_path / "policy"), str(tmp_path / "input.json"), "--json"]
    )
    assert explained.exit_code == 0, explained.output
    assert json.loads(explained.stdout)["decision"]["behavior"] == behavior


def test_the_input_of_a_call_shows_no_secret(module: str) -> None:
    secret = "ghp_" + secrets.token_hex(18)
    done = command(
        "check",
        "read_file",
        "--module",
        module,
        "--show-input",
        "--args",
        json.dumps({"path": secret}),
    )
    assert json.loads(done.stdout)["input"]["path"]
    assert secret not in done.stdout


def test_a_call_that_never_gets_to_the_policy_has_no_input(module: str) -> None:
    done = command(
        "check", "mystery", "--module", module, "--show-input", "--args", '{"number": "x"}'
    )
    assert done.exit_code == EXIT_CODES["failed"]
