"""Rego modules as a syntax tree: what is defined, what refers to what, and with which builtins.

The tree comes from the engine's own parser, so that what is analysed is what is evaluated. Only
what the checks at load and the decision cache need is read from it; whatever is unknown to them makes
them refuse, never guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, NoReturn
from weakref import WeakValueDictionary

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.rego.native import native_error, new_engine
from agenttool_otel.policy.rego.tree import Node, first_word, only, walk

Path = tuple[str, ...]
"""A path below ``data`` or ``input``, one constant segment each."""

_MAX_NESTING: Final = 64
_TOKEN: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|#[^\n]*|[\[({]|[\])}]|\n')
_SCOPES: Final = frozenset({"input", "data"})
VIEWS: Final = frozenset({"is_object", "is_string", "object.keys", "empty"})
"""Builtins whose answer depends on less than their argument, and comparing with an empty string."""


class Reference(NamedTuple):
    """A reference to ``input`` or ``data``."""

    base: str  # ``input`` or ``data``
    path: Path  # its constant segments up to the first one that is computed
    whole: bool  # every segment is constant
    line: int  # line in the file
    start: int = -1  # byte offset of its first word
    view: str = ""  # the one of VIEWS that is all that looks at it


class Call(NamedTuple):
    """A call of a builtin."""

    name: str  # the builtin
    line: int  # line in the file
    start: int  # byte offset of the name
    end: int  # byte offset of its end
    arity: int  # number of arguments


@dataclass(slots=True)
class Rule:
    """One rule: all its definitions in one module are separate ``Rule`` objects with the
    same path.
    """

    path: Path  # path below ``data``, as far as it is constant
    file: str  # path of its module
    line: int  # first line
    node: Node  # the syntax tree
    references: list[Reference] = field(default_factory=list)  # what it refers to
    calls: list[Call] = field(default_factory=list)  # builtins that it calls
    # paths of the functions it calls, with the line and the byte offset of the call
    functions: list[tuple[Path, int, int]] = field(default_factory=list)
    has_with: bool = False  # it uses the ``with`` keyword
    # names of local variables that are also rules of its package
    shadows: set[str] = field(default_factory=set)
    # what it reads of the input, down to members of elements; ``None`` where that is not known (``flows.py``)
    members: tuple[Path, ...] | None = None
    gives: tuple[Path, ...] = ()  # what of the input its value may be, or hold

    _nodes: list[Node] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        """Every object of its tree."""
        if not self._nodes:
            self._nodes = list(walk(self.node))
        return self._nodes

    @property
    def name(self) -> str:
        """Full name, starting with ``data``."""
        return ".".join(("data", *self.path))


@dataclass(slots=True, weakref_slot=True)
class Module:
    """One Rego file."""

    file: str  # its path in the bundle
    package: Path  # path below ``data``
    line: int  # line of the package statement
    text: str  # the source
    imports: dict[str, Path]  # path by alias; the first segment is ``data`` or ``input``
    rules: list[Rule]  # its rules

    # names of its package's rules with which its references were resolved
    _siblings: frozenset[str] | None = None
    _shared: Module | None = None  # what it was copied from, which lives as long as a copy

    def copied(self) -> Module:
        """Return a module that may forget its trees; the trees themselves are shared."""
        rules = [replace(rule) for rule in self.rules]
        return replace(self, rules=rules, _shared=self)

    def forget_trees(self) -> None:
        """Keep of each rule what it refers to alone."""
        self.text = ""
        self._shared = None
        for rule in self.rules:
            rule.node = {}
            rule._nodes = []


parsed_modules: MutableMapping[tuple[str, str], Module] = WeakValueDictionary()
"""Modules by file and text, while a program has them: two policies differ in few of theirs."""


@dataclass(slots=True)
class Program:
    """All modules of a bundle."""

    modules: list[Module]  # the modules, in the order of their paths
    words: tuple[str, ...] = ()  # every text in its rules, and the names of these (``flows.py``)
    # rules by their path, and by each path above it
    _at: dict[Path, list[Rule]] = field(default_factory=dict)
    _below: dict[Path, list[Rule]] = field(default_factory=dict)

    @property
    def rules(self) -> Iterator[Rule]:
        """Every rule."""
        return (rule for module in self.modules for rule in module.rules)

    def forget_trees(self) -> None:
        """Keep of each rule what it refers to alone."""
        for module in self.modules:
            module.forget_trees()

    def matching(self, path: Path) -> list[Rule]:
        """Return the rules that a reference to a path can reach: those at, above and below it."""
        if not self._at:
            self._make_index()
        found: list[Rule] = []
        for size in range(len(path) + 1):
            found += self._at.get(path[:size], ())
        found += self._below.get(path, ())
        return found

    def defined(self, path: Path) -> list[Rule]:
        """Return the rules at a path, and below it."""
        if not self._at:
            self._make_index()
        return [*self._at.get(path, ()), *self._below.get(path, ())]

    def _make_index(self) -> None:
        for rule in self.rules:
            self._at.setdefault(rule.path, []).append(rule)
            for size in range(len(rule.path)):
                self._below.setdefault(rule.path[:size], []).append(rule)

    def reachable(self, start: Path) -> list[Rule]:
        """Return the rules that a query of a path can evaluate, transitively."""
        return self.closure(self.matching(start))

    def closure(
        self, start: Iterable[Rule], fails: Callable[[Rule], bool] | None = None
    ) -> list[Rule]:
        """Return rules and all that they lead to, without those that are given as failing."""
        seen: dict[int, Rule] = {}
        pending = list(start)
        while pending:
            rule = pending.pop()
            if id(rule) in seen or (fails is not None and fails(rule)):
                continue
            seen[id(rule)] = rule
            for reference in rule.references:
                if reference.base == "data":
                    pending.extend(self.matching(reference.path))
            for path, _, _ in rule.functions:
                pending.extend(self.matching(path))
        return list(seen.values())


def check_nesting(file: str, text: str) -> None:
    """Refuse a module whose brackets nest so deeply that the engine's parser would overflow
    its stack.
    """
    depth, line = 0, 1
    for match in _TOKEN.finditer(text):
        piece = match.group()
        if piece in "[({":
            depth += 1
            if depth > _MAX_NESTING:
                raise PolicyLoadError(
                    f"{file}:{line}: brackets are nested more than {_MAX_NESTING} levels deep"
                )
        elif piece in "])}":
            depth -= 1
        else:
            line += piece.count("\n")


def parse_program(modules: Mapping[str, str]) -> Program:
    """Parse the modules of a bundle.

    Args:
        modules: Rego text by file.

    Raises:
        PolicyLoadError: a module can't be parsed; with file and line.
    """
    parsed = _read(modules)
    # rules of one package see each other by name alone, whatever file they are in
    names: dict[Path, set[str]] = {module.package: set() for module in parsed}
    for module in parsed:
        size = len(module.package)
        for rule in module.rules:
            if len(rule.path) > size:
                names[module.package].add(rule.path[size])
    program: list[Module] = []
    for module in parsed:
        resolved = _resolved(module, frozenset(names[module.package]))
        program.append(resolved.copied())
    return Program(program)


def _read(modules: Mapping[str, str]) -> list[Module]:
    """Return each module as it was read before, or as it is read now."""
    found: dict[str, Module] = {}
    new: dict[str, str] = {}
    for file, text in modules.items():
        known = parsed_modules.get((file, text))
        if known is None:
            new[file] = text
        else:
            found[file] = known
    if new:
        for tree in _trees(new):
            module = _Reader(tree).module()
            found[module.file] = module
    return [found[file] for file in modules]


def _resolved(module: Module, siblings: frozenset[str]) -> Module:
    """Return a module with what its rules refer to; another file of its package may add names."""
    if module._siblings == siblings:
        return module
    rules = [Rule(rule.path, rule.file, rule.line, rule.node) for rule in module.rules]
    resolved = replace(module, rules=rules, _siblings=siblings)
    for rule in rules:
        _Resolver(resolved, rule, siblings).run()
    parsed_modules[module.file, module.text] = resolved
    return resolved


def _trees(modules: Mapping[str, str]) -> list[Node]:
    engine = new_engine()
    for file, text in modules.items():
        check_nesting(file, text)
        try:
            engine.add_policy(file, text)
        except BaseException as error:
            raise native_error(error, PolicyLoadError, f"{file}: ") from None
    try:
        trees: list[Node] = json.loads(engine.get_ast_as_json())
    except BaseException as error:
        raise native_error(error, PolicyLoadError, "the syntax tree can't be read: ") from None
    return trees


def literals_of(program: Program) -> set[str]:
    """Return every text that stands in a program's rules.

    Args:
        program: the rules, with their trees.
    """
    texts: set[str] = set()
    for rule in program.rules:
        for node in rule.nodes:
            literal = node.get("String") or node.get("RawString")
            if literal is not None:
                texts.add(literal["value"])
    return texts


class Name(NamedTuple):
    """A reference as it is written: ``input.tool[x].name``."""

    first: str | None  # its first variable; ``None`` where it starts with another expression
    segments: list[
        Any
    ]  # what follows: a string where it is constant, else the tree of an expression
    span: Mapping[str, int]  # where its first variable stands

    @property
    def constant(self) -> bool:
        """Whether no part of it is computed."""
        return self.first is not None and all(isinstance(part, str) for part in self.segments)


def name_of(node: Any) -> Name:
    """Take a reference apart, from its last segment to its first."""
    parts: list[Any] = []
    while True:
        kind, value = only(node)
        if kind == "RefDot":
            parts.append(value["field"][1])
            node = value["refr"]
        elif kind == "RefBrack":
            parts.append(_index_of(value["index"]))
            node = value["refr"]
        elif kind == "Var":
            return Name(value["value"], parts[::-1], value["span"])
        else:
            # split(x, "/")[0] refers into a call's result; the call is visited as an expression of
            # its own
            span = value.get("span", {}) if isinstance(value, dict) else {}
            return Name(None, [node, *parts[::-1]], span)


def _index_of(index: Any) -> Any:
    """Return the constant text in brackets (``x["a"]`` is ``x.a``), or the tree of what computes it."""
    kind, value = only(index)
    return value["value"] if kind in ("String", "RawString") else index


def _constant_start(segments: Iterable[Any]) -> Path:
    """Return the segments of a reference before the first that is computed."""
    path: list[str] = []
    for segment in segments:
        if not isinstance(segment, str):
            break
        path.append(segment)
    return tuple(path)


def head_of(definition: Node) -> Node:
    """Return the head of a rule that is no default: its name, arguments and value."""
    _, head = only(definition["head"])
    content: Node = head
    return content


def text_at(source: bytes, span: Mapping[str, int]) -> str:
    return source[span["start"] : span["end"]].decode("utf-8")


def _is_empty_text(node: Any) -> bool:
    text = node.get("String")
    return text is not None and text["value"] == ""


class _Reader:
    """Reads one module's tree."""

    def __init__(self, tree: Node) -> None:
        self.file: str = tree["source"]["file"]
        self.text: str = tree["source"]["contents"]
        self.ast: Node = tree["ast"]

    def module(self) -> Module:
        statement = self.ast["package"]
        package = self._constant(statement["refr"])
        rules = [self._rule(node, package) for node in self.ast["rules"]]
        return Module(
            file=self.file,
            package=package,
            line=statement["span"]["line"],
            text=self.text,
            imports=self._imports(),
            rules=rules,
        )

    def _imports(self) -> dict[str, Path]:
        imports: dict[str, Path] = {}
        for item in self.ast["imports"]:
            path = self._constant(item["refr"])
            if path[0] not in _SCOPES:  # import rego.v1
                continue
            alias = path[-1]
            if item.get("as"):
                alias = text_at(self.text.encode("utf-8"), item["as"])
            imports[alias] = path
        return imports

    def _rule(self, node: Node, package: Path) -> Rule:
        kind, definition = only(node)
        head = definition if kind == "Default" else head_of(definition)
        name = name_of(head["refr"])
        own = _constant_start(name.segments)
        if name.first:
            own = (name.first, *own)
        return Rule(package + own, self.file, definition["span"]["line"], node)

    def _constant(self, node: Any) -> Path:
        name = name_of(node)
        if name.first is None or not name.constant:
            _refuse(self.file, name.span.get("line", 1), "a package or import path is computed")
        return (name.first, *name.segments)


