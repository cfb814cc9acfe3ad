"""The package's own source, parsed once a process for all tests that look at it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

import agenttool_otel

PACKAGE: Final = Path(str(agenttool_otel.__file__)).parent


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax tree of each file of the package, which no test may change."""
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
