"""Write the versions in the support table of docs/doors.md from the extras of pyproject.toml, and those
that are tested in an environment of their own from tools/frameworks.py.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from frameworks import FRAMEWORKS

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "doors.md"
DOORS: Final = ROOT / "src" / "agenttool_otel" / "integrations"
_ROW: Final = re.compile(
    r"^(\| [^|]+ \| `agenttool_otel\.integrations\.(\w+)` \| )([^|]+)( \| [^|]* \|)$", re.M
)


def doors() -> dict[str, Requirement]:
    """Return what each door that has an extra of its own name needs, by module."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = {}
    for extra, (first, *_) in project["optional-dependencies"].items():
        module = extra.replace("-", "_")
        if (DOORS / f"{module}.py").exists() or (DOORS / module).is_dir():
            found[module] = Requirement(first)
    del found["langchain"]  # several packages: the page names the extra alone
    return found


def versions(module: str, needed: Requirement) -> str:
    """Return a cell: the extra, and which versions of its package it takes."""
    extra = module.replace("_", "-")
    cell = f"extra `{extra}`: {needed.name} {_range(needed)}"
    for framework in FRAMEWORKS.values():
        tested = Requirement(framework.requirement.split()[0])
        if tested.name == needed.name and tested.specifier != needed.specifier:
            cell += f", or without the extra {_range(tested)}"
    return cell


def _range(needed: Requirement) -> str:
    lowest, highest = _bounds(needed.specifier)
    return f"{lowest} and newer, below {highest}"


def _bounds(specifier: SpecifierSet) -> tuple[str, str]:
    by_operator = {item.operator: item.version for item in specifier}
    return by_operator[">="], by_operator["<"]


def page(text: str) -> str:
    """Return the page with the versions of now.

    Args:
        text: the page.

    Raises:
        KeyError: a door has no row.
    """
    wanted = doors()
    missing = wanted.keys() - {row[1] for row in _ROW.findall(text)}
    if missing:
        raise KeyError(f"docs/doors.md has no row for {sorted(missing)}")

    def renewed(row: re.Match[str]) -> str:
        module = row[2]
        if module not in wanted:
            return row[0]
        # what follows a semicolon is the author's: "; see mcp.md"
        _, mark, note = row[3].partition(";")
        return f"{row[1]}{versions(module, wanted[module])}{mark}{note}{row[4]}"

    return _ROW.sub(renewed, text)


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text("utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
