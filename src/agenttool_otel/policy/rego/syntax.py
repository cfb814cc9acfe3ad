"""Rego modules as a syntax tree: what is defined, what refers to what, and with which builtins.

The tree comes from the engine's own parser, so that what is analysed is what is evaluated. Only
what the checks at load and the decision cache need is read from it; whatever they don't know makes
them refuse, never guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final, NamedTuple

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.rego.native import native_error, new_engine

Path = tuple[str, ...]
"""A path below ``data`` or ``input``, one constant segment each."""

_MAX_NESTING: Final = 64
_TOKEN: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|#[^\n]*|[\[({]|[\])}]|\n')
_NOTHING: Final[tuple[list[Rule], list[Rule]]] = [], []
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
    node: dict[str, Any]  # the syntax tree
    references: list[Reference] = field(default_factory=list)  # what it refers to
    calls: list[Call] = field(default_factory=list)  # builtins that it calls
    # paths of the functions it calls, with the line and the byte offset of the call
    functions: list[tuple[Path, int, int]] = field(default_factory=list)
    has_with: bool = False  # it uses the ``with`` keyword
    # names of local variables that are also rules of its package
    shadows: set[str] = field(default_factory=set)

    _nodes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """Every object of its tree."""
        if not self._nodes:
            self._nodes = list(walk(self.node))
        return self._nodes

    @property
    def name(self) -> str:
        """Full name, starting with ``data``."""
        return ".".join(("data", *self.path))


@dataclass(slots=True)
class Module:
    """One Rego file."""

    file: str  # its path in the bundle
    package: Path  # path below ``data``
    line: int  # line of the package statement
    text: str  # the source
    imports: dict[str, Path]  # path by alias; the first segment is ``data`` or ``input``
    rules: list[Rule]  # its rules


@dataclass(slots=True)
class Program:
    """All modules of a bundle."""

    modules: list[Module]  # the modules, in the order of their paths
    # rules at and below each path
    _index: dict[Path, tuple[list[Rule], list[Rule]]] = field(default_factory=dict)

    @property
    def rules(self) -> Iterator[Rule]:
        """Every rule."""
        return (rule for module in self.modules for rule in module.rules)

    def forget_trees(self) -> None:
        """Keep of each rule what it refers to alone."""
        for module in self.modules:
            module.text = ""
            for rule in module.rules:
                rule.node, rule._nodes = {}, []

    def matching(self, path: Path) -> list[Rule]:
        """Return the rules that a reference to a path can reach: those at, above and below it."""
        if not self._index:
            index: dict[Path, tuple[list[Rule], list[Rule]]] = {}
            for rule in self.rules:
                for size in range(len(rule.path) + 1):
                    index.setdefault(rule.path[:size], ([], []))[size < len(rule.path)].append(rule)
            self._index = index
        found = [
            rule
            for size in range(len(path) + 1)
            for rule in self._index.get(path[:size], _NOTHING)[0]
        ]
        return found + self._index.get(path, _NOTHING)[1]

    def reachable(self, start: Path) -> list[Rule]:
        """Return the rules that a query of a path can evaluate, transitively."""
        return self.closure(self.matching(start))

    def closure(
        self, start: Iterable[Rule], fails: Callable[[Rule], bool] | None = None
    ) -> list[Rule]:
        """Return rules and all that they lead to, without those that are said to fail."""
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
    """Parse the modules of a bundle."""
    engine = new_engine()
    for file, text in modules.items():
        check_nesting(file, text)
        try:
            engine.add_policy(file, text)
        except BaseException as error:
            raise native_error(error, PolicyLoadError, f"{file}: ") from None
    try:
        trees = json.loads(engine.get_ast_as_json())
    except BaseException as error:
        raise native_error(error, PolicyLoadError, "the syntax tree can't be read: ") from None
    parsed = [_Reader(tree).module() for tree in trees]
    names = {module.package: set[str]() for module in parsed}
    for module in parsed:
        size = len(module.package)
        names[module.package].update(
            rule.path[size] for rule in module.rules if len(rule.path) > size
        )
    for module in parsed:
        for rule in module.rules:
            _Resolver(module, rule, names[module.package]).run()
    return Program(parsed)


def _segments(node: Any) -> tuple[str | None, list[Any], dict[str, Any]]:
    """Split a reference into its first variable, the segments after it, and the first variable's span.

    A segment is a string where it is constant, else the syntax tree of what computes it.
    """
    parts: list[Any] = []
    while True:
        kind, value = next(iter(node.items()))
        if kind == "RefDot":
            parts.append(value["field"][1])
            node = value["refr"]
        elif kind == "RefBrack":
            index_kind, index = next(iter(value["index"].items()))
            parts.append(
                index["value"] if index_kind in ("String", "RawString") else value["index"]
            )
            node = value["refr"]
        elif kind == "Var":
            return value["value"], parts[::-1], value["span"]
        else:
            # a reference into a call's or comprehension's result; its head is visited as an
            # expression of its own
            return (
                None,
                [node, *parts[::-1]],
                value.get("span", {}) if isinstance(value, dict) else {},
            )


def _constant_start(segments: Iterable[Any]) -> Path:
    """Return the segments of a reference before the first that is computed."""
    return tuple(takewhile(lambda segment: isinstance(segment, str), segments))


def _text(source: bytes, span: Mapping[str, int]) -> str:
    return source[span["start"] : span["end"]].decode("utf-8")


class _Reader:
    """Reads one module's tree."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self.file = tree["source"]["file"]
        self.text = tree["source"]["contents"]
        self.ast = tree["ast"]

    def module(self) -> Module:
        package_node = self.ast["package"]
        package = self._constant(package_node["refr"])
        imports: dict[str, Path] = {}
        for item in self.ast["imports"]:
            path = self._constant(item["refr"])
            if path[0] in _SCOPES:
                alias = _text(self.text.encode("utf-8"), item["as"]) if item.get("as") else path[-1]
                imports[alias] = path
        module = Module(self.file, package, package_node["span"]["line"], self.text, imports, [])
        for node in self.ast["rules"]:
            kind, value = next(iter(node.items()))
            head = (
                value["refr"] if kind == "Default" else next(iter(value["head"].values()))["refr"]
            )
            first, parts, _ = _segments(head)
            path = (*package, *([first] if first else ()), *_constant_start(parts))
            module.rules.append(Rule(path, self.file, value["span"]["line"], node))
        return module

    def _constant(self, node: Any) -> Path:
        first, parts, span = _segments(node)
        if first is None or not all(isinstance(part, str) for part in parts):
            raise PolicyLoadError(
                f"{self.file}:{span.get('line', 1)}: a package or import path is computed"
            )
        return (first, *parts)


