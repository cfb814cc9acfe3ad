"""Goes through the rules of a policy and works out what each expression can be.

Each body is gone through twice: first for its variables, because Rego's order of statements is
free, then for what is wrong. A function is gone through for each call of it, with what it is given;
only what is wrong in all of them is a slip, because ``f(x) := x.name if is_object(x)`` may stand
beside ``f(x) := x if is_string(x)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agenttool_otel.authoring.words.builtins import builtin_result, wrong_arguments
from agenttool_otel.authoring.words.comparing import (
    Wrong,
    called,
    described,
    kinds_named,
    wrong_comparison,
    wrong_membership,
)
from agenttool_otel.authoring.words.shapes import (
    A_NUMBER,
    A_SET,
    A_TEXT,
    A_TRUTH,
    ANY,
    COLLECTIONS,
    LIST,
    NOTHING,
    NULL,
    NUMBER,
    OBJECT,
    OF_KINDS,
    SET,
    TEXT,
    Place,
    Shape,
    Words,
    elements,
    keys,
    union,
)
from agenttool_otel.authoring.words.slips import Slip, Slips
from agenttool_otel.authoring.words.world import World
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.policy.rego.syntax import Module, Path, Rule, head_of, name_of, text_at
from agenttool_otel.policy.rego.tree import Node, only, variable

Scope = dict[str, Shape]
"""What is known of each variable."""

_Key = tuple[Path, tuple[tuple[str, frozenset[str]], ...]]

_MAX_DEPTH: Final = 8
_MAX_CALLS: Final = 1_000
_SCOPES: Final = frozenset({"input", "data"})
_TYPE_TESTS: Final[Mapping[str, str]] = {
    "is_string": TEXT,
    "is_number": NUMBER,
    "is_array": LIST,
    "is_object": OBJECT,
    "is_set": SET,
    "is_null": NULL,
    "is_boolean": "boolean",
}


@dataclass(slots=True)
class _Calls:
    """What was found in one definition of a function, by call."""

    count: int = 0
    found: dict[Slip, int] = field(default_factory=dict)


class Walk:
    """All rules of a program.

    Args:
        world: what its names stand for.
        given: called with the shape of each input that a test gives with ``with input as``.
        patterns: called with the globs that a tool is compared with, and with their place.
    """

    def __init__(
        self,
        world: World,
        given: Callable[[Shape, Place], None] | None = None,
        patterns: Callable[[Shape, Place], None] | None = None,
    ) -> None:
        self.world = world
        self.given = given
        self.patterns = patterns
        self.slips = Slips()
        self.functions: dict[int, tuple[Rule, _Calls]] = {}
        self.calls = 0
        self._shapes: dict[Path, Shape] = {}
        self._results: dict[_Key | None, Shape] = {}
        self._silent: dict[_Key | None, Shape] = {}

    def rule(self, rule: Rule) -> Shape:
        """Go through one rule; return the shape of what it gives."""
        self.calls = 0
        if "Func" in _head(rule):
            return ANY
        return _Body(self, rule, self.slips, 0).value()

    def finish(self) -> None:
        """Take what is wrong in every call of a function; go through those that nobody calls."""
        for _, calls in self.functions.values():
            for slip, count in calls.found.items():
                if count == calls.count:
                    self.slips.add(slip)

    def function(self, path: Path, arguments: Sequence[Shape], depth: int) -> Shape:
        """Go through all definitions of a function for one call."""
        key = _call_key(path, arguments)
        if key in self._results:
            return self._results[key]
        results = []
        for rule in self.world.rules.get(path, ()):
            if not self.world.is_read(rule) or depth > _MAX_DEPTH or self.calls > _MAX_CALLS:
                return ANY
            self.calls += 1
            found = Slips()
            body = _Body(self, rule, found, depth)
            results.append(body.called_with(arguments))
            self._note(rule, found)
        result = union(results) if results else ANY
        if key is not None:
            self._results[key] = result
            self._silent[key] = result
        return result

    def silent(self, path: Path, arguments: Sequence[Shape], depth: int) -> Shape:
        """Return what a function gives for one call, without looking for slips in it."""
        key = _call_key(path, arguments)
        if key in self._silent:
            return self._silent[key]
        results = []
        for rule in self.world.rules[path]:
            self.calls += 1
            too_many = depth > _MAX_DEPTH or self.calls > _MAX_CALLS
            if too_many or not self.world.is_read(rule) or "Func" not in _head(rule):
                return ANY
            results.append(_Body(self, rule, None, depth).called_with(arguments))
        result = union(results)
        if key is not None:
            self._silent[key] = result
        return result

    def _note(self, rule: Rule, found: Slips) -> None:
        _, calls = self.functions.setdefault(id(rule), (rule, _Calls()))
        calls.count += 1
        for slip in found:
            calls.found[slip] = calls.found.get(slip, 0) + 1

    def value_of(self, path: Path, depth: int) -> Shape:
        """Return the shape of a rule's value, without looking for slips in it."""
        known = self._shapes.get(path)
        if known is not None:
            return known
        # a rule that leads back to itself is refused elsewhere
        self._shapes[path] = ANY
        decision = self.world.decision(path)
        if decision is not None:
            self._shapes[path] = decision
            return decision
        parts = []
        for rule in self.world.rules[path]:
            if not self.world.is_read(rule) or "Func" in _head(rule):
                return ANY
            parts.append(_Body(self, rule, None, depth).value())
        self._shapes[path] = union(parts)
        return self._shapes[path]


