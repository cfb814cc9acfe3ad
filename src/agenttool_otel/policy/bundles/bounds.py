"""Calls of builtins whose result can be of any size: refused at load unless what bounds it is
written out in the rule.

An evaluation in this process can't be interrupted, and one that fills the memory ends the process.
So ``numbers.range``, ``net.cidr_expand`` and ``sprintf`` are taken with literal arguments within
the limits below, and loops inside one another over written-out collections as long as their steps
multiply to no more than a limit.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agenttool_otel.errors import PolicyUnsupported
from agenttool_otel.policy.rego.syntax import Path, Program, Rule, calls_with_arguments
from agenttool_otel.policy.rego.tree import Node, only

MAX_RANGE_ITEMS: Final = 10_000
MAX_ADDRESSES: Final = 4_096
MAX_FORMAT_WIDTH: Final = 1_000
MAX_STEPS: Final = 1_000_000

_WIDTH: Final = re.compile(r"%[-+# 0]*(\*|\d+)?(?:\.(\*|\d+))?")


def check_bounds(program: Program) -> None:
    """Refuse rules that call a builtin without bounds, or loop too often."""
    constants: dict[Path, int] = {}
    for rule in program.rules:
        assigned = _constant(rule)
        if assigned is not None:
            constants[rule.path] = _size(assigned["value"], {})
    for rule in program.rules:
        _check_calls(rule)
        steps = _steps(rule, constants)
        if steps > MAX_STEPS:
            raise PolicyUnsupported(
                f"{rule.file}:{rule.line}: {rule.name} loops {steps:,} times, and an evaluation can't be interrupted"
            )


def _check_calls(rule: Rule) -> None:
    for call, arguments in calls_with_arguments(rule):
        check = _CHECKS.get(call.name)
        problem = None if check is None else check(arguments)
        if problem is not None:
            raise PolicyUnsupported(
                f"{rule.file}:{call.line}: {rule.name} uses {call.name} {problem}"
            )


def _constant(rule: Rule) -> Node | None:
    """Return the assignment of a rule such as ``ports := [80, 443]``."""
    head: Node = rule.node.get("Spec", {}).get("head", {}).get("Compr", {})
    return head.get("assign") or None


def _steps(rule: Rule, constants: Mapping[Path, int]) -> int:
    """Return how often the innermost loop of a rule can run, as far as it is written out."""
    package = rule.path[:-1]
    sizes: dict[str, int] = {}
    for path, size in constants.items():
        if path[:-1] == package:
            sizes[path[-1]] = size
    for node in rule.nodes:
        assignment = node.get("AssignExpr")
        if assignment is not None and "Var" in assignment["lhs"]:
            name = assignment["lhs"]["Var"]["value"]
            sizes[name] = _size(assignment["rhs"], sizes)
    steps = 1
    for node in rule.nodes:
        for collection in _loops(node):
            steps *= _size(collection, sizes)
    return steps


def _loops(node: Node) -> Iterator[Node]:
    """Yield the collection that a node goes through."""
    if "SomeIn" in node:  # some port in ports
        yield node["SomeIn"]["collection"]
    if "Every" in node:  # every port in ports { ... }
        yield node["Every"]["domain"]


def _size(node: Node, sizes: Mapping[str, int]) -> int:
    """Return the size of a collection that is written out, and 1 of any other."""
    kind, value = only(node)
    if kind == "Var":
        return sizes.get(value["value"], 1)
    if kind in ("Array", "Set"):
        return max(1, len(value["items"]))
    if kind == "Object":
        return max(1, len(value["fields"]))
    if kind == "Call" and _is_range(value["fcn"]):
        return _range_size(value["params"]) or 1
    return 1


def _is_range(function: Node) -> bool:
    """Return whether a function is that of ``numbers.range(1, 10)``."""
    lookup = function.get("RefDot", {})
    field = lookup.get("field", ["", ""])
    return field[1] in ("range", "range_step")


def _range_size(arguments: list[Any]) -> int | None:
    """Return how many numbers a range has; ``None`` where a bound is not written out."""
    if len(arguments) < 2:
        return None
    first = _literal(arguments[0], "Number")
    last = _literal(arguments[1], "Number")
    if not isinstance(first, int) or not isinstance(last, int):
        return None
    return abs(last - first) + 1


def _range(arguments: list[Any]) -> str | None:
    size = _range_size(arguments)
    if size is None:
        return "with bounds that are not written out, so that its result could fill the memory"
    if size > MAX_RANGE_ITEMS:
        return f"for more than {MAX_RANGE_ITEMS} numbers"
    return None


def _addresses(arguments: list[Any]) -> str | None:
    text = _literal(arguments[0], "String", "RawString")
    if text is None:
        return "of a network that is not written out, so that its result could fill the memory"
    try:
        network = ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return None  # the builtin gives no value then
    if network.num_addresses > MAX_ADDRESSES:
        return f"of more than {MAX_ADDRESSES} addresses"
    return None


def _format(arguments: list[Any]) -> str | None:
    text = _literal(arguments[0], "String", "RawString")
    if text is None:
        return "with a format that is not written out, so that its result could fill the memory"
    for match in _WIDTH.finditer(text):
        if any(_is_too_wide(width) for width in match.groups()):
            return f"with a width that is not written out, or over {MAX_FORMAT_WIDTH}"
    return None


def _is_too_wide(width: str | None) -> bool:
    # "%9999999d" writes ten megabytes, "%*d" as many as an argument asks for
    if not width:
        return False
    return width == "*" or int(width) > MAX_FORMAT_WIDTH


def _literal(node: Node, *kinds: str) -> Any:
    for kind in kinds:
        if kind in node:
            return node[kind]["value"]
    return None


_CHECKS: Final = {
    "numbers.range": _range,
    "numbers.range_step": _range,
    "net.cidr_expand": _addresses,
    "sprintf": _format,
}
