"""A first day that breaks nothing: shadow mode by tool, what it would have stopped, and skeletons
of facts.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from langchain_core.tools import StructuredTool
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from typer.testing import CliRunner

from agenttool_otel import Governor, ToolDenied, agent_context
from agenttool_otel.catalog.vocabulary import check_options
from agenttool_otel.cli.main import app
from agenttool_otel.errors import ApprovalRequired, ConfigurationError
from agenttool_otel.integrations.facts import server_facts
from agenttool_otel.names import Behavior
from agenttool_otel.preflight.guessed_facts import skeleton, undeclared
from agenttool_otel.testing import capture

runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
SERVERS: dict[str, Any] = json.loads(
    resources.files("agenttool_otel.integrations").joinpath("known_servers.json").read_text("utf-8")
)["servers"]
PROGRAM = '''
from langchain_core.tools import tool
from agenttool_otel import Governor

own = Governor()

@own.govern(read_only=True, destructive=False, open_world=False, access_kinds=[])
def stated(number: int) -> int:
    """Return it."""
    return number

@own.govern
def delete_rows(table: str) -> str:
    """Delete rows."""
    raise AssertionError("ran")

@own.govern
def get_report(target_file: str) -> str:
    """Get it.
    raise SystemExit('a description is no code')"""
    raise AssertionError("ran")

@own.govern
def sh(command: str) -> str:
    """Run a command."""
    raise AssertionError("ran")

@own.govern
def zap(number: int) -> str:
    """Zap."""
    raise AssertionError("ran")

@tool
def lookup(city: str) -> str:
    """Look a city up."""
    return city

waiting = [lookup]
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = "first_day_program"
    (tmp_path / f"{name}.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield f"{name}:own"
    sys.modules.pop(name, None)


# --- shadow mode by tool --------------------------------------------------------------------------


def tools_of(governor: Governor) -> tuple[Any, Any]:
    @governor.govern(namespace="shop", name="pay", access_kinds=["payment"])
    def pay(amount: int) -> str:
        return "paid"

    @governor.govern(namespace="shop", name="forbidden", lifecycle="retired")
    def forbidden() -> str:
        return "ran"

    return pay, forbidden


@pytest.mark.parametrize(
    ("globs", "bound"),
    [
        (["shop.*"], (False, False)),
        (["shop.pay"], (False, True)),
        (["*", "!shop.pay"], (True, False)),
        (["!shop.pay", "*"], (False, False)),
        # a short name is one that another tool could borrow
        (["pay", "SHOP.*", "shop"], (True, True)),
        ([], (True, True)),
    ],
)
def test_shadow_mode_of_tools_lets_those_run(globs: list[str], bound: tuple[bool, bool]) -> None:
    with capture(shadow_tools=globs) as seen:
        pay, _ = tools_of(seen.governor)
        with agent_context(actor="agent:a", session_id="s"):
            if bound[0]:
                with pytest.raises(ApprovalRequired):
                    pay(amount=1)
            else:
                assert pay(amount=1) == "paid"
                assert seen.span.attributes["agenttool.permission.shadow.behavior"] == "ask"
                assert seen.span.attributes["agenttool.permission.mode"] == "shadow"


def test_what_is_no_matter_of_policy_stays_refused_in_shadow() -> None:
    with capture(shadow_tools=["*"]) as seen:
        _, forbidden = tools_of(seen.governor)
        with agent_context(actor="agent:a", session_id="s"), pytest.raises(ToolDenied):
            forbidden()


def test_the_variable_takes_globs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTTOOL_SHADOW_TOOLS", "shop.*, !shop.pay")
    assert Governor().settings.shadow_tools == ("shop.*", "!shop.pay")
    with pytest.raises(ConfigurationError):
        Governor(shadow_tools="*")


def test_would_have_sums_up_by_tool_and_rule(tmp_path: Path) -> None:
    with capture(policy_mode="shadow") as seen:
        pay, _ = tools_of(seen.governor)
        read = seen.governor.govern(lambda path: "x", name="read", path_args=["path"], access_kinds=["file_read"],
                                    read_only=True, tool_kind="file_operation", description="Read.")  # fmt: skip
        with agent_context(actor="agent:a", session_id="s", roots=[str(tmp_path)]):
            for _ in range(3):
                pay(amount=1)
            assert read(path="/etc/shadow") == "x"
            assert read(path=str(tmp_path / "a")) == "x"
        file = tmp_path / "trace.json"
        file.write_text(json.dumps(MessageToDict(encode_spans(seen.spans))), "utf-8")
    told = runner.invoke(app, ["trace", str(file), "--would-have"]).output
    assert "Of 5 calls decided in shadow, 4 would not just have run" in told
    asked, denied = (
        next(line for line in told.splitlines() if name in line) for name in ("pay", "read")
    )
    assert "asked about" in asked
    assert " 3 " in asked
    assert "denied" in denied
    assert "agenttool.rules.paths.sensitive" in denied


# --- skeletons ------------------------------------------------------------------------------------


def test_suggest_lists_the_undeclared_and_marks_guesses(module: str) -> None:
    done = runner.invoke(app, ["tools", "suggest", "--module", module])
    assert done.exit_code == 0, done.output
    text = done.stdout
    assert "stated" not in text
    facts = ast.literal_eval(ast.parse(text).body[0].value)  # type: ignore[attr-defined]
    assert facts.keys() == {"delete_rows", "get_report", "lookup", "sh", "zap"}
    assert facts["delete_rows"]["destructive"] is True
    assert facts["get_report"]["path_args"] == ["target_file"]
    assert "# 'read_only': True" in text
    for line in text.splitlines():
        if line.startswith("        "):
            assert "  # guess: " in line
    for entry in facts.values():
        check_options(entry)


def test_suggested_json_is_a_tools_file_that_loosens_nothing(module: str) -> None:
    done = runner.invoke(app, ["tools", "suggest", "--module", module, "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts.keys() == {"delete_rows", "get_report", "lookup", "sh", "zap"}
    assert facts["delete_rows"]["destructive"] is True
    assert not any("read_only" in entry for entry in facts.values())
    assert 'get_report: left out, to be checked: {"read_only": true}' in done.stderr


def test_the_tools_of_a_toolkit_are_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "with_toolkit.py").write_text(
        "from langchain_core.tools import BaseToolkit, tool\n\n"
        "class Doors(BaseToolkit):\n"
        "    def get_tools(self):\n"
        "        @tool\n"
        "        def close_door(name: str) -> str:\n"
        "            'Close a door.'\n"
        "            return name\n"
        "        return [close_door]\n\n"
        "DOORS = Doors()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    done = runner.invoke(app, ["tools", "suggest", "--module", "with_toolkit", "--json"])
    # tools of other modules that this process has loaded are there, too
    assert "close_door" in json.loads(done.stdout)


def test_a_skeleton_pasted_unread_loosens_nothing(module: str) -> None:
    done = runner.invoke(app, ["tools", "suggest", "--module", module])
    facts = ast.literal_eval(ast.parse(done.stdout).body[0].value)  # type: ignore[attr-defined]
    governor = Governor()
    arguments = {
        "delete_rows": {"table": "t"}, "get_report": {"target_file": "/proj/a"}, "sh": {"command": "ls"},
        "zap": {"number": 1}, "lookup": {"city": "x"},
    }  # fmt: skip
    program = sys.modules[module.partition(":")[0]]
    with agent_context(actor="agent:a", session_id="s", roots=["/proj"], cwd="/proj"):
        for name, given in arguments.items():
            target = getattr(program, name)
            target = target if hasattr(target, "args_schema") else target.tool.function
            kept = governor.govern(target, **{**facts[name], "tool_id": f"pasted.{name}"})
            tool = governor.find(f"pasted.{name}")
            assert tool is not None
            assert tool.check(**given).behavior is not Behavior.ALLOW, kept


def test_a_description_is_no_code_in_a_skeleton() -> None:
    governor = Governor()
    hostile = "x'''\"\"\"\u2028boom()\x85boom()\r\nboom()\x0cboom()"
    tool = StructuredTool.from_function(lambda a: a, name="t", description=hostile)
    kept = governor.govern(tool)
    spec = governor.tools[0].spec
    assert undeclared(spec)
    parsed = ast.parse(skeleton({spec.name: spec}))
    assert len(parsed.body) == 1
    assert kept is not tool
    assert not [node for node in ast.walk(parsed) if isinstance(node, ast.Call)]


# --- the common MCP servers -----------------------------------------------------------------------


@pytest.mark.parametrize("server", SERVERS)
def test_the_reviewed_facts_of_a_server_are_facts(server: str) -> None:
    facts = server_facts(server, prefix="p_")
    assert facts
    for name, stated in facts.items():
        assert name.startswith("p_")
        check_options(stated)
        assert "read_only" in stated
        assert stated["ownership"] == "mcp"
    named = [name for group in SERVERS[server]["tools"] for name in group["names"]]
    assert len(named) == len(set(named)) == len(facts)


def test_a_server_that_nobody_reviewed_has_no_facts() -> None:
    with pytest.raises(ConfigurationError, match="filesystem"):
        server_facts("file_system")


@pytest.mark.parametrize(
    ("server", "name", "arguments", "behavior"),
    [
        ("filesystem", "read_text_file", {"path": "/proj/a.txt"}, "allow"),
        ("filesystem", "read_text_file", {"path": "/etc/shadow"}, "deny"),
        ("filesystem", "read_text_file", {"path": "a.txt"}, "deny"),
        ("filesystem", "read_multiple_files", {"paths": ["/proj/a", "b"]}, "deny"),
        ("filesystem", "write_file", {"path": "/proj/a.txt", "content": "x"}, "ask"),
        ("git", "git_status", {"repo_path": "/proj"}, "allow"),
        ("git", "git_status", {"repo_path": "."}, "deny"),
        ("git", "git_commit", {"repo_path": "/proj", "message": "m"}, "ask"),
        ("fetch", "fetch", {"url": "https://example.com/"}, "allow"),
        ("fetch", "fetch", {"url": "http://169.254.169.254/"}, "deny"),
        (
            "github",
            "issue_read",
            {"method": "get", "owner": "o", "repo": "r", "issue_number": 1},
            "allow",
        ),
        ("github", "delete_file", {"owner": "o", "repo": "r", "path": "a", "message": "m"}, "ask"),
        ("slack", "slack_get_channel_history", {"channel_id": "C1"}, "allow"),
        ("slack", "slack_post_message", {"channel_id": "C1", "text": "x"}, "ask"),
        ("postgres", "query", {"sql": "SELECT 1"}, "allow"),
        ("postgres", "query", {"sql": "COMMIT; DROP SCHEMA public CASCADE"}, "ask"),
    ],
)
def test_reads_run_and_writes_ask_with_reviewed_facts(
    server: str, name: str, arguments: dict[str, Any], behavior: str
) -> None:
    schema = {
        "type": "object",
        "properties": {key: {"type": _type(value)} for key, value in arguments.items()},
    }
    schema["properties"].update(
        {key: {"type": "array", "items": {"type": "string"}} for key in ("paths",)}
    )  # type: ignore[attr-defined]
    tool = StructuredTool(
        name=name, description="x", args_schema=schema, func=lambda **given: "ran"
    )
    governor = Governor()
    kept: Any = governor.govern(tool, **server_facts(server)[name])
    handle = governor.find(name)
    assert handle is type(kept).agenttool
    assert handle is not None
    with agent_context(actor="agent:a", session_id="s", roots=["/proj"], cwd="/proj"):
        assert handle.check(**arguments).behavior == behavior


def _type(value: Any) -> str:
    return "integer" if isinstance(value, int) else "string"