def _call_key(path: Path, arguments: Sequence[Shape]) -> _Key | None:
    """Return what a call's result is kept by; ``None`` for arguments that have no name."""
    names = []
    for argument in arguments:
        nothing_known = not argument.known and argument.members is None and argument.items is None
        if not argument.name and not nothing_known:
            return None
        names.append((argument.name, argument.kinds))
    return path, tuple(names)


def _head(rule: Rule) -> Node:
    """Return a rule's head by its kind: ``{"Set": {...}}``."""
    kind, definition = only(rule.node)
    if kind == "Default":
        return {}
    head: Node = definition["head"]
    return head


class _Body:
    """One definition of a rule.

    Args:
        walk: the walk that it belongs to.
        rule: the definition.
        slips: where to put what is wrong; ``None`` where nothing is looked for.
        depth: how many functions lead to it.
    """

    def __init__(self, walk: Walk, rule: Rule, slips: Slips | None, depth: int) -> None:
        self.walk = walk
        self.world = walk.world
        self.rule = rule
        self.module: Module = self.world.modules[rule.file]
        self.siblings = self.world.names[self.module.package]
        self.source = self.module.text.encode("utf-8")
        self.slips = slips
        self.depth = depth
        self.loud = False
        self.in_function = "Func" in _head(rule)
        self.dead = False  # a test of a type can't hold for what the function is given
        self.negated = False
        self.scope: Scope = {}

    # --- what it gives ----------------------------------------------------------------------------

    def value(self) -> Shape:
        """Go through all bodies; return the shape of the rule's value."""
        kind, definition = only(self.rule.node)
        self.loud = self.slips is not None
        if kind == "Default":
            return self.shape(definition["value"])
        head_kind, head = only(definition["head"])
        results = []
        for body in definition["bodies"] or [None]:
            results.append(self._result(head_kind, head, body))
        return union(results)

    def called_with(self, arguments: Sequence[Shape]) -> Shape:
        """Go through all bodies of a function for what one call gives it."""
        kind, definition = only(self.rule.node)
        if kind == "Default":
            return self.shape(definition["value"])
        head = head_of(definition)
        results = []
        for body in definition["bodies"] or [None]:
            self.scope = {}
            self.dead = False
            self.loud = self.slips is not None
            for pattern, argument in zip(head["args"], arguments, strict=False):
                self._take_argument(pattern, argument)
            if not self.dead:
                results.append(self._body_value(head, body))
        return union(results)

    def _take_argument(self, pattern: Node, argument: Shape) -> None:
        if variable(pattern) is None and only(pattern)[0] in ("String", "RawString", "Number"):
            wanted = self.shape(pattern)
            self._wrong(wrong_comparison("Eq", argument, wanted), pattern)
            self.dead = self.dead or _never_equal(argument, wanted)
            return
        self.bind(pattern, argument)

    def _result(self, kind: str, head: Node, body: Node | None) -> Shape:
        self.scope = {}
        if kind == "Set":
            self.statements(body)
            key = self.shape(head["key"]) if head.get("key") else ANY
            return Shape(A_SET.kinds, items=key, name=self.name())
        value = self._body_value(head, body)
        if self._is_partial(head):
            return Shape(OF_KINDS[OBJECT].kinds, others=value, items=value, name=self.name())
        return value

    def name(self) -> str:
        """Return what a message calls the rule."""
        return self.rule.path[-1]

    def _is_partial(self, head: Node) -> bool:
        """Return whether a rule makes the members of an object: ``limit[role] := 5 if ...``."""
        lookup = head["refr"].get("RefBrack")
        return lookup is not None and not isinstance(_constant_index(lookup["index"]), str)

    def _body_value(self, head: Node, body: Node | None) -> Shape:
        self.statements(body)
        assigned = head.get("assign")
        if body is not None and body["is_else"]:
            assigned = body.get("assign")
        if self.dead:
            return NOTHING
        if not assigned:
            return Shape(A_TRUTH.kinds, value=True)
        return self.shape(assigned["value"])

    # --- statements -------------------------------------------------------------------------------

    def statements(self, body: Node | None) -> None:
        """Go through the statements of a body, which is none for ``limit := 5``."""
        if body is not None:
            self.query(body["query"])

    def query(self, query: Node) -> None:
        """Go through statements twice: for the variables, then for slips."""
        loud = self.loud
        for looking in _passes(loud):
            self.loud = looking
            for statement in query["stmts"]:
                self._statement(statement)
                if self.dead:
                    return
        self.loud = loud

    def _statement(self, statement: Node) -> None:
        loud = self.loud
        for replaced in statement.get("with_mods") or ():
            self._replacement(replaced)
        kind, content = only(statement["literal"])
        handler = _STATEMENTS.get(kind)
        if handler is not None:
            handler(self, content)
        self.loud = loud

    def _replacement(self, replaced: Node) -> None:
        """Take ``with input as document``; what else is replaced is not known any more."""
        shape = self.shape(replaced["as"])
        target = name_of(replaced["refr"])
        if target.first != "input":
            self.loud = False
        elif not target.segments and self.walk.given is not None:
            self.walk.given(shape, self.place(replaced["as"]))

    def _expression(self, content: Node) -> None:
        expression = content["expr"]
        kind, value = only(expression)
        if kind == "Call" and self._tests_type(value):
            return
        shape = self.shape(expression)
        if shape.value is False or (kind == "Null"):
            self._wrong(Wrong("this never holds, so the rule never fires"), expression)

    def _tests_type(self, call: Node) -> bool:
        """Take ``is_string(x)`` for what it says of x."""
        function = name_of(call["fcn"])
        kind = _TYPE_TESTS.get(function.first or "")
        if kind is None or function.segments or len(call["params"]) != 1:
            return False
        argument = call["params"][0]
        shape = self.shape(argument)
        if shape.kinds and not shape.could_be({kind}):
            self._wrong(
                Wrong(f"{described(shape)} is never {kinds_named(OF_KINDS[kind])}"), argument
            )
            self.dead = self.in_function
            return True
        name = variable(argument)
        if name in self.scope:
            self.scope[name] = shape.only({kind})
        return True

    def _negation(self, content: Node) -> None:
        self.negated = True
        self.shape(content["expr"])
        self.negated = False

    def _some_in(self, content: Node) -> None:
        collection = self.shape(content["collection"])
        if collection.kinds and not collection.could_be(COLLECTIONS):
            message = f"{described(collection)} has no elements, so the rule never fires"
            self._wrong(Wrong(message), content["collection"])
        if content.get("key"):
            self.bind(content["key"], keys(collection))
        self.bind(content["value"], elements(collection))

    def _every(self, content: Node) -> None:
        domain = self.shape(content["domain"])
        if domain.kinds and not domain.could_be(COLLECTIONS):
            message = f"{described(domain)} has no elements, so this never holds"
            self._wrong(Wrong(message), content["domain"])
        outer = dict(self.scope)
        if content.get("key"):
            self.scope[text_at(self.source, content["key"])] = keys(domain)
        self.scope[text_at(self.source, content["value"])] = elements(domain)
        self._inner(content["query"])
        self.scope = outer

    def _inner(self, query: Node) -> None:
        """Go through the statements of a comprehension, whose variables are its own."""
        loud = self.loud
        negated = self.negated
        self.negated = False
        for looking in _passes(loud):
            self.loud = looking
            for statement in query["stmts"]:
                self._statement(statement)
        self.loud = loud
        self.negated = negated

    # --- variables --------------------------------------------------------------------------------

    def bind(self, pattern: Any, shape: Shape) -> None:
        """Give the variables of a pattern what they can be: of ``[x, y]``, x and y."""
        kind, value = only(pattern)
        if kind == "Var":
            self._bind_variable(value["value"], shape)
        elif kind == "Array":
            for item in value["items"]:
                self.bind(item, elements(shape))
        elif kind == "Object":
            self._bind_members(value, shape)
        else:
            self._wrong(wrong_comparison("Eq", shape, self.shape(pattern)), pattern)

    def _bind_variable(self, name: str, shape: Shape) -> None:
        if name != "_":
            self.scope[name] = shape

    def _bind_members(self, pattern: Node, shape: Shape) -> None:
        for _, key, item in pattern["fields"]:
            name = _constant_index(key)
            member = ANY
            if isinstance(name, str):
                member = self.member(shape, name, key)
            self.bind(item, member)

    def _assignment(self, content: Node) -> Shape:
        left, right = content["lhs"], content["rhs"]
        if content["op"] == "ColEq":
            self.bind(left, self.shape(right))
            return A_TRUTH
        for target, source in ((left, right), (right, left)):
            name = variable(target)
            if name is not None and name not in self.scope and self._target(name) is None:
                self.bind(target, self.shape(source))
                return A_TRUTH
        if only(left)[0] in ("Array", "Object"):
            self.bind(left, self.shape(right))
            return A_TRUTH
        return self._compared("Eq", content)

    # --- expressions ------------------------------------------------------------------------------

    def shape(self, node: Any) -> Shape:
        """Return what an expression can be."""
        kind, content = only(node)
        handler = _EXPRESSIONS.get(kind)
        if handler is None:
            return ANY
        return handler(self, content if kind not in _WHOLE else node)

    def _text(self, content: Node) -> Shape:
        words = Words(frozenset({content["value"]}), stated=True)
        return Shape(
            A_TEXT.kinds, words=words, place=Place(self.rule.file, content["span"]["line"])
        )

    def _number(self, content: Node) -> Shape:
        return Shape(A_NUMBER.kinds, value=content["value"])

    def _truth(self, content: Node) -> Shape:
        return Shape(A_TRUTH.kinds, value=content["value"])

    def _null(self, content: Node) -> Shape:
        return OF_KINDS[NULL]

    def _list(self, content: Node) -> Shape:
        return self._collection(content, LIST)

    def _set(self, content: Node) -> Shape:
        return self._collection(content, SET)

    def _collection(self, content: Node, kind: str) -> Shape:
        parts = [self.shape(item) for item in content["items"]]
        place = Place(self.rule.file, content["span"]["line"])
        items = union(parts) if parts else None
        return Shape(frozenset({kind}), items=items, place=place, size=len(parts))

    def _object(self, content: Node) -> Shape:
        members: dict[str, Shape] = {}
        others = None
        for span, key, item in content["fields"]:
            name = _constant_index(key)
            value = self.shape(item)
            if isinstance(name, str):
                place = value.place or Place(self.rule.file, span["line"])
                members[name] = replace(value, place=place)
            else:
                self.shape(key)
                others = value
        place = Place(self.rule.file, content["span"]["line"])
        return Shape(OF_KINDS[OBJECT].kinds, members=members, others=others, place=place)

    def _comprehension(self, node: Any) -> Shape:
        kind, content = only(node)
        outer = dict(self.scope)
        self._inner(content["query"])
        if kind == "ObjectCompr":
            self.shape(content["key"])
            value = self.shape(content["value"])
            result = Shape(OF_KINDS[OBJECT].kinds, others=value, items=value)
        else:
            collection = SET if kind == "SetCompr" else LIST
            result = Shape(frozenset({collection}), items=self.shape(content["term"]))
        self.scope = outer
        return result

    def _arithmetic(self, content: Node) -> Shape:
        left = self.shape(content["lhs"])
        right = self.shape(content["rhs"])
        able = {NUMBER, SET} if content["op"] == "Sub" else {NUMBER}
        for side, part in ((left, content["lhs"]), (right, content["rhs"])):
            if side.kinds and not side.could_be(able):
                self._wrong(Wrong(f"{described(side)} can't be calculated with"), part)
        if SET in able and left.could_be({SET}):
            return left.only({SET, NUMBER}).called("")
        return A_NUMBER

    def _sets(self, content: Node) -> Shape:
        left = self.shape(content["lhs"])
        right = self.shape(content["rhs"])
        for side, part in ((left, content["lhs"]), (right, content["rhs"])):
            if side.kinds and not side.could_be({SET}):
                self._wrong(Wrong(f"{described(side)} is no set, so this has no value"), part)
        return union((left.only({SET}), right.only({SET}))).called("")

    def _comparison(self, content: Node) -> Shape:
        return self._compared(content["op"], content)

    def _compared(self, operator: str, content: Node) -> Shape:
        left = self.shape(content["lhs"])
        right = self.shape(content["rhs"])
        self._wrong(wrong_comparison(operator, left, right), content)
        return A_TRUTH

    def _membership(self, content: Node) -> Shape:
        value = self.shape(content["value"])
        collection = self.shape(content["collection"])
        self._wrong(wrong_membership(value, collection), content)
        return A_TRUTH

    # --- references -------------------------------------------------------------------------------

    def _target(self, first: str) -> tuple[str, tuple[str, ...]] | None:
        """Return what a word stands for: ``input``, or ``data`` and a path; nothing for a variable."""
        if first in _SCOPES:
            return first, ()
        if first in self.module.imports:
            base, *path = self.module.imports[first]
            return base, tuple(path)
        if first in self.siblings:
            return "data", (*self.module.package, first)
        return None

    def _reference(self, node: Any) -> Shape:
        name = name_of(node)
        segments = list(name.segments)
        if name.first is None:
            shape = self.shape(segments.pop(0))
        elif name.first in self.scope:
            shape = self.scope[name.first]
        else:
            target = self._target(name.first)
            if target is None:
                return ANY
            base, path = target
            segments = [*path, *segments]
            if base == "input":
                shape = self.world.input
            else:
                shape, segments = self._data(segments)
        for segment in segments:
            shape = self._segment(shape, segment, node)
        return shape

    def _data(self, segments: list[Any]) -> tuple[Shape, list[Any]]:
        path = self.world.rule_of(segments)
        if path is not None:
            return self.walk.value_of(path, self.depth), segments[len(path) :]
        shape, used = self.world.data_shape(segments)
        return shape, segments[used:]

    def _segment(self, shape: Shape, segment: Any, node: Any) -> Shape:
        if isinstance(segment, str):
            return self.member(shape, segment, node)
        name = variable(segment)
        if name is not None and name not in self.scope and self._target(name) is None:
            # tools[i]: any element, and i its place
            self._bind_variable(name, keys(shape))
            return elements(shape)
        return self._indexed(shape, self.shape(segment), node)

    def member(self, shape: Shape, name: str, node: Any) -> Shape:
        """Return the member of a name; report where nothing can have it."""
        if not shape.kinds:
            return ANY
        if not shape.could_be({OBJECT, SET}):
            message = f"{described(shape)} has no member {name!r}"
            if shape.kinds <= {LIST, NULL}:
                message += f"; write some x in {shape.name or 'it'}"
            self._wrong(Wrong(message), node)
            return ANY
        if not shape.kinds <= {OBJECT, NULL}:
            return ANY.called(f"{shape.name}.{name}") if shape.name else ANY
        if shape.members is not None and name in shape.members:
            return shape.members[name]
        if shape.others is not None or shape.members is None:
            other = shape.others or shape.items or ANY
            return other.called(f"{shape.name}.{name}") if shape.name else other
        self._wrong(_no_member(shape, name), node)
        return ANY

    def _indexed(self, shape: Shape, index: Shape, node: Any) -> Shape:
        """Return what is read with a computed index: ``limits[input.permission_profile.risk_level]``."""
        if shape.kinds and not shape.could_be(COLLECTIONS):
            self._wrong(Wrong(f"{described(shape)} has no elements"), node)
            return ANY
        if shape.kinds <= {LIST} and index.kinds and not index.could_be({NUMBER}):
            self._wrong(
                Wrong(f"{described(shape)} is read by number, not by {described(index)}"), node
            )
        if shape.kinds <= {OBJECT} and shape.closed:
            self._wrong(wrong_keys(shape, index), node)
        return elements(shape)

    # --- calls ------------------------------------------------------------------------------------

    def _call(self, node: Any) -> Shape:
        content = node["Call"]
        function = name_of(content["fcn"])
        negated = self.negated
        arguments = [self.shape(argument) for argument in content["params"]]
        self.negated = negated
        first = function.first or ""
        target = self._target(first)
        if target is not None and target[0] == "data":
            path = (*target[1], *function.segments)
            self._match_pattern(path, arguments, node)
            return self._called(path, arguments)
        name = ".".join((first, *function.segments))
        self._wrong(wrong_arguments(name, arguments), node)
        if name == "object.get" and len(arguments) == 3:
            return self._got(arguments, content["params"], node)
        if name == "glob.match" and arguments[2].name.startswith("input.tool."):
            self._match_pattern(("glob",), arguments, node)
        return builtin_result(name, arguments)

    def _match_pattern(self, path: Path, arguments: Sequence[Shape], node: Any) -> None:
        """Report the globs that tools are compared with."""
        if self.walk.patterns is None or not self.loud or not arguments:
            return
        if path[-1] in ("is_called", "is_exactly", "glob"):
            self.walk.patterns(arguments[0], self.place(node))

    def _called(self, path: Path, arguments: Sequence[Shape]) -> Shape:
        if path not in self.world.rules:
            return ANY
        if not self.loud:
            return self.walk.silent(path, arguments, self.depth + 1)
        return self.walk.function(path, arguments, self.depth + 1)

    def _got(self, arguments: Sequence[Shape], nodes: Sequence[Any], node: Any) -> Shape:
        """Return what ``object.get(object, key, default)`` gives."""
        whole, key, otherwise = arguments
        found = self._got_member(whole, key, nodes[1], node)
        return union((found, otherwise))

    def _got_member(self, whole: Shape, key: Shape, key_node: Any, node: Any) -> Shape:
        kind, content = only(key_node)
        name = _constant_index(key_node)
        if isinstance(name, str):
            return self.member(whole, name, node)
        if kind != "Array":
            if whole.kinds <= {OBJECT} and whole.closed:
                self._wrong(wrong_keys(whole, key), node)
            return elements(whole)
        # object.get(input, ["tool", "name"], "")
        for item in content["items"]:
            step = _constant_index(item)
            if not isinstance(step, str):
                return ANY
            whole = self.member(whole, step, node)
        return whole

    # --- messages ---------------------------------------------------------------------------------

    def place(self, node: Any) -> Place:
        """Return where an expression stands."""
        return Place(self.rule.file, _line(node) or self.rule.line)

    def _wrong(self, wrong: Wrong | None, node: Any) -> None:
        if wrong is None or not self.loud or self.slips is None:
            return
        if not self.world.is_own(self.rule):
            return
        line = _line(node) or self.rule.line
        self.slips.add(Slip(self.rule.file, line, wrong.message, wrong.certain))


