"""Calls of builtins whose result can be of any size: refused at load unless what bounds it is written out in the rule.

An evaluation in this process can't be interrupted inside a builtin, and one that fills the memory ends the process. So
``numbers.range``, ``net.cidr_expand`` and ``sprintf`` are taken with literal arguments within the limits below.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final

from agenttool_otel.errors import PolicyUnsupported
from agenttool_otel.policy.bundles.rego import Rule, calls_with_arguments

MAX_RANGE_ITEMS: Final = 10_000
MAX_ADDRESSES: Final = 4_096
MAX_FORMAT_WIDTH: Final = 1_000

_WIDTH: Final = re.compile(r"%[-+# 0]*(\*|\d+)?(?:\.(\*|\d+))?")


def check_bounds(rule: Rule) -> None:
    """Refuse a rule that calls a builtin without bounds."""
    for call, arguments in calls_with_arguments(rule):
        check = _CHECKS.get(call.name)
        problem = check(arguments) if check is not None else None
        if problem is not None:
            raise PolicyUnsupported(f"{rule.file}:{call.line}: {rule.name} uses {call.name} {problem}")


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
    return f"of more than {MAX_ADDRESSES} addresses" if network.num_addresses > MAX_ADDRESSES else None


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


_CHECKS: Final = {
    "numbers.range": _range,
    "numbers.range_step": _range,
    "net.cidr_expand": _addresses,
    "sprintf": _format,
}
