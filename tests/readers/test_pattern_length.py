"""No pattern of the readers is so long that nobody can read it: long ones are built from parts."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agenttool_otel.readers
from literals import LONGEST, long_literals

READERS = Path(agenttool_otel.readers.__file__).parent
MODULES = sorted(READERS.rglob("*.py"))
TABLES = sorted([*READERS.rglob("*.toml"), *READERS.rglob("*.json")])
PROSE = {"source", "note"}


def texts_of(value: Any) -> Iterator[str]:
    """Yield the texts of a table, but for those that explain it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in PROSE:
                yield from texts_of(item)


def too_long(texts: Iterator[str]) -> list[str]:
    return [text for text in texts if len(text) > LONGEST]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(READERS)))
def test_no_literal_of_a_module_is_long(module: Path) -> None:
    assert long_literals(module) == []


@pytest.mark.parametrize("table", TABLES, ids=lambda path: str(path.relative_to(READERS)))
def test_no_cell_of_a_table_is_long(table: Path) -> None:
    text = table.read_text("utf-8")
    content = tomllib.loads(text) if table.suffix == ".toml" else json.loads(text)
    assert too_long(texts_of(content)) == []
