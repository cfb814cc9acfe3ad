"""The command without the packages of an extra says which extra it needs, and hides no other import
that fails.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
sys.modules[{module!r}] = None
sys.argv = ["agenttool", *{arguments!r}]
from agenttool_otel.cli import main
main()
"""


def _run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = CODE.format(module=module, arguments=list(arguments))
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("module", "extras"),
    [
        ("typer", "cli"),
        ("rich", "cli"),
        ("langchain", "cli,langchain"),
        ("langchain_core", "cli,langchain"),
        ("langgraph", "cli,langchain"),
    ],
)
def test_the_demo_names_the_extra_that_is_missing(module: str, extras: str) -> None:
    done = _run(module, "demo")
    assert done.returncode == 1
    assert f"needs the package {module} here: pip install 'agenttool-otel[{extras}]'" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_missing_module_of_the_program_itself_is_told_as_it_is() -> None:
    code = "from agenttool_otel.cli import main; import agenttool_otel.cli.main as commands\n"
    code += "commands.app = lambda: __import__('not_there')\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert "No module named 'not_there'" in done.stderr
    assert "pip install" not in done.stderr
