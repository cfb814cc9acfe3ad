"""A test's name says the behaviour in at most 60 characters; ``make lint`` runs this."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
MAX_CHARACTERS: Final = 60


def long_names(folder: Path = TESTS) -> Iterator[str]:
    """Places and names of tests whose name is too long."""
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            if node.name.startswith("test_") and len(node.name) > MAX_CHARACTERS:
                yield f"{path.relative_to(folder.parent)}:{node.lineno} {node.name}: {len(node.name)} characters"


def main() -> int:
    """Print what is too long."""
    found = list(long_names())
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
