"""Names in the package are the field's words: none of them says, tells or hears."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import pytest

from sources import PACKAGE, trees

PARTS: Final = frozenset(
    {
        "told",
        "tell",
        "tells",
        "said",
        "says",
        "heard",
        "hear",
        "hears",
        "flaw",
        "doubt",
        "speaks",
        "somebody",
    }
)
"""Words that are no part of a name."""
WHOLE: Final = frozenset({"one", "it"})
"""Words that alone are no name: what they stand for is one."""
EXCEPTIONS: Final = {
    ("approvals/store/evidence.py", "one"): "SQLAlchemy's Result.one()",
    ("context/session_store.py", "one"): "SQLAlchemy's Result.one()",
}
"""Names of others, by file and name, each with whose it is."""

_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def identifiers(tree: ast.AST) -> Iterator[str]:
    """Yield every name that code defines or uses; text and comments are none."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case ast.alias(name=imported, asname=name):
                yield name or imported.rpartition(".")[2]


def refused(name: str) -> bool:
    """Whether a name is, or has as a part, a word that names do not use."""
    if name in WHOLE:
        return True
    return any(part.lower() in PARTS for part in _PART.findall(name))


@cache
def refused_names() -> set[tuple[str, str]]:
    """Return by file what has such a name."""
    found = set()
    for path, tree in trees().items():
        file = path.relative_to(PACKAGE).as_posix()
        for name in identifiers(tree):
            if refused(name):
                found.add((file, name))
    return found


@pytest.mark.slow
def test_no_name_has_such_a_word() -> None:
    assert sorted(refused_names() - EXCEPTIONS.keys()) == []


def test_every_exception_is_still_there() -> None:
    assert sorted(EXCEPTIONS.keys() - refused_names()) == []


@pytest.mark.parametrize(
    "code",
    [
        "told = 1",
        "self._is_told = 1",
        "def tell_owner(): ...",
        "class FrameTellsAll: ...",
        "def f(it): ...",
        "call(said=1)",
        "for one in many: ...",
        "import a.said",
        "from a import b as heard",
        "try: ...\nexcept E as flaw: ...",
        "match x:\n  case [*doubt]: ...",
    ],
)
def test_the_search_finds_such_a_name(code: str) -> None:
    assert any(refused(name) for name in identifiers(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    ["'told'", "# told", "one_of = 1", "items = 1", "unhearsed = 1", "saidi = 1", "ONE = 1"],
)
def test_the_search_leaves_other_names_and_text(code: str) -> None:
    assert not any(refused(name) for name in identifiers(ast.parse(code)))
