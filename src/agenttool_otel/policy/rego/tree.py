"""Nodes of a syntax tree, as the engine's own parser gives them.

Each node is an object with one member, its kind: ``{"Var": {"value": "x", "span": {...}}}``. A span
has the line and the byte offsets of the text that the node was read from.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Node = dict[str, Any]
"""One node, or the content of one."""

_PLACES: Final = frozenset({"span", "eidx", "sidx", "qidx"})


def only(node: Any) -> tuple[str, Any]:
    """Split a node into its kind and content."""
    kind, content = next(iter(node.items()))
    return kind, content


def walk(node: Any) -> Iterator[Node]:
    """Yield every object of a tree."""
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            yield item
            for key, child in item.items():
                if key != "span" and type(child) in (dict, list):
                    pending.append(child)


def shape(node: Any) -> Any:
    """Return a node without its places, so that two of the same text are equal."""
    if isinstance(node, list):
        return [shape(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: shape(child) for key, child in node.items() if key not in _PLACES}


def first_word(node: Any) -> int:
    """Return the byte offset of the word that a reference starts with."""
    kind, content = only(node)
    while kind in ("RefDot", "RefBrack"):
        kind, content = only(content["refr"])
    start: int = content["span"]["start"]
    return start


def variable(node: Any) -> str | None:
    """Return the name of a node that is a variable, else ``None``."""
    content = node.get("Var")
    if content is None:
        return None
    name: str = content["value"]
    return name


def assigned_variable(node: Node) -> str | None:
    """Return the name of the variable that a node assigns (``x := 1``), else ``None``."""
    assignment = node.get("AssignExpr")
    if assignment is None or assignment["op"] != "ColEq":
        return None
    return variable(assignment["lhs"])


def statements_of(body: Node) -> list[Node]:
    """Return the statements of a body."""
    return [statement["literal"] for statement in body["query"]["stmts"]]


def value_nodes(spec: Node) -> list[Any]:
    """Return the value that each body of a rule gives; ``None`` where that is true.

    ``f(x) := 1 if x else := 2`` has the values 1 and 2: an else has its own.
    """
    _, head = only(spec["head"])
    value = _assigned_value(head)
    if not spec["bodies"]:
        return [value]
    values = []
    for body in spec["bodies"]:
        values.append(_assigned_value(body) if body["is_else"] else value)
    return values


def _assigned_value(node: Node) -> Any:
    assignment = node.get("assign") or {}
    return assignment.get("value")
