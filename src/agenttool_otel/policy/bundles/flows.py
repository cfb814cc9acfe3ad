"""Which members of the input does each rule look at, also where it gets them by a variable, a
function's argument or another rule?

``some fact in input.facts.paths; fact.inside == true`` looks at ``inside`` of each element, and at
nothing else of it. So what may flow where is found for all rules together: a value is one or more
nodes of the input, something that rules have made, or both. A rule reads a node where it compares it,
gives it to a builtin or iterates over it. What is only passed on is read where it is looked at.

It is a flow analysis without order: every statement of a rule counts, whichever came before it, and a
function's argument is what any caller gives it. Both read too much rather than too little. What is
not understood reads the whole of every node that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agenttool_otel.policy.rego.syntax import Module, Path, Program, Rule, head_of, name_of, text_at
from agenttool_otel.policy.rego.tree import Node, only

MARK: Final = "\0"
"""Begins a part of a path that is no name of a member."""

EACH: Final = MARK + "each"
"""Stands for each element of an array, and each value of an object."""

AT: Final = MARK + "at "
"""Begins what stands for one element of an array, by its place. Of what is no array, all is read."""

TRUTH: Final = MARK + "truth"
"""Whether something is there and not false."""

TYPE: Final = MARK + "type"
"""Its type."""

EMPTY: Final = MARK + "blank"
"""Its type, and whether it is an empty string, array or object."""

KEYS: Final = MARK + "keys"
"""What iterating goes over: how many elements an array has, or an object's names. Of what is neither,
the type.
"""

COUNT: Final = MARK + "count"
"""How many elements an array has. Of what is no array, all is read."""

BEGINS: Final = MARK + "begins "
ENDS: Final = MARK + "ends "
HOLDS: Final = MARK + "holds "
"""Each begins a view that has a text of a rule: whether a text begins or ends with it, or holds it; of what is no
text, the type.
"""

WORD: Final = MARK + "word"
"""A string if the bundle has the same one somewhere, else that it is another; all of anything else."""

_TYPES: Final = frozenset(
    f"is_{kind}" for kind in ("array", "boolean", "null", "number", "object", "set", "string")
)
_PARTS: Final = {"startswith": BEGINS, "endswith": ENDS, "contains": HOLDS}
_DEEPEST: Final = 4  # of what rules make
_LONGEST: Final = 12  # of a path
_CONTAINERS: Final = frozenset({"Array", "Object", "Set"})


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression may be."""

    nodes: frozenset[Path] = frozenset()  # these nodes of the input
    fields: tuple[tuple[str, Value], ...] = ()  # an object that a rule makes, with these members
    items: Value | None = None  # an array, set or object that a rule makes, of such elements
    # a text that stands neither in the bundle nor in the input, or something that has such texts
    computed: bool = False

    @property
    def depth(self) -> int:
        """How many containers that rules make are in each other."""
        inner = [value.depth for value in self.inner]
        return 1 + max(inner) if inner else 0

    @property
    def inner(self) -> list[Value]:
        """What the containers hold that rules make."""
        values = [value for _, value in self.fields]
        return values if self.items is None else [*values, self.items]

    def all_nodes(self) -> set[Path]:
        """Return its nodes, and those in what rules have made of them."""
        found = set(self.nodes)
        for value in self.inner:
            found |= value.all_nodes()
        return found


NOTHING: Final = Value()
COMPUTED: Final = Value(computed=True)


def joined(first: Value, second: Value) -> Value:
    """Return what may be the one or the other."""
    if first == second or second == NOTHING:
        return first
    if first == NOTHING:
        return second
    fields = dict(first.fields)
    for name, value in second.fields:
        fields[name] = joined(fields.get(name, NOTHING), value)
    items = first.items
    if second.items is not None:
        items = second.items if items is None else joined(items, second.items)
    return Value(
        nodes=first.nodes | second.nodes,
        fields=tuple(sorted(fields.items(), key=lambda pair: pair[0])),
        items=items,
        computed=first.computed or second.computed,
    )


def any_of(values: Iterable[Value]) -> Value:
    """Return what may be any of some values."""
    found = NOTHING
    for value in values:
        found = joined(found, value)
    return found


