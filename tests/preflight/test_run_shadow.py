"""``agenttool run --shadow``: a program without a line of set-up, and what the policy would have done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agenttool_otel.cli.trace_sources import read_file
from agenttool_otel.names import Attr, GenAI

AGENTTOOL = str(Path(sys.executable).parent / "agenttool")
OWN = """
import sys
from agenttool_otel import govern

@govern(access_kinds=["payment"])
def pay(amount: int) -> str:
    "Pay."
    return f"paid {amount}"

print(pay(3), sys.argv[1:])
sys.exit(3)
"""
LANGCHAIN = """
from langchain_core.tools import tool

@tool
def send_mail(to: str) -> str:
    "Send a mail."
    return f"sent to {to}"

print(send_mail.invoke({"to": "ada@example.com"}))
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [AGENTTOOL, "run", "--shadow", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_program_runs_as_it_is_and_the_table_follows(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(OWN, "utf-8")
    done = run(tmp_path, "app.py", "--loud", "x")
    assert (done.returncode, done.stdout) == (3, "paid 3 ['--loud', 'x']\n")
    assert "Of 1 calls decided in shadow, 1 would not just have run" in done.stderr
    (span,) = read_file(tmp_path / "agenttool-trace.jsonl")
    assert span.get(GenAI.TOOL_NAME) == "pay"
    assert span.get(Attr.PERMISSION_SHADOW_BEHAVIOR) == "ask"


@pytest.mark.slow
def test_langchains_tools_need_no_line_of_code(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LANGCHAIN, "utf-8")
    done = run(tmp_path, "--trace", "spans.jsonl", "--", "-m", "app")
    assert (done.returncode, done.stdout) == (0, "sent to ada@example.com\n")
    assert "send_mail" in done.stderr
    assert (tmp_path / "spans.jsonl").stat().st_mode & 0o077 == 0


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "nowhere.py")
    assert done.returncode == 2
    assert "nowhere.py is no Python file" in done.stderr
    assert list(tmp_path.iterdir()) == []
