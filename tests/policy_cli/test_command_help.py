"""``agenttool --help``: it lists each command by its own help, and imports none of them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from agenttool_otel import cli
from agenttool_otel.cli.main import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_has_the_help_of_the_command(name: str) -> None:
    module = importlib.import_module(f"agenttool_otel.cli.{name}")
    # what follows a blank line, as exit codes, is shown by the command alone
    first, _, _ = (get_command(module.app).help or "").partition("\n\n")
    assert " ".join(first.split()) == COMMANDS[name]


def test_each_module_with_commands_is_listed() -> None:
    with_commands = set()
    for file in Path(cli.__file__).parent.glob("*.py"):
        if file.stem != "main" and "\napp = " in file.read_text("utf-8"):
            with_commands.add(file.stem)
    assert with_commands | {"policy"} == set(COMMANDS)


def test_help_imports_no_command() -> None:
    code = """
import sys
from agenttool_otel.cli.main import app

sys.argv = ["agenttool", "--help"]
try:
    app()
finally:
    loaded = [name for name in sys.modules if name.startswith("agenttool_otel.cli.")]
    print("LOADED", loaded, "pydantic" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert "LOADED ['agenttool_otel.cli.main'] False" in done.stdout
