"""Which policies may run in compiled form? Those in which its silence about errors can't matter.

The compiled form (regorus' RVM) is several times faster than the interpreter, but it takes an error
for "undefined": a builtin called with a wrong type, a rule with two values, an object with a key
twice. So an error in a deny rule would make the deny disappear. Here each rule is shown to be free
of such errors, or to stop the compiled form where one would happen (the guards of ``rvm.py``); what
can't be shown keeps a bundle on the interpreter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from agenttool_otel.policy.engines.rvm_types import Types
from agenttool_otel.policy.rego.syntax import Path, Program, Reference, Rule
from agenttool_otel.policy.rego.tree import (
    Node,
    only,
    shape,
    statements_of,
    value_nodes,
    variable,
    walk,
)

_LITERALS: Final = ("String", "RawString", "Number", "Bool", "Null")
_COMPREHENSIONS: Final = frozenset({"SetCompr", "ArrayCompr", "ObjectCompr"})

Body = Node | None
"""A body of a rule; ``None`` stands for that of a rule without one, ``x := 1``."""


class Safety:
    """What can be shown about the rules of one program."""

    def __init__(self, program: Program) -> None:
        self._groups: dict[Path, list[Rule]] = {}
        for rule in program.rules:
            self._groups.setdefault(rule.path, []).append(rule)
        self._types = Types(program)

    def type_of(self, node: Any, rule: Rule) -> str | None:
        """Return the type of an expression of a rule; see ``Types``."""
        return self._types.type_of(node, rule)

    # --- problems ---------------------------------------------------------------------------------

    def problems(self, rules: list[Rule]) -> Iterator[str]:
        """Yield, for each rule that can't be compiled safely, where and why."""
        for rule in rules:
            for why in self._rule_problems(rule):
                yield f"{rule.file}:{rule.line}: {rule.name}: {why}"

    def _rule_problems(self, rule: Rule) -> Iterator[str]:
        if rule.has_with:
            yield "uses with"
        yield from _head_problems(rule)
        if rule.shadows - _arguments(rule):
            yield "a local variable hides a rule"
        for reference in rule.references:
            if self._computes_rule(reference):
                yield "refers to rules by a computed name"
        for node in rule.nodes:
            yield from self._node_problems(node, rule)

    def _computes_rule(self, reference: Reference) -> bool:
        """Return whether a reference such as ``data.rules[name]`` leads to a rule."""
        if reference.base != "data" or reference.whole:
            return False
        below = len(reference.path)
        return any(len(path) > below and path[:below] == reference.path for path in self._groups)

    def _node_problems(self, node: Node, rule: Rule) -> Iterator[str]:
        if "ObjectCompr" in node and not _has_unique_keys(node["ObjectCompr"]):
            yield "an object comprehension could have a key twice"
        if "ArithExpr" in node:
            calculation = node["ArithExpr"]
            sides = self._side_types(calculation, rule)
            # division by zero is an error whatever the types are
            divides = calculation["op"] in ("Div", "Mod")
            if divides or sides not in (["number", "number"], ["set", "set"]):
                yield "calculates with values of unproven type"
        if "BinExpr" in node and self._side_types(node["BinExpr"], rule) != ["set", "set"]:
            yield "joins values that are not proven to be sets"
        if "UnaryExpr" in node:
            yield "negates a value"
        if "Every" in node and any(map(_is_computed, walk(node["Every"].get("query")))):
            # the compiled form takes a bracketed index there for an iteration, and lets
            # everything pass
            yield "looks something up by a computed index inside every"

    def _side_types(self, node: Node, rule: Rule) -> list[str | None]:
        return [self.type_of(node["lhs"], rule), self.type_of(node["rhs"], rule)]

    # --- rules that could have two values ---------------------------------------------------------

    def doubtful_bodies(self, rules: list[Rule]) -> Iterator[tuple[Rule, Body]]:
        """Yield the bodies that could give a rule a second value; the compiled form has to
        stop there.
        """
        paths = dict.fromkeys(rule.path for rule in rules)
        for path in paths:
            yield from _doubtful(self._groups[path])


def _head_problems(rule: Rule) -> Iterator[str]:
    _, definition = only(rule.node)
    if "head" not in definition:  # default allow := false
        return
    head_kind, head = only(definition["head"])
    if head_kind not in ("Set", "Compr", "Func"):
        yield "is a kind of rule that is not compiled"
    elif head_kind != "Set" and "RefBrack" in head["refr"]:
        yield "is an object made of several rules"