def _passes(loud: bool) -> tuple[bool, ...]:
    """Return in which passes through statements slips are looked for."""
    return (False, True) if loud else (False,)


def _no_member(shape: Shape, name: str) -> Wrong:
    members = sorted(shape.members or ())
    near = did_you_mean(name, members)
    what = called(shape) if shape.name else "this object"
    message = f"{what} has no member {name!r}{near}"
    if not near and members:
        message += f"; it has {', '.join(members[:12])}"
    # other programs that share the policy may have tools with further arguments
    certain = bool(near) or not shape.name.startswith("input.input")
    return Wrong(message, certain)


def wrong_keys(shape: Shape, index: Shape) -> Wrong | None:
    """Return the key of an object that a word of a vocabulary can never be: ``{"hihg": 3}[level]``."""
    if index.kinds != {TEXT} or index.words is None or index.words.stated:
        return None
    names = frozenset(shape.members or ())
    ours = index.words
    strange = names - ours.known
    if names and not names & ours.known:
        word = min(names)
        near = did_you_mean(word, ours.known)
        listed = ", ".join(sorted(ours.known))
        message = f"{called(index)} can never be a key of this, such as {word!r}{near}; it is one of {listed}"
        return Wrong(message, certain=not ours.open or bool(near))
    for word in sorted(strange):
        near = did_you_mean(word, ours.known - names)
        if near:
            return Wrong(f"{called(index)} can never be {word!r}{near}")
    return None


