"""The types of a policy's expressions, as far as they can be read off its text.

``concat(",", input.names)`` is a string whenever it has a value; of ``input.names`` nothing is known,
because a model wrote it.
"""

from __future__ import annotations

from typing import Any, Final

from agenttool_otel.policy.rego.syntax import Path, Program, Rule
from agenttool_otel.policy.rego.tree import (
    Node,
    assigned_variable,
    first_word,
    only,
    value_nodes,
    variable,
    walk,
)
from agenttool_otel.values.tables import load_table

_RETURNS: Final[dict[str, str]] = load_table(__package__, "builtin_types.toml")["returns"]
_OF_KINDS: Final = {
    "SetCompr": "set",
    "Set": "set",
    "ArrayCompr": "array",
    "Array": "array",
    "ObjectCompr": "object",
    "Object": "object",
    "String": "string",
    "RawString": "string",
    "Number": "number",
    "Bool": "boolean",
}
"""By kind of node, the type of its value."""


class Types:
    """The types of the expressions of one program."""

    def __init__(self, program: Program) -> None:
        self._rules: dict[Path, list[Rule]] = {}
        for rule in program.rules:
            self._rules.setdefault(rule.path, []).append(rule)
        self._of_rules: dict[Path, str | None] = {}

    def type_of(self, node: Any, rule: Rule) -> str | None:
        """Return the type that an expression has whenever it is defined, or ``None`` when that is
        not known.

        Args:
            node: the expression.
            rule: the rule that it stands in.
        """
        kind, value = only(node)
        if kind in _OF_KINDS:
            return _OF_KINDS[kind]
        if kind in ("BinExpr", "ArithExpr"):
            left = self.type_of(value["lhs"], rule)
            right = self.type_of(value["rhs"], rule)
            return left if left == right else None
        if kind == "Call":
            return self._call_type(value, rule)
        if kind == "Var" and value["value"] in rule.shadows:
            return None
        if kind in ("Var", "RefDot", "RefBrack"):
            return self._reference_type(node, rule)
        return None

    def _reference_type(self, node: Any, rule: Rule) -> str | None:
        start = first_word(node)
        for reference in rule.references:
            if reference.start != start or reference.base != "data" or not reference.whole:
                continue
            if reference.path in self._rules:
                return self._rule_type(reference.path)
        name = variable(node)
        return None if name is None else self._local_type(name, rule)

    def _call_type(self, call: Node, rule: Rule) -> str | None:
        start = first_word(call["fcn"])
        for path, _, function_start in rule.functions:
            if function_start == start:
                return self._rule_type(path)
        for builtin in rule.calls:
            if builtin.start == start:
                return _RETURNS.get(builtin.name)
        return None

    def _local_type(self, name: str, rule: Rule) -> str | None:
        """Return the type of a local variable that is bound once, by ``name := value``."""
        values = []
        for node in rule.nodes:
            if _iteration_binds(node, name):
                return None
            if assigned_variable(node) == name:
                values.append(node["AssignExpr"]["rhs"])
        if len(values) != 1:
            return None
        return self.type_of(values[0], rule)

    def _rule_type(self, path: Path) -> str | None:
        if path not in self._of_rules:
            # a rule that depends on itself has no type; recursion is refused elsewhere
            self._of_rules[path] = None
            kinds: set[str | None] = set()
            for rule in self._rules.get(path, []):
                kinds |= self._definition_types(rule)
            if len(kinds) == 1:
                self._of_rules[path] = kinds.pop()
        return self._of_rules[path]

    def _definition_types(self, rule: Rule) -> set[str | None]:
        kind, definition = only(rule.node)
        if kind == "Default":
            return {self.type_of(definition["value"], rule)}
        if "Set" in definition["head"]:
            return {"set"}
        kinds: set[str | None] = set()
        for value in value_nodes(definition):
            if value is None:  # allow if input.a
                kinds.add("boolean")
            else:
                kinds.add(self.type_of(value, rule))
        return kinds


def _iteration_binds(node: Node, name: str) -> bool:
    """Return whether ``some name in x`` or a function's arguments bind a variable."""
    if "SomeIn" in node:
        iteration = node["SomeIn"]
        if _names(iteration.get("key"), name) or _names(iteration["value"], name):
            return True
    return "Func" in node and _names(node["Func"]["args"], name)


def _names(part: Any, name: str) -> bool:
    return any(variable(node) == name for node in walk(part))
