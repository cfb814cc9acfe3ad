"""Whether Python code in a command's words does no more than call modules of its repository.

Not a proof that it only reads: who agreed to run a repository's scripts agreed to whatever those do. What is looked for
is all that such code could do by itself: reach files, programs and the network, or hide that it does.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys

from agenttool_otel.facts.shell.tables import programs

_LEAVES = re.compile(r"://|(?:^|[\s'\"=:,])(?:/[A-Za-z]|~|\.\./)|\.\.\Z")
_MAX_NODES = 2000


def only_calls_modules(code: str) -> bool:
    """Whether code imports no module that reaches out, names nothing that does, and no place elsewhere."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    nodes = list(ast.walk(tree))
    return len(nodes) <= _MAX_NODES and all(map(_is_plain, nodes))


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return all(_may_import(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return _may_import(node.module or "") and all(_may_name(alias.name) for alias in node.names)
    if isinstance(node, ast.Name):
        known = not hasattr(builtins, node.id) or node.id in _table("builtins") or node.id[0].isupper()
        return known and not node.id.startswith("__")
    if isinstance(node, ast.Attribute):
        return _may_name(node.attr)
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, (str, bytes)) or not _LEAVES.search(str(node.value))
    return True


def _may_import(module: str) -> bool:
    top, *below = module.split(".")
    return (top not in sys.stdlib_module_names or top in _table("modules")) and all(map(_may_name, (top, *below)))


def _may_name(name: str) -> bool:
    special = name.startswith("__") and name not in ("__version__", "__name__", "__file__", "__doc__", "__init__")
    return not special and name not in _table("forbidden")


def _table(name: str) -> frozenset[str]:
    return programs()["python"][name]