@dataclass(slots=True)
class _Flow:
    """What is known of the whole program so far."""

    program: Program
    modules: dict[str, Module]
    rules: dict[int, Rule]
    results: dict[Path, Value] = field(default_factory=dict)  # by rule
    arguments: dict[tuple[Path, int], Value] = field(default_factory=dict)  # by function and place
    # rules that looked at a result or an argument, and are looked at again where it grows
    users: dict[Any, set[int]] = field(default_factory=dict)
    pending: dict[int, Rule] = field(default_factory=dict)

    def grow(self, known: dict[Any, Value], key: Any, value: Value) -> None:
        """Add to what is known."""
        before = known.get(key, NOTHING)
        after = joined(before, value)
        if after == before:
            return
        known[key] = after
        for user in self.users.get(key, ()):
            self.pending[user] = self.rules[user]


def note_members(program: Program) -> None:
    """Note what each rule reads of the input, and what of it its value has, unless some rule has
    something that is not understood.

    Args:
        program: all rules, with their trees.
    """
    rules = {id(rule): rule for rule in program.rules}
    flow = _Flow(program, {module.file: module for module in program.modules}, rules)
    flow.pending = dict(rules)
    reads: dict[int, set[Path]] = {number: set() for number in rules}
    with suppress(NotImplementedError):
        while flow.pending:
            number, rule = flow.pending.popitem()
            _RuleReader(flow, rule, reads[number]).run()
        for number, rule in rules.items():
            rule.members = tuple(sorted(reads[number]))
            rule.gives = tuple(sorted(flow.results.get(rule.path, NOTHING).all_nodes()))


def texts_in(data: Any) -> frozenset[str]:
    """Return every text in a bundle's data, and every name of a member.

    Args:
        data: the data.
    """
    found: set[str] = set()
    pending = [data]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            found.add(item)
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            found.update(item)
            pending += item.values()
    return frozenset(found)


