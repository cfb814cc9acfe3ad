"""Rules that say something else than their author means, by their form alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from agenttool_otel.authoring.words.findings import kind_of
from agenttool_otel.authoring.words.slips import Slip
from agenttool_otel.policy.rego.syntax import Path, Rule, calls_with_arguments, name_of, text_at
from agenttool_otel.policy.rego.tree import Node, only, statements_of, variable, walk

_REFERENCES: Final = ("Var", "RefDot", "RefBrack")
_NUMBERS: Final = ("Number", "String", "RawString", "Bool")
_UPPER: Final = frozenset({"Lt", "Le"})
_LOWER: Final = frozenset({"Gt", "Ge"})
_MIRRORED: Final = {"Lt": "Gt", "Le": "Ge", "Gt": "Lt", "Ge": "Le"}
_ROLES: Final = ("input", ("actor", "roles"))
_ANCHORS: Final = ("^", r"\A")


def habit_slips(rule: Rule, source: bytes) -> Iterator[Slip]:
    """Yield what is suspicious in one rule's text.

    Args:
        rule: the rule.
        source: the text of its file.
    """
    spec = rule.node.get("Spec")
    if spec is None:
        return
    for body in spec["bodies"]:
        statements = statements_of(body)
        yield from _contradictions(rule, statements)
        if kind_of(rule) == "allow":
            yield from _empty_every(rule, statements)
    yield from _unused(rule, spec, source)
    yield from _another_role(rule)
    yield from _negated_calls(rule)
    if kind_of(rule) == "allow":
        yield from _open_patterns(rule)


def _slip(rule: Rule, node: Any, message: str, *, certain: bool = False) -> Slip:
    return Slip(rule.file, _line(node) or rule.line, message, certain)


def _line(node: Any) -> int:
    for part in walk(node):
        span = part.get("span")
        if span:
            return int(span["line"])
    return 0


# --- what can't hold together ---------------------------------------------------------------------


def _contradictions(rule: Rule, statements: list[Node]) -> Iterator[Slip]:
    """Yield comparisons of one body that can't all hold: ``x == "a"`` and ``x == "b"``."""
    equal: dict[str, Any] = {}
    below: dict[str, float] = {}
    above: dict[str, float] = {}
    for statement in statements:
        comparison = _comparison(statement)
        if comparison is None:
            continue
        subject, operator, value, node = comparison
        if operator == "Eq":
            first = equal.setdefault(subject, value)
            if first != value:
                message = f"this can't be {first!r} and {value!r}: the rule never fires"
                yield _slip(rule, node, message, certain=True)
        elif isinstance(value, (int, float)) and operator in _UPPER:
            below[subject] = min(value, below.get(subject, value))
        elif isinstance(value, (int, float)) and operator in _LOWER:
            above[subject] = max(value, above.get(subject, value))
        if subject in below and subject in above and above[subject] > below[subject]:
            message = f"nothing is above {above[subject]} and below {below[subject]}: the rule never fires"
            yield _slip(rule, node, message, certain=True)


def _comparison(statement: Node) -> tuple[str, str, Any, Node] | None:
    """Return what a statement compares with which constant, and how."""
    expression = (statement.get("Expr") or {}).get("expr") or {}
    comparison = expression.get("BoolExpr")
    if comparison is None:
        return None
    operator = comparison["op"]
    left, right = comparison["lhs"], comparison["rhs"]
    if only(left)[0] in _NUMBERS:
        left, right = right, left
        operator = _MIRRORED.get(operator, operator)
    kind, content = only(right)
    if only(left)[0] not in _REFERENCES or kind not in _NUMBERS:
        return None
    name = name_of(left)
    # input.actor.roles[_] stands for several values
    if name.first is None or not name.constant:
        return None
    return ".".join((name.first, *name.segments)), operator, content["value"], comparison["lhs"]


# --- nothing is proof -----------------------------------------------------------------------------


def _empty_every(rule: Rule, statements: list[Node]) -> Iterator[Slip]:
    """Yield an ``every`` that holds for a call which has nothing to look at."""
    for statement in statements:
        every = statement.get("Every")
        if every is None or only(every["domain"])[0] not in ("RefDot", "RefBrack"):
            continue
        name = name_of(every["domain"])
        if name.first != "input" or not name.constant:
            continue
        if _looks_at(rule, statements, every, name.segments):
            continue
        path = ".".join(("input", *name.segments))
        message = (
            f"every over {path} holds where that is empty, so this allows calls without any: add"
            f" count({path}) > 0"
        )
        yield _slip(rule, every["domain"], message)