class _Resolver:
    """Finds what one rule refers to."""

    def __init__(self, module: Module, rule: Rule, siblings: set[str]) -> None:
        self.module = module
        self.rule = rule
        self.siblings = siblings
        self.bytes = module.text.encode("utf-8")
        self.locals: set[str] = set()

    def run(self) -> None:
        kind, value = next(iter(self.rule.node.items()))
        self._collect_locals()
        self.rule.shadows = self.locals & (self.siblings | self.module.imports.keys())
        if kind == "Default":
            self._visit(value["value"])
            for argument in value.get("args") or []:
                self._visit(argument)
            return
        head_kind, head = next(iter(value["head"].items()))
        # the rule's own name is no reference to itself, but computed segments of it are expressions
        _, parts, _ = _segments(head["refr"])
        for part in parts:
            if not isinstance(part, str):
                self._visit(part)
        for key, child in head.items():
            if key != "refr" and not (head_kind == "Func" and key == "args"):
                self._visit(child)
        for argument in head.get("args") or []:
            self._visit(argument)
        for body in value["bodies"]:
            self._visit(body)

    def _collect_locals(self) -> None:
        for item in self.rule.nodes:
            if "SomeVars" in item:
                self.locals.update(_text(self.bytes, span) for span in item["SomeVars"]["vars"])
            if "Every" in item:
                every = item["Every"]
                self.locals.update(
                    _text(self.bytes, span) for span in (every.get("key"), every["value"]) if span
                )
            if "SomeIn" in item:
                self._bind([item["SomeIn"].get("key"), item["SomeIn"]["value"]])
            if "AssignExpr" in item and item["AssignExpr"]["op"] == "ColEq":
                self._bind(item["AssignExpr"]["lhs"])
            if "Func" in item:
                self._bind(item["Func"]["args"])

    def _bind(self, pattern: Any) -> None:
        pending = [pattern]
        while pending:
            item = pending.pop()
            if isinstance(item, list):
                pending.extend(item)
            elif isinstance(item, dict):
                if "Var" in item:
                    self.locals.add(item["Var"]["value"])
                elif "RefDot" in item or "RefBrack" in item:
                    continue
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
                if "Var" in item or "RefDot" in item or "RefBrack" in item:
                    pending.extend(self._reference(item))
                elif "Call" in item:
                    pending.extend(self._call(item["Call"]))
                elif (
                    item.get("op") in ("Eq", "Ne")
                    and item["rhs"].get("String", {}).get("value") == ""
                ):
                    pending.extend(self._viewed(item["lhs"], "empty"))
                else:
                    pending.extend(value for key, value in item.items() if key != "span")

    def _target(self, first: str, parts: list[Any]) -> tuple[str, list[Any]] | None:
        """Resolve the first variable of a reference to ``input``, ``data``, or nothing (a local
        variable).
        """
        if first in _SCOPES:
            return first, parts
        if first in self.module.imports:
            path = self.module.imports[first]
            return path[0], [*path[1:], *parts]
        if first in self.siblings:
            return "data", [*self.module.package, first, *parts]
        return None

    def _reference(self, node: Any) -> list[Any]:
        first, parts, span = _segments(node)
        computed = [part for part in parts if not isinstance(part, str)]
        if first is not None and (target := self._target(first, parts)) is not None:
            base, segments = target
            path = _constant_start(segments)
            whole = len(path) == len(segments)
            self.rule.references.append(Reference(base, path, whole, span["line"], span["start"]))
        return computed

    def _viewed(self, node: Any, view: str) -> list[Any]:
        if not ("Var" in node or "RefDot" in node):
            return [node]
        known = len(self.rule.references)
        rest = self._reference(node)
        if not rest and len(self.rule.references) > known:
            self.rule.references[-1] = self.rule.references[-1]._replace(view=view)
        return rest

    def _call(self, call: dict[str, Any]) -> list[Any]:
        first, parts, span = _segments(call["fcn"])
        rest = list(call["params"])
        if first is None or not all(isinstance(part, str) for part in parts):
            raise PolicyLoadError(
                f"{self.rule.file}:{span.get('line', self.rule.line)}: a called name is computed"
            )
        target = self._target(first, parts)
        if target is not None and target[0] == "data":
            self.rule.functions.append((tuple(target[1]), span["line"], span["start"]))
            return rest
        end = next(iter(call["fcn"].values()))["span"]["end"]
        name = ".".join((first, *parts))
        if name in VIEWS and len(rest) == 1:
            rest = self._viewed(rest[0], name)
        self.rule.calls.append(Call(name, span["line"], span["start"], end, len(call["params"])))
        return rest


def walk(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a tree."""
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending += [
                child
                for key, child in item.items()
                if key != "span" and type(child) in (dict, list)
            ]
        elif isinstance(item, list):
            pending += item


def calls_with_arguments(rule: Rule) -> list[tuple[Call, list[Any]]]:
    """Pair each builtin call with its arguments' trees."""
    arguments: dict[int, list[Any]] = {}
    for node in rule.nodes:
        if "Call" in node and isinstance(node["Call"], dict):
            function = node["Call"]["fcn"]
            while "Var" not in function:
                function = next(iter(function.values()))["refr"]
            arguments[function["Var"]["span"]["start"]] = node["Call"]["params"]
    return [(call, arguments[call.start]) for call in rule.calls]
