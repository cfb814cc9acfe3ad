"""Known places of credentials: each has a row that it finds, and each named part of a pattern a text."""

from __future__ import annotations

import ast
import random
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from blind_values import Row, filled

from agenttool_otel.redaction import default_redactor
from agenttool_otel.redaction.detectors import known_places
from agenttool_otel.redaction.detectors.known_places.statement import Statement
from agenttool_otel.redaction.detectors.statements import STATEMENTS
from agenttool_otel.redaction.patterns import compile_pattern

FOLDER = Path(known_places.__file__).parent
ROWS: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("known_places.toml").read_text("utf-8")
)
PARTS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("pattern_parts.toml").read_text("utf-8")
)
MODULES = [path.stem for path in sorted(FOLDER.glob("*.py")) if path.stem != "__init__"]
MOST_CHARS = 120
PLAIN_WORDS = b"seven plain words; nothing | of it"
WITH_BARE_VALUE = ("name_and_value", "dockerfile_variable")


def rows_of(statement_id: str) -> list[Row]:
    """The rows of a place, with values in their holes."""
    texts = [text for rows in ROWS.values() for text in rows.get(statement_id, ())]
    return [filled(statement_id, text, random.Random(text)) for text in texts]


def is_found(statement: Statement, row: Row) -> bool:
    """Whether a pattern's value is, or is part of, a secret of the row."""
    groups = (1,)
    if statement.named:
        groups = (2, 3) if statement.id in WITH_BARE_VALUE else (2,)
    for match in compile_pattern(statement.pattern).finditer(row.text.encode()):
        values = [match.group(group).decode() for group in groups if match.group(group)]
        if any(secret in value or value in secret for value in values for secret in row.secrets):
            return True
    return False


@pytest.mark.parametrize("index", range(len(STATEMENTS)), ids=lambda i: f"{STATEMENTS[i].id}-{i}")
def test_each_place_has_a_row_that_it_finds(index: int) -> None:
    statement = STATEMENTS[index]
    assert any(is_found(statement, row) for row in rows_of(statement.id))


@pytest.mark.parametrize("statement_id", sorted({item.id for item in STATEMENTS}))
def test_no_secret_of_a_row_is_left(statement_id: str) -> None:
    for row in rows_of(statement_id):
        shown = default_redactor().redact_text(row.text).value
        assert [secret for secret in row.secrets if secret in shown] == []


def test_each_row_belongs_to_a_place() -> None:
    assert {name for rows in ROWS.values() for name in rows} == {item.id for item in STATEMENTS}


def parts_of(module: str) -> dict[str, str]:
    """The named parts that a module defines itself."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))
    values = vars(import_module(f"{known_places.__name__}.{module}"))
    names = [
        node.target.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    return {
        name: values[name]
        for name in names
        if not name.startswith("_") and isinstance(values[name], str)
    }


@pytest.mark.parametrize("module", MODULES)
def test_each_part_matches_its_text(module: str) -> None:
    parts = parts_of(module)
    assert set(PARTS.get(module, {})) == set(parts)
    for name, part in parts.items():
        whole = compile_pattern(rf"(?mi)\A(?:{part})\z")
        assert whole.search(PARTS[module][name].encode()) is not None, name
        assert whole.search(PLAIN_WORDS) is None, name


@pytest.mark.parametrize("module", MODULES)
def test_a_long_pattern_is_built_from_parts(module: str) -> None:
    tree = ast.parse((FOLDER / f"{module}.py").read_text("utf-8"))
    patterns = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg in ("pattern", "prefilter")
    ]
    literals = [
        node.value
        for pattern in patterns
        for node in ast.walk(pattern)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [literal for literal in literals if len(literal) > MOST_CHARS] == []
