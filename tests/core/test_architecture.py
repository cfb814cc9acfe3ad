"""What docs/architecture.md shows is true: its table leads to the file that has the name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "agenttool_otel"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| `([^`|]+)` \| `([^`|]+)` \|$", PAGE, re.MULTILINE)


def test_it_has_a_table() -> None:
    assert len(ROWS) > 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_leads_to_the_file_that_has_the_name(row: tuple[str, str, str]) -> None:
    _, file, name = row
    path = PACKAGE / file
    if not path.exists():
        path = ROOT / file
    text = path.read_text("utf-8")
    if path.suffix == ".py" and name.isidentifier():
        definition = rf"^(class|def|async def)?\s*{name}\b|^    (async )?def {name}\b|\"{name}\""
        assert re.search(definition, text, re.MULTILINE)
    else:
        assert name in text


def test_every_room_is_shown() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    drawing = PAGE[PAGE.index("## The rooms") : PAGE.index("## One call")]
    missing = {room for room in rooms if not re.search(rf"\b{room}\b", drawing)}
    assert not missing
