"""Enumerations are classes with a member a line, so that a word can be searched for and has its
meaning beside it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from sources import trees

BASES = {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"}


def name_of(node: ast.expr) -> str:
    """Return the last part of a name: ``enum.StrEnum`` and ``StrEnum`` are both ``StrEnum``."""
    return ast.unparse(node).rpartition(".")[2]


def enumerations(tree: ast.Module) -> Iterator[ast.ClassDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and BASES & {name_of(base) for base in node.bases}:
            yield node


def is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def without_docstring(tree: ast.Module) -> list[str]:
    """Return the enumerations and members that no string literal follows."""
    found = []
    for enumeration in enumerations(tree):
        if not ast.get_docstring(enumeration):
            found.append(enumeration.name)
        followers = [*enumeration.body[1:], ast.Pass()]
        for node, follower in zip(enumeration.body, followers, strict=True):
            if isinstance(node, ast.Assign) and not is_text(follower):
                found.append(f"{enumeration.name}.{ast.unparse(node.targets[0])}")
    return found


def made_by_a_call(tree: ast.Module) -> list[int]:
    """Return the lines of ``StrEnum("Name", "A B")``."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [node.lineno for node in calls if name_of(node.func) in BASES]


def test_no_enumeration_is_made_by_a_call() -> None:
    assert {path: lines for path, tree in trees().items() if (lines := made_by_a_call(tree))} == {}


def test_every_member_has_its_meaning() -> None:
    assert {
        path: names for path, tree in trees().items() if (names := without_docstring(tree))
    } == {}


def test_the_functional_form_is_found() -> None:
    assert made_by_a_call(ast.parse('import enum\nA = enum.StrEnum("A", "X Y")')) == [2]


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ('class A(StrEnum):\n    """What."""\n    X = "x"\n    """An x."""', []),
        ('class A(StrEnum):\n    X = "x"\n    """An x."""', ["A"]),
        ('class A(StrEnum):\n    """What."""\n    X = "x"\n    Y = "y"\n    """A y."""', ["A.X"]),
        ('class A(StrEnum):\n    """What."""\n    X = "x"', ["A.X"]),
    ],
)
def test_a_missing_meaning_is_found(source: str, missing: list[str]) -> None:
    assert without_docstring(ast.parse(source)) == missing
