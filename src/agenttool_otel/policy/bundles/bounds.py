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
from collections.abc import Mapping
from math import prod
from typing import Any, Final

from agenttool_otel.errors import PolicyUnsupported
from agenttool_otel.policy.rego.syntax import Path, Program, Rule, calls_with_arguments

MAX_RANGE_ITEMS: Final = 10_000
MAX_ADDRESSES: Final = 4_096
MAX_FORMAT_WIDTH: Final = 1_000
MAX_STEPS: Final = 1_000_000

_WIDTH: Final = re.compile(r"%[-+# 0]*(\*|\d+)?(?:\.(\*|\d+))?")


def check_bounds(program: Program) -> None:
    """Refuse rules that call a builtin without bounds, or loop too often."""
    constants = {
        rule.path: _size(assign["value"], {})
        for rule in program.rules
        if (assign := _constant(rule))
    }
    for rule in program.rules:
        for call, arguments in calls_with_arguments(rule):
            check = _CHECKS.get(call.name)
            problem = check(arguments) if check is not None else None
            if problem is not None:
                raise PolicyUnsupported(
                    f"{rule.file}:{call.line}: {rule.name} uses {call.name} {problem}"
                )
        if (steps := _steps(rule, constants)) > MAX_STEPS:
            raise PolicyUnsupported(
                f"{rule.file}:{rule.line}: {rule.name} loops {steps:,} times, and an evaluation can't be interrupted"
            )


def _constant(rule: Rule) -> dict[str, Any] | None:
    head: dict[str, Any] = rule.node.get("Spec", {}).get("head", {}).get("Compr", {})
    return head.get("assign")


def _steps(rule: Rule, constants: Mapping[Path, int]) -> int:
    """Return how often the innermost loop of a rule can run, as far as it is written out."""
    package = rule.path[:-1]
    sizes = {path[-1]: size for path, size in constants.items() if path[:-1] == package}
    nodes = rule.nodes
    for node in nodes:
        if "AssignExpr" in node and "Var" in node["AssignExpr"]["lhs"]:
            sizes[node["AssignExpr"]["lhs"]["Var"]["value"]] = _size(
                node["AssignExpr"]["rhs"], sizes
            )
    loops = [node[kind][over] for node in nodes for kind, over in _LOOPS if kind in node]
    return prod(_size(collection, sizes) for collection in loops)


def _size(node: dict[str, Any], sizes: Mapping[str, int]) -> int:
    """Return the size of a collection that is written out, and 1 of any other."""
    if "Var" in node:
        return sizes.get(node["Var"]["value"], 1)
    for kind, items in (("Array", "items"), ("Set", "items"), ("Object", "fields")):
        if kind in node:
            return max(1, len(node[kind][items]))
    if "Call" in node:
        bounds = [_literal(argument, "Number") for argument in node["Call"]["params"][:2]]
        function = node["Call"]["fcn"].get("RefDot", {}).get("field", ["", ""])[1]
        if (
            function in {"range", "range_step"}
            and len(bounds) == 2
            and all(isinstance(bound, int) for bound in bounds)
        ):
            return int(abs(bounds[1] - bounds[0])) + 1
    return 1


def _range(arguments: list[Any]) -> str | None:
    bounds = [_literal(argument, "Number") for argument in arguments[:2]]
    if not all(isinstance(bound, int) for bound in bounds):
        return "with bounds that are not written out, so that its result could fill the memory"
    if abs(bounds[1] - bounds[0]) >= MAX_RANGE_ITEMS:
        return f"for more than {MAX_RANGE_ITEMS} numbers"
    return None


def _addresses(arguments: list[Any]) -> str | None:
    text = _literal(arguments[0], "String", "RawString")
    try:
        network = ipaddress.ip_network(str(text), strict=False) if text is not None else None
    except ValueError:
        return None  # the builtin gives no value then
    if network is None:
        return "of a network that is not written out, so that its result could fill the memory"
    return (
        f"of more than {MAX_ADDRESSES} addresses" if network.num_addresses > MAX_ADDRESSES else None
    )


def _format(arguments: list[Any]) -> str | None:
    text = _literal(arguments[0], "String", "RawString")
    if text is None:
        return "with a format that is not written out, so that its result could fill the memory"
    widths = [width for match in _WIDTH.finditer(text) for width in match.groups() if width]
    if any(width == "*" or int(width) > MAX_FORMAT_WIDTH for width in widths):
        return f"with a width that is not written out, or over {MAX_FORMAT_WIDTH}"
    return None


def _literal(node: dict[str, Any], *kinds: str) -> Any:
    return next((node[kind]["value"] for kind in kinds if kind in node), None)


_LOOPS: Final = (("SomeIn", "collection"), ("Every", "domain"))
_CHECKS: Final = {
    "numbers.range": _range,
    "numbers.range_step": _range,
    "net.cidr_expand": _addresses,
    "sprintf": _format,
}
