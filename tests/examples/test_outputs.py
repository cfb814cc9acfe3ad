"""Each example runs as it stands, and shows what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agenttool_otel.cli.main import app
from samples import one_in

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_SHOWN = {
    "demo/__main__.py": ["Every call ended as expected. The secret is in no span"],
    "plain_functions.py": [
        "allowed: two points are open",
        "denied: agenttool.rules.paths.sensitive",
        "a write would be: ask",
    ],
    "function_calling.py": [
        "call_1 tree: a plant",
        "call_2 look_up: schema_validation_failed: the arguments are no JSON",
        "call_3 delete_all: unknown_tool",
    ],
    "pydantic_ai_tools.py": ["asked: send_mail the tool does not state whether it only reads"],
    "langchain_tools.py": [
        "'notes.txt'}: success: two points are open",
        "'/etc/shadow'}: error: read_file: permission_denied",
        "'wc -l notes.txt'}: success: 1 notes.txt",
        "'mkfs.ext4 /dev/example'}: error: run_shell: permission_denied",
    ],
    "tool_search.py": [
        "200 tools",
        "the model sees tool_search\nthe model sees tool_search\nthe model sees tool_search, weather_old_tower",
        "weather_old_tower: error: weather_old_tower: schema_not_loaded",
        "weather_old_tower: success: weather of the old tower tomorrow: fine",
        "delete_everything: error: delete_everything: unknown_tool",
    ],
    "coding_agent.py": [
        "success: exit status 1\n$ python3 -c",
        "success: exit status 0\n$ git push origin main\nerror: shell waits for an approval",
        "error: shell: permission_denied: the path is a sensitive place",
        "return a + b  # a sum",
        "a hook was written: False",
    ],
    "langgraph_ask.py": ["asked: write_file", "written: as a person wants it"],
    "custom_policy/run.py": [
        "20 ask agenttool.rules",
        "5000 ask",
        "custom.payments.large",
        "50000 deny custom.payments.limit",
    ],
    "intent_classifier.py": ["W2890441 is replaced"],
    "sql_effects.py": [
        "maps: succeeded, the sum of all prices is 1533",
        "changed 150  sql products",
        "books: rejected, the sum of all prices is 1533",
    ],
    "approvals_across_processes.py": [
        "asked: inv_",
        "approved: pay {'recipient': 'Ada', 'amount': 20}",
        "resumed: pay: succeeded",
        "again: pay: policy_blocked",
    ],
    "standard_consumer.py": ["SCHEMAS is the folder with the standard's JSON Schemas"],
}


def _run(example: str, folder: Path) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("AGENTTOOL_")}
    done = subprocess.run(
        [sys.executable, str(_EXAMPLES / example)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("example", one_in(4, _SHOWN))
def test_an_example_shows_what_it_says(example: str, tmp_path: Path) -> None:
    printed = _run(example, tmp_path)
    if printed.startswith("nothing can be rehearsed"):
        pytest.skip(printed)
    for text in _SHOWN[example]:
        assert text in printed


_RUN_BESIDE = {"verify_evidence.py"}
"""Examples that other tests run, on what those have made (tests/evidence/test_attestations.py)."""


def test_every_example_is_run_and_listed() -> None:
    files = [path.relative_to(_EXAMPLES) for path in _EXAMPLES.rglob("*.py")]
    programs = {str(path) for path in files if not path.name.startswith("demo_")}
    assert programs == {*_SHOWN, *_RUN_BESIDE}
    listed = (_EXAMPLES / "README.md").read_text("utf-8")
    assert all(
        f"`{example.removesuffix('run.py').removesuffix('__main__.py')}`" in listed
        for example in (*_SHOWN, *_RUN_BESIDE)
    )


def test_the_custom_policy_passes_its_tests() -> None:
    done = CliRunner().invoke(
        app,
        ["policy", "test", str(_EXAMPLES / "custom_policy" / "policy"), "--min-coverage", "100"],
    )
    assert done.exit_code == 0, done.output