def _looks_at(rule: Rule, statements: list[Node], every: Node, segments: Iterable[str]) -> bool:
    """Return whether another statement or rule looks at the same list."""
    path = tuple(segments)
    inside = every["span"]
    for reference in rule.references:
        is_inside = inside["start"] <= reference.start < inside["end"]
        if reference.base == "input" and reference.path[: len(path)] == path and not is_inside:
            return True
    # another rule may look at it: asks(input) or has_paths
    return any(_asks_a_rule(rule, statement) for statement in statements)


def _asks_a_rule(rule: Rule, statement: Node) -> bool:
    if "Expr" not in statement:
        return False
    expression = statement["Expr"]["expr"]
    name = variable(expression)
    return name is not None and any(
        reference.path[-1:] == (name,) and reference.base == "data" for reference in rule.references
    )


# --- variables and negations ----------------------------------------------------------------------


def _unused(rule: Rule, spec: Node, source: bytes) -> Iterator[Slip]:
    """Yield a variable that is declared and never used: ``some i``."""
    nodes = list(walk(spec))
    used = {node["Var"]["value"] for node in nodes if "Var" in node}
    spans = [node["SomeVars"] for node in nodes if "SomeVars" in node]
    for declared in spans:
        for span in declared["vars"]:
            name = text_at(source, span)
            if name not in used:
                yield Slip(rule.file, span["line"], f"some {name} is not used", certain=False)


def _another_role(rule: Rule) -> Iterator[Slip]:
    """Yield ``input.actor.roles[_] != "admin"``, which holds as soon as one role is another."""
    for node in rule.nodes:
        comparison = node.get("BoolExpr")
        if comparison is None or comparison["op"] != "Ne":
            continue
        for side in (comparison["lhs"], comparison["rhs"]):
            if _is_any_role(side):
                message = 'this holds as soon as one role is another: write not "..." in input.actor.roles'
                yield _slip(rule, side, message)


def _is_any_role(node: Any) -> bool:
    lookup = node.get("RefBrack")
    if lookup is None or "Var" not in lookup["index"]:
        return False
    if only(lookup["refr"])[0] not in ("RefDot", "RefBrack"):
        return False
    name = name_of(lookup["refr"])
    return (name.first, tuple(name.segments)) == _ROLES if name.constant else False


def _negated_calls(rule: Rule) -> Iterator[Slip]:
    """Yield ``not f(x) == y``: OPA works the call out first, and without a value the rule is gone."""
    functions = {start for _, _, start in rule.functions}
    for node in rule.nodes:
        negation = node.get("NotExpr")
        if negation is None:
            continue
        comparison = negation["expr"].get("BoolExpr")
        if comparison is None:
            continue
        for side in (comparison["lhs"], comparison["rhs"]):
            call = side.get("Call")
            if call is not None and _first(call["fcn"]) in functions:
                message = (
                    "where the function has no value, this whole rule has none: put the comparison into"
                    " a rule of its own, and negate its name"
                )
                yield _slip(rule, call["fcn"], message)


def _first(node: Any) -> int:
    start: int = name_of(node).span["start"]
    return start


def _open_patterns(rule: Rule) -> Iterator[Slip]:
    """Yield a pattern of an allow that also fits where it stands in the middle of something else."""
    for call, arguments in calls_with_arguments(rule):
        if call.name != "regex.match":
            continue
        kind, content = only(arguments[0])
        if kind not in ("String", "RawString"):
            continue
        pattern = str(content["value"])
        if not pattern.startswith(_ANCHORS) or not pattern.endswith(("$", r"\z")):
            message = f"{pattern!r} fits any part of a text: begin an allow's pattern with ^ and end it with $"
            yield Slip(rule.file, call.line, message, certain=False)


# --- what nobody reads ----------------------------------------------------------------------------


def unread_rules(rules: list[Rule], asked: set[Path]) -> Iterator[Slip]:
    """Yield the rules that no other rule and no decision reads.

    Args:
        rules: the rules of a project.
        asked: the paths that rules, and tests, refer to.
    """
    seen: set[Path] = set()
    for rule in rules:
        path = rule.path
        if kind_of(rule) or path in seen or _is_read(path, asked):
            continue
        seen.add(path)
        yield Slip(rule.file, rule.line, f"{rule.name} is read by no rule", certain=False)


def _is_read(path: Path, asked: set[Path]) -> bool:
    for other in asked:
        shared = min(len(path), len(other))
        if path[:shared] == other[:shared] and len(other) > 2:
            return True
    return False


def paths_asked(rules: Iterable[Rule]) -> set[Path]:
    """Return the paths below ``data`` that rules refer to, themselves left out."""
    asked: set[Path] = set()
    for rule in rules:
        for reference in rule.references:
            if reference.base == "data" and reference.path != rule.path:
                asked.add(reference.path)
        for path, _, _ in rule.functions:
            if path != rule.path:
                asked.add(path)
    return asked
