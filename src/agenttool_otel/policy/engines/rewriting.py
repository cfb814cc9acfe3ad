"""Rules rewritten so that what is undefined means the same in both forms of regorus as it does in OPA.

Where the value that a body leads to is undefined, OPA takes that body for false. The interpreter
then drops what the rule found before, too (``contains x.name if some x in list``), and neither form
tries an ``else``; the compiled form adds the undefined value to the set. So such a value is given
to a variable at the end of the body, as OPA's own compiler does. A value that is shown to be
defined stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple, get_type_hints, is_typeddict

from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.rego.syntax import Module, Path, Program, Rule
from agenttool_otel.policy.rego.tree import Node, first_word, only, value_nodes, walk
from agenttool_otel.policy.types import PolicyInput

_COMPREHENSIONS: Final = frozenset({"SetCompr", "ArrayCompr", "ObjectCompr"})
_ALWAYS: Final = _COMPREHENSIONS | {"String", "RawString", "Number", "Bool", "Null"}
_MAY_BE_EMPTY: Final = frozenset({"min", "max"})


class Uneditable(Exception):
    """A rule can't be rewritten."""


class _Change(NamedTuple):
    at: int  # byte offset
    order: int  # of several at one place the lower ones come first
    until: int  # end of what it replaces
    text: str
    moved: tuple[int, int] | None = None  # a part of the text that follows the change's own


class Edits:
    """Changes of one module's text, by byte offset."""

    def __init__(self, module: Module) -> None:
        self._text = module.text.encode("utf-8")
        self._changes: list[_Change] = []
        self._braced: set[int] = set()

    def replace(self, start: int, end: int, text: str) -> None:
        """Put something in the place of a part."""
        self._changes.append(_Change(start, 1, end, text))

    def end_of(self, query: Node) -> int:
        """Return where statements can follow those of a body, which gets braces where it
        has none.
        """
        start: int = query["span"]["start"]
        end: int = query["span"]["end"]
        if self._text[start : start + 1] in (b"{", b"|"):
            return end - 1
        # deny contains "x" if input.a: its span may end before its last word does
        end = max(node["span"]["end"] for node in walk(query) if "span" in node)
        if self._text[end : end + 1] in (b'"', b"`"):
            end += 1  # the tree gives the place of a string without its quotes
        if start not in self._braced:
            self._braced.add(start)
            self._changes.append(_Change(start, -2, start, "{ "))
            self._changes.append(_Change(end, 3, end, " }"))
        return end

    def begin(self, query: Node, statement: str) -> None:
        """Put a statement before those of a body."""
        at: int = query["span"]["start"]
        self.end_of(query)
        if at not in self._braced:
            at += 1  # after the body's own brace
        self._changes.append(_Change(at, -1, at, f" {statement}; "))

    def bind(self, span: dict[str, int], query: Node) -> None:
        """Put a variable in the place of a part, and give it the part's value at the end of
        a body.
        """
        start = span["start"]
        end = span["end"]
        name = f"value_{start}__"
        at = self.end_of(query)
        statement = f"{self._separator(at)}some {name}; {name} = "
        self._changes.append(_Change(start, 0, end, name))
        self._changes.append(_Change(at, 2, at, statement, moved=(start, end)))

    def _separator(self, at: int) -> str:
        """What divides a statement from the one before it; the lines of the text stay what
        they are.
        """
        for change in self._changes:
            if change.moved is not None and change.at == at:
                return "; "
        before = self._text[:at].rstrip(b" \t")
        return " " if before.endswith(b"\n") else "; "

    def unify(self, span: dict[str, int], name: str) -> None:
        """Change an assignment to the variable at a place: ``x := y`` to ``some x; x = y``."""
        start = span["start"]
        end = span["end"]
        operator = self._text.index(b":=", end)
        if self._text[end:operator].strip():
            raise Uneditable(f"the assignment to {name} can't be found")
        if name != "_":
            self._changes.append(_Change(start, 0, start, f"some {name}; "))
        self.replace(operator, operator + 2, "=")

    def edited(self) -> str:
        """Return the text with all changes."""
        return self._part(0, len(self._text)).decode("utf-8")

    def _part(self, start: int, end: int, without: tuple[int, int] | None = None) -> bytes:
        pieces: list[bytes] = []
        whole = end == len(self._text)
        for change in sorted(self._changes, key=_in_order):
            if change.at < start or (change.at >= end and not whole):
                continue  # in another part, or in what a change before it has replaced
            if change.order == 0 and (change.at, change.until) == without:
                continue  # its own
            pieces.append(self._text[start : change.at])
            pieces.append(change.text.encode("utf-8"))
            if change.moved is not None:
                moved = self._part(*change.moved, without=change.moved)
                pieces.append(moved)
            start = change.until
        pieces.append(self._text[start:end])
        return b"".join(pieces)