def _never_equal(argument: Shape, wanted: Shape) -> bool:
    if argument.kinds and not argument.could_be(wanted.kinds):
        return True
    if argument.words is None or wanted.words is None or argument.kinds != {TEXT}:
        return False
    return argument.words.known.isdisjoint(wanted.words.known)


def _constant_index(index: Any) -> Any:
    """Return the text that an index is, where it is written out."""
    kind, value = only(index)
    return value["value"] if kind in ("String", "RawString") else None


def _line(node: Any) -> int:
    """Return the line where the first word of an expression stands."""
    if "span" in node:
        line: int = node["span"]["line"]
        return line
    kind, content = only(node)
    if not isinstance(content, dict):
        return 0
    if kind in ("RefDot", "RefBrack"):
        return _line(content["refr"])
    span = content.get("span")
    return int(span["line"]) if span else 0


_STATEMENTS: Final[Mapping[str, Callable[[_Body, Node], None]]] = {
    "Expr": _Body._expression,
    "NotExpr": _Body._negation,
    "SomeIn": _Body._some_in,
    "Every": _Body._every,
}
"""By kind of statement, what goes through it."""

_WHOLE: Final = frozenset(
    {"Var", "RefDot", "RefBrack", "Call", "SetCompr", "ArrayCompr", "ObjectCompr"}
)
"""Kinds of expressions whose method takes the node itself."""