def _refuse(file: str, line: int, why: str) -> NoReturn:
    raise PolicyLoadError(f"{file}:{line}: {why}")


class _Resolver:
    """Finds what one rule refers to."""

    def __init__(self, module: Module, rule: Rule, siblings: frozenset[str]) -> None:
        self.module = module
        self.rule = rule
        self.siblings = siblings
        self.bytes = module.text.encode("utf-8")
        self.locals: set[str] = set()

    def run(self) -> None:
        for node in self.rule.nodes:
            self._collect_locals(node)
        self.rule.shadows = self.locals & (self.siblings | self.module.imports.keys())
        kind, definition = only(self.rule.node)
        if kind == "Default":
            self._visit(definition["value"])
            self._visit(definition.get("args") or [])
            return
        self._visit_head(definition)
        self._visit(definition["bodies"])

    def _visit_head(self, definition: Node) -> None:
        head = head_of(definition)
        # the rule's own name is no reference to itself, but computed segments of it are expressions
        for part in name_of(head["refr"]).segments:
            if not isinstance(part, str):
                self._visit(part)
        for key, child in head.items():
            if key != "refr":
                self._visit(child)

    def _collect_locals(self, node: Node) -> None:
        if "SomeVars" in node:
            for span in node["SomeVars"]["vars"]:
                self.locals.add(text_at(self.bytes, span))
        if "Every" in node:
            every = node["Every"]
            for span in (every.get("key"), every["value"]):
                if span:
                    self.locals.add(text_at(self.bytes, span))
        if "SomeIn" in node:
            self._bind(node["SomeIn"].get("key"))
            self._bind(node["SomeIn"]["value"])
        if "AssignExpr" in node and node["AssignExpr"]["op"] == "ColEq":
            self._bind(node["AssignExpr"]["lhs"])
        if "Func" in node:
            self._bind(node["Func"]["args"])

    def _bind(self, pattern: Any) -> None:
        """Collect the variables of a pattern: of ``[x, {"a": y}]``, x and y."""
        pending = [pattern]
        while pending:
            item = pending.pop()
            if isinstance(item, list):
                pending.extend(item)
            elif not isinstance(item, dict) or "RefDot" in item or "RefBrack" in item:
                continue
            elif "Var" in item:
                self.locals.add(item["Var"]["value"])
            else:
                pending.extend(item.values())

    def _visit(self, node: Any) -> None:
        pending = [node]
        while pending:
            item = pending.pop()
            if isinstance(item, list):
                pending.extend(item)
            elif isinstance(item, dict):
                if item.get("with_mods"):
                    self.rule.has_with = True
                pending.extend(self._inner(item))

    def _inner(self, node: Node) -> list[Any]:
        """Note what a node refers to or calls; return the nodes in it that are still to be visited."""
        if "Var" in node or "RefDot" in node or "RefBrack" in node:
            return self._reference(node)
        if "Call" in node:
            return self._call(node["Call"])
        if node.get("op") in ("Eq", "Ne") and _is_empty_text(node["rhs"]):
            # input.session.id == "" depends on less than the id
            return self._viewed(node["lhs"], "empty")
        return [child for key, child in node.items() if key != "span"]

    def _target(self, first: str, parts: list[Any]) -> tuple[str, list[Any]] | None:
        """Resolve the first variable of a reference to ``input``, ``data``, or nothing (a local
        variable).
        """
        if first in _SCOPES:
            return first, parts
        if first in self.module.imports:
            base, *above = self.module.imports[first]
            return base, [*above, *parts]
        if first in self.siblings:
            return "data", [*self.module.package, first, *parts]
        return None

    def _reference(self, node: Any) -> list[Any]:
        name = name_of(node)
        computed = [part for part in name.segments if not isinstance(part, str)]
        if name.first is None:
            return computed
        target = self._target(name.first, name.segments)
        if target is not None:
            base, segments = target
            path = _constant_start(segments)
            reference = Reference(
                base=base,
                path=path,
                whole=len(path) == len(segments),
                line=name.span["line"],
                start=name.span["start"],
            )
            self.rule.references.append(reference)
        return computed

    def _viewed(self, node: Any, view: str) -> list[Any]:
        """Note a reference at which only a view looks, as ``is_string`` does."""
        if not ("Var" in node or "RefDot" in node):
            return [node]
        known = len(self.rule.references)
        rest = self._reference(node)
        if not rest and len(self.rule.references) > known:
            self.rule.references[-1] = self.rule.references[-1]._replace(view=view)
        return rest

    def _call(self, call: Node) -> list[Any]:
        called = name_of(call["fcn"])
        arguments = list(call["params"])
        line = called.span.get("line", self.rule.line)
        if called.first is None or not called.constant:
            _refuse(self.rule.file, line, "a called name is computed")
        start = called.span["start"]
        target = self._target(called.first, called.segments)
        if target is not None and target[0] == "data":
            path = tuple(target[1])
            self.rule.functions.append((path, line, start))
            return arguments
        name = ".".join((called.first, *called.segments))
        _, last_segment = only(call["fcn"])
        builtin = Call(
            name=name,
            line=line,
            start=start,
            end=last_segment["span"]["end"],
            arity=len(arguments),
        )
        if name in VIEWS and len(arguments) == 1:
            arguments = self._viewed(arguments[0], name)
        self.rule.calls.append(builtin)
        return arguments


def calls_with_arguments(rule: Rule) -> list[tuple[Call, list[Any]]]:
    """Pair each builtin call with its arguments' trees."""
    arguments: dict[int, list[Any]] = {}
    for node in rule.nodes:
        call = node.get("Call")
        if isinstance(call, dict):
            arguments[first_word(call["fcn"])] = call["params"]
    return [(call, arguments[call.start]) for call in rule.calls]
