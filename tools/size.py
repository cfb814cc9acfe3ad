"""How large the package is: lines by kind, long functions, long files, and rooms with too many of them.

Usage: ``python tools/size.py`` prints the table of ``src``; with ``check`` it fails where a limit is broken.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent / "src"
PACKAGE: Final = ROOT / "agenttool_otel"
MAX_FUNCTION_LINES: Final = 60
MAX_FILES_OF_ROOM: Final = 20
MAX_ROOT_FILES: Final = 5

_BLANK, _COMMENT, _DOCSTRING, _IMPORT, _CODE = "blank", "comments", "docstrings", "imports", "code"


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the lines of all docstrings, those of fields and constants included."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.If)):
            continue
        for statement in node.body:
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                found.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    return found


def import_lines(tree: ast.Module) -> set[int]:
    """Return the lines of all import statements."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def kinds(text: str) -> Counter[str]:
    """Count the lines of one file by what they are."""
    tree = ast.parse(text)
    docstrings, imports = docstring_lines(tree), import_lines(tree)
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
    }
    counted: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        if number in docstrings:
            counted[_DOCSTRING] += 1
        elif not line.strip():
            counted[_BLANK] += 1
        elif number in comments:
            counted[_COMMENT] += 1
        elif number in imports:
            counted[_IMPORT] += 1
        else:
            counted[_CODE] += 1
    return counted


def long_functions(path: Path) -> list[str]:
    """Return the functions of a file that have too many lines, docstring included."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {length} lines"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (length := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]


def main(arguments: list[str]) -> int:
    """Print the sizes; return 1 for ``check`` where a limit is broken."""
    files = sorted(PACKAGE.rglob("*.py"))
    total: Counter[str] = Counter()
    rooms: dict[str, Counter[str]] = {}
    lengths = []
    for path in files:
        counted = kinds(path.read_text("utf-8"))
        parts = path.relative_to(PACKAGE).parts
        room = parts[0] if len(parts) > 1 else "(root)"
        rooms.setdefault(room, Counter()).update(counted)
        total.update(counted)
        lengths.append(sum(counted.values()))
    header = (_CODE, _IMPORT, _DOCSTRING, _COMMENT, _BLANK)
    print(f"{'room':14}{'files':>6}{'lines':>8}" + "".join(f"{kind:>12}" for kind in header))
    for room, counted in [*sorted(rooms.items()), ("all", total)]:
        in_room = [p for p in files if room in ("all", (p.relative_to(PACKAGE).parts[:-1] or ("(root)",))[0])]
        print(
            f"{room:14}{len(in_room):>6}{sum(counted.values()):>8}" + "".join(f"{counted[kind]:>12}" for kind in header)
        )
    print(f"lines of a file, median: {sorted(lengths)[len(lengths) // 2]}; rooms: {len(rooms) - 1}")
    broken = [text for path in files for text in long_functions(path)]
    folders = Counter(path.parent for path in files if path.name != "__init__.py")
    broken += [
        f"{folder.relative_to(ROOT)}: {count} files"
        for folder, count in folders.items()
        if count > (MAX_ROOT_FILES if folder == PACKAGE else MAX_FILES_OF_ROOM)
    ]
    print("\n".join(broken) or "all limits kept")
    return 1 if broken and "check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