class _RuleReader:
    """Follows the values of one rule, with what is known of the others by now."""

    def __init__(self, flow: _Flow, rule: Rule, reads: set[Path]) -> None:
        self.flow = flow
        self.rule = rule
        self.reads = reads
        self.module = flow.modules[rule.file]
        self.source = self.module.text.encode("utf-8")
        self.variables: dict[str, Value] = {}
        self.used: set[str] = set()  # names of variables
        self.grown = False

    def run(self) -> None:
        """Read the rule until no variable of it grows."""
        self.grown = True
        while self.grown:
            self.grown = False
            self._rule()
            for name in self.used - self.variables.keys():
                # bound by a builtin: walk(input.facts, [path, value])
                self._set(name, COMPUTED)

    # --- rules

    def _rule(self) -> None:
        kind, definition = only(self.rule.node)
        if kind == "Default":
            self._give(self._value(definition["value"]))
            return
        head_kind, head = only(definition["head"])
        for place, pattern in enumerate(head.get("args") or []):
            key = (self.rule.path, place)
            self.flow.users.setdefault(key, set()).add(id(self.rule))
            self._match(pattern, self.flow.arguments.get(key, NOTHING))
        bodies = definition["bodies"]
        for body in bodies:
            self._statements(body["query"])
        self._give(self._placed(head["refr"], self._made(head_kind, head, bodies)))

    def _made(self, kind: str, head: Node, bodies: list[Node]) -> Value:
        """Return what a rule gives."""
        if kind == "Set":
            return self._box([self._value(head["key"])])
        values = [self._assigned(head)]
        values += [self._assigned(body) for body in bodies if body["is_else"]]
        return any_of(values)

    def _placed(self, reference: Any, value: Value) -> Value:
        """Return the value of a rule's path, which is constant, of what lies at its whole name:
        ``p[x].q := value`` has objects with a member ``q``.
        """
        segments = name_of(reference).segments
        first = next(
            (place for place, part in enumerate(segments) if not isinstance(part, str)),
            len(segments),
        )
        for part in reversed(segments[first:]):
            if isinstance(part, str):
                value = self._kept(Value(fields=((part, value),)))
                continue
            self._read_all(self._value(part))
            value = replace(self._box([value]), computed=True)
        return value

    def _assigned(self, node: Node) -> Value:
        assignment = node.get("assign") or {}
        value = assignment.get("value")
        return NOTHING if value is None else self._value(value)

    def _give(self, value: Value) -> None:
        self.flow.grow(self.flow.results, self.rule.path, value)

    # --- statements

    def _statements(self, query: Node) -> None:
        for statement in query["stmts"]:
            self._statement(statement["literal"])

    def _statement(self, literal: Node) -> None:
        kind, content = only(literal)
        if kind in ("Expr", "NotExpr"):
            self._look(self._value(content["expr"]), TRUTH)
        elif kind == "SomeIn":
            self._iterate(content)
        elif kind == "Every":
            self._every(content)
        elif kind != "SomeVars":
            raise NotImplementedError(kind)

    def _iterate(self, content: Node) -> None:
        collection = self._value(content["collection"])
        self._match(content["value"], self._each(collection))
        if content.get("key") is not None:
            self._match(content["key"], self._key(collection))

    def _every(self, content: Node) -> None:
        domain = self._value(content["domain"])
        self._set(text_at(self.source, content["value"]), self._each(domain))
        if content.get("key"):
            self._set(text_at(self.source, content["key"]), self._key(domain))
        self._statements(content["query"])

    def _match(self, pattern: Any, value: Value) -> None:
        """Bind the variables of a pattern; what else stands there is compared."""
        kind, content = only(pattern)
        if kind == "Var":
            self._set(content["value"], value)
        elif kind == "Array":
            self._look(value, KEYS)
            for item in content["items"]:
                self._match(item, self._each(value))
        elif kind == "Object":
            self._read_all(value)
            for _, key, item in content["fields"]:
                self._read_all(self._value(key))
                self._match(item, replace(value, computed=True))
        else:
            self._compare(self._value(pattern), value)

    def _set(self, name: str, value: Value) -> None:
        if name == "_":
            return
        before = self.variables.get(name)
        after = value if before is None else joined(before, value)
        if after != before:
            self.variables[name] = after
            self.grown = True

    # --- expressions

    def _value(self, node: Any) -> Value:
        kind, content = only(node)
        if kind in ("Var", "RefDot", "RefBrack"):
            return self._reference(node)
        reader: Callable[[Node], Value] | None = getattr(self, "_of_" + kind.lower(), None)
        if reader is None:
            raise NotImplementedError(kind)
        return reader(content)

    def _of_string(self, _: Node) -> Value:
        return NOTHING

    _of_rawstring = _of_number = _of_bool = _of_null = _of_string

    def _of_array(self, content: Node) -> Value:
        return self._box(map(self._value, content["items"]))

    _of_set = _of_array

    def _of_object(self, content: Node) -> Value:
        fields: dict[str, Value] = {}
        others: list[Value] = []
        for _, key, item in content["fields"]:
            kind, name = only(key)
            if kind in ("String", "RawString"):
                fields[name["value"]] = self._value(item)
                continue
            self._read_all(self._value(key))
            others.append(self._value(item))
        made = self._box(others) if others else NOTHING
        named = Value(fields=tuple(sorted(fields.items(), key=lambda pair: pair[0])))
        return self._kept(replace(joined(named, made), computed=bool(others)))

    def _of_arraycompr(self, content: Node) -> Value:
        self._statements(content["query"])
        return self._box([self._value(content["term"])])

    _of_setcompr = _of_arraycompr

    def _of_objectcompr(self, content: Node) -> Value:
        self._statements(content["query"])
        self._read_all(self._value(content["key"]))
        return replace(self._box([self._value(content["value"])]), computed=True)

    def _of_unaryexpr(self, content: Node) -> Value:
        self._read_all(self._value(content["expr"]))
        return NOTHING

    def _of_arithexpr(self, content: Node) -> Value:
        # of sets, "-" takes elements away
        values = [self._value(content["lhs"]), self._value(content["rhs"])]
        for value in values:
            self._read_all(value)
        return replace(any_of(values), computed=True)

    def _of_binexpr(self, content: Node) -> Value:
        values = [self._value(content["lhs"]), self._value(content["rhs"])]
        for value in values:
            self._look(value, TYPE)
            if content["op"] != "Union":
                self._read_all(value)
        return any_of(values)

    def _of_boolexpr(self, content: Node) -> Value:
        first, second = content["lhs"], content["rhs"]
        if _is_zero(second) and _is_count(first):
            # whether there is one: what it is does not matter
            self._look(self._value(first["Call"]["params"][0]), EMPTY)
            return NOTHING
        if content["op"] in ("Eq", "Ne"):
            if _is_empty(second):
                self._look(self._value(first), EMPTY)
            else:
                self._compare(self._value(first), self._value(second))
            return NOTHING
        self._read_all(self._value(first))
        self._read_all(self._value(second))
        return NOTHING

    def _of_assignexpr(self, content: Node) -> Value:
        value = self._value(content["rhs"])
        if content["op"] == "ColEq":
            self._match(content["lhs"], value)
            return NOTHING
        # a "=" binds whichever side has variables
        self._match(content["lhs"], value)
        self._match(content["rhs"], self._value(content["lhs"]))
        self._read_all(value)
        self._read_all(self._value(content["lhs"]))
        return NOTHING

    def _of_membership(self, content: Node) -> Value:
        collection = self._value(content["collection"])
        self._compare(self._value(content["value"]), self._each(collection))
        if content.get("key") is not None:
            self._compare(self._value(content["key"]), self._key(collection))
            self._read_all(collection)
        return NOTHING

    # --- references

    def _reference(self, node: Any) -> Value:
        name = name_of(node)
        if name.first is None:
            value, rest = self._value(name.segments[0]), name.segments[1:]
        elif name.first == "input" or name.first in self.module.imports or name.first == "data":
            value, rest = self._global(name.first, name.segments)
            hidden = self.variables.get(name.first)  # an import of the same name as a variable
            if hidden is not None:
                return joined(self._steps(value, rest), self._steps(hidden, name.segments))
        else:
            value, rest = self._local(name.first), name.segments
        return self._steps(value, rest)

    def _local(self, name: str) -> Value:
        """Return what a variable or a rule of this package is; both, where one hides the other."""
        if name == "_":
            return NOTHING
        own = (*self.module.package, name)
        if not self.flow.program.defined(own):
            self.used.add(name)
            return self.variables.get(name, NOTHING)
        found, _ = self._at(own, [])
        return joined(self.variables.get(name, NOTHING), found)

    def _global(self, first: str, segments: list[Any]) -> tuple[Value, list[Any]]:
        base = self.module.imports.get(first, (first,))
        if base[0] == "input":
            return Value(nodes=frozenset({()})), [*base[1:], *segments]
        path: list[str] = list(base[1:])
        rest = list(segments)
        while rest and isinstance(rest[0], str):
            path.append(rest.pop(0))
        return self._at(tuple(path), rest)

    def _at(self, path: Path, rest: list[Any]) -> tuple[Value, list[Any]]:
        """Return what lies at a path below ``data``, and the segments that lead into it."""
        found: list[Value] = []
        for rule in self.flow.program.matching(path):
            size = len(rule.path)
            self.flow.users.setdefault(rule.path, set()).add(id(self.rule))
            value = self.flow.results.get(rule.path, NOTHING)
            if size <= len(path):
                found.append(self._steps(value, path[size:]))
            else:
                # a package as an object, with its rules as members
                found.append(replace(self._box([value]), computed=True))
        return any_of(found), rest

    def _steps(self, value: Value, segments: Iterable[Any]) -> Value:
        for segment in segments:
            if isinstance(segment, str):
                value = self._member(value, segment)
                continue
            place = _place(segment)
            if place is not None:
                value = self._item(value, place)
                continue
            index = self._value(segment)
            self._compare(index, self._key(value))
            name = _variable(segment)
            if name is not None:
                self._set(name, self._key(value))
            value = self._each(value)
        return value

    def _member(self, value: Value, name: str) -> Value:
        found = [NOTHING] if value.items is None else [value.items]
        found += [inner for key, inner in value.fields if key == name]
        nodes = frozenset(self._below(path, name) for path in value.nodes)
        return joined(any_of(found), Value(nodes=nodes, computed=value.computed))

    def _item(self, value: Value, place: int) -> Value:
        """Return the element of an array at a place."""
        nodes = frozenset(self._below(path, f"{AT}{place}") for path in value.nodes)
        return joined(any_of(value.inner), Value(nodes=nodes, computed=value.computed))

    def _each(self, value: Value) -> Value:
        """Return the elements of what is iterated over, or indexed by what is computed."""
        self._look(value, KEYS)
        nodes = frozenset(self._below(path, EACH) for path in value.nodes)
        return joined(any_of(value.inner), Value(nodes=nodes, computed=value.computed))

    def _key(self, value: Value) -> Value:
        """Return the keys of what is iterated over: names of an input's object are texts of it, and
        ``KEYS`` reads them.
        """
        nodes = frozenset(self._below(path, KEYS) for path in value.nodes)
        return Value(nodes=nodes, computed=value.computed)

    def _below(self, path: Path, part: str) -> Path:
        if path and path[-1] == KEYS:
            return path  # there is nothing below a name
        if len(path) < _LONGEST:
            return (*path, part)
        self.reads.add(path)
        return path

    # --- calls

    def _of_call(self, call: Node) -> Value:
        called = name_of(call["fcn"])
        arguments = [self._value(argument) for argument in call["params"]]
        path = self._function(called.first or "", called.segments)
        if path is not None:
            for place, value in enumerate(arguments):
                self.flow.grow(self.flow.arguments, (path, place), value)
            self.flow.users.setdefault(path, set()).add(id(self.rule))
            result = self.flow.results.get(path, NOTHING)
            if len(arguments) > self._arity(path):  # one more takes the result
                self._read_all(result)
            return result
        return self._builtin(".".join((called.first or "", *called.segments)), call, arguments)

    def _function(self, first: str, segments: list[Any]) -> Path | None:
        if first == "data" or first in self.module.imports:
            base = self.module.imports.get(first, (first,))
            return (*base[1:], *segments)
        own = (*self.module.package, first, *segments)
        return own if self.flow.program.defined(own) else None

    def _arity(self, path: Path) -> int:
        """Return how many arguments a function has."""
        found = []
        for rule in self.flow.program.defined(path):
            kind, definition = only(rule.node)
            head = definition if kind == "Default" else head_of(definition)
            found.append(len(head.get("args") or []))
        return min(found, default=0)

    def _builtin(self, name: str, call: Node, arguments: list[Value]) -> Value:
        if name in _TYPES:
            self._look(arguments[0], TYPE)
            return NOTHING
        if name == "object.keys":
            self._look(arguments[0], KEYS)
            for value in arguments[0].inner:
                self._read_all(value)
            return replace(self._box([self._key(arguments[0])]), computed=bool(arguments[0].inner))
        if name in _PARTS and len(arguments) == 2:
            kind, part = only(call["params"][1])
            if kind in ("String", "RawString") and not arguments[0].inner:
                self._look(arguments[0], _PARTS[name] + part["value"])
                return NOTHING
        if name == "count":
            self._look(arguments[0], COUNT)
            for value in arguments[0].inner:  # equal elements of a set are one
                self._read_all(value)
            return NOTHING
        if name in ("array.concat", "object.union"):
            for value in arguments:
                self._look(value, TYPE)
            return any_of(arguments)
        if name == "object.get" and len(arguments) == 3:
            kind, key = only(call["params"][1])
            if kind in ("String", "RawString"):
                self._look(arguments[0], TYPE)
                return joined(self._member(arguments[0], key["value"]), arguments[2])
        for value in arguments:
            self._read_all(value)
        return COMPUTED

    # --- reading

    def _look(self, value: Value, view: str) -> None:
        for path in value.nodes:
            if path and path[-1] == KEYS:
                self.reads.add(path)  # a name, which is read
            else:
                self.reads.add((*path, view))

    def _read_all(self, value: Value) -> None:
        self.reads |= value.all_nodes()

    def _compare(self, first: Value, second: Value) -> None:
        for read, other in ((first, second), (second, first)):
            plain = not (other.computed or other.all_nodes())
            if plain and not read.inner:
                self._look(read, WORD)
            else:
                self._read_all(read)

    def _box(self, values: Iterable[Value]) -> Value:
        items = any_of(values)
        return self._kept(Value(items=items, computed=items.computed))

    def _kept(self, value: Value) -> Value:
        """Return what a rule makes, unless it has too many containers in each other: that is read."""
        if value.depth <= _DEEPEST:
            return value
        self._read_all(value)
        return COMPUTED


def _is_empty(node: Any) -> bool:
    kind, content = only(node)
    if kind in ("String", "RawString"):
        text: str = content["value"]
        return text == ""
    return kind in _CONTAINERS and not (content.get("items") or content.get("fields"))


def _is_zero(node: Any) -> bool:
    kind, content = only(node)
    return kind == "Number" and content["value"] == 0


def _is_count(node: Any) -> bool:
    kind, content = only(node)
    return kind == "Call" and only(content["fcn"])[1].get("value") == "count"


def _place(node: Any) -> int | None:
    kind, content = only(node)
    if kind != "Number" or not isinstance(content["value"], int):
        return None
    number: int = content["value"]
    return number


def _variable(node: Any) -> str | None:
    kind, content = only(node)
    return content["value"] if kind == "Var" else None