_EXPRESSIONS: Final[Mapping[str, Callable[[_Body, Any], Shape]]] = {
    "String": _Body._text,
    "RawString": _Body._text,
    "Number": _Body._number,
    "Bool": _Body._truth,
    "Null": _Body._null,
    "Array": _Body._list,
    "Set": _Body._set,
    "Object": _Body._object,
    "SetCompr": _Body._comprehension,
    "ArrayCompr": _Body._comprehension,
    "ObjectCompr": _Body._comprehension,
    "ArithExpr": _Body._arithmetic,
    "BinExpr": _Body._sets,
    "BoolExpr": _Body._comparison,
    "AssignExpr": _Body._assignment,
    "Membership": _Body._membership,
    "Var": _Body._reference,
    "RefDot": _Body._reference,
    "RefBrack": _Body._reference,
    "Call": _Body._call,
}
"""By kind of expression, what works out its shape."""


def walk_rules(walk: Walk, rules: Iterable[Rule]) -> list[tuple[Rule, Shape]]:
    """Go through some rules, and through the functions among them that no other rule calls.

    Returns:
        Each rule that is no function, with what it gives.
    """
    functions = []
    values = []
    for rule in rules:
        if "Func" in _head(rule):
            functions.append(rule)
        else:
            values.append((rule, walk.rule(rule)))
    for rule in functions:
        if id(rule) not in walk.functions:
            unknown = [ANY] * len(head_of(only(rule.node)[1])["args"])
            walk.function(rule.path, unknown, 0)
    walk.finish()
    return values
