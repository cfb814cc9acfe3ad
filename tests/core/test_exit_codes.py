"""One table of exit codes, and no command that ends with another one."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from agenttool_otel import cli

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(Path(cli.__file__).parent.rglob("*.py"))


def test_the_page_has_the_table_of_the_commands() -> None:
    spec = importlib.util.spec_from_file_location("exit_codes", ROOT / "tools" / "exit_codes.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = (ROOT / "docs" / "operations.md").read_text("utf-8")
    assert tool.page(text) == text


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_command_ends_with_a_code_that_has_a_name(source: Path) -> None:
    # the demo of main.py has no group of commands, and no table
    numbers = re.findall(r"Exit\((\d+)\)", source.read_text("utf-8"))
    assert numbers == (["1"] if source.stem == "main" else [])
