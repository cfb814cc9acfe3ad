"""The texts that stand in a module's code, for tests that bound how long one may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

LONGEST = 120
"""Characters of a literal that one can still read at a glance; a longer pattern has named parts."""


def long_literals(module: Path) -> list[str]:
    """Return the literals of a module that are too long, each with its line: ``text.py:12``.

    Docstrings are left out; of an f-string counts what is written out.
    """
    tree = ast.parse(module.read_text("utf-8"))
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [f"{module.name}:{node.lineno}" for node in _long(tree) if node not in docstrings]


def _long(tree: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and _chars(node) > LONGEST:
            yield node


def _chars(node: ast.AST) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return len(node.value)
    if isinstance(node, ast.JoinedStr):
        return sum(_chars(value) for value in node.values)
    return 0