def _in_order(change: _Change) -> tuple[int, int, int]:
    return change.at, change.order, change.until


class Definedness:
    """What can be shown about the expressions of one program."""

    def __init__(self, program: Program) -> None:
        self._total: set[Path] = set()
        for rule in program.rules:
            kind, value = only(rule.node)
            if kind == "Default" or "Set" in value["head"]:
                self._total.add(rule.path)

    def unproven(self, node: Any, rule: Rule) -> Iterator[Node]:
        """Yield the smallest parts of an expression that may have no value."""
        kind, value = only(node)
        if kind in _ALWAYS:
            return
        parts = self._parts(kind, value, rule)
        if parts is not None:
            for part in parts:
                yield from self.unproven(part, rule)
        elif not self._has_value(kind, node, rule):
            yield node

    def _parts(self, kind: str, value: Node, rule: Rule) -> list[Any] | None:
        """Return the parts whose values an expression needs, where it has a value by them alone."""
        if kind in ("Set", "Array"):
            items: list[Any] = value["items"]
            return items
        if kind == "Object":
            return [part for _, *pair in value["fields"] for part in pair]
        if kind in ("BinExpr", "ArithExpr", "BoolExpr"):
            return [value["lhs"], value["rhs"]]
        if kind == "Call" and self._is_builtin(value, rule):
            # guarded: it has a value, or the machine stops
            arguments: list[Any] = value["params"]
            return arguments
        return None

    def _is_builtin(self, call: Node, rule: Rule) -> bool:
        start = first_word(call["fcn"])
        return any(item.start == start and item.name not in _MAY_BE_EMPTY for item in rule.calls)

    def _has_value(self, kind: str, node: Any, rule: Rule) -> bool:
        if kind not in ("Var", "RefDot", "RefBrack"):
            return False
        start = first_word(node)
        for reference in rule.references:
            if reference.start == start:
                break
        else:
            return kind == "Var"  # a local variable; where it got its value, that was checked
        if not reference.whole:
            return False
        if reference.base == "input":
            return _always_there(reference.path)
        return reference.path in self._total


@cache
def _always_there(path: Path) -> bool:
    """Return whether each document that fits the input's schema has a value at a path."""
    annotation: Any = PolicyInput
    for segment in path:
        if not is_typeddict(annotation):
            return False
        hints = get_type_hints(annotation)
        if segment not in hints or segment not in annotation.__required_keys__:
            return False
        annotation = hints[segment]
    return bool(path)


def bind_values(rule: Rule, defined: Definedness, edits: Edits) -> None:
    """Let a body of a rule, or of a comprehension in it, fail where the value that it leads to is
    undefined.
    """
    spec = rule.node.get("Spec")
    if spec is None:
        return
    head_kind, head = only(spec["head"])
    bodies = spec["bodies"]
    if head_kind == "Set":
        _bind(head["key"], bodies, rule, defined, edits)
    # an else is tried where the value before it is undefined; none comes after the last
    values = value_nodes(spec)[:-1]
    for value, body in zip(values, bodies, strict=False):
        _bind(value, [body], rule, defined, edits)
    for node in rule.nodes:
        for kind in _COMPREHENSIONS & node.keys():
            comprehension = node[kind]
            for term in ("term", "key", "value"):
                if term in comprehension:
                    _bind(comprehension[term], [comprehension], rule, defined, edits)


def _bind(
    value: Any,
    bodies: list[Any],
    rule: Rule,
    defined: Definedness,
    edits: Edits,
) -> None:
    if value is None:
        return
    parts = list(defined.unproven(value, rule))
    if not parts:
        return
    if len(bodies) != 1 or not bodies[0]["query"]["stmts"]:
        raise Uneditable(
            f"{rule.file}:{rule.line}: {rule.name}: its value may be undefined; assign it to a variable in a body"
        )
    for part in parts:
        _, content = only(part)
        edits.bind(content["span"], bodies[0]["query"])


def rewritten(program: Program) -> dict[str, str]:
    """Return the text of each module, rewritten for the interpreter."""
    defined = Definedness(program)
    texts: dict[str, str] = {}
    for module in program.modules:
        edits = Edits(module)
        try:
            for rule in module.rules:
                bind_values(rule, defined, edits)
        except Uneditable as error:
            raise PolicyLoadError(str(error)) from None
        texts[module.file] = edits.edited()
    return texts
