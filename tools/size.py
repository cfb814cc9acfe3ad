"""How large and how dense the package is, room by room: a report, which fails nothing.

Usage: ``python tools/size.py [FOLDER]`` prints a table of the rooms of ``src/agenttool_otel`` (or of
another folder) and the ten densest files. The columns are

- ``files`` and ``code``: Python files, and their lines that are neither blank, comment, docstring
  nor import;
- ``nodes/line``: nodes of the syntax tree for each line of code, names of imports left out. Packages
  that are pleasant to read have 4 to 5 (httpx 4.4, trio 4.2, logfire 4.8, pydantic-ai 5.0);
- ``comments`` and ``docs``: lines of comment and of docstring for each 1,000 lines of code;
- ``regex``: characters of the regular expressions that are given to ``re`` or ``re2``;
- ``tables``: kilobytes of TOML and JSON files.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent.parent / "src" / "agenttool_otel"
DENSEST: Final = 10
TABLES: Final = {".toml", ".json"}
REGEX_MODULES: Final = {"re", "re2"}


@dataclass
class Size:
    """The counts of one file, or the sum of several."""

    files: int = 0
    code: int = 0
    nodes: int = 0
    comments: int = 0
    docs: int = 0
    regex: int = 0
    tables: int = 0

    def add(self, other: Size) -> None:
        """Add the counts of ``other`` to these."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)

    @property
    def nodes_a_line(self) -> float:
        """Nodes of the syntax tree for each line of code."""
        return self.nodes / max(1, self.code)

    def row(self, name: str) -> str:
        """Return the counts as a line of the report."""
        code = max(1, self.code)
        return (
            f"{name:28}{self.files:>6}{self.code:>8}{self.nodes_a_line:>11.2f}"
            f"{1000 * self.comments / code:>10.0f}{1000 * self.docs / code:>7.0f}"
            f"{self.regex:>8}{self.tables / 1000:>8.0f}"
        )


def lines_of(nodes: Iterator[ast.expr | ast.stmt]) -> set[int]:
    """Return the numbers of all lines that the nodes stand on."""
    return {
        line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def docstrings(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that are a text alone: docstrings, those of fields included."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue
        if isinstance(node.value.value, str):
            yield node


def imports(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the import statements."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node


def comment_lines(text: str) -> set[int]:
    """Return the numbers of the lines that hold a comment and nothing else."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
    }


def is_counted(node: ast.AST) -> bool:
    """Say whether a node is one that somebody reads: no import, no context of a name."""
    return not isinstance(
        node, (ast.Import, ast.ImportFrom, ast.alias, ast.Load, ast.Store, ast.Del)
    )


def regex_characters(tree: ast.Module) -> int:
    """Count the characters of the patterns in calls such as ``re.compile("...")``."""
    count = 0
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        module = node.func.value
        if isinstance(module, ast.Name) and module.id in REGEX_MODULES:
            texts = (part for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant))
            count += sum(len(part.value) for part in texts if isinstance(part.value, (str, bytes)))
    return count


def size_of(path: Path) -> Size:
    """Count one file: a Python file, or a table."""
    if path.suffix != ".py":
        return Size(tables=path.stat().st_size)
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    docs = lines_of(docstrings(tree))
    comments = comment_lines(text)
    blank = {number for number, line in enumerate(text.splitlines(), 1) if not line.strip()}
    others = docs | comments | blank | lines_of(imports(tree))
    return Size(
        files=1,
        code=len(text.splitlines()) - len(others),
        nodes=sum(is_counted(node) for node in ast.walk(tree)),
        comments=len(comments),
        docs=len(docs),
        regex=regex_characters(tree),
    )


def main(arguments: list[str]) -> int:
    """Print the report of a folder."""
    package = Path(arguments[0]).resolve() if arguments else PACKAGE
    total = Size()
    rooms: dict[str, Size] = {}
    densities: list[tuple[float, str]] = []
    for path in sorted(package.rglob("*")):
        if path.suffix not in {".py", *TABLES} or "__pycache__" in path.parts:
            continue
        size = size_of(path)
        room = str(path.parent.relative_to(package))
        rooms.setdefault(room, Size()).add(size)
        total.add(size)
        if size.code:
            densities.append((size.nodes_a_line, str(path.relative_to(package))))
    titles = ("files", "code", "nodes/line", "comments", "docs", "regex", "tables")
    widths = (6, 8, 11, 10, 7, 8, 8)
    print(
        " " * 28 + "".join(f"{title:>{width}}" for title, width in zip(titles, widths, strict=True))
    )
    for room, size in sorted(rooms.items()):
        print(size.row(room))
    print(total.row("all"))
    print("\ndensest files:")
    for density, name in sorted(densities, reverse=True)[:DENSEST]:
        print(f"{density:6.2f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
