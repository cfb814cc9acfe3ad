"""What is checked before a bundle may decide anything: it is complete, finite, and within what the
engine can do.

An engine that lacks a builtin leaves the rule undefined or fails at the first call that reaches it;
a recursive rule overflows the native stack. Both are refused here, by rule, file and line
(notes/policy.md 4: "check it at load, and refuse a policy whose builtins the engine lacks").
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any

from agenttool_otel.errors import PolicyLoadError, PolicyUnsupported
from agenttool_otel.names import Behavior, EntryPoint
from agenttool_otel.policy.bundles.bounds import check_bounds
from agenttool_otel.policy.bundles.bundle import Bundle, in_roots
from agenttool_otel.policy.bundles.concerns import check_concerns, iterates, written_out
from agenttool_otel.policy.bundles.own_rules import CUSTOM
from agenttool_otel.policy.rego.builtins import REFUSED_BUILTINS
from agenttool_otel.policy.rego.syntax import Path, Program, Rule, parse_program
from agenttool_otel.policy.rego.tree import first_word, only, statements_of, value_nodes


def entry_path(entry_point: str) -> Path:
    """Split the full name of a rule: ``data.agenttool.decision``."""
    first, *rest = entry_point.split(".")
    if first != "data" or not rest or not all(map(_is_plain_word, rest)):
        raise PolicyLoadError("an entry point is named data. and then identifiers")
    return tuple(rest)


def _is_plain_word(text: str) -> bool:
    return text.isascii() and text.isidentifier()


def defines_decision(bundle: Bundle) -> bool:
    """Return whether a bundle stands alone: any other one is rules on top of the stock bundle."""
    decision = entry_path(EntryPoint.DECISION)
    return any(rule.path == decision for rule in parse_program(bundle.modules).rules)


def begins_with_permitted(program: Program) -> bool:
    """Return whether a program's decision is what the rule ``permitted`` gives, wherever that is an
    answer that allows.

    Args:
        program: the rules, with their trees.
    """
    decision, permitted = entry_path(EntryPoint.DECISION), entry_path(EntryPoint.PERMITTED)
    rules = [rule for rule in program.rules if rule.path == decision]
    if len(rules) != 1 or rules[0].shadows or not program.defined(permitted):
        return False
    kind, spec = only(rules[0].node)
    if kind == "Default" or not spec["bodies"]:
        return False
    statements = statements_of(spec["bodies"][0])
    if len(statements) != 1 or _name_in(rules[0], value_nodes(spec)[0]) != permitted:
        return False
    compared = statements[0].get("Expr", {}).get("expr", {}).get("BoolExpr", {})
    return (
        compared.get("op") == "Eq"
        and _name_in(rules[0], compared["lhs"]) == (*permitted, "behavior")
        and compared["rhs"].get("String", {}).get("value") == Behavior.ALLOW
    )


def _name_in(rule: Rule, node: Any) -> Path | None:
    """Return the path below ``data`` of a node that is a constant name."""
    if node is None or only(node)[0] not in ("Var", "RefDot"):
        return None
    start = first_word(node)
    for reference in rule.references:
        if reference.start == start and reference.base == "data" and reference.whole:
            return reference.path
    return None


def load_program(bundle: Bundle) -> Program:
    """Parse a bundle's modules and check that they lie under its roots and don't collide with its
    data.

    What goes through the packages of ``agenttool.rules`` is written out, and each of them has to be
    one that is asked.
    """
    program = parse_program(bundle.modules)
    if iterates(bundle.modules):
        # while the first program lives, modules that are the same when written out are not read again
        program = parse_program(written_out(bundle.modules))
        check_concerns(bundle, program)
    data = bundle.data
    for module in program.modules:
        if not in_roots("/".join(module.package), bundle.roots):
            package = ".".join(module.package)
            raise PolicyLoadError(
                f"{module.file}:{module.line}: package {package} lies outside the manifest's roots"
            )
        for rule in module.rules:
            if _is_data(data, rule.path):
                raise PolicyLoadError(
                    f"{rule.file}:{rule.line}: {rule.name} is both a rule and data"
                )
    return program


def _is_data(data: Any, path: Path) -> bool:
    for part in path:
        if not isinstance(data, dict) or part not in data:
            return False
        data = data[part]
    return True


def check_program(
    program: Program, *, builtins: Iterable[str], entry_points: Iterable[str], engine: str
) -> None:
    """Check the modules of a bundle.

    Args:
        program: the modules.
        builtins: names of the builtins that the engine has.
        entry_points: full names of the rules that have to be defined.
        engine: what the engine is called in a message.

    Raises:
        PolicyUnsupported: a rule uses a builtin that the engine lacks, or one without bounds.
        PolicyLoadError: a rule is recursive, something that is asked for is not defined, or the
          rules are those of an extension.
    """
    entry_points = tuple(entry_points)
    known = frozenset(builtins)
    defined = {rule.path for rule in program.rules}
    _check_whole(defined, frozenset(entry_points))
    check_bounds(program)
    for rule in program.rules:
        for call in rule.calls:
            if call.name not in known:
                raise PolicyUnsupported(
                    f"{rule.file}:{call.line}: {rule.name} uses {call.name}, {_why_not(call.name, engine)}"
                )
        for path, line, _ in rule.functions:
            if path not in defined:
                function = ".".join(path)
                raise PolicyLoadError(
                    f"{rule.file}:{line}: the function data.{function} is not defined"
                )
    _check_recursion(program)
    for entry_point in entry_points:
        if entry_path(entry_point) not in defined:
            raise PolicyLoadError(f"the entry point {entry_point} is not defined in the bundle")


def _check_whole(defined: set[Path], entry_points: frozenset[str]) -> None:
    """Refuse a policy project that is given where a whole bundle is meant."""
    if EntryPoint.DECISION not in entry_points or entry_path(EntryPoint.DECISION) in defined:
        return
    if any(path[: len(CUSTOM)] == CUSTOM for path in defined):
        raise PolicyLoadError(
            "these are rules on top of the stock bundle, which does not decide by itself: give them as extension,"
            " or build a whole bundle with agenttool policy build --with-base"
        )


def _why_not(builtin: str, engine: str) -> str:
    if builtin in REFUSED_BUILTINS:
        return "which is refused on purpose: a decision depends on its input and its bundle alone"
    return f"which {engine} does not have or does not answer as OPA does"


def _check_recursion(program: Program) -> None:
    """Refuse cycles."""
    edges: dict[Path, dict[Path, Rule]] = {}
    for rule in program.rules:
        targets = edges.setdefault(rule.path, {})
        for path in _wanted(rule):
            for target in program.matching(path):
                targets[target.path] = target
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        asked, asking = error.args[1][:2]
        rule = edges[asking][asked]
        raise PolicyLoadError(f"{rule.file}:{rule.line}: {rule.name} is recursive") from None


def _wanted(rule: Rule) -> set[Path]:
    """Return the paths below ``data`` that a rule refers to or calls."""
    paths = {path for path, _, _ in rule.functions}
    for reference in rule.references:
        if reference.base != "data":
            continue
        # a local variable of the same name hides the rule
        if reference.path and reference.path[-1] in rule.shadows:
            continue
        paths.add(reference.path)
    return paths
