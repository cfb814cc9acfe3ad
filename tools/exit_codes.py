"""Write the table of exit codes in docs/operations.md from the commands themselves."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from agenttool_otel.cli.main import COMMANDS

TARGET = Path(__file__).resolve().parent.parent / "docs" / "operations.md"
BEGIN = "<!-- exit codes: begin -->"
END = "<!-- exit codes: end -->"


def table() -> str:
    """Return the table, one command a row."""
    rows = ["| command | exit codes |", "| --- | --- |"]
    for name in COMMANDS:
        codes = import_module(f"agenttool_otel.cli.{name}").EXIT_CODES
        rows.append(f"| `agenttool {name}` | {', '.join(_meanings(codes))} |")
    return "\n".join(rows)


def _meanings(codes: Mapping[str, int]) -> list[str]:
    """Return each code with what it means; one code may mean several things."""
    words: dict[int, list[str]] = {}
    for name, code in codes.items():
        words.setdefault(code, []).append(name.replace("_", " "))
    return [f"{code} {' or '.join(names)}" for code, names in sorted(words.items())]


def page(text: str) -> str:
    """Return the page with the table of now.

    Args:
        text: the page.
    """
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    TARGET.write_text(page(TARGET.read_text("utf-8")), encoding="utf-8")
    sys.exit(0)
