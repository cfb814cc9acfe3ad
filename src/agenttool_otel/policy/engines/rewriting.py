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
from agenttool_otel.policy.engines.rvm_safety import first_word, only, value_nodes
from agenttool_otel.policy.rego.syntax import Module, Path, Program, Rule, walk
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

    def end_of(self, query: dict[str, Any]) -> int:
        """Return where statements can follow those of a body, which gets braces where it
        has none.
        """
        start, end = query["span"]["start"], query["span"]["end"]
        if self._text[start : start + 1] in (b"{", b"|"):
            return int(end) - 1
        end = max(node["span"]["end"] for node in walk(query) if "span" in node)
        if self._text[end : end + 1] in (b'"', b"`"):
            end += 1  # the tree gives the place of a string without its quotes
        if start not in self._braced:
            self._braced.add(start)
            self._changes += [_Change(start, -2, start, "{ "), _Change(end, 3, end, " }")]
        return int(end)

    def begin(self, query: dict[str, Any], statement: str) -> None:
        """Put a statement before those of a body."""
        start = query["span"]["start"]
        self.end_of(query)
        at = start if start in self._braced else start + 1
        self._changes.append(_Change(at, -1, at, f" {statement}; "))

    def bind(self, span: dict[str, int], query: dict[str, Any]) -> None:
        """Put a variable in the place of a part, and give it the part's value at the end of
        a body.
        """
        start, end, name = span["start"], span["end"], f"value_{span['start']}__"
        at = self.end_of(query)
        self._changes.append(_Change(start, 0, end, name))
        self._changes.append(
            _Change(at, 2, at, f"{self._separator(at)}some {name}; {name} = ", (start, end))
        )

    def _separator(self, at: int) -> str:
        """What divides a statement from the one before it; the lines of the text stay what
        they are.
        """
        first = all(change.moved is None or change.at != at for change in self._changes)
        return " " if first and self._text[:at].rstrip(b" \t").endswith(b"\n") else "; "

    def unify(self, span: dict[str, int], name: str) -> None:
        """Change an assignment to the variable at a place."""
        operator = self._text.index(b":=", span["end"])
        if self._text[span["end"] : operator].strip():
            raise Uneditable(f"the assignment to {name} can't be found")
        if name != "_":
            self._changes.append(_Change(span["start"], 0, span["start"], f"some {name}; "))
        self.replace(operator, operator + 2, "=")

    def edited(self) -> str:
        """Return the text with all changes."""
        return self._part(0, len(self._text)).decode("utf-8")

    def _part(self, start: int, end: int, without: tuple[int, int] | None = None) -> bytes:
        pieces: list[bytes] = []
        whole = end == len(self._text)
        for change in sorted(self._changes, key=lambda item: item[:3]):
            if change.at < start or (change.at >= end and not whole):
                continue  # in another part, or in what a change before it has replaced
            if change.order == 0 and (change.at, change.until) == without:
                continue  # its own
            pieces += [self._text[start : change.at], change.text.encode("utf-8")]
            if change.moved is not None:
                pieces += [self._part(*change.moved, without=change.moved)]
            start = change.until
        return b"".join([*pieces, self._text[start:end]])


class Definedness:
    """What can be shown about the expressions of one program."""

    def __init__(self, program: Program) -> None:
        self._total: set[Path] = set()
        for rule in program.rules:
            kind, value = only(rule.node)
            if kind == "Default" or "Set" in value["head"]:
                self._total.add(rule.path)

    def unproven(self, node: Any, rule: Rule) -> Iterator[dict[str, Any]]:
        """Yield the smallest parts of an expression that may have no value."""
        kind, value = only(node)
        if kind in _ALWAYS:
            return
        if kind in ("Set", "Array"):
            for item in value["items"]:
                yield from self.unproven(item, rule)
        elif kind == "Object":
            for _, name, content in value["fields"]:
                yield from self.unproven(name, rule)
                yield from self.unproven(content, rule)
        elif kind in ("BinExpr", "ArithExpr", "BoolExpr"):
            yield from self.unproven(value["lhs"], rule)
            yield from self.unproven(value["rhs"], rule)
        elif kind == "Call" and self._is_builtin(value, rule):
            # guarded: it has a value, or the machine stops
            for argument in value["params"]:
                yield from self.unproven(argument, rule)
        elif not self._has_value(kind, node, rule):
            yield node

    def _is_builtin(self, call: dict[str, Any], rule: Rule) -> bool:
        start = first_word(call["fcn"])
        return any(item.start == start and item.name not in _MAY_BE_EMPTY for item in rule.calls)

    def _has_value(self, kind: str, node: Any, rule: Rule) -> bool:
        if kind not in ("Var", "RefDot", "RefBrack"):
            return False
        start = first_word(node)
        reference = next((item for item in rule.references if item.start == start), None)
        if reference is None:
            return kind == "Var"  # a local variable; where it got its value, that was checked
        if not reference.whole:
            return False
        if reference.base == "input":
            return _always_there(reference.path)
        return reference.path in self._total


@cache
def _always_there(path: Path) -> bool:
    """Whether each document that fits the input's schema has a value at a path."""
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
    (head_kind, head), bodies = only(spec["head"]), spec["bodies"]
    if head_kind == "Set":
        _bind(head["key"], bodies, rule, defined, edits)
    # an else is tried where the value before it is undefined; none comes after the last
    for value, body in list(zip(value_nodes(spec), bodies, strict=False))[:-1]:
        _bind(value, [body], rule, defined, edits)
    for node in rule.nodes:
        for kind in _COMPREHENSIONS & node.keys():
            for term in ("term", "key", "value"):
                if term in node[kind]:
                    _bind(node[kind][term], [node[kind]], rule, defined, edits)


def _bind(value: Any, bodies: list[Any], rule: Rule, defined: Definedness, edits: Edits) -> None:
    parts = [] if value is None else list(defined.unproven(value, rule))
    if parts and (len(bodies) != 1 or not bodies[0]["query"]["stmts"]):
        raise Uneditable(
            f"{rule.file}:{rule.line}: {rule.name}: its value may be undefined; assign it to a variable in a body"
        )
    for part in parts:
        edits.bind(only(part)[1]["span"], bodies[0]["query"])


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
