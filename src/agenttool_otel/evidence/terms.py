"""What is known of a term of a rule before it is evaluated: that it is no text, or a text that records
hold as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agenttool_otel.policy.bundles.input_schema import input_schema
from agenttool_otel.policy.rego.syntax import Rule, name_of
from agenttool_otel.policy.rego.tree import assigned_variable, only, variable, walk

_NO_TEXTS: Final = frozenset(
    {
        "Array",
        "ArrayCompr",
        "ArithExpr",
        "BinExpr",
        "Bool",
        "Null",
        "Number",
        "Object",
        "ObjectCompr",
        "Set",
        "SetCompr",
        "UnaryExpr",
    }
)
_WRITTEN_OUT: Final = frozenset({"Bool", "Null", "Number", "RawString", "String"})
_NO_TEXT_CALLS: Final = frozenset(
    {
        "abs",
        "array.concat",
        "array.reverse",
        "array.slice",
        "ceil",
        "count",
        "floor",
        "numbers.range",
        "object.keys",
        "product",
        "round",
        "split",
        "sum",
        "time.clock",
        "time.now_ns",
        "time.parse_rfc3339_ns",
        "to_number",
    }
)
_CLEAR: Final = (("tool",), ("permission_profile",), ("time",), ("schema_version",))
_OTHER_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object"})
_MAX_STEPS: Final = 8  # from variable to variable


class Terms:
    """Looks at the terms of one rule.

    Args:
        rule: the rule.
    """

    def __init__(self, rule: Rule) -> None:
        self._assigned: dict[str, Any] = {}
        otherwise: set[str] = set()
        for node in rule.nodes:
            otherwise.update(_bound(node))
            name = assigned_variable(node)
            if name is None:
                continue
            if name in self._assigned:
                otherwise.add(name)  # two bodies of a rule may each have their x
            self._assigned[name] = node["AssignExpr"]["rhs"]
        for name in otherwise & self._assigned.keys():
            del self._assigned[name]
        if any("Every" in node for node in rule.nodes):
            self._assigned = {}  # "every x in xs": the tree has no name of it

    def is_no_text(self, node: Any, steps: int = _MAX_STEPS) -> bool:
        """Return whether a term is a number, an array, or something else that is no text.

        Args:
            node: the term.
            steps: how many variables are followed.
        """
        kind, content = only(node)
        if kind in _NO_TEXTS:
            return True
        if kind == "Call":
            return called(content) in _NO_TEXT_CALLS
        assigned = self._value_of(kind, content)
        if assigned is not None:
            return steps > 0 and self.is_no_text(assigned, steps - 1)
        path = input_path(node)
        return path is not None and _types_at(path) <= _OTHER_TYPES

    def is_clear(self, node: Any, steps: int = _MAX_STEPS) -> bool:
        """Return whether records hold all texts of a term as they are.

        Args:
            node: the term.
            steps: how many variables are followed.
        """
        kind, content = only(node)
        if kind in _WRITTEN_OUT:
            return True
        if kind == "Array":
            return all(self.is_clear(item, steps) for item in content["items"])
        assigned = self._value_of(kind, content)
        if assigned is not None:
            return steps > 0 and self.is_clear(assigned, steps - 1)
        path = input_path(node)
        return path is not None and path[:1] in _CLEAR

    def _value_of(self, kind: str, content: Any) -> Any:
        """Return what a variable is assigned; ``None`` where that is not known."""
        return self._assigned.get(content["value"]) if kind == "Var" else None


def _bound(node: Any) -> Iterator[str]:
    """Yield the names of variables that stand for more than one value: ``some x in xs``, ``f(x)``."""
    patterns = [node.get("Func", {}).get("args")]
    patterns += [node.get("SomeIn", {}).get(side) for side in ("key", "value")]
    for inner in walk(patterns):
        name = variable(inner)
        if name is not None:
            yield name


def called(call: Mapping[str, Any]) -> str:
    """Return the name of what a call calls.

    Args:
        call: the content of its node.
    """
    name = name_of(call["fcn"])
    return ".".join(map(str, (name.first, *name.segments)))


def input_path(node: Any) -> tuple[str, ...] | None:
    """Return the path of a reference to the input; ``None`` where it is none, or is computed.

    Args:
        node: the term.
    """
    kind, _ = only(node)
    if kind not in ("RefDot", "RefBrack"):
        return None
    name = name_of(node)
    if name.first != "input" or not name.constant:
        return None
    return tuple(name.segments)


def _types_at(path: tuple[str, ...]) -> set[str]:
    """Return the types that a member of the input may have; a text among them where it is unknown."""
    nodes: list[Any] = [input_schema()]
    for segment in path:
        nodes = [_member(branch, segment) for branch in _branches(nodes)]
    return {branch.get("type", "string") for branch in _branches(nodes)}


def _branches(nodes: list[Any]) -> list[Any]:
    found: list[Any] = []
    for node in nodes:
        found += node.get("anyOf", [node])
    return found


def _member(schema: Any, name: str) -> Any:
    """Return the schema of a member; an empty one where it may be anything."""
    others = schema.get("additionalProperties")
    found = schema.get("properties", {}).get(name, others)
    return found if isinstance(found, dict) else {}
