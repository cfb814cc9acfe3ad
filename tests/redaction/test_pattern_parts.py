"""Long regular expressions of redaction are built from named parts, and each part has a text."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from agenttool_otel import redaction
from literals import long_literals

FOLDER = Path(redaction.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
PARTS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("parts_of_detectors.toml").read_text("utf-8")
)
MODULES = (
    "templates",
    "plausibility",
    "detectors.assignments",
    "detectors.flags",
    "detectors.headers",
    "detectors.id_numbers",
    "detectors.phrases",
    "detectors.pii",
    "detectors.tables",
    "detectors.token_formats",
)
PLAIN_WORDS = "seven plain words; nothing | of it"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(FOLDER)))
def test_no_literal_is_longer_than_a_part(file: Path) -> None:
    assert long_literals(file) == []


def parts_of(module: str) -> dict[str, str]:
    """The parts that a module names: its public texts, bytes of patterns included."""
    path = FOLDER / f"{module.replace('.', '/')}.py"
    values = vars(import_module(f"{redaction.__name__}.{module}"))
    parts: dict[str, str] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        name = node.target.id
        value = values[name]
        if isinstance(value, bytes):
            value = value.decode()
        if isinstance(value, str) and not name.startswith("_"):
            parts[name] = value
    return parts


def matches_whole(part: str, text: str) -> bool:
    """Whether a part matches a text from its beginning to its end."""
    # what RE2 spells in another way than Python
    pattern = part.removeprefix("(?i)").replace(r"\z", r"\Z")
    pattern = pattern.replace(r"\x{80}-\x{10ffff}", "\x80-\U0010ffff")
    return re.search(rf"(?mi)\A(?:{pattern})\Z", text) is not None


@pytest.mark.parametrize("module", MODULES)
def test_each_part_has_a_text(module: str) -> None:
    assert set(PARTS[module]) == set(parts_of(module))


@pytest.mark.parametrize("module", MODULES)
def test_each_part_matches_its_text(module: str) -> None:
    parts = parts_of(module)
    missed = [name for name, text in PARTS[module].items() if not matches_whole(parts[name], text)]
    assert missed == []


@pytest.mark.parametrize("module", MODULES)
def test_no_part_matches_plain_words(module: str) -> None:
    parts = parts_of(module)
    assert [name for name, part in parts.items() if matches_whole(part, PLAIN_WORDS)] == []
