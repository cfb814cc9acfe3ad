"""A test's name is the behaviour in at most 60 characters, and a file's name does not repeat its
folder's; ``make lint`` runs this.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"
MAX_CHARACTERS: Final = 60


def long_names(folder: Path = TESTS) -> Iterator[str]:
    """Yield place and name of each test whose name is too long.

    Args:
        folder: where the tests are.
    """
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            if node.name.startswith("test_") and len(node.name) > MAX_CHARACTERS:
                place = f"{path.relative_to(folder.parent)}:{node.lineno}"
                yield f"{place} {node.name}: {len(node.name)} characters"


def repeated_folders(folder: Path = TESTS) -> Iterator[str]:
    """Yield each file of tests whose name begins with its folder's.

    Args:
        folder: where the tests are.
    """
    for path in sorted(folder.rglob("test_*.py")):
        name = path.stem.removeprefix("test_")
        # tests/policy_cli/test_policy_init.py repeats as much as tests/policy/test_policy_init.py
        for repeated in (path.parent.name, path.parent.name.partition("_")[0]):
            if f"{name}_".startswith(f"{repeated}_"):
                yield f"{path.relative_to(folder.parent)}: repeats its folder's name"
                break


def main() -> int:
    """Print what is wrong."""
    found = [*long_names(), *repeated_folders()]
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
