"""``agenttool policy simulate``: what an actor could do, by tool and kind of argument."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agenttool_otel.cli.policy.app import app

PROGRAM = '''
from agenttool_otel import Governor

own = Governor()

@own.govern(read_only=True, access_kinds=["file_read"], path_args=["path"])
def read_file(path: str) -> str:
    """Read a file."""
    raise AssertionError("ran")

@own.govern(tool_kind="shell_command", command_args=["command"])
def sh(command: str) -> str:
    """Run a command."""
    raise AssertionError("ran")

@own.govern(read_only=True, access_kinds=["network"], url_args=["url"])
def fetch(url: str) -> str:
    """Fetch a page."""
    raise AssertionError("ran")

@own.govern(sql_args=["statement"])
def query(statement: str) -> str:
    """Query."""
    raise AssertionError("ran")

@own.govern()
def mystery(number: int) -> str:
    """Do something."""
    raise AssertionError("ran")
'''


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("program")
    (folder / "simulated_program.py").write_text(PROGRAM, encoding="utf-8")
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    sys.modules.pop("simulated_program", None)


def simulate(*words: str) -> Any:
    """The result of the command."""
    module = ("--module", "simulated_program:own", "--root", "/srv/acme")
    result = CliRunner().invoke(app, ["simulate", *module, *words])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def found(program: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        simulate("--who", "agent:deployer", "--role", "release", "--json").stdout
    )
    return found


def decisions(found: dict[str, Any], tool: str) -> dict[str, str]:
    """The decision of each argument of a tool."""
    calls = [call for call in found["calls"] if call["tool"].endswith(tool)]
    return {call["argument"]: call["behavior"] for call in calls}


def test_each_kind_of_path_has_its_decision(found: dict[str, Any]) -> None:
    paths = decisions(found, "read_file")
    assert paths["a file in a root"] == "allow"
    assert paths["a file outside of the roots"] == "ask"
    assert paths["a secret of the system"] == "deny"


def test_each_kind_of_command_has_its_decision(found: dict[str, Any]) -> None:
    commands = decisions(found, "sh")
    assert commands["runs what it loads"] == "deny"
    assert commands["uses the network"] == "ask"


def test_each_kind_of_url_and_statement_is_tried(found: dict[str, Any]) -> None:
    assert decisions(found, "fetch")["credentials of the cloud"] == "deny"
    assert set(decisions(found, "query")) == {
        "reads",
        "changes a row",
        "removes all rows",
        "removes a table",
    }


def test_a_tool_without_such_arguments_is_tried_once(found: dict[str, Any]) -> None:
    assert decisions(found, "mystery") == {"made up": "ask"}


def test_the_report_names_whom_it_is_about(found: dict[str, Any]) -> None:
    assert (found["actor"], found["roles"]) == ("agent:deployer", ["release"])
    assert found["policy"]["engines"][0]["revision"]


def test_nobody_is_asked_and_nothing_is_stored(found: dict[str, Any]) -> None:
    own = sys.modules["simulated_program"].own
    assert own.approvals.store.list() == []


def test_the_page_has_a_row_for_each_call(found: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "who.md"
    simulate("--who", "agent:deployer|x", "--markdown", str(page))
    text = page.read_text("utf-8")
    assert text.count("\n| ") == len(found["calls"]) + 1
    assert "agent:deployer\\|x" in text


def test_the_table_has_tools_and_decisions(program: Path) -> None:
    shown = simulate("--who", "agent:deployer").stdout
    assert "agent:deployer" in shown
    assert "a file in a root" in shown
