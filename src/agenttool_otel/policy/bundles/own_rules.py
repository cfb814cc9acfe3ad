"""What is silent in Rego and mostly a slip, told at load: rule sets that nobody asks, and input
that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.input_schema import input_schema
from agenttool_otel.policy.rego.syntax import Path, Program, parse_program

KINDS: Final = ("deny", "ask", "allow")
"""Names of the rules that say something about a call, those that count most first."""

CUSTOM: Final = ("agenttool", "custom")
"""The package of one's own rules, which the stock decision asks, and those one level below it."""

_STOCK: Final = re.compile(r"^package\s+agenttool\.(?!custom\b)", re.MULTILINE)


def rule_problems(bundle: Bundle) -> list[str]:
    """Say which rules beside the stock ones can have no effect."""
    joined = "presets" in (bundle.data.get("agenttool") or {}).get("defaults", {})
    own = {
        file: text for file, text in bundle.modules.items() if not (joined and _STOCK.search(text))
    }
    if not own:
        return []
    program = parse_program(own)
    return [*(_unasked(program) if joined else ()), *_missing_input(program)]


def _unasked(program: Program) -> Iterator[str]:
    """Find sets that look like findings and that neither the decision nor another rule asks for."""
    asked = {path for rule in program.rules for path, _, _ in rule.functions}
    asked |= {
        reference.path
        for rule in program.rules
        for reference in rule.references
        if reference.base == "data"
    }
    for module in program.modules:
        size = len(module.package)
        placed = module.package[:2] == CUSTOM and size <= len(CUSTOM) + 1
        for rule in module.rules:
            name = rule.path[size] if len(rule.path) > size else ""
            near = did_you_mean(name, KINDS, cutoff=0.75)
            if (name in KINDS and placed) or not (name in KINDS or near):
                continue
            if not any(path[: len(rule.path)] == rule.path[: len(path)] for path in asked):
                where = (
                    near
                    if name not in KINDS
                    else "; agenttool.custom and one level below it are asked"
                )
                yield f"{rule.file}:{rule.line}: {rule.name} is asked by no decision{where}"


def _missing_input(program: Program) -> Iterator[str]:
    schema = input_schema()
    told: set[tuple[str, Path]] = set()
    for rule in program.rules:
        for reference in rule.references:
            if reference.base != "input" or (rule.file, reference.path) in told:
                continue
            told.add((rule.file, reference.path))
            if (lacks := _lacking(schema, reference.path)) is not None:
                name = ".".join(("input", *reference.path))
                yield f"{rule.file}:{reference.line}: {name} is not in a policy's input{lacks}"


_FREE: Final = {"type", "description"}


def _lacking(schema: Mapping[str, Any], path: Path) -> str | None:
    """Return what was meant by the first segment that no input has; ``None`` where all may
    be there.
    """
    nodes = [schema]
    for segment in path:
        branches = [branch for node in nodes for branch in node.get("anyOf", (node,))]
        if any(
            branch.get("type", "object") == "object" and branch.keys() <= _FREE
            for branch in branches
        ):
            return None  # whatever a tool takes
        known = [branch.get("properties", {}) for branch in branches]
        nodes = [members[segment] for members in known if segment in members]
        nodes += [
            more
            for branch in branches
            if isinstance(more := branch.get("additionalProperties"), Mapping)
        ]
        if not nodes:
            return did_you_mean(segment, [name for members in known for name in members])
    return None
