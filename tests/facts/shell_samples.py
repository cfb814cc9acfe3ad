"""Makes a name for every alternative of a regular expression: what a glob for a secret has to be
tried against.
"""

from __future__ import annotations

import re
from typing import Any


def samples_of(pattern: str) -> set[str]:
    """Paths that a pattern of ``sensitive.toml`` matches, at least one for each of its
    alternatives.
    """
    tree = re._parser.parse(pattern)  # type: ignore[attr-defined]  # the parser that re itself uses
    names = {name.strip("/") for name in _sequence(tree)}
    compiled = re.compile(pattern, re.IGNORECASE)
    return {name for name in names if name and compiled.search(name)}


def _sequence(items: Any) -> set[str]:
    """One alternative varied at a time: the sum of the alternatives, not their product."""
    choices: list[list[str]] = []
    base: list[str] = []
    for item in items:
        found = _choices(item)
        optional = str(item[0]) in ("MAX_REPEAT", "MIN_REPEAT") and item[1][0] == 0
        if optional and "".join(base).strip("/"):
            # what may follow a name is left out, what stands before a suffix is not
            found = ["", *found]
        choices.append(found)
        base.append(found[0])
    out = {"".join(base)}
    for index, choice in enumerate(choices):
        for variant in choice[1:]:
            out.add("".join([*base[:index], variant, *base[index + 1 :]]))
    return out


def _choices(item: Any) -> list[str]:
    kind, value = str(item[0]), item[1]
    if kind == "LITERAL":
        return [chr(value)]
    if kind in ("NOT_LITERAL", "ANY"):
        return ["x"]
    if kind == "IN":
        return [_member(value)]
    if kind == "BRANCH":
        return [name for branch in value[1] for name in sorted(_sequence(branch))]
    if kind == "SUBPATTERN":
        return sorted(_sequence(value[3]))
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        low, high, inner = value
        once = sorted(_sequence(inner))
        return once if low else ([*once, ""] if high else [""])
    return [""]


def _member(members: Any) -> str:
    kind, value = str(members[0][0]), members[0][1]
    if kind == "NEGATE":
        return "x"
    return chr(value if kind == "LITERAL" else value[0]) if kind in ("LITERAL", "RANGE") else "x"
