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

from agenttool_otel.policy.rego.syntax import Path, Program, Rule, walk
from agenttool_otel.values.tables import load_table

_LITERALS: Final = ("String", "RawString", "Number", "Bool", "Null")
_COMPREHENSIONS: Final = ("SetCompr", "ArrayCompr", "ObjectCompr")
_RETURNS: Final[dict[str, str]] = load_table(__package__, "builtin_types.toml")["returns"]


def only(node: Any) -> tuple[str, Any]:
    """Split a tree node into its kind and content."""
    kind, value = next(iter(node.items()))
    return kind, value


def shape(node: Any) -> Any:
    """Return a node without its places, so that two of the same text are equal."""
    if isinstance(node, dict):
        return {
            key: shape(value)
            for key, value in node.items()
            if key not in ("span", "eidx", "sidx", "qidx")
        }
    if isinstance(node, list):
        return [shape(item) for item in node]
    return node


class Safety:
    """What can be shown about the rules of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._groups: dict[Path, list[Rule]] = {}
        for rule in program.rules:
            self._groups.setdefault(rule.path, []).append(rule)
        self._types: dict[Path, str | None] = {}

    # --- problems ---------------------------------------------------------------------------------

    def problems(self, rules: list[Rule]) -> Iterator[str]:
        """Yield, for each rule that can't be compiled safely, where and why."""
        for rule in rules:
            yield from (
                f"{rule.file}:{rule.line}: {rule.name}: {why}" for why in self._rule_problems(rule)
            )

    def doubtful_bodies(self, rules: list[Rule]) -> Iterator[tuple[Rule, dict[str, Any] | None]]:
        """Yield the bodies that could give a rule a second value; the compiled form has to
        stop there.
        """
        for path in dict.fromkeys(rule.path for rule in rules):
            yield from self._doubtful(self._groups[path])

    def _rule_problems(self, rule: Rule) -> Iterator[str]:
        if rule.has_with:
            yield "uses with"
        head_kind = next(iter(only(rule.node)[1].get("head", {"": None})))
        if head_kind not in ("Set", "Compr", "Func", ""):
            yield "is a kind of rule that is not compiled"
        elif (
            head_kind
            and head_kind != "Set"
            and "RefBrack" in only(only(rule.node)[1]["head"])[1]["refr"]
        ):
            yield "is an object made of several rules"
        if rule.shadows - _arguments(rule):
            yield "a local variable hides a rule"
        for reference in rule.references:
            below = len(reference.path)
            if (
                reference.base == "data"
                and not reference.whole
                and any(
                    len(path) > below and path[:below] == reference.path for path in self._groups
                )
            ):
                yield "refers to rules by a computed name"
        for node in rule.nodes:
            if "ObjectCompr" in node and not self._unique_keys(node["ObjectCompr"]):
                yield "an object comprehension could have a key twice"
            if "ArithExpr" in node:
                sides = [self.type_of(node["ArithExpr"][side], rule) for side in ("lhs", "rhs")]
                if node["ArithExpr"]["op"] in ("Div", "Mod") or sides not in (
                    ["number"] * 2,
                    ["set"] * 2,
                ):
                    yield "calculates with values of unproven type"
            if "BinExpr" in node:
                sides = [self.type_of(node["BinExpr"][side], rule) for side in ("lhs", "rhs")]
                if sides != ["set"] * 2:
                    yield "joins values that are not proven to be sets"
            if "UnaryExpr" in node:
                yield "negates a value"
            if "Every" in node and any(
                _is_computed(inner) for inner in walk(node["Every"].get("query"))
            ):
                # the compiled form takes a bracketed index there for an iteration, and lets
                # everything pass
                yield "looks something up by a computed index inside every"

    @staticmethod
    def _unique_keys(node: dict[str, Any]) -> bool:
        """Whether the key is that of the one collection that is iterated."""
        statements = [statement["literal"] for statement in node["query"]["stmts"]]
        iterations = [literal["SomeIn"] for literal in statements if "SomeIn" in literal]
        if any("SomeVars" in literal for literal in statements) or len(iterations) != 1:
            return False
        key = iterations[0].get("key")
        if any(_iterates(literal) for literal in statements if "SomeIn" not in literal):
            return False
        return key is not None and shape(key) == shape(node["key"]) and "Var" in key

    def _doubtful(self, rules: list[Rule]) -> Iterator[tuple[Rule, dict[str, Any] | None]]:
        specs = [(rule, only(rule.node)[1]) for rule in rules if "Spec" in rule.node]
        if all("Set" in spec["head"] for _, spec in specs):
            return
        values = [value for _, spec in specs for value in _values(spec)]
        if len({json.dumps(value, sort_keys=True) for value in values}) == 1 and (
            _is_constant(values[0]) or all(_is_argument(values[0], spec) for _, spec in specs)
        ):
            return
        for rule, spec in specs:
            for body, value in zip(spec["bodies"] or [None], _values(spec), strict=False):
                if len(specs) > 1 or (
                    body is not None and not _is_constant(value) and _has_several_ways(body)
                ):
                    yield rule, body

    # --- types ------------------------------------------------------------------------------------

    def type_of(self, node: Any, rule: Rule) -> str | None:
        """Return the type that an expression has whenever it is defined, or ``None`` when that is
        not known.
        """
        kind, value = only(node)
        simple = {
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
        if kind in simple:
            return simple[kind]
        if kind in ("BinExpr", "ArithExpr"):
            left, right = (self.type_of(value[side], rule) for side in ("lhs", "rhs"))
            return left if left == right else None
        if kind == "Call":
            return self._call_type(value, rule)
        if kind == "Var" and value["value"] in rule.shadows:
            return None
        if kind in ("Var", "RefDot", "RefBrack"):
            start = first_word(node)
            here = (
                item
                for item in rule.references
                if item.start == start and item.base == "data" and item.whole
            )
            target = next((item.path for item in here if item.path in self._groups), None)
            if target is not None:
                return self._rule_type(target)
            if kind == "Var":
                return self._local_type(value["value"], rule)
        return None

    def _call_type(self, call: dict[str, Any], rule: Rule) -> str | None:
        start = first_word(call["fcn"])
        for path, _, function_start in rule.functions:
            if function_start == start:
                return self._rule_type(path)
        return next((_RETURNS.get(item.name) for item in rule.calls if item.start == start), None)

    def _local_type(self, name: str, rule: Rule) -> str | None:
        bound = [
            node["AssignExpr"]["rhs"]
            for node in rule.nodes
            if "AssignExpr" in node
            and node["AssignExpr"]["op"] == "ColEq"
            and node["AssignExpr"]["lhs"].get("Var", {}).get("value") == name
        ]
        other = [
            node for node in rule.nodes if "SomeIn" in node or "Every" in node or "Func" in node
        ]
        if len(bound) != 1 or any(_names(item, name, rule) for item in other):
            return None
        return self.type_of(bound[0], rule)

    def _rule_type(self, path: Path) -> str | None:
        if path in self._types:
            return self._types[path]
        self._types[path] = None
        kinds: set[str | None] = set()
        for rule in self._groups.get(path, []):
            kind, value = only(rule.node)
            if kind == "Default":
                kinds.add(self.type_of(value["value"], rule))
                continue
            head_kind, _ = only(value["head"])
            if head_kind == "Set":
                kinds.add("set")
                continue
            kinds.update(
                "boolean" if item is None else self.type_of(item, rule)
                for item in value_nodes(value)
            )
        self._types[path] = kinds.pop() if len(kinds) == 1 else None
        return self._types[path]


def _is_computed(node: dict[str, Any]) -> bool:
    bracket = node.get("RefBrack")
    return bracket is not None and only(bracket["index"])[0] not in (
        "String",
        "RawString",
        "Number",
    )


def first_word(node: Any) -> int:
    """Return the byte offset of the word that a reference starts with."""
    kind, value = only(node)
    while kind in ("RefDot", "RefBrack"):
        kind, value = only(value["refr"])
    start: int = value["span"]["start"]
    return start


def value_nodes(spec: dict[str, Any]) -> list[Any]:
    """Return what each body of a rule leads to; ``None`` where that is true."""
    value = _assigned(only(spec["head"])[1])
    return [_assigned(body) if body["is_else"] else value for body in spec["bodies"]] or [value]


def _assigned(node: dict[str, Any]) -> Any:
    return (node.get("assign") or {}).get("value")


def _values(spec: dict[str, Any]) -> list[Any]:
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
    spec = only(rule.node)[1]
    func = spec.get("head", {}).get("Func", {"args": []})
    return {node["Var"]["value"] for node in walk(func["args"]) if "Var" in node}


def _is_argument(value: Any, spec: dict[str, Any]) -> bool:
    """Whether a value is simply one of the function's arguments, so that a call has it only
    once.
    """
    if value is None or "Func" not in spec["head"]:
        return False
    return value in [shape(argument) for argument in spec["head"]["Func"]["args"]]


def _has_several_ways(body: dict[str, Any]) -> bool:
    statements = [statement["literal"] for statement in body["query"]["stmts"]]
    counted = [
        shape(node["BoolExpr"]["lhs"]["Call"]["params"][0])
        for literal in statements
        if (node := literal.get("Expr", {}).get("expr", {})).get("BoolExpr", {}).get("op") == "Eq"
        and node["BoolExpr"]["lhs"].get("Call", {}).get("fcn", {}).get("Var", {}).get("value")
        == "count"
        and node["BoolExpr"]["rhs"].get("Number", {}).get("value") == 1
    ]
    for literal in statements:
        if "SomeIn" in literal and shape(literal["SomeIn"]["collection"]) in counted:
            # count(x) == 1; some y in x
            continue
        if _iterates(literal):
            return True
    return False


def _names(item: dict[str, Any], name: str, rule: Rule) -> bool:
    for kind in ("SomeIn", "Func"):
        if kind in item:
            parts = (
                [item["SomeIn"].get("key"), item["SomeIn"]["value"]]
                if kind == "SomeIn"
                else item["Func"]["args"]
            )
            if any(
                "Var" in node and node["Var"]["value"] == name
                for part in parts
                for node in walk(part)
            ):
                return True
    return False


def _iterates(literal: dict[str, Any]) -> bool:
    """Whether a statement can succeed in more than one way; comprehensions and every keep their
    ways to themselves.
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
        elif isinstance(item, dict):
            if any(kind in item for kind in _COMPREHENSIONS):
                continue
            if "RefBrack" in item and "Var" in item["RefBrack"]["index"]:
                return True
            pending.extend(item.values())
    return False