def _has_unique_keys(comprehension: Node) -> bool:
    """Return whether the key is that of the one collection that is iterated."""
    iterations = []
    for literal in statements_of(comprehension):
        if "SomeVars" in literal:
            return False
        if "SomeIn" in literal:
            iterations.append(literal["SomeIn"])
        elif _iterates(literal):
            return False
    if len(iterations) != 1:
        return False
    key = iterations[0].get("key")
    return key is not None and "Var" in key and shape(key) == shape(comprehension["key"])


def _doubtful(rules: list[Rule]) -> Iterator[tuple[Rule, Body]]:
    specs = [(rule, rule.node["Spec"]) for rule in rules if "Spec" in rule.node]
    if all("Set" in spec["head"] for _, spec in specs):
        return
    if _always_same([spec for _, spec in specs]):
        return
    for rule, spec in specs:
        bodies = spec["bodies"] or [None]
        for body, value in zip(bodies, _values(spec), strict=False):
            if len(specs) > 1 or _may_differ(body, value):
                yield rule, body


def _always_same(specs: list[Node]) -> bool:
    """Return whether all definitions of a rule give one value, so that it does not matter which do."""
    values = [value for spec in specs for value in _values(spec)]
    if len({json.dumps(value, sort_keys=True) for value in values}) != 1:
        return False
    value = values[0]
    return _is_constant(value) or all(_is_argument(value, spec) for spec in specs)


def _may_differ(body: Body, value: Any) -> bool:
    if body is None or _is_constant(value):
        return False
    return _has_several_ways(body)


def _is_computed(node: Node) -> bool:
    bracket = node.get("RefBrack")
    if bracket is None:
        return False
    kind, _ = only(bracket["index"])
    return kind not in ("String", "RawString", "Number")


def _values(spec: Node) -> list[Any]:
    return [shape(value) for value in value_nodes(spec)]


def _is_constant(value: Any) -> bool:
    if value is None:
        return True
    kind, content = only(value)
    if kind in _LITERALS:
        return True
    if kind in ("Set", "Array"):
        return all(_is_constant(item) for item in content.get("items", []))
    return False


def _arguments(rule: Rule) -> set[str]:
    """Return the names of the variables in a function's head."""
    _, definition = only(rule.node)
    function = definition.get("head", {}).get("Func")
    if function is None:
        return set()
    names = (variable(node) for node in walk(function["args"]))
    return {name for name in names if name is not None}


def _is_argument(value: Any, spec: Node) -> bool:
    """Return whether a value is simply one of the function's arguments, so that a call has it only
    once.
    """
    if value is None or "Func" not in spec["head"]:
        return False
    arguments = spec["head"]["Func"]["args"]
    return any(value == shape(argument) for argument in arguments)


def _has_several_ways(body: Node) -> bool:
    statements = statements_of(body)
    single = [_counted_as_single(literal) for literal in statements]
    for literal in statements:
        if "SomeIn" in literal and shape(literal["SomeIn"]["collection"]) in single:
            # count(x) == 1; some y in x
            continue
        if _iterates(literal):
            return True
    return False


def _counted_as_single(literal: Node) -> Any:
    """Return the collection ``x`` of a statement ``count(x) == 1``, else ``None``."""
    comparison = literal.get("Expr", {}).get("expr", {}).get("BoolExpr", {})
    if comparison.get("op") != "Eq":
        return None
    call = comparison["lhs"].get("Call")
    if call is None or variable(call["fcn"]) != "count":
        return None
    if comparison["rhs"].get("Number", {}).get("value") != 1:
        return None
    return shape(call["params"][0])


def _iterates(literal: Node) -> bool:
    """Return whether a statement can succeed in more than one way; comprehensions and every keep
    their ways to themselves.
    """
    if "SomeIn" in literal or "SomeVars" in literal:
        return True
    if "Every" in literal or "NotExpr" in literal:
        return False
    pending: list[Any] = [literal]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending.extend(item)
            continue
        if not isinstance(item, dict) or _COMPREHENSIONS & item.keys():
            continue
        if "RefBrack" in item and "Var" in item["RefBrack"]["index"]:
            return True
        pending.extend(item.values())
    return False
